"""What `--json` prints is what docs/cli.schema.json says: every list and every show of a real
plane with a real machine and agents, in every state that is quick to make; and errors."""

import json
import os
import select
import signal
import subprocess

import jsonschema
import pytest

from harness.plane import ROOT, binary
from harness.tty import Tty
from harness.waiting import until

PLANE = {"admission__max_concurrent_per_agent": 2, "fleet__start_window": "300ms"}


def load(path):
    return json.loads((ROOT / path).read_text())


@pytest.fixture(scope="module")
def schema():
    """The published schema, as somebody has it who has that file alone."""
    own = load("docs/cli.schema.json")
    jsonschema.Draft202012Validator.check_schema(own)

    def part(name):
        # By its own part of the schema, whose words say what is wrong.
        return jsonschema.Draft202012Validator({"$defs": own["$defs"], "$ref": f"#/$defs/{name}"})

    def check(line, kind):
        body = json.loads(line)
        assert body["kind"] == kind, body
        names = [name for name in own["$defs"] if name in (f"list_{kind}", f"one_{kind}")]
        name = next(n for n in names if n.startswith("list_") == ("items" in body))
        part(name).validate(body)
        jsonschema.Draft202012Validator(own).validate(body)
        return body

    check.problem = part("Problem")
    return check


@pytest.fixture(scope="module")
def busy(module_world):
    """A plane with something of everything."""
    plane = module_world.plane(**PLANE)
    cli = module_world.cli(plane)
    # One that is full, and one that has room.
    module_world.plain_agent(plane, "plain")
    module_world.plain_agent(plane, "other")
    module_world.node(cli, "edge-1")
    done = json.loads(cli("call", "other.now", "--json").ok().out)
    failed = cli("call", "other.boom", "--json")
    assert failed.code != 0
    for _ in range(4):
        cli("call", "plain.mute", "--async").ok()
    worker = cli("spawn", "--name", "sleeper", "--", "sleep", "600").ok().out.strip()
    yield cli, done, worker
    cli("release", worker, "--grace", "0s")


LISTS = [
    ("executions", ["executions"]),
    ("executions", ["executions", "--state", "queued"]),
    ("executions", ["executions", "--state", "failed", "--since", "1h"]),
    ("runs", ["runs"]),
    ("agents", ["agents"]),
    ("queues", ["queues"]),
    ("nodes", ["nodes"]),
    ("workers", ["workers", "--ended"]),
    ("drift", ["drift"]),
    ("approvals", ["approvals"]),
    ("tags", ["tags"]),
    ("keys", ["keys", "list"]),
    ("webhooks", ["webhooks", "list"]),
    ("quarantine", ["quarantine", "list"]),
    ("audit", ["audit"]),
    ("usage", ["usage"]),
    ("usage", ["usage", "--by", "run"]),
    ("usage", ["usage", "--by", "day"]),
    ("config", ["config"]),
    ("search", ["search", "plain"]),
    ("overview", ["overview"]),
    ("fleet", ["fleet"]),
    ("agent", ["agents", "show", "plain"]),
    ("queue", ["queues", "show", "plain"]),
    ("node", ["nodes", "show", "edge-1"]),
    ("worker", ["workers", "show", "sleeper"]),
    ("history", ["agents", "history", "plain"]),
    ("history", ["nodes", "history", "edge-1"]),
    ("why", ["why", "plain"]),
    ("why", ["why", "edge-1"]),
    ("why", ["why", "sleeper"]),
    ("why", ["why", "plain", "--kind", "queue"]),
]


@pytest.mark.parametrize("kind, words", LISTS, ids=[" ".join(words) for _, words in LISTS])
def test_what_is_printed_is_what_the_schema_says(busy, schema, kind, words):
    cli, _, _ = busy
    ran = cli(*words, "--json").ok()
    assert ran.out.count("\n") == 1, "one line"
    body = schema(ran.out, kind)
    if kind in ("executions", "runs", "agents", "nodes", "workers", "keys", "config", "search"):
        assert body["items"], words


