"""The fleet from the command line, against a real plane and a real machine: every command, its
table, its JSON, its errors with hint and exit code; and a terminal, through a pseudo terminal."""

import json
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.child import Child
from harness.node import alive
from harness.plane import Plane, binary, quiet_environment
from harness.tty import Tty
from harness.waiting import until

QUICK = {
    "fleet__heartbeat": "2s",
    "fleet__node_grace": "3s",
    "fleet__start_window": "300ms",
}


@pytest.fixture(scope="module")
def fleet(module_world):
    """A plane, the commands of its owner, and one machine."""
    plane = module_world.plane(**QUICK)
    cli = module_world.cli(plane)
    node = module_world.node(cli, "edge-1")
    return cli, node


@pytest.fixture
def spawn(fleet):
    """Starts workers that end with the test."""
    cli, _ = fleet
    started = []

    def start(*arguments):
        ran = cli("spawn", *arguments)
        ran.ok()
        started.append(ran.out.strip())
        return started[-1]

    yield start
    for worker in started:
        cli("release", worker, "--grace", "0s")


def shown(cli, worker):
    return cli("workers", "show", worker, "--json").json()


def test_an_empty_fleet_says_how_to_begin(world):
    """Row: an empty list ends in the command that fills it."""
    cli = world.cli(world.plane(**QUICK))
    assert "muster nodes enroll NAME" in cli("nodes").ok().out
    assert "muster spawn --" in cli("workers").ok().out
    assert "none" in cli("drift").ok().out
    assert cli("nodes", "--json").json()["items"] == []
    refused = cli("spawn", "--", "true").failed(65, "no_eligible_node")
    assert "hint:" in refused.err
    refused = cli("workers", "show", "nobody").failed(66, "not_found")
    assert "hint:" in refused.err
    cli("nodes", "drain", "nobody").failed(66, "not_found")
    cli("release", "wrk_01KB6E7M9QX2T4V8N0R53QH8ZT").failed(66, "not_found")


def test_an_enrolment_prints_the_command_for_the_machine_and_says_that_it_ends(world):
    """Row: `muster nodes enroll`: a token, the exact command, its expiry."""
    cli = world.cli(world.plane(**QUICK))
    made = cli("nodes", "enroll", "edge-9", "--label", "gpu,zone=eu").ok()
    line = made.out.strip()
    assert line.startswith(f"muster node enroll --plane {cli.plane.url} --token ")
    assert line.endswith("&& muster node run")
    assert "within 14 m" in made.err or "within 15 m" in made.err
    token = line.split("--token ")[1].split()[0]
    # Used once, by the machine; the second one is refused.
    body = {"token": token, "labels": [], "max_workers": 0, "host": "x"}
    first = cli.plane.http.post("/api/v1/fleet/enroll", json=body)
    assert first.status_code < 300, first.text
    again = cli.plane.http.post("/api/v1/fleet/enroll", json=body)
    assert again.status_code in (401, 403, 409), again.text
    view = cli("nodes", "show", "edge-9", "--json").json()
    assert view["state"] == "connecting" and view["workers"] is None, view
    assert sorted(view["labels"]) == ["gpu", "zone=eu"]
    table = cli("nodes").ok().out
    assert "connecting" in table and "?" in table


