"""Workers that are agents: the real SDK as a process of a machine. It is linked by its key, called
through its machine's link, and its exit and restart are evidence."""

import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from harness import network
from harness.agent import SCRIPTS
from harness.node import alive
from harness.waiting import free_port, until

QUICK = {
    "fleet__heartbeat": "2s",
    "fleet__node_grace": "5s",
    "fleet__start_window": "300ms",
    "agents__restart_grace": "60s",
}


@pytest.fixture
def fleet(world):
    plane = world.plane(**QUICK)
    cli = world.cli(plane)
    node = world.node(cli, "edge-1")
    return plane, cli, node


def spawn_agent(cli, name, *options, script="basic.py"):
    """Starts an agent as a worker; its id, and the port it listens on."""
    port = free_port()
    ran = cli(
        "spawn", "--name", f"w-{name}", "--cwd", str(SCRIPTS),
        "--env", f"NODE_ID={name}",
        "--env", f"AGENT_PORT={port}",
        "--env", f"AGENT_CALLBACK_URL=http://127.0.0.1:{port}",
        "--env", "AGENTFIELD_DISABLE_IP_DETECTION=true",
        "--env", "PYTHONUNBUFFERED=1",
        *options, "--", sys.executable, script,
    )  # fmt: skip
    return ran.ok().out.strip(), port


def answers(plane, name):
    """Waits until it is registered and answers."""
    until(f"{name} answers", lambda: plane.call(f"{name}.add", {"a": 1, "b": 2}).status_code == 200, 120, 0.3)


def shown(cli, worker):
    return cli("workers", "show", worker, "--json").json()


def test_a_worker_that_registers_with_its_key_is_linked_and_called(fleet):
    """Row: linked by its key; each names the other; `muster call` works."""
    plane, cli, _ = fleet
    worker, _ = spawn_agent(cli, "linked")
    answers(plane, "linked")
    assert shown(cli, worker)["agent"] == "linked"
    assert "linked" in cli("workers").ok().out
    assert worker in cli("agents", "show", "linked", "--json").ok().out
    assert worker[-6:] in cli("agents", "show", "linked").ok().out
    called = cli("call", "linked.hello", "--input", '{"name": "you"}', "-q").ok()
    assert called.out.strip() == '{"hello":"you"}'
    ended = cli("release", worker).ok()
    assert "has ended" in ended.out
    view = shown(cli, worker)
    assert view["ended_how"] == "released", view


def test_the_exit_of_a_worker_is_evidence_at_once(fleet, tmp_path):
    """Row: its exit ends what the process had taken; what is idempotent runs again."""
    plane, cli, _ = fleet
    worker, _ = spawn_agent(cli, "mortal", "--restart", "on-failure:5")
    answers(plane, "mortal")
    pid = shown(cli, worker)["pid"]
    marks = tmp_path / "marks"
    taken = plane.submit("mortal.slow", {"seconds": 300}).json()["execution_id"]
    again = plane.submit("mortal.again", {"seconds": 3, "mark": str(marks)}).json()["execution_id"]
    until("both are under way", lambda: marks.exists()
          and plane.execution(taken)["status"] == "running", 60)
    import os

    os.kill(pid, signal.SIGKILL)
    ended = plane.wait_end(taken, within=60)
    assert ended["status"] == "failed", ended
    assert ended["error_category"] == "agent_restart_orphaned", ended
    # Sent while its process is away: it waits for the restart, and the restart ends the wait.
    waits = plane.submit("mortal.add", {"a": 20, "b": 22}).json()["execution_id"]
    assert plane.wait_end(waits, within=120)["status"] == "succeeded"
    assert plane.wait_end(again, within=120)["status"] == "succeeded"
    view = shown(cli, worker)
    assert view["restarts"] >= 1 and view["pid"] != pid and view["exit"]["signal"] == 9, view
    assert len(set(marks.read_text().split())) == 2, "two processes ran it"


def test_calls_wait_over_a_restart_by_hand(fleet):
    """Row: restarted by hand, whatever its policy: calls wait for the new process, and its key is
    the same."""
    plane, cli, _ = fleet
    worker, _ = spawn_agent(cli, "steady")
    answers(plane, "steady")
    before = shown(cli, worker)
    assert before["restart"]["mode"] == "never", before
    restart = threading.Thread(target=lambda: cli("workers", "restart", worker, "--yes"))
    restart.start()
    until("its process ended", lambda: not alive(before["pid"]), 60)
    waits = plane.submit("steady.add", {"a": 20, "b": 22}).json()["execution_id"]
    assert plane.wait_end(waits, within=120)["status"] == "succeeded"
    restart.join()
    view = shown(cli, worker)
    assert view["agent"] == "steady" and view["restarts"] == 1, view


