"""The edit-restart loop: an agent that goes away and comes back fails nobody's call."""

import time

import pytest

from harness.waiting import free_port, until
from test_plane_restarts import background


def call_while_away(plane, agent, away, node, between=lambda: None):
    """Kills the agent, calls it, starts it again after `away` seconds, returns the answer."""
    assert plane.call(f"{node}.hello", {"name": "before"}).status_code == 200
    agent.kill_9()
    held = background(lambda: plane.call(f"{node}.hello", {"name": "while away"}))
    until("the call waits", lambda: waiting(plane, node))
    time.sleep(away)
    between()
    agent.start(wait=False)
    return held()


def waiting(plane, node):
    return [
        row
        for row in plane.store.executions().values()
        if row["agent"] == node and row["status_reason"] == "awaiting_agent_restart"
    ]


def no_failed_row(plane):
    return [row for row in plane.store.executions().values() if row["status"] != "succeeded"] == []


@pytest.mark.parametrize("away", [4, 10])
def test_killed_and_back_after_seconds_is_a_200_and_no_failed_row(world, away):
    plane = world.plane()
    agent = world.agent(plane, "basic.py", "phoenix")
    answer = call_while_away(plane, agent, away, "phoenix")
    assert answer.status_code == 200, answer.text
    assert answer.json()["result"] == {"hello": "while away"}
    assert no_failed_row(plane)


def test_killed_and_back_on_another_port_is_a_200_and_no_failed_row(world):
    plane = world.plane()
    agent = world.agent(plane, "basic.py", "mover")

    def move():
        agent.port = free_port()

    answer = call_while_away(plane, agent, 3, "mover", move)
    assert answer.status_code == 200, answer.text
    assert no_failed_row(plane)
    assert plane.call("mover.who").json()["result"]["port"] == agent.port


def test_two_agents_that_swap_ports_never_get_each_others_calls(world):
    plane = world.plane()
    one = world.agent(plane, "basic.py", "swap-one")
    two = world.agent(plane, "basic.py", "swap-two")
    for node in ("swap-one", "swap-two"):
        assert plane.call(f"{node}.who").status_code == 200
    one.kill_9()
    two.kill_9()
    calls = {
        node: background(lambda node=node: plane.call(f"{node}.who"))
        for node in ("swap-one", "swap-two")
    }
    until("both wait", lambda: waiting(plane, "swap-one") and waiting(plane, "swap-two"))
    one.port, two.port = two.port, one.port
    one.start(wait=False)
    two.start(wait=False)
    for node, agent in (("swap-one", one), ("swap-two", two)):
        answer = calls[node]()
        assert answer.status_code == 200, answer.text
        assert answer.json()["result"]["port"] == agent.port
        assert answer.json()["result"]["pid"] == agent.child.process.pid
    assert no_failed_row(plane)


def test_an_agent_that_said_goodbye_is_an_instant_503_without_a_row(world):
    plane = world.plane()
    agent = world.agent(plane, "basic.py", "leaver")
    assert plane.call("leaver.hello", {"name": "x"}).status_code == 200
    before = plane.store.count("executions")
    agent.terminate()
    for lane in (plane.call, plane.submit):
        began = time.monotonic()
        answer = lane("leaver.hello", {"name": "x"})
        assert answer.status_code == 503, answer.text
        assert answer.json()["error_category"] == "node_unavailable"
        assert answer.headers["Retry-After"] == str(answer.json()["retry_after"])
        assert time.monotonic() - began < 1
    assert plane.store.count("executions") == before
    agent.start()
    assert plane.call("leaver.hello", {"name": "x"}).status_code == 200


def test_one_that_never_comes_back_is_a_504_and_then_an_instant_503(world):
    plane = world.plane(agents__restart_grace="4s")
    agent = world.agent(plane, "basic.py", "ghost")
    assert plane.call("ghost.hello", {"name": "x"}).status_code == 200
    agent.kill_9()
    began = time.monotonic()
    answer = plane.call("ghost.hello", {"name": "x"})
    assert answer.status_code == 504, answer.text
    assert answer.json()["error_category"] == "agent_unreachable"
    assert 2 < time.monotonic() - began < 15
    before = plane.store.count("executions")
    began = time.monotonic()
    answer = plane.call("ghost.hello", {"name": "x"})
    assert answer.status_code == 503, answer.text
    assert answer.json()["error_category"] == "node_unavailable"
    assert time.monotonic() - began < 1
    assert plane.store.count("executions") == before