def test_machines_are_listed_with_state_and_evidence_and_take_wishes(fleet, spawn):
    """Row: `muster nodes`, `show`, `cordon`, `activate`, `pin`, `unpin`, `drain`, and why."""
    cli, node = fleet
    table = cli("nodes").ok().out
    assert table.splitlines()[0].split() == [
        "NODE", "STATE", "EVIDENCE", "WORKERS", "SLOTS", "LABELS", "WISH",
    ]
    assert "● online" in table and "edge-1" in table
    item = cli("nodes", "--json").json()["items"][0]
    assert item["name"] == "edge-1" and item["workers"] == 0, item
    text = cli("nodes", "show", "edge-1").ok().out
    assert "online" in text and "fact" in text and "history" in text
    assert "online" in cli("why", "edge-1").ok().out
    assert "online" in cli("why", item["id"]).ok().out

    assert "cordoned" in cli("nodes", "cordon", "edge-1", "--reason", "a look").ok().out
    assert "a look" in cli("nodes", "show", "edge-1").ok().out
    refused = cli("spawn", "--node", "edge-1", "--", "true").failed(65, "node_draining")
    assert "hint:" in refused.err
    cli("nodes", "activate", "edge-1").ok()

    cli("nodes", "pin", "edge-1", "suspect", "--reason", "noisy").ok()
    assert "pinned suspect" in cli("nodes").ok().out
    assert cli("nodes", "show", "edge-1", "--json").json()["state"] == "suspect"
    cli("nodes", "unpin", "edge-1").ok()
    node.wait_state("online")
    assert cli("nodes", "pin", "edge-1", "connecting").code == 2

    worker = spawn("--name", "drained", "--", "sleep", "600")
    assert "drained" in cli("nodes", "drain", "edge-1").ok().err
    until("it is released", lambda: shown(cli, worker)["state"] == "exited", 60)
    cli("nodes", "activate", "edge-1").ok()


def test_a_worker_is_spawned_listed_explained_and_released(fleet, spawn):
    """Row: `muster spawn`, `workers`, `show`, `why`, `logs`, `release`."""
    cli, _ = fleet
    script = "echo here $WORD; exec sleep 600"
    ran = cli("spawn", "--name", "w-1", "--env", "WORD=blue", "--", "sh", "-c", script)
    worker = ran.ok().out.strip()
    assert worker.startswith("wrk_")
    assert "edge-1" in ran.err and "pid" in ran.err and "muster attach w-1" in ran.err
    view = shown(cli, "w-1")
    assert view["id"] == worker and view["state"] == "running" and alive(view["pid"])
    assert "blue" not in json.dumps(view), "a worker's variables are shown nowhere"
    table = cli("workers").ok().out
    assert worker in table and "● running" in table and "edge-1" in table
    assert cli("workers", "--node", "edge-1", "--json").json()["items"][0]["id"] == worker
    assert "running" in cli("why", worker).ok().out
    until("its output is there", lambda: "here blue" in cli("logs", "w-1").ok().out, 30)
    assert cli("workers", "show", worker[-8:], "--json").json()["id"] == worker

    ended = cli("release", "w-1", "--grace", "2s", "--reason", "done").ok()
    assert "w-1 has ended" in ended.out
    assert not alive(view["pid"])
    assert worker not in cli("workers").ok().out
    past = cli("workers", "--ended").ok().out
    assert worker in past and "exited" in past
    text = cli("workers", "show", worker).ok().out
    assert "exited" in text and "exit " in text and "done" in text


def test_what_cannot_be_placed_says_why_and_exits_by_its_category(world):
    """Row: each answer of a placement on the command line."""
    plane = world.plane(**QUICK)
    cli = world.cli(plane)
    world.node(cli, "small", places=1)
    failed = cli("spawn", "--", "sh", "-c", "echo last words; exit 7").failed(1, "agent_error")
    assert "exit 7" in failed.err and "last words" in failed.err
    assert failed.out.startswith("wrk_")
    failed = cli("spawn", "--", "/no/such/program")
    assert failed.code != 0 and "no" in failed.err.lower(), failed
    refused = cli("spawn", "--label", "gpu", "--", "true").failed(65, "no_eligible_node")
    assert "small" in refused.err, "each machine that was passed over is named"
    assert cli("spawn", "--restart", "often", "--", "true").code == 2

    first = cli("spawn", "--name", "one", "--key", "k-1", "--", "sleep", "600").ok().out.strip()
    again = cli("spawn", "--name", "one", "--key", "k-1", "--", "sleep", "600").ok().out.strip()
    assert first == again, "an idempotency key starts one worker"
    cli("spawn", "--name", "two", "--key", "k-1", "--", "sleep", "5").failed(
        65, "idempotency_conflict"
    )
    full = cli("spawn", "--", "sleep", "600").failed(75, "fleet_capacity")
    assert "queue" in full.err and "small" in full.err
    waits = cli("spawn", "--queue=10m", "--name", "later", "--", "sleep", "600").ok()
    assert "waits for a place" in waits.err
    assert "○ queued" in cli("workers").ok().out
    assert "given up" in cli("release", "later").ok().out
    queued = cli("spawn", "--queue", "--name", "next", "--", "sleep", "600").ok().out.strip()
    cli("release", "one", "--grace", "0s").ok()
    until("the place was taken", lambda: shown(cli, queued)["state"] == "running", 60)
    short = cli("spawn", "--queue=1s", "--name", "short", "--", "true").ok().out.strip()
    until("it expires", lambda: shown(cli, short)["state"] == "exited", 60)
    assert shown(cli, short)["error_category"] == "placement_expired"
    assert "placement expired" in cli("workers", "show", short).ok().out
    cli("release", "next", "--grace", "0s").ok()


