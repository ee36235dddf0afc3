"""The plane ends and comes back under a connected agent, with calls in flight."""

import threading
import time

import httpx
import pytest

from harness.waiting import until


def background(work):
    """Runs `work` on a thread; its outcome is read by calling what this returns."""
    box = {}

    def run():
        try:
            box["answer"] = work()
        except httpx.TransportError as error:
            box["answer"] = error

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def outcome(within=90):
        thread.join(within)
        assert not thread.is_alive(), "the call never returned"
        return box["answer"]

    return outcome


@pytest.mark.parametrize("end", ["kill -9", "SIGTERM"])
def test_calls_in_flight_survive_a_restart_of_the_plane(world, end):
    # The sync caller is held for one second of the shutdown, then told that it goes on.
    plane = world.plane(server__shutdown_timeout="1s")
    agent = world.agent(plane, "basic.py", "steady-agent")
    agent.expect_error("memory events|Connect|connect|[Hh]eartbeat")
    ids = [
        plane.submit("steady-agent.slow", {"seconds": seconds}).json()["execution_id"]
        for seconds in (2, 3, 4, 5)
    ]
    held = background(lambda: plane.call("steady-agent.slow", {"seconds": 4}))
    until("all five run", lambda: len(running(plane)) == 5)
    if end == "kill -9":
        plane.kill_9()
    else:
        assert plane.terminate() == 0
    answer = held()
    if end == "SIGTERM":
        assert answer.status_code == 504, answer.text
        assert answer.json()["error_category"] == "still_running"
        ids.append(answer.json()["execution_id"])
    plane.start()
    for id in ids:
        view = plane.wait_end(id)
        assert view["status"] == "succeeded", view
        assert view["result"]["slept"] >= 2
    attempts = plane.store.rows("select execution, count(*) as n from attempts_shown group by execution")
    assert all(row["n"] == 1 for row in attempts), "something was sent twice"
    until(
        "the agent is called without a new registration",
        lambda: plane.call("steady-agent.hello", {"name": "x"}).status_code == 200,
    )
    assert all(row["status"] == "succeeded" for row in plane.store.executions().values())


def running(plane):
    return [row for row in plane.store.executions().values() if row["status"] == "running"]


def test_a_parent_that_polls_for_its_child_survives_kill_9_of_the_plane(world, tmp_path):
    plane = world.plane()
    agents = [world.agent(plane, "chain.py", "waits"), world.agent(plane, "basic.py", "works")]
    for agent in agents:
        agent.expect_error("memory events|[Cc]onnect|[Hh]eartbeat|poll|attempt")
    mark = tmp_path / "steps"
    submitted = plane.submit(
        "waits.wait_for_slow", {"agent": "works", "seconds": 4, "mark": str(mark)}
    )
    until("the child works", mark.exists)
    plane.kill_9()
    plane.start()
    view = plane.wait_end(submitted.json()["execution_id"], within=90)
    assert view["status"] == "succeeded", view
    assert view["result"] == {"slept": 4}
    rows = plane.store.executions().values()
    assert [row["status"] for row in rows] == ["succeeded", "succeeded"]
    assert mark.read_text().splitlines().count("0") == 1, "the child ran twice"


def test_what_was_acknowledged_is_there_after_kill_9(world):
    plane = world.plane(admission__max_concurrent_per_agent=1)
    agent = world.agent(plane, "basic.py", "narrow-agent")
    agent.expect_error("memory events|Connect|connect|[Hh]eartbeat")
    ids = [
        plane.submit("narrow-agent.slow", {"seconds": 0.2}).json()["execution_id"]
        for _ in range(20)
    ]
    plane.kill_9()
    plane.start()
    for id in ids:
        assert plane.wait_end(id, within=90)["status"] == "succeeded"


