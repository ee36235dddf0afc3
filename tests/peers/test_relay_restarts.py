"""The published broker of Agent Relay over restarts of either side: nothing is swept, nothing is
started twice, and what nobody can know is null."""

import signal
import time

import pytest
from harness.broker import fleet_node, owner, place, relay_key, wait_node, wait_worker, worker
from harness.waiting import until


def start(plane, broker, *names):
    placed = [place(plane, name=name, command="cat", node=broker.name) for name in names]
    assert all(answer["started"] for answer in placed), placed
    return {name: answer["worker"]["id"] for name, answer in zip(names, placed, strict=True)}


def processes(broker):
    agents = broker.own("GET", "/api/spawned").json()["agents"]
    return {agent["name"]: agent["pid"] for agent in agents}


def test_a_killed_plane_finds_every_agent_again_under_its_id(world):
    """3: plane kill -9 and back: all workers confirmed again, none swept, none duplicated."""
    plane = world.plane()
    broker = world.broker(plane)
    wait_node(plane, broker.name, "online")
    workers = start(plane, broker, "one", "two")
    own = broker.own("POST", "/api/spawn", json={"name": "own", "cli": "/bin/sleep", "args": ["600"]})
    assert own.status_code == 200, own.text
    until("it is adopted", lambda: "own" in fleet_node(plane, broker.name)["worker_names"], 10)
    workers["own"] = worker(plane, "own")["id"]
    before = processes(broker)
    known = broker.relay("GET", "/v1/agents/one").json()["data"]
    body = {"name": "visitor", "type": "human"}
    token = broker.relay("POST", "/v1/agents", json=body).json()["data"]["token"]

    plane.kill_9()
    plane.start()
    back = time.monotonic()
    for name, id in workers.items():
        seen = until(
            f"{name} is confirmed",
            lambda id=id: worker(plane, id)["state"] == "running" and worker(plane, id),
            20,
        )
        assert seen["id"] == id and seen["name"] == name
    node = wait_node(plane, broker.name, "online", within=20)
    assert time.monotonic() - back < 15
    assert node["workers"] == 3 and sorted(node["worker_names"]) == ["one", "own", "two"]
    assert processes(broker) == before
    again = broker.relay("GET", "/v1/agents/one").json()["data"]
    assert (again["id"], again["created_at"]) == (known["id"], known["created_at"])
    own = plane.http.get("/v1/agent", headers={"Authorization": f"Bearer {token}"})
    assert own.json()["data"]["name"] == "visitor", own.text
    # The registry is whole: the next worker can be started.
    assert start(plane, broker, "three")


def test_a_killed_broker_is_doubted_then_unreachable_and_its_count_is_null(world):
    """2, seed 002: null with what was last known, on the adapter's surface too; the workers end
    unobserved once the broker is back without them."""
    plane = world.plane(fleet__node_grace="5s")
    broker = world.broker(plane)
    wait_node(plane, broker.name, "online")
    workers = start(plane, broker, "one", "two")
    broker.kill_9()
    suspect = wait_node(plane, broker.name, "suspect", within=5)
    assert suspect["evidence"], suspect
    assert worker(plane, workers["one"])["state"] == "running"
    refused = place(plane, 503, name="no", command="cat", node=broker.name)
    assert refused["error_category"] == "node_unreachable", refused

    gone = wait_node(plane, broker.name, "unreachable", within=30)
    assert gone["workers"] is None and gone["workers_reason"]
    assert gone["workers_last"]["value"] == 2
    assert sorted(gone["worker_names"]) == ["one", "two"]
    for id in workers.values():
        assert worker(plane, id)["state"] == "unknown"
    shown = broker.relay("GET", f"/v1/nodes/{broker.name}").json()["data"]
    assert shown["active_agents"] is None and shown["active_agents_reason"]
    assert shown["active_agents_last_known"]["count"] == 2
    assert sorted(shown["active_agents_last_known"]["names"]) == ["one", "two"]
    assert shown["status"] == "offline" and shown["live"] is False
    agent = broker.relay("GET", "/v1/agents/one").json()["data"]
    assert agent["status"] is None and agent["last_known_status"] == "online"

    broker.start()
    wait_node(plane, broker.name, "online", within=30)
    for id in workers.values():
        ended = wait_worker(plane, id, "exited", within=90)
        assert ended["ended_how"] == "unobserved", ended
    node = fleet_node(plane, broker.name)
    assert node["workers"] == 0
    # Their names are free again.
    assert start(plane, broker, "one")