def test_a_worker_without_restart_takes_its_calls_with_it(fleet):
    """Row: no restart is to come, so nothing waits for one."""
    plane, cli, _ = fleet
    worker, _ = spawn_agent(cli, "single")
    answers(plane, "single")
    taken = plane.submit("single.slow", {"seconds": 300}).json()["execution_id"]
    plane.wait_status(taken, "running")
    cli("release", worker, "--grace", "0s").ok()
    ended = plane.wait_end(taken, within=60)
    assert ended["status"] == "failed", ended
    refused = plane.call("single.add", {"a": 1, "b": 2})
    assert refused.status_code == 503, refused.text
    assert refused.json()["error_category"] in ("node_unavailable", "agent_unreachable")


def attempts(plane, id):
    return plane.http.get(f"/api/v1/executions/{id}/attempts").text


def nodes(cli):
    return cli("nodes", "--json").json()["items"]


def test_calls_outlive_the_death_of_the_daemon(fleet):
    """Row: kill -9 of the daemon while calls run: the agent runs on, no execution fails."""
    plane, cli, node = fleet
    worker, _ = spawn_agent(cli, "sturdy")
    answers(plane, "sturdy")
    pid = shown(cli, worker)["pid"]
    running = [plane.submit("sturdy.slow", {"seconds": 4}).json()["execution_id"] for _ in range(5)]
    for id in running:
        # Running begins when a call is sent; only one that the agent has taken outlives its tunnel.
        until("the agent has it", lambda id=id: "accepted_at" in attempts(plane, id), 30)
    node.kill_9()
    assert alive(pid)
    # What is written into a connection that is already dead is not known to be unsent, and a call
    # goes out once: these come when the plane has seen the link close.
    until("the link is seen to be gone", lambda: nodes(cli)[0]["state"] != "online", 30)
    meanwhile = [plane.submit("sturdy.add", {"a": n, "b": 1}).json()["execution_id"] for n in range(5)]
    node.start()
    for id in running + meanwhile:
        ended = plane.wait_end(id, within=120)
        assert ended["status"] == "succeeded", ended
    view = shown(cli, worker)
    assert view["pid"] == pid and view["restarts"] == 0 and alive(pid)


def test_calls_outlive_the_death_of_the_plane(fleet):
    """Row: kill -9 of the plane while calls go through the link."""
    plane, cli, node = fleet
    worker, _ = spawn_agent(cli, "patient")
    answers(plane, "patient")
    pid = shown(cli, worker)["pid"]
    running = [plane.submit("patient.slow", {"seconds": 5}).json()["execution_id"] for _ in range(5)]
    for id in running:
        until("the agent has it", lambda id=id: "accepted_at" in attempts(plane, id), 30)
    plane.kill_9()
    plane.start()
    for id in running:
        ended = plane.wait_end(id, within=120)
        assert ended["status"] == "succeeded", ended
    node.wait_state("online", within=90)
    answers(plane, "patient")
    view = shown(cli, worker)
    assert view["state"] == "running" and view["pid"] == pid and view["restarts"] == 0


class Decoy(BaseHTTPRequestHandler):
    """Somebody else, who listens at the agent's address where the plane is."""

    called = 0

    def do_POST(self):
        Decoy.called += 1
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'"not the agent"')

    do_GET = do_POST

    def log_message(self, *_):
        pass


@pytest.mark.skipif(not network.allowed(), reason="makes network namespaces, which needs root")
def test_an_agent_without_an_address_is_called_through_its_machines_link(world):
    """Row: machine and agent in another network; the agent listens on loopback there, which from
    the plane is somebody else."""
    cable = world.also(network.Network())
    plane = world.plane(host=cable.here, **QUICK)
    cli = world.cli(plane)
    node = world.node(cli, "far", start=False, prefix=cable.prefix)
    node.start()
    worker, port = spawn_agent(cli, "hidden")
    decoy = HTTPServer(("127.0.0.1", port), Decoy)
    threading.Thread(target=decoy.serve_forever, daemon=True).start()
    try:
        until("it answers", lambda: cli("call", "hidden.add", "--input", '{"a": 40, "b": 2}', "-q").out.strip() == "42", 120, 0.5)
        view = shown(cli, worker)
        assert view["agent"] == "hidden" and view["state"] == "running"
        # Long calls answer by callback, past the link; many at once share it.
        ids = [plane.submit("hidden.slow", {"seconds": 2}).json()["execution_id"] for _ in range(10)]
        for id in ids:
            assert plane.wait_end(id, within=120)["status"] == "succeeded"
        cable.unplug()
        node.wait_state("unreachable", within=120)
        assert alive_in(view["pid"])
        waits = plane.submit("hidden.add", {"a": 1, "b": 1}).json()["execution_id"]
        cable.plug()
        node.wait_state("online", within=120)
        ended = plane.wait_end(waits, within=120)
        assert ended["status"] == "succeeded", ended
        assert shown(cli, worker)["pid"] == view["pid"]
        assert Decoy.called == 0, "the plane called somebody else"
    finally:
        decoy.shutdown()
        decoy.server_close()


def alive_in(pid):
    # Namespaces of the network share this machine's processes.
    return alive(pid)