def test_a_restart_policy_is_shown_with_its_count(fleet, spawn):
    """Row: on-failure with back-off; the last exit is shown while it waits or runs again."""
    cli, _ = fleet
    worker = spawn("--restart", "on-failure:5", "--start-window", "100ms", "--", "sh", "-c",
                   "sleep 1; echo fell over; exit 3")
    until("it was started again", lambda: shown(cli, worker)["restarts"] >= 1, 60)
    text = cli("workers", "show", worker).ok().out
    assert "on-failure" in text and "of 5 so far" in text and "exit 3" in text, text


def test_a_worker_is_restarted_by_hand_and_stays_itself(world, fleet, spawn):
    """Row: `muster workers restart`: another process, the same worker, whatever its policy; it asks
    first; who watches stays."""
    cli, node = fleet
    worker = spawn("--name", "steady", "--env", "WORD=blue", "--", "sh", "-c",
                   "echo $$ has $WORD; exec sleep 600")
    before = shown(cli, worker)
    until("its output is there", lambda: f"{before['pid']} has blue" in cli("logs", worker).ok().out, 30)
    tty = world.also(Tty(cli, "attach", "steady", "--read-only"))
    tty.see(f"{before['pid']} has blue")
    asked = cli("workers", "restart", "steady").failed(2, "validation")
    assert "SIGTERM" in asked.err and "same id" in asked.err and "--yes" in asked.err, asked.err
    assert shown(cli, worker)["pid"] == before["pid"], "nothing was done"

    ran = cli("workers", "restart", "steady", "--grace", "2s", "--reason", "a new model", "--yes")
    after = shown(cli, worker)
    assert f"steady runs again, as process {after['pid']}" in ran.ok().out
    assert after["id"] == worker and after["restarts"] == 1 and after["state"] == "running", after
    assert after["pid"] != before["pid"] and alive(after["pid"]) and not alive(before["pid"])
    assert after["restart"]["mode"] == "never"
    tty.see(f"{after['pid']} has blue")
    tty.type("\x1d")
    assert tty.wait() == 0, tty.shown
    text = cli("workers", "show", worker).ok().out
    assert "restarted by" in text and "a new model" in text, text

    # Two at once are one, and a daemon that came later does it, too.
    node.kill_9()
    node.start()
    until("it is confirmed", lambda: shown(cli, worker)["state"] == "running", 60)
    with ThreadPoolExecutor(2) as two:
        both = [two.submit(cli, "workers", "restart", worker, "--yes", "--json") for _ in range(2)]
        both = [one.result().json() for one in both]
    assert [one["started"] for one in both] == [True, True], both
    assert [one["worker"]["restarts"] for one in both] == [2, 2], both
    cli("release", worker, "--grace", "0s").ok()
    ended = cli("workers", "restart", worker, "--yes").failed(65, "conflict")
    assert "has ended" in ended.err, ended.err