def test_a_cancel_during_the_wait_means_the_agent_is_never_called(world, tmp_path):
    plane = world.plane()
    agent = world.agent(plane, "basic.py", "spared")
    assert plane.call("spared.who").status_code == 200
    agent.kill_9()
    mark = tmp_path / "steps"
    submitted = plane.submit("spared.slow", {"seconds": 1, "mark": str(mark)})
    assert submitted.status_code == 202, submitted.text
    id = submitted.json()["execution_id"]
    until("it waits", lambda: waiting(plane, "spared"))
    assert plane.cancel(id).status_code == 200
    assert plane.execution(id)["status"] == "cancelled"
    agent.start()
    assert plane.call("spared.hello", {"name": "x"}).status_code == 200
    time.sleep(1)
    assert not mark.exists(), "the cancelled call reached the agent"
    assert plane.execution(id)["status"] == "cancelled"


def test_two_instances_of_one_id_share_the_work_and_orphan_nothing(world):
    plane = world.plane()
    one = world.agent(plane, "basic.py", "twin")
    two = world.agent(plane, "basic.py", "twin")
    long = plane.submit("twin.slow", {"seconds": 20}).json()["execution_id"]
    seen = set()
    end = time.monotonic() + 15
    while time.monotonic() < end:
        held = [background(lambda: plane.call("twin.who")) for _ in range(4)]
        for outcome in held:
            answer = outcome()
            assert answer.status_code == 200, answer.text
            seen.add(answer.json()["result"]["pid"])
        time.sleep(0.2)
    assert seen <= {one.child.process.pid, two.child.process.pid}
    assert plane.wait_end(long)["status"] == "succeeded"
    assert no_failed_row(plane)


def test_fifty_waiting_calls_all_end_when_the_agent_says_goodbye(world):
    plane = world.plane()
    agent = world.plain_agent(plane, "brief")
    assert plane.call("brief.now").status_code == 200
    agent.stop()
    ids = [plane.submit("brief.now").json()["execution_id"] for _ in range(50)]
    until("all wait", lambda: len(waiting(plane, "brief")) == 50)
    body = {"reason": "signal", "timeout_seconds": 1.0, "instance_id": agent.instance_id}
    began = time.monotonic()
    assert plane.http.post("/api/v1/nodes/brief/shutdown", json=body).status_code < 300
    for id in ids:
        view = plane.wait_end(id, within=5)
        assert view["status"] == "failed", view
        assert view["error_category"] == "agent_unreachable"
    assert time.monotonic() - began < 5
    assert agent.deliveries and sum(agent.deliveries.values()) == 1


def test_a_connection_that_breaks_after_the_request_was_sent_is_never_sent_twice(world):
    plane = world.plane()
    agent = world.agent(plane, "basic.py", "breaker")
    held = background(lambda: plane.call("breaker.slow_skill", {"seconds": 30}))
    until("it runs", lambda: [r for r in plane.store.executions().values() if r["attempt"] == 1])
    time.sleep(0.5)
    agent.kill_9()
    answer = held()
    assert answer.status_code == 502, answer.text
    agent.start()
    id = answer.json()["execution_id"]
    assert plane.execution(id)["status"] == "failed"
    attempts = plane.store.rows("select * from attempts_shown where execution = ?", id)
    assert len(attempts) == 1


def test_the_call_after_a_500_does_not_break_with_the_connection_of_the_failed_one(world):
    plane = world.plane()
    world.plain_agent(plane, "moody")
    for _ in range(20):
        failed = plane.call("moody.boom")
        assert failed.status_code == 502, failed.text
        assert failed.json()["error_category"] == "agent_error"
        answer = plane.call("moody.now")
        assert answer.status_code == 200, answer.text