def test_sigterm_of_an_idle_plane_is_quick_and_clean(world):
    plane = world.plane()
    agent = world.agent(plane, "basic.py", "idle-agent")
    agent.expect_error("memory events|Connect|connect|[Hh]eartbeat")
    assert plane.call("idle-agent.hello", {"name": "x"}).status_code == 200
    assert plane.terminate(within=15) == 0


def test_a_skill_in_flight_at_a_crash_is_settled_by_its_event(world):
    """Section 6: the answer died with the connection; the terminal event counts."""
    plane = world.plane(executions__recovery_grace="20s")
    agent = world.agent(plane, "basic.py", "skilled")
    agent.expect_error("memory events|Connect|connect|[Hh]eartbeat")
    id = plane.submit("skilled.slow_skill", {"seconds": 4}).json()["execution_id"]
    until("it runs", lambda: len(running(plane)) == 1)
    plane.kill_9()
    plane.start()
    view = plane.wait_end(id, within=120)
    assert view["status"] == "succeeded", view
    attempts = plane.store.rows("select * from attempts_shown where execution = ?", id)
    assert len(attempts) == 1


def test_a_skill_that_ended_while_the_plane_was_away_is_outcome_unknown(world):
    """Section 6: nothing is left of it; `recovery_grace`, or the call time-out if that is later."""
    plane = world.plane(executions__recovery_grace="2s", agents__call_timeout="8s")
    agent = world.agent(plane, "basic.py", "unheard")
    agent.expect_error("memory events|Connect|connect|[Hh]eartbeat")
    began = time.monotonic()
    id = plane.submit("unheard.slow_skill", {"seconds": 2}).json()["execution_id"]
    until("it runs", lambda: len(running(plane)) == 1)
    plane.kill_9()
    time.sleep(4)
    plane.start()
    restarted = time.monotonic()
    view = plane.wait_end(id, within=120)
    assert (view["status"], view["error_category"]) == ("failed", "outcome_unknown"), view
    # The call time-out counts from its dispatch, without the time in which the plane was away.
    assert time.monotonic() - began > 8 and time.monotonic() - restarted < 30
    attempts = plane.store.rows("select * from attempts_shown where execution = ?", id)
    assert len(attempts) == 1


def test_what_was_sent_without_a_sign_gets_the_recovery_grace(world):
    """Section 6: sent without a sign: `recovery_grace`, then `outcome_unknown`; never sent again."""
    plane = world.plane(executions__recovery_grace="4s")
    agent = world.plain_agent(plane, "mute")
    id = plane.submit("mute.mute").json()["execution_id"]
    until("it was sent", lambda: agent.delivered(id) == 1)
    plane.kill_9()
    plane.start()
    began = time.monotonic()
    view = plane.wait_end(id, within=120)
    assert (view["status"], view["error_category"]) == ("failed", "outcome_unknown"), view
    assert time.monotonic() - began > 2
    assert agent.delivered(id) == 1


def test_what_waits_for_its_agent_waits_on_over_a_crash_of_the_plane(world):
    """Section 6: `awaiting_agent_restart` was never sent: it waits on, and is sent once."""
    plane = world.plane()
    agent = world.agent(plane, "basic.py", "patient")
    assert plane.call("patient.hello", {"name": "x"}).status_code == 200
    agent.kill_9()
    ids = [
        plane.submit("patient.hello", {"name": str(n)}).json()["execution_id"] for n in range(5)
    ]
    until("all wait", lambda: len(awaiting(plane)) == 5)
    plane.kill_9()
    plane.start()
    assert len(awaiting(plane)) == 5
    agent.start()
    for id in ids:
        assert plane.wait_end(id)["status"] == "succeeded"
        sent = plane.store.rows(
            "select * from attempts_shown where execution = ? and outcome != 'dial_failed'", id
        )
        assert len(sent) == 1, sent


def awaiting(plane):
    return [
        row
        for row in plane.store.executions().values()
        if row["status_reason"] == "awaiting_agent_restart"
    ]