def test_a_silent_machine_is_unknown_and_never_zero(world):
    """Row: suspect, unreachable: `?` with what was last known; a placement answers at once."""
    plane = world.plane(**QUICK)
    cli = world.cli(plane)
    node = world.node(cli, "mini-7")
    worker = cli("spawn", "--name", "w", "--", "sleep", "600").ok().out.strip()
    pid = shown(cli, worker)["pid"]
    node.child.signal(signal.SIGSTOP)
    node.wait_state("unreachable", within=90)
    table = cli("nodes").ok().out
    row = next(line for line in table.splitlines() if "mini-7" in line)
    assert "? unreachable" in row and "? last known 1" in row, row
    assert "unknown" in table.splitlines()[-1] or "?" in row
    view = cli("nodes", "show", "mini-7", "--json").json()
    assert view["workers"] is None and view["workers_reason"], view
    assert view["workers_last"]["value"] == 1
    assert shown(cli, worker)["state"] == "unknown"
    assert "? unknown" in cli("workers").ok().out
    began = time.monotonic()
    refused = cli("spawn", "--node", "mini-7", "--", "true").failed(69, "node_unreachable")
    assert time.monotonic() - began < 10 and "worth trying again" in refused.err
    refused = cli("logs", worker).failed(69, "node_unreachable")
    assert "mini-7 is unreachable" in refused.err and "hint:" in refused.err, refused.err
    began = time.monotonic()
    refused = cli("attach", worker).failed(69, "node_unreachable")
    assert time.monotonic() - began < 10 and "mini-7 is away" in refused.err, refused.err
    tty = world.also(Tty(cli, "attach", "w"))
    tty.see("mini-7 is away and waited for", within=10)
    tty.type("\x1d")
    assert tty.wait() == 0 and tty.is_restored(), tty.shown
    waits = cli("release", worker).ok()
    assert "as soon as its machine can be told" in waits.out
    assert alive(pid), "nothing was killed"
    summary = cli("fleet").ok().out
    assert "unreachable" in summary and "unknown" in summary, summary

    node.child.signal(signal.SIGCONT)
    node.wait_state("online", within=90)
    until("the wish reached it", lambda: shown(cli, worker)["state"] == "exited", 60)
    assert not alive(pid)


def test_a_machine_that_just_fell_silent_is_said_to_be_so_in_time(world):
    """Row: the plane has no verdict yet: logs, attach and `node stop` end with what was seen; what
    was given up is not done when the daemon goes on."""
    plane = world.plane()
    cli = world.cli(plane)
    node = world.node(cli, "mini-8")
    worker = cli("spawn", "--name", "w", "--", "sleep", "600").ok().out.strip()
    node.child.signal(signal.SIGSTOP)
    began = time.monotonic()
    refused = cli("logs", worker).failed(69, "node_unreachable")
    assert time.monotonic() - began < 6, "about 3 s"
    assert "painted no screen" in refused.err and "mini-8 is" in refused.err, refused.err
    refused = cli("attach", worker).failed(69, "node_unreachable")
    assert "mini-8 is away" in refused.err, refused.err
    stopping = [binary(), "node", "stop", "--stop-workers", "--state", str(node.state)]
    stop = subprocess.run(
        stopping, env=node.environment(), capture_output=True, text=True, timeout=60
    )
    assert stop.returncode == 69 and "stopped or starved" in stop.stderr, stop
    node.child.signal(signal.SIGCONT)
    until("it found that", lambda: "asked and hung up" in node.child.output(), 30)
    assert node.child.alive and not node.status()["stopping"]
    node.wait_state("online")
    assert shown(cli, worker)["state"] == "running"


def test_a_machine_is_declared_lost_retired_and_deleted_only_with_a_yes(world):
    """Row: what is final says its consequence first and asks."""
    plane = world.plane(**QUICK)
    cli = world.cli(plane)
    node = world.node(cli, "old")
    worker = cli("spawn", "--name", "orphan", "--", "sleep", "600").ok().out.strip()
    node.kill_9()
    node.wait_state("unreachable", within=90)
    asked = cli("nodes", "lost", "old")
    assert asked.code == 2 and "orphan" in asked.err and "--yes" in asked.err, asked
    cli("nodes", "lost", "old", "--yes", "--reason", "stolen").ok()
    assert shown(cli, worker)["state"] == "lost"
    assert "lost ?" in cli("workers", "--ended").ok().out
    cli("nodes", "retire", "old", "--yes").ok()
    assert "old" not in cli("nodes").ok().out
    cli("nodes", "delete", "old", "--yes").ok()
    cli("nodes", "show", "old").failed(66, "not_found")


