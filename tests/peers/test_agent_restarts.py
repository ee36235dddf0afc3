"""The edit-restart loop: an agent that goes away and comes back fails nobody's call. Each test
names the row of the contract's table that it proves; rows about several processes of one agent are
in test_processes.py, the minute of `muster dev` in test_dev.py, a call before any agent ran in
test_start_order.py, orphans in test_orphans.py."""

import time

import pytest

from harness.waiting import free_port, until
from test_plane_restarts import background


def call_while_away(plane, agent, away, node, between=lambda: None):
    """Kills the agent, calls it, starts it again after `away` seconds, returns the answer."""
    assert plane.call(f"{node}.hello", {"name": "before"}).status_code == 200
    # How long it takes to start on this machine is a part of the time for which it is away.
    away = max(1, away - agent.started_in)
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
    """Row: gone without a goodbye (kill -9), back 4 s or 10 s later: 200, no failed row."""
    plane = world.plane()
    agent = world.agent(plane, "basic.py", "phoenix")
    answer = call_while_away(plane, agent, away, "phoenix")
    assert answer.status_code == 200, answer.text
    assert answer.json()["result"] == {"hello": "while away"}
    assert no_failed_row(plane)


def test_killed_and_back_on_another_port_is_a_200_and_no_failed_row(world):
    """Row: the same, on another port."""
    plane = world.plane()
    agent = world.agent(plane, "basic.py", "mover")

    def move():
        agent.port = free_port()

    answer = call_while_away(plane, agent, 3, "mover", move)
    assert answer.status_code == 200, answer.text
    assert no_failed_row(plane)
    assert plane.call("mover.who").json()["result"]["port"] == agent.port


def test_two_agents_that_swap_ports_never_get_each_others_calls(world):
    """Row: two agents swap ports: never the wrong agent."""
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
    """Row: a call to one that said goodbye, with no supervisor of ours: instant 503, no row."""
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
        assert time.monotonic() - began < 5, "nobody waited the grace of 15 s"
    assert plane.store.count("executions") == before
    agent.start()
    assert plane.call("leaver.hello", {"name": "x"}).status_code == 200


def test_one_that_never_comes_back_is_a_504_and_then_an_instant_503(world):
    """Row: never comes back: 504 after the grace, the next call an instant 503."""
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
    assert time.monotonic() - began < 3, "nobody waited the grace again"
    assert plane.store.count("executions") == before


def test_a_cancel_during_the_wait_means_the_agent_is_never_called(world, tmp_path):
    """Row: cancel during the wait: cancelled, the agent is never called."""
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


def test_fifty_waiting_calls_all_end_when_the_agent_says_goodbye(world):
    """Row: 50 calls wait, it says goodbye: all end at once."""
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
    """Row: the connection breaks after bytes were sent: failed, never sent twice."""
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


def test_a_call_to_an_agent_that_is_down_is_an_instant_503_without_a_row(world):
    """Row: a call to a down agent: silent, and its address refuses. Nobody waited for it."""
    plane = world.plane(agents__restart_grace="3s")
    agent = world.agent(plane, "basic.py", "silent")
    assert plane.call("silent.hello", {"name": "x"}).status_code == 200
    before = plane.store.count("executions")
    agent.kill_9()
    until("it is down", lambda: state(plane, "silent")["state"] == "down", within=40)
    for lane in (plane.call, plane.submit):
        began = time.monotonic()
        answer = lane("silent.hello", {"name": "x"})
        assert answer.status_code == 503, answer.text
        assert answer.json()["error_category"] == "node_unavailable"
        assert answer.json()["retry_after"] == 1 and answer.headers["Retry-After"] == "1"
        assert time.monotonic() - began < 3, "nobody waited the grace again"
    assert plane.store.count("executions") == before
    agent.start()
    assert plane.call("silent.hello", {"name": "x"}).status_code == 200


def state(plane, node):
    answer = plane.http.get(f"/api/v1/nodes/{node}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_after_a_return_calls_go_out_one_two_four_eight(world):
    """The ramp after a return: whoever reaches the agent makes room for two others."""
    plane = world.plane()
    gone = world.plain_agent(plane, "ramp")
    assert plane.call("ramp.now").status_code == 200
    gone.stop()
    ids = [plane.submit("ramp.now").json()["execution_id"] for _ in range(40)]
    until("all wait", lambda: len(waiting(plane, "ramp")) == 40)
    back = world.plain_agent(plane, "ramp", port=gone.port, take=0.3)
    for id in ids:
        assert plane.wait_end(id)["status"] == "succeeded"
    began = back.waves[0][0]
    for place, (at, _) in enumerate(back.waves):
        # Before the n-th call went out, so many others had to be answered one after another.
        rounds = (place + 1).bit_length() - 1
        assert at - began >= rounds * 0.3 * 0.9, f"call {place} came after {at - began:.3f} s"
    assert max(under_way for _, under_way in back.waves) > 4, "the ramp never widened"
    assert all(back.delivered(id) == 1 for id in ids)


def test_after_a_return_an_agent_that_answers_slowly_keeps_nobody_waiting_past_the_grace(world):
    """The ramp does not wait for answers that take their time: what waits is sent in time."""
    plane = world.plane(agents__restart_grace="4s")
    gone = world.plain_agent(plane, "slowly")
    assert plane.call("slowly.now").status_code == 200
    gone.stop()
    ids = [plane.submit("slowly.now").json()["execution_id"] for _ in range(8)]
    until("all wait", lambda: len(waiting(plane, "slowly")) == 8)
    world.plain_agent(plane, "slowly", port=gone.port, take=6)
    for id in ids:
        assert plane.wait_end(id)["status"] == "succeeded", plane.execution(id)
