"""The published broker of Agent Relay, unmodified, as a node: it connects, beats and syncs, starts
and releases workers, and is listed like any other node."""

import base64
import json
import sys
import time

import pytest
from harness.agent import SCRIPTS
from harness.broker import fleet_node, owner, place, release, wait_node, wait_worker, worker
from harness.waiting import free_port, until
from websockets.sync.client import connect


@pytest.fixture(scope="module")
def here(module_world):
    """A plane and a broker that is online, as docs/relay.md says."""
    plane = module_world.plane()
    made = module_world.cli(plane)("keys", "create", "--scope", "relay", "--name", "brokers")
    key = next(word for word in made.ok().out.split() if word.startswith("rk_live_"))
    broker = module_world.broker(plane, key=key)
    wait_node(plane, broker.name, "online")
    return plane, broker


@pytest.fixture(scope="module")
def cli(module_world, here):
    """Commands of the owner of that plane."""
    return module_world.cli(here[0])


def test_it_is_a_node_like_any_other_with_evidence(here):
    """6.2, 2: online by its inventory and its beats; what it does not tell is null."""
    plane, broker = here
    node = fleet_node(plane, broker.name)
    assert node["kind"] == "relay"
    assert node["workers"] == 0 and node["worker_names"] == []
    assert "inventory" in {fact["what"] for fact in node["facts"] if fact["at"]}, node["facts"]
    assert node["version"] == "relay-broker/12.4.1"
    assert "spawn:claude" in node["capabilities"]
    assert node["load"] is None and node["load_reason"] == "not_reported_by_node"
    shown = broker.relay("GET", f"/v1/nodes/{broker.name}").json()["data"]
    assert shown["status"] == "online" and shown["live"] is True
    assert shown["active_agents"] == 0
    assert shown["evidence"]
    listed = broker.relay("GET", "/v1/nodes").json()["data"]
    assert [node["name"] for node in listed] == [broker.name]


def test_it_beats(here):
    """2: a beat every 12 s, by the plane's clock."""
    plane, broker = here
    first = fleet_node(plane, broker.name)["beat"]["at"]
    until("a later beat", lambda: fleet_node(plane, broker.name)["beat"]["at"] > first, 30, 0.5)


@pytest.mark.parametrize(
    ("name", "command", "args"),
    [
        ("kat", "cat", []),
        ("shell", "/bin/bash", ["-c", "while :; do sleep 1; done"]),
        ("sleeper", "/bin/sleep", ["600"]),
    ],
)
def test_it_starts_a_program_and_releases_it(here, name, command, args):
    """5, 6.2: placed in one round trip; what the broker does not tell is null with the reason."""
    plane, broker = here
    placed = place(plane, name=name, command=command, args=args, node=broker.name)
    assert placed["started"] is True, placed
    shown = wait_worker(plane, placed["worker"]["id"], "running")
    assert shown["pid"] is None and shown["unknown_because"] == "not_reported_by_node"
    assert shown["node_name"] == broker.name and shown["name"] == name
    agents = broker.own("GET", "/api/spawned").json()["agents"]
    assert name in {agent["name"] for agent in agents}
    node = fleet_node(plane, broker.name)
    assert node["workers"] == 1 and node["worker_names"] == [name]
    assert not node["drift"]

    answer = release(plane, shown["id"])
    assert answer["ended"] is True, answer
    ended = worker(plane, shown["id"])
    assert ended["state"] == "exited" and ended["ended_how"] == "released"
    assert ended["exit"]["code"] is None and ended["exit"]["reason"] == "not_reported_by_node"
    assert broker.own("GET", "/api/spawned").json()["agents"] == []


def test_a_worker_that_exits_by_itself_is_known_without_its_code(here):
    """2, 6.2: the broker's word is the evidence; the code it does not tell is null."""
    plane, broker = here
    args = ["-c", "sleep 1; exit 7"]
    placed = place(plane, name="seven", command="/bin/bash", args=args, node=broker.name)
    ended = wait_worker(plane, placed["worker"]["id"], "exited", within=15)
    assert ended["ended_how"] == "reported"
    assert ended["exit"]["code"] is None and ended["exit"]["signal"] is None
    assert ended["exit"]["reason"] == "not_reported_by_node"


def test_a_program_that_cannot_start_is_answered_with_the_broker_s_words(here):
    """5: verified started, or why not."""
    plane, broker = here
    placed = place(plane, name="bad", command="/bin/nonexistent", node=broker.name)
    assert placed["started"] is False, placed
    shown = worker(plane, placed["worker"]["id"])
    assert shown["state"] == "exited" and shown["ended_how"] == "start_failed"
    assert "spawn_failed" in str(shown["exit"]) + shown["evidence"], shown
    # Its name is free again.
    again = place(plane, name="bad", command="cat", node=broker.name)
    assert again["started"] is True, again
    assert release(plane, again["worker"]["id"])["ended"] is True


def test_what_a_broker_cannot_do_is_said_at_once(here):
    """5: pipes and restart policies are our own daemon's."""
    plane, broker = here
    for more in ({"io": "pipes"}, {"restart": "always"}):
        answer = place(plane, 409, name="no", command="cat", node=broker.name, **more)
        assert answer["error_category"] == "unsupported_by_node", answer