def test_a_broker_that_says_nothing_over_an_open_socket_is_doubted_and_nothing_is_ended(world):
    """3: dropped silently: suspect, its workers run on, and all is as it was once it speaks."""
    plane = world.plane(fleet__node_grace="60s")
    broker = world.broker(plane)
    wait_node(plane, broker.name, "online")
    workers = start(plane, broker, "one")
    broker.child.signal(signal.SIGSTOP)
    try:
        wait_node(plane, broker.name, "suspect", within=60)
        assert worker(plane, workers["one"])["state"] == "running"
        refused = place(plane, 503, name="no", command="cat", node=broker.name)
        assert refused["error_category"] == "node_unreachable", refused
    finally:
        broker.child.signal(signal.SIGCONT)
    wait_node(plane, broker.name, "online", within=90)
    assert worker(plane, workers["one"])["state"] == "running"
    assert list(processes(broker)) == ["one"]


def test_a_broker_that_is_asked_to_end_says_goodbye_for_all(world):
    """6.2: its workers are reported, then itself; nothing is left to be found out."""
    plane = world.plane()
    broker = world.broker(plane)
    wait_node(plane, broker.name, "online")
    workers = start(plane, broker, "one", "two")
    broker.terminate()
    for id in workers.values():
        ended = wait_worker(plane, id, "exited", within=10)
        assert ended["exit"]["reason"] == "not_reported_by_node"
    node = until(
        "its goodbye is a fact",
        lambda: fleet_node(plane, broker.name)["goodbye"] and fleet_node(plane, broker.name),
        10,
    )
    assert "offline" in node["goodbye"]["why"]
    assert node["state"] != "online"
    broker.start()
    wait_node(plane, broker.name, "online", within=90)


def test_of_two_brokers_with_one_node_id_the_newest_wins(world):
    """3: a newer valid connection always wins and fences the old one; there is one node."""
    plane = world.plane()
    key = relay_key(plane)
    identity = {"RELAY_NODE_ID": "node_twin"}
    first = world.broker(plane, key=key, name="twin-1", **identity)
    before = wait_node(plane, "node_twin", "online")
    second = world.broker(plane, key=key, name="twin-2", **identity)

    def newer():
        node = fleet_node(plane, "node_twin")
        return node if (node["link"] or 0) > before["link"] and node["name"] == "twin-2" else None

    until("the newer one is the node's", newer, 20)
    nodes = plane.http.get("/api/v1/fleet/nodes", headers=owner(plane)).json()["nodes"]
    assert len(nodes) == 1, nodes
    assert first.child.alive and second.child.alive


def test_a_broker_s_name_is_not_taken_by_one_that_cannot_prove_itself(world):
    """Two machines with one name under one key: the second is told, and the first goes on."""
    plane = world.plane()
    key = relay_key(plane)
    first = world.broker(plane, key=key)
    wait_node(plane, first.name, "online")
    second = world.broker(plane, key=key)
    assert second.child.wait(30) != 0
    assert "already registered" in second.child.output()
    assert fleet_node(plane, first.name)["state"] == "online"


@pytest.mark.parametrize("key", ["rk_live_" + "0" * 72, "nonsense"])
def test_a_wrong_key_is_no_node(world, key):
    """Security: 401, and nothing is enrolled."""
    plane = world.plane()
    broker = world.broker(plane, key=key)
    assert broker.child.wait(30) != 0
    assert plane.http.get("/api/v1/fleet/nodes").json()["nodes"] == []
