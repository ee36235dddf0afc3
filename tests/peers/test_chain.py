"""Agents that call agents through the plane: the tree, its ids, and its failures."""

from types import SimpleNamespace

import pytest

from harness.waiting import until


@pytest.fixture(scope="module")
def shared(module_world):
    plane = module_world.plane()
    agents = {
        name: module_world.agent(plane, "chain.py", name) for name in ("top", "middle", "leaf")
    }
    return SimpleNamespace(plane=plane, agents=agents, output=module_world.output)


def members(plane, run):
    """The executions of a run, oldest first."""
    return plane.store.rows("select * from executions_shown where run = ? order by n", run)


def test_a_three_level_chain_is_one_run_with_the_right_parents(shared):
    answer = shared.plane.call(
        "top.relay", {"path": ["middle", "leaf"], "value": 1}, X_Run_ID="run-of-the-chain"
    )
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert body["result"] == {"value": 3, "seen": ["top", "middle", "leaf"]}
    assert body["run_id"] == "run-of-the-chain"
    rows = members(shared.plane, "run-of-the-chain")
    assert [row["agent"] for row in rows] == ["top", "middle", "leaf"]
    assert [row["parent"] for row in rows] == [None, rows[0]["id"], rows[1]["id"]]
    assert {row["root"] for row in rows} == {body["execution_id"]}
    assert all(row["status"] == "succeeded" for row in rows)
    assert not any("~" in row["id"] for row in rows)


def test_a_skill_called_through_the_plane_gives_its_value(shared):
    answer = shared.plane.call("top.through_skill", {"agent": "leaf", "value": 21})
    assert answer.status_code == 200, answer.text
    assert answer.json()["result"] == {"doubled": 42}


def test_twenty_children_at_once_all_come_back(shared):
    answer = shared.plane.call("top.fan", {"agent": "leaf", "width": 20})
    assert answer.status_code == 200, answer.text
    assert answer.json()["result"] == {"sum": sum(range(20))}
    rows = members(shared.plane, answer.json()["run_id"])
    assert len(rows) == 21
    assert {row["parent"] for row in rows[1:]} == {rows[0]["id"]}


def test_a_call_inside_the_process_is_observed_under_its_parent(shared):
    answer = shared.plane.call("leaf.in_process", {"value": 7})
    assert answer.status_code == 200, answer.text
    run = answer.json()["run_id"]

    def observed():
        rows = [row for row in members(shared.plane, run) if row["kind"] == "observed"]
        return rows if rows and rows[0]["status"] == "succeeded" else None

    (row,) = until("the inner call is observed", observed)
    assert row["parent"] == answer.json()["execution_id"]
    assert row["function"] == "helper"


def test_a_call_to_an_unknown_agent_fails_the_caller_with_404(shared):
    shared.agents["top"].expect_error("no-such-agent|404|target_not_found")
    answer = shared.plane.call("top.calls_missing", {"target": "no-such-agent.x"})
    assert answer.status_code == 404, answer.text
    body = answer.json()
    assert body["status"] == "failed"
    rows = members(shared.plane, body["run_id"])
    assert [row["agent"] for row in rows] == ["top"], "the refused call left a row"


def test_a_cancelled_tree_ends_all_members_and_refuses_new_ones(shared):
    submitted = shared.plane.submit(
        "top.relay", {"path": ["middle", "leaf"], "value": 1}, X_Run_ID="run-to-cancel"
    )
    shared.plane.wait_end(submitted.json()["execution_id"])
    answer = shared.plane.http.post("/api/v1/workflows/run-to-cancel/cancel-tree", json={})
    assert answer.status_code in (200, 409), answer.text
    refused = shared.plane.call("leaf.relay", {"path": [], "value": 1}, X_Run_ID="run-to-cancel")
    if answer.status_code == 200:
        assert refused.status_code == 409, refused.text
        assert refused.json()["error_category"] == "run_cancelled"
