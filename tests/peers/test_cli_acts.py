"""Acts that reach far say first what they come to, in the plane's words, and ask: on a terminal
with y or n, with `--yes` not at all, and where nobody can be asked they are refused with the
hint and change nothing."""

import json

import pytest

from harness.tty import Tty
from harness.waiting import until

SETTINGS = {
    "admission__max_concurrent_per_agent": 2,
    "fleet__heartbeat": "500ms",
    "fleet__node_grace": "3s",
    "fleet__start_window": "300ms",
    "agents__restart_grace": "1s",
}


@pytest.fixture
def site(world):
    plane = world.plane(**SETTINGS)
    return plane, world.cli(plane)


def refused(ran, *said):
    """Nobody could be asked: what it comes to, the hint, and nothing on stdout."""
    ran.failed(2, "validation")
    assert ran.out == "", ran
    assert "nobody is there to be asked; nothing was done" in ran.err, ran
    assert "hint: with --yes it is done without a question" in ran.err, ran
    for text in said:
        assert text in ran.err, (text, ran)


def refused_in_json(ran, *said):
    """The same for programs: one line."""
    assert ran.code == 2 and ran.out == "" and ran.err.count("\n") == 1, ran
    error = json.loads(ran.err)
    assert error["error_category"] == "validation" and "--yes" in error["hint"], error
    for text in said:
        assert any(text in line for line in error["seen"]), (text, error)


def says_no_then_yes(world, cli, words, *said, done):
    """On a terminal: what it comes to before the question; no does nothing, yes does it."""
    for answer in ("n", "", "y"):
        terminal = world.also(Tty(cli, *words, cols=120))
        terminal.see("[y/N]")
        before = terminal.shown.split("[y/N]")[0]
        for text in said:
            assert text in before, (text, terminal.shown)
        assert not done(), "nothing is done before the answer"
        terminal.type(answer + "\n")
        assert terminal.wait() == 0, terminal.shown
        assert ("nothing was done" in terminal.shown) == (answer != "y"), terminal.shown
        assert bool(done()) == (answer == "y"), answer


def run_of(plane, agent, run, members):
    for _ in range(members):
        answer = plane.submit(f"{agent}.mute", X_Run_ID=run)
        assert answer.status_code == 202, answer.text


def open_of(cli, run):
    counts = json.loads(cli("runs", "show", run, "--json").ok().out)["counts"]
    return sum(n for state, n in counts.items() if state in ("queued", "running", "waiting"))


def test_a_wide_cancel_names_how_many_and_whom(world, site):
    plane, cli = site
    world.plain_agent(plane, "slow")
    run_of(plane, "slow", "run_wide", 25)
    until("two run", lambda: "running" in cli("executions", "--state", "running").ok().out)
    refused(cli("cancel", "run_wide", "--tree"), "25 executions", "slow")
    refused_in_json(cli("cancel", "run_wide", "--tree", "--json"), "25 executions")
    assert open_of(cli, "run_wide") == 25
    says_no_then_yes(
        world, cli, ("cancel", "run_wide", "--tree"), "25 executions", "agents that are told: slow",
        done=lambda: open_of(cli, "run_wide") == 0,
    )
    # A small one is not asked about; --yes asks about none, and repeating is harmless.
    run_of(plane, "slow", "run_small", 3)
    assert "3 ended in one commit" in cli("cancel", "run_small", "--tree").ok().out
    run_of(plane, "slow", "run_other", 25)
    quiet = cli("cancel", "run_other", "--tree", "--yes").ok()
    assert "25 ended in one commit" in quiet.out and "[y/N]" not in quiet.err, quiet
    assert "0 ended in one commit" in cli("cancel", "run_other", "--tree", "--yes").ok().out


