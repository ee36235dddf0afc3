"""The first minutes with a real agent: one curl, the plain answers, and what is refused."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.waiting import until


@pytest.fixture(scope="module")
def shared(module_world):
    plane = module_world.plane()
    agent = module_world.agent(plane, "basic.py", "quick-agent")
    return SimpleNamespace(plane=plane, agent=agent, output=module_world.output)


def test_a_sync_call_answers_200_with_the_result_and_the_ids(shared):
    answer = shared.plane.call("quick-agent.hello", {"name": "Ada"})
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert body["status"] == "succeeded"
    assert body["result"] == {"hello": "Ada"}
    assert body["execution_id"] and body["run_id"]
    assert "~" not in body["execution_id"]
    assert isinstance(body["duration_ms"], int)
    assert body["finished_at"].endswith("Z")
    assert body["webhook_registered"] is False
    assert answer.headers["X-Execution-ID"] == body["execution_id"]
    assert answer.headers["X-Run-ID"] == body["run_id"]
    view = shared.plane.execution(body["execution_id"])
    assert view["status"] == "succeeded" and view["result"] == {"hello": "Ada"}


def test_a_skill_answers_with_its_bare_value(shared):
    answer = shared.plane.call("quick-agent.add", {"a": 2, "b": 3})
    assert answer.status_code == 200, answer.text
    assert answer.json()["result"] == 5


def test_an_async_call_answers_202_and_ends_by_itself(shared):
    answer = shared.plane.submit("quick-agent.hello", {"name": "Bob"})
    assert answer.status_code == 202, answer.text
    body = answer.json()
    assert body["status"] in ("queued", "running")
    assert body["type"] == "reasoner" and body["target"] == "quick-agent.hello"
    view = shared.plane.wait_end(body["execution_id"])
    assert view["status"] == "succeeded" and view["result"] == {"hello": "Bob"}


@pytest.mark.parametrize(
    ("function", "result"),
    [
        ("scalar", 42),
        ("nothing", None),
        ("skill_nothing", None),
        ("listing", [1, "two", None, {"three": 3.5}]),
    ],
)
def test_a_result_may_be_any_json_value(shared, function, result):
    answer = shared.plane.call(f"quick-agent.{function}")
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert body["status"] == "succeeded"
    assert body["result"] == result
    view = shared.plane.execution(body["execution_id"])
    assert "result" in view and view["result"] == result


def test_a_failing_reasoner_is_a_502_with_the_agents_text(shared):
    shared.agent.expect_error("kaput")
    answer = shared.plane.call("quick-agent.boom", {"why": "kaput 1"})
    assert answer.status_code == 502, answer.text
    body = answer.json()
    assert body["error_category"] == "agent_error"
    assert body["status"] == "failed"
    assert "kaput 1" in body["error_message"]
    view = shared.plane.execution(body["execution_id"])
    assert view["status"] == "failed" and "kaput 1" in view["error"]


def test_a_failing_skill_is_a_502_whose_text_comes_from_its_event(shared):
    shared.agent.expect_error("kaput|Exception in ASGI|Traceback")
    answer = shared.plane.call("quick-agent.skill_boom", {"why": "kaput 2"})
    assert answer.status_code == 502, answer.text
    body = answer.json()
    assert body["error_category"] == "agent_error"
    view = shared.plane.execution(body["execution_id"])
    assert view["status"] == "failed"
    assert "kaput 2" in view["error"]


def test_a_slow_call_is_held_until_it_ends(shared):
    for function in ("slow", "slow_skill"):
        answer = shared.plane.call(f"quick-agent.{function}", {"seconds": 1.5})
        assert answer.status_code == 200, answer.text
        assert answer.json()["duration_ms"] >= 1400


def test_a_missing_required_field_is_a_400_and_leaves_no_row(shared):
    before = shared.plane.store.count("executions")
    answer = shared.plane.call("quick-agent.hello", {})
    assert answer.status_code == 400, answer.text
    assert answer.json()["error_category"] == "validation"
    assert "name" in answer.json()["message"]
    assert shared.plane.store.count("executions") == before


@pytest.mark.parametrize("target", ["quick-agent.no_such_function", "no-such-agent.hello"])
def test_an_unknown_target_is_a_404_and_leaves_no_row(shared, target):
    before = shared.plane.store.count("executions")
    for lane in (shared.plane.call, shared.plane.submit):
        answer = lane(target, {"name": "x"})
        assert answer.status_code == 404, answer.text
        assert answer.json()["error_category"] == "target_not_found"
        assert "execution_id" not in answer.json()
    assert shared.plane.store.count("executions") == before


def test_a_cancel_is_final_at_once_and_the_agents_code_really_stops(shared, tmp_path):
    mark = tmp_path / "steps"
    shared.agent.expect_error("cancelled")
    submitted = shared.plane.submit("quick-agent.slow", {"seconds": 60, "mark": str(mark)})
    id = submitted.json()["execution_id"]
    until("the reasoner runs", lambda: lines(mark) > 3)
    answer = shared.plane.cancel(id)
    assert answer.status_code == 200, answer.text
    assert shared.plane.execution(id)["status"] == "cancelled"

    # The receipt says what the agent did about it.
    def receipt():
        return shared.plane.store.rows(
            "select * from events_shown where execution = ? and kind = 'execution.cancel_receipt'", id
        )

    until("a receipt of the cancel", receipt)
    stopped = lines(mark)
    until("the agent is idle again", lambda: shared.plane.call("quick-agent.who").status_code == 200)
    assert lines(mark) <= stopped + 1
    # The callback that the stopped reasoner sends changes nothing.
    assert shared.plane.execution(id)["status"] == "cancelled"
    assert shared.plane.cancel(id).status_code == 409


def lines(mark: Path):
    return len(mark.read_text().splitlines()) if mark.exists() else 0


def test_two_hundred_parallel_calls_all_succeed_with_their_own_result(shared):
    def one(n):
        return n, shared.plane.call("quick-agent.add", {"a": n, "b": 1})

    def other(n):
        return n, shared.plane.call("quick-agent.hello", {"name": f"n{n}"})

    with ThreadPoolExecutor(200) as pool:
        jobs = [pool.submit(one if n % 2 else other, n) for n in range(200)]
        answers = [job.result() for job in jobs]
    for n, answer in answers:
        assert answer.status_code == 200, answer.text
        wanted = n + 1 if n % 2 else {"hello": f"n{n}"}
        assert answer.json()["result"] == wanted


def test_an_idempotency_key_joins_the_first_execution(shared):
    key = {"Idempotency_Key": "quick-start-1"}
    first = shared.plane.call("quick-agent.hello", {"name": "once"}, **key)
    again = shared.plane.call("quick-agent.hello", {"name": "once"}, **key)
    assert first.status_code == again.status_code == 200
    assert first.json()["execution_id"] == again.json()["execution_id"]
    assert again.headers["Idempotency-Replayed"] == "true"
    other = shared.plane.call("quick-agent.hello", {"name": "twice"}, **key)
    assert other.status_code == 409
    assert other.json()["error_category"] == "idempotency_conflict"