def test_one_execution_and_its_run_and_why_are_objects_of_the_schema(busy, schema):
    cli, done, _ = busy
    assert done["kind"] == "execution" and done["state"] == "succeeded", done
    one = schema(cli("executions", "show", done["id"], "--json").ok().out, "execution")
    assert one["result"] == done["result"] and one["ended_at"].endswith("Z")
    run = schema(cli("runs", "show", done["run_id"], "--json").ok().out, "run")
    assert [step["id"] for step in run["steps"]] == [done["id"]]
    for id in (done["id"], done["run_id"]):
        schema(cli("why", id, "--json").ok().out, "why")
    twice = json.loads(cli("call", "other.now", "--json").ok().out)
    pairs = schema(cli("compare", done["run_id"], twice["run_id"], "--all", "--json").ok().out, "compare")
    assert pairs["total"] == 1 and pairs["items"][0]["a"]["id"] == done["id"]


def test_what_waits_says_for_what_and_where_it_is(busy, schema):
    cli, _, _ = busy
    body = schema(cli("executions", "--state", "queued", "--json").ok().out, "executions")
    wait = body["items"][0]["wait"]
    assert wait["cause"] == "agent_full" and wait["holders"] == wait["cap"] == 2, wait
    assert wait["position"] >= 1 and wait["of"] >= 2, wait
    assert "agent full 2/2, position" in cli("executions", "--state", "queued").ok().out


def test_an_error_is_one_line_of_the_error_shape_and_stdout_is_empty(busy, schema):
    """Row: errors are the one error shape as a line on stderr, with what people are told: the
    hint, and what was seen."""
    cli, _, _ = busy
    for words, code in [
        (["executions", "show", "exec_01KB6E7M9QX2T4V8N0R53QH8ZT"], 66),
        (["call", "no.one"], 66),
        (["call", "other.boom"], 1),
        (["agents", "show"], 2),
        (["levitate"], 2),
        (["keys", "lst"], 2),
        (["keys", "revoke"], 2),
        (["executions", "--limit", "0"], 2),
        (["usage", "--by", "fun"], 2),
        (["webhooks", "show", "msg_no"], 66),
        (["quarantine", "show", "1"], 66),
        (["--server", f"{cli.plane.url}/base", "agents"], 66),
        (["queues", "cap", "plain", "many"], 2),
    ]:
        ran = cli(*words, "--json")
        assert ran.code == code and ran.out == "", ran
        error = json.loads(ran.err)
        schema.problem.validate(error)
        assert ran.err.count("\n") == 1, ran
        # People are told the same; a call has another id each time.
        if words != ["call", "other.boom"]:
            told = cli(*words).err
            assert f"hint: {error['hint']}" in told, (error, told)
        assert "`muster " in error["hint"] or "muster" in error["hint"], error
        assert "For more information" not in ran.err and "search WORD" not in error["hint"], error
    # Several that fit are listed for programs, too.
    several = cli("executions", "show", "exec_0", "--json")
    assert several.code == 65, several
    error = json.loads(several.err)
    schema.problem.validate(error)
    assert len(error["seen"]) >= 2 and all(id.startswith("exec_") for id in error["seen"]), error


def test_a_watched_list_is_a_line_each_time(busy, schema):
    cli, _, _ = busy
    watching = subprocess.Popen(
        [binary(), "executions", "--watch", "--json", "--limit", "2"],
        env=cli.environment(), cwd=cli.folder, stdout=subprocess.PIPE, text=True,
    )
    try:
        schema(watching.stdout.readline(), "executions")
        cli("call", "other.now", "-q").ok()
        schema(watching.stdout.readline(), "executions")
    finally:
        watching.kill()
        watching.wait(30)