def test_letting_go_of_a_hold_says_what_goes_out(world, site):
    plane, cli = site
    world.plain_agent(plane, "bank")
    cli("hold", "bank", "--reason", "the bank is closed").ok()
    run_of(plane, "bank", "run_held", 3)
    refused(cli("unhold", "bank"), "3 to bank")
    refused_in_json(cli("unhold", "bank", "--json"), "3 to bank")
    is_held = lambda: cli("agents", "show", "bank", "--json").json()["held"]  # noqa: E731
    assert is_held()
    says_no_then_yes(world, cli, ("unhold", "bank"), "3 to bank", done=lambda: not is_held())
    cli("hold", "--reason", "everything").ok()
    refused(cli("unhold"))
    assert "lifted" in cli("unhold", "--yes").ok().out


def test_a_key_that_ends_says_who_used_it(world, site):
    _, cli = site
    made = [cli("keys", "create", "--scope", "read", "--name", n, "--json").json() for n in "ab"]
    one, other = (key["id"] for key in made)

    def state(id):
        keys = cli("keys", "list", "--json").json()["items"]
        return next(key["state"] for key in keys if key["id"] == id)

    refused(cli("keys", "revoke", one))
    refused_in_json(cli("keys", "revoke", one, "--json"))
    assert state(one) == "active"
    says_no_then_yes(
        world, cli, ("keys", "revoke", one), "never used", done=lambda: state(one) == "revoked"
    )
    assert "revoked" in cli("keys", "revoke", other, "--yes").ok().out
    assert state(other) == "revoked"


def test_an_agent_that_is_gone_is_taken_off_the_list(world, site):
    plane, cli = site
    agents = [world.plain_agent(plane, name) for name in ("old", "older")]
    done = json.loads(cli("call", "old.now", "--json").ok().out)
    # While it is there, it is not retired, whatever is said.
    cli("agents", "retire", "old", "--yes").failed(65, "conflict")
    for agent in agents:
        agent.stop()
        plane.http.post(f"/api/v1/nodes/{agent.node_id}/shutdown", json={}).raise_for_status()
    names = lambda: cli("agents").ok().out  # noqa: E731
    until("they are down", lambda: names().count(" down") == 2)
    refused(cli("agents", "retire", "old"), "old")
    refused_in_json(cli("agents", "retire", "old", "--json"), "old")
    says_no_then_yes(
        world, cli, ("agents", "retire", "old"), "old", done=lambda: "old " not in names()
    )
    assert "off the list" in cli("agents", "retire", "older", "--yes").ok().out
    assert cli("executions", "show", done["id"]).ok(), "its executions stay"


def test_a_machine_is_declared_lost_retired_and_deleted(world, site):
    _, cli = site
    node = world.node(cli, "edge-9")
    cli("spawn", "--name", "orphan", "--", "sleep", "600").ok()
    node.kill_9()
    node.wait_state("unreachable", within=90)

    def state(of):
        nodes = cli.plane.http.get("/api/v1/fleet/nodes?retired=true").json()["nodes"]
        found = [one for one in nodes if one["name"] == "edge-9"]
        return found[0][of] if found else None

    orphan = lambda: cli("workers", "show", "orphan", "--json").json()["state"]  # noqa: E731
    refused(cli("nodes", "lost", "edge-9"), "orphan")
    refused_in_json(cli("nodes", "lost", "edge-9", "--json"), "orphan")
    says_no_then_yes(
        world, cli, ("nodes", "lost", "edge-9"), "orphan", done=lambda: orphan() == "lost"
    )
    refused(cli("nodes", "retire", "edge-9"))
    says_no_then_yes(
        world, cli, ("nodes", "retire", "edge-9"), "edge-9",
        done=lambda: state("wish") == "retired" or state("state") == "retired",
    )
    refused(cli("nodes", "delete", "edge-9"))
    refused_in_json(cli("nodes", "delete", "edge-9", "--json"))
    says_no_then_yes(
        world, cli, ("nodes", "delete", "edge-9"), "edge-9", done=lambda: state("name") is None
    )
    cli("nodes", "show", "edge-9").failed(66, "not_found")


def test_doubt_is_ended_only_with_a_yes(site):
    _, cli = site
    refused(cli("fleet", "end-doubt"), "believes of machines")
    # There is none to end; the act was sent.
    ended = cli("fleet", "end-doubt", "--yes").failed(65, "conflict")
    assert "hint: `muster fleet`" in ended.err, ended