def test_a_worker_that_the_broker_started_by_itself_is_adopted(here):
    """4: unknown here is adopted, under the id that its registration gave it."""
    plane, broker = here
    wanted = {"name": "local", "cli": "/bin/sleep", "args": ["600"]}
    answer = broker.own("POST", "/api/spawn", json=wanted)
    assert answer.status_code == 200, answer.text

    def adopted():
        node = fleet_node(plane, broker.name)
        return node if node["worker_names"] == ["local"] else None

    until("it is adopted", adopted, 10)
    shown = wait_worker(plane, "local", "running")
    assert shown["adopted"] is True
    agent = broker.relay("GET", "/v1/agents/local").json()["data"]
    assert agent["id"] == shown["id"] and agent["status"] == "online"
    assert broker.own("DELETE", "/api/spawned/local").json()["identity"] == "deleted"
    ended = wait_worker(plane, shown["id"], "exited", within=15)
    assert ended["exit"]["reason"] == "not_reported_by_node"


class Viewer:
    """Somebody who watches and drives a worker's terminal."""

    def __init__(self, plane, id):
        url = plane.url.replace("http", "ws", 1) + f"/api/v1/fleet/workers/{id}/terminal"
        self.socket = connect(url, additional_headers=owner(plane))
        self.shown = ""
        self.frames = []

    def say(self, type, **frame):
        self.socket.send(json.dumps({"type": type, **frame}))

    def see(self, wanted, within=20):
        """Reads until a frame fits, or until this text was shown."""
        end = time.monotonic() + within
        while time.monotonic() < end:
            if isinstance(wanted, str) and wanted in self.shown:
                return
            try:
                frame = json.loads(self.socket.recv(timeout=1))
            except TimeoutError:
                continue
            self.frames.append(frame)
            self.shown += frame.get("chunk", "")
            self.shown += base64.b64decode(frame.get("screen", "")).decode("utf-8", "replace")
            if not isinstance(wanted, str) and wanted(frame):
                return
        raise AssertionError(f"not seen: {wanted!r}\n{self.shown!r}\n{self.frames[-8:]}")


def test_its_terminal_is_watched_and_driven(here):
    """7: the screen on joining, output, input that is acknowledged, and a close that says why."""
    plane, broker = here
    args = ["-c", "echo early $MUSTER_WORKER_ID; exec /bin/bash --norc"]
    placed = place(plane, name="driven", command="/bin/bash", args=args, node=broker.name)
    id = placed["worker"]["id"]
    driver, watcher = Viewer(plane, id), Viewer(plane, id)
    try:
        for viewer in (driver, watcher):
            viewer.see(lambda frame: frame["type"] == "terminal.ready")
        driver.see(f"early {id}")
        driver.say("terminal.drive")
        driver.see(lambda frame: frame["type"] == "terminal.driver" and frame["driving"])
        driver.see(lambda frame: frame["type"] == "terminal.ready")
        typed = base64.b64encode(b"echo six-$((3*2))\n").decode()
        driver.say("terminal.input", data_base64=typed)
        driver.see("six-6")
        if not any(frame["type"] == "terminal.input_ack" for frame in driver.frames):
            driver.see(lambda frame: frame["type"] == "terminal.input_ack")
        watcher.see("six-6")
        assert release(plane, id)["ended"] is True
        for viewer in (driver, watcher):
            viewer.see(lambda frame: frame["type"] == "terminal.closed")
            assert viewer.frames[-1].get("message") or viewer.frames[-1].get("code")
    finally:
        driver.socket.close()
        watcher.socket.close()


def test_a_worker_of_a_broker_can_be_an_agent(here):
    """5: it gets the plane's address and a key of its own, is linked by it, and is called at the
    address it gives: a broker opens no tunnels."""
    plane, broker = here
    port = free_port()
    environment = {
        "NODE_ID": "relayed",
        "AGENT_PORT": str(port),
        "AGENT_CALLBACK_URL": f"http://127.0.0.1:{port}",
        "AGENTFIELD_DISABLE_IP_DETECTION": "true",
    }
    wanted = {"command": sys.executable, "args": ["basic.py"], "cwd": str(SCRIPTS)}
    placed = place(plane, name="w-relayed", env=environment, node=broker.name, **wanted)
    id = placed["worker"]["id"]
    until(
        "it answers",
        lambda: plane.call("relayed.add", {"a": 1, "b": 2}).status_code == 200,
        within=120,
        every=0.3,
    )
    assert worker(plane, id)["agent"] == "relayed"
    assert release(plane, id)["ended"] is True


def test_it_is_in_the_same_lists_and_takes_the_same_commands(here, cli):
    """Issue: shows up in the same lists; docs/relay.md's commands work as written."""
    _, broker = here
    assert broker.name in cli("nodes").ok().out
    options = ["--name", "by-hand", "--node", broker.name]
    id = cli("spawn", *options, "--", "cat").ok().out.strip()
    listed = cli("workers").ok().out
    assert "by-hand" in listed and broker.name in listed, listed
    shown = cli("workers", "show", id, "--json").json()
    assert shown["pid"] is None and shown["state"] == "running"
    assert "has ended" in cli("release", id).ok().out