def test_a_terminal_is_driven_handed_over_and_left_running(world, fleet, spawn):
    """Row: attach: type, see, a second viewer, hand-over, resize, leave; the worker runs on and the
    terminal is as it was."""
    cli, _ = fleet
    worker = spawn("--name", "term", "--", "bash", "--norc", "--noprofile")
    pid = shown(cli, worker)["pid"]
    one = world.also(Tty(cli, "attach", "term", rows=33, cols=101))
    one.see("you drive")
    one.type("echo a$((40+2))b\r")
    one.see("a42b")
    one.type("stty size\r")
    one.see("33 101")
    mark = one.mark()
    one.resize(25, 90)
    until("the worker's terminal follows", lambda: _size(one, mark, "25 90"), 30, 0.3)

    two = world.also(Tty(cli, "attach", "term"))
    # What was on the screen before is painted for who joins.
    two.see("a42b")
    two.see("drives, you watch")
    two.type("echo not$((1+1))me\r")
    one.type("echo c$((50+1))d\r")
    two.see("c51d")
    assert "not2me" not in two.shown and "not2me" not in one.shown

    third = world.also(Tty(cli, "attach", "term", "--drive"))
    assert third.wait() == 65, third.shown
    assert "hint:" in third.shown and third.is_restored()

    taker = world.also(Tty(cli, "attach", "term", "--take"))
    taker.see("you drive")
    one.see("drives now, you watch")
    mark = taker.mark()
    taker.type("echo e$((60+1))f\r")
    taker.see("e61f", mark)
    one.see("e61f")

    for terminal in (taker, one, two):
        terminal.type("\x1d")
        assert terminal.wait() == 0, terminal.shown
        assert "it runs on" in terminal.shown and terminal.is_restored()
    assert alive(pid) and shown(cli, worker)["state"] == "running"


def test_who_types_where_nobody_drives_takes_the_keyboard(world, fleet, spawn):
    """Row: the keyboard is free: typing takes it, and nothing that was typed is lost. It is not:
    one line says whose it is. Viewers of one person are told apart."""
    cli, _ = fleet
    spawn("--name", "free", "--", "bash", "--norc", "--noprofile")
    one = world.also(Tty(cli, "attach", "free"))
    one.see("you drive")
    two = world.also(Tty(cli, "attach", "free"))
    two.see("drives, you watch")
    mark = two.mark()
    two.type("x")
    two.see("--take", mark)
    mark = two.mark()
    two.type("y")
    three = world.also(Tty(cli, "attach", "free", "--read-only"))
    three.see("drives, you watch")
    one.type("\x1d")
    assert one.wait() == 0
    two.see("nobody drives, you do when you type", mark)
    assert "--take" not in two.shown[mark:], "it is said once"
    three.type("echo not$((1+1))me\r")
    two.type("echo g$((70+1))h\r")
    two.see("nobody drove, and you type: you drive", mark)
    two.see("g71h", mark)
    three.see("#2 drives")
    three.see("g71h")
    assert "not2me" not in three.shown
    for terminal in (two, three):
        terminal.type("\x1d")
        assert terminal.wait() == 0 and terminal.is_restored()


def _size(terminal, mark, wanted):
    terminal.type("stty size\r")
    time.sleep(0.2)
    return wanted in terminal.shown[mark:]


def test_a_terminal_says_why_it_closed(world, fleet, spawn):
    """Row: a close always says why: the worker ended; it cannot be attached to afterwards."""
    cli, _ = fleet
    worker = spawn("--name", "short", "--", "cat")
    tty = world.also(Tty(cli, "attach", "short"))
    tty.see("you drive")
    tty.type("hello\r")
    tty.see("hello")
    tty.type("\x04")
    assert tty.wait() == 0, tty.shown
    assert "closed:" in tty.shown and tty.is_restored()
    until("it has ended", lambda: shown(cli, worker)["state"] == "exited", 30)
    refused = cli("attach", worker)
    assert refused.code != 0 and "error[" in refused.err, refused
    assert "ended" in refused.err


def test_a_worker_with_pipes_is_watched_and_takes_no_keys(world, fleet, spawn):
    """Row: `--pipes`: output alone."""
    cli, _ = fleet
    spawn("--name", "piped", "--pipes", "--", "sh", "-c", "while :; do echo tick; sleep 0.5; done")
    tty = world.also(Tty(cli, "attach", "piped"))
    tty.see("tick")
    assert "you drive" not in tty.shown
    tty.type("\x1d")
    assert tty.wait() == 0 and tty.is_restored()