@pytest.mark.parametrize("words", [["executions", "--watch"], ["overview", "--watch"], ["tail"], ["call", "other.mute"]])
def test_ctrl_c_is_an_error_line_and_130(busy, schema, words):
    """Row: what is left with Ctrl-C ends with 130, and programs are told so in the error shape."""
    cli, _, _ = busy
    left = subprocess.Popen(
        [binary(), *words, "--json"], env=cli.environment(), cwd=cli.folder,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )
    try:
        if words[0] == "call":
            until("it runs", lambda: "other.mute" in cli("executions", "--state", "running").ok().out)
        else:
            if words == ["tail"]:
                # Something happens until it has been seen.
                until("it is there", lambda: cli("call", "other.now", "-q").ok() and os_has_output(left))
            assert json.loads(left.stdout.readline())
        left.send_signal(signal.SIGINT)
        _, err = left.communicate(timeout=30)
    finally:
        left.kill()
    assert left.returncode == 130, err
    error = json.loads(err)
    schema.problem.validate(error)
    assert "Ctrl-C" in error["message"] and "muster" in error["hint"], error
    if words[0] == "call":
        cli("cancel", error["execution_id"]).ok()


def os_has_output(process):
    return bool(select.select([process.stdout], [], [], 0.2)[0])


def test_a_cap_is_set_and_taken_back(busy, schema):
    cli, _, _ = busy
    cap = schema(cli("queues", "cap", "plain", "3", "--json").ok().out, "cap")
    assert (cap["cap"], cap["was"]) == (3, 2)
    assert "has cap 2, by the configuration; it had cap 3" in cli("queues", "cap", "plain", "default").ok().out


def test_a_run_is_restarted_from_its_root(busy):
    cli, done, _ = busy
    ran = cli("restart", done["run_id"], "--reuse", "none", "--wait", "60s").ok()
    assert f"a restart of the run {done['run_id']}" in ran.err, ran


def test_nothing_is_asked_in_a_pipe_and_a_terminal_is_told_what_it_comes_to(module_world, busy):
    """Row: the consequence of a wide act is said first, in the plane's words."""
    cli, _, _ = busy
    cli("hold", "plain", "--reason", "a look").ok()
    refused = cli("unhold", "plain")
    assert refused.code == 2 and "--yes" in refused.err, refused
    cli("unhold", "plain", "--yes").ok()
    key = cli("keys", "create", "--scope", "read", "--name", "short-lived", "--json").json()
    terminal = module_world.also(Tty(cli, "keys", "revoke", key["id"]))
    terminal.see("Go on? [y/N]")
    terminal.type("n\n")
    assert terminal.wait() == 0
    assert "nothing was done" in terminal.shown
    states = {one["id"]: one["state"] for one in cli("keys", "list", "--json").json()["items"]}
    assert states[key["id"]] == "active"
    cli("keys", "revoke", key["id"], "--yes").ok()


def test_a_live_tree_stays_inside_its_terminal_and_the_result_is_alone(module_world, busy):
    """Row: the live tree on a terminal: redrawn in place, at most rows - 2, no alternate screen."""
    cli, _, _ = busy
    terminal = module_world.also(Tty(cli, "call", "other.later", rows=12, cols=70))
    assert terminal.wait() == 0
    shown = terminal.shown
    assert "other.later" in shown and "✓" in shown and "succeeded" in shown, shown
    assert "\x1b[?1049h" not in shown, "no alternate screen"
    # What is drawn between two moves up is the tree: never more than the terminal holds.
    for frame in shown.split("\x1b[J")[:-1]:
        assert frame.count("\n") <= 10, frame
    left = module_world.also(Tty(cli, "call", "other.mute", rows=12, cols=70))
    left.see("Ctrl-C leaves it running")
    os.killpg(left.process.pid, 2)
    assert left.wait() == 130
    assert "it goes on: muster why" in left.shown
    until("it runs", lambda: "other.mute" in cli("executions", "--state", "running").ok().out)