def test_a_pipe_only_watches(fleet, spawn):
    """Row: without a terminal on this side attach shows the output and takes no keys."""
    cli, _ = fleet
    spawn("--name", "loud", "--", "sh", "-c", "sleep 2; echo the end of it; sleep 1")
    watched = cli("attach", "loud", stdin="rm -rf nothing\n")
    assert watched.code == 0 and "the end of it" in watched.out, watched
    assert "rm -rf" not in watched.out and "closed:" in watched.err


def test_a_terminal_comes_back_after_the_plane_was_away(world):
    """Row: a lost connection is said, made again, and painted anew; the worker never noticed."""
    plane = world.plane(**QUICK)
    cli = world.cli(plane)
    node = world.node(cli, "edge-1")
    worker = cli("spawn", "--name", "term", "--", "bash", "--norc").ok().out.strip()
    pid = shown(cli, worker)["pid"]
    tty = world.also(Tty(cli, "attach", "term"))
    tty.see("you drive")
    tty.type("echo before$((1+1))\r")
    tty.see("before2")
    mark = tty.mark()
    plane.kill_9()
    tty.see("trying again", mark)
    plane.start()
    node.wait_state("online", within=90)
    tty.see("connected again", mark, within=90)
    tty.see("you drive", mark, within=90)
    mark = tty.mark()
    tty.type("echo after$((2+2))\r")
    tty.see("after4", mark)
    assert alive(pid)
    tty.type("\x1d")
    assert tty.wait() == 0 and tty.is_restored()
    cli("release", worker, "--grace", "0s").ok()


def test_dev_has_a_local_node_whose_workers_end_with_it(world):
    """Row: `muster dev` starts a node named local; Ctrl-C releases its workers."""
    for keep in (False, True):
        plane = Plane(world.folder / f"dev-{keep}")
        world.planes.append(plane)
        command = [binary(), "dev", "--port", str(plane.port), "--data", str(plane.data)]
        start_dev(plane, world.folder, command + (["--keep-workers"] if keep else []))
        cli = world.cli(plane)
        until("its line is there", lambda: local_line(plane), 60)
        worker = cli("spawn", "--name", "mine", "--", "sleep", "600").ok().out.strip()
        pid = shown(cli, worker)["pid"]
        plane.child.signal(signal.SIGINT)
        assert plane.child.wait(90) in (0, 130)
        assert alive(pid) == keep
        if keep:
            start_dev(plane, world.folder, command)
            until("its line is there", lambda: local_line(plane), 60)
            until("it is found again", lambda: shown(cli, worker)["state"] == "running", 60)
            assert shown(cli, worker)["pid"] == pid and alive(pid)
            plane.child.signal(signal.SIGINT)
            assert plane.child.wait(90) in (0, 130)
            assert not alive(pid)


def test_dev_works_without_its_node(world):
    """Row: a local node that cannot start is said; the plane and the agent go on."""
    plane = Plane(world.folder / "dev")
    world.planes.append(plane)
    plane.data.mkdir()
    # Where its state directory should be.
    (plane.data / "node").write_text("in the way")
    command = [binary(), "dev", "--port", str(plane.port), "--data", str(plane.data)]
    start_dev(plane, world.folder, command)
    until("it is said", lambda: "the local node cannot run" in plane.child.output(), 60)
    until("the agent answers", lambda: plane.call("hello.greet", {"name": "you"}).status_code == 200, 60)
    cli = world.cli(plane)
    cli("spawn", "--", "true").failed(69, "node_unreachable")
    plane.child.signal(signal.SIGINT)
    assert plane.child.wait(60) in (0, 130)


def start_dev(plane, folder, command):
    plane.child = Child("dev", command, env=quiet_environment(HOME=folder), cwd=folder)
    plane.past.append(plane.child)
    plane.wait_ready(60)


def local_line(plane):
    """`node local ● online 8 slots`."""
    wanted = ("node", "local", "online", "8 slots")
    return [line for line in plane.child.lines if all(word in line for word in wanted)]
