"""A run again, with real agents: what had succeeded is taken over and runs once."""

from types import SimpleNamespace

import pytest


@pytest.fixture
def scene(world):
    plane = world.plane()
    ran, broken = world.folder / "ran", world.folder / "broken"
    ran.touch()
    broken.touch()
    here = {"RAN": str(ran), "BROKEN": str(broken)}
    boss = world.agent(plane, "steps.py", "boss", **here)
    worker = world.agent(plane, "steps.py", "worker", **here)
    for agent in (boss, worker):
        agent.expect_error(r"is broken|Execution failed|reasoner\.failed|Traceback|fragile|chain|twice")
    return SimpleNamespace(
        plane=plane,
        boss=boss,
        worker=worker,
        mend=broken.unlink,
        ran=lambda: ran.read_text(encoding="utf-8").split("\n")[:-1],
    )


def failed_run(scene, target, input):
    id = scene.plane.submit(target, input).json()["execution_id"]
    assert scene.plane.wait_end(id)["status"] == "failed"
    return id


def restart(scene, id, **body):
    return scene.plane.http.post(f"/api/v1/executions/{id}/restart", json=body)


def members(plane, run):
    return plane.store.rows("select * from executions_shown where run = ? order by n", run)


def test_a_restart_runs_only_what_had_failed(scene):
    root = failed_run(scene, "boss.chain", {"worker": "worker", "order": 1})
    assert scene.ran() == ["chain 1", "step one", "step two", "fragile three"]
    scene.mend()
    answer = restart(scene, root, reason="it is mended")
    assert answer.status_code == 202, answer.text
    new = scene.plane.wait_end(answer.json()["execution_id"])
    assert new["status"] == "succeeded", new
    assert new["restart_of"] == root
    successor = {"execution_id": new["execution_id"], "run_id": new["run_id"]}
    assert scene.plane.execution(root)["restarted_as"] == successor
    assert scene.ran()[4:] == ["chain 1", "fragile three"], "steps one and two ran once"
    rows = members(scene.plane, new["run_id"])
    reasons = [row["status_reason"] for row in rows]
    old = members(scene.plane, scene.plane.execution(root)["run_id"])
    assert reasons[1] == f"replayed_from_execution:{old[1]['id']}"
    assert reasons[2] == f"replayed_from_execution:{old[2]['id']}"
    mark = scene.plane.execution(old[1]["id"])["result"]["mark"]
    assert new["result"]["one"]["mark"] == mark, "the very result"


def test_equal_calls_get_their_own_results(scene):
    root = failed_run(scene, "boss.twice", {"worker": "worker"})
    old = members(scene.plane, scene.plane.execution(root)["run_id"])
    marks = [scene.plane.execution(row["id"])["result"]["mark"] for row in old[1:3]]
    scene.mend()
    new = scene.plane.wait_end(restart(scene, root).json()["execution_id"])
    result = new["result"]
    assert [result["first"]["mark"], result["second"]["mark"]] == marks
    assert marks[0] != marks[1]


def test_a_fork_with_another_input_takes_over_what_stayed_the_same(scene):
    root = failed_run(scene, "boss.chain", {"worker": "worker", "order": 1})
    scene.mend()
    answer = restart(scene, root, fork=True, input={"worker": "worker", "order": 2})
    assert answer.json()["kind"] == "fork"
    new = scene.plane.wait_end(answer.json()["execution_id"])
    assert new["result"]["order"] == 2
    assert scene.ran()[4:] == ["chain 2", "fragile three"]


def test_nothing_is_taken_over_when_asked_so(scene):
    root = failed_run(scene, "boss.chain", {"worker": "worker", "order": 1})
    scene.mend()
    new = scene.plane.wait_end(restart(scene, root, reuse="none").json()["execution_id"])
    assert new["status"] == "succeeded"
    assert scene.ran()[4:] == ["chain 1", "step one", "step two", "fragile three"]


def test_a_hit_answers_at_a_killed_agent(scene):
    root = failed_run(scene, "boss.chain", {"worker": "worker", "order": 1})
    scene.worker.kill_9()
    scene.mend()
    answer = restart(scene, root)
    new = answer.json()["execution_id"]

    def third():
        rows = members(scene.plane, answer.json()["run_id"])
        return rows if len(rows) == 4 else None

    from harness.waiting import until

    rows = until("the third step waits for its agent", third, 30)
    assert [row["status"] for row in rows[1:3]] == ["succeeded", "succeeded"]
    scene.worker.start()
    assert scene.plane.wait_end(new)["status"] == "succeeded"
    assert scene.ran()[4:] == ["chain 1", "fragile three"]


def test_a_run_that_still_runs_is_a_conflict_unless_forked(scene):
    id = scene.plane.submit("boss.slow", {"seconds": 3}).json()["execution_id"]
    scene.plane.wait_status(id, "running")
    answer = restart(scene, id)
    assert answer.status_code == 409, answer.text
    assert answer.json()["error_category"] == "conflict"
    forked = restart(scene, id, fork=True)
    assert forked.status_code == 202, forked.text
    assert scene.plane.wait_end(forked.json()["execution_id"])["status"] == "succeeded"


def test_a_restart_goes_on_over_a_restart_of_the_plane(scene):
    root = failed_run(scene, "boss.twice", {"worker": "worker"})
    old = members(scene.plane, scene.plane.execution(root)["run_id"])
    marks = [scene.plane.execution(row["id"])["result"]["mark"] for row in old[1:3]]
    scene.plane.kill_9()
    scene.plane.start()
    scene.mend()
    answer = restart(scene, root)
    assert answer.status_code == 202, answer.text
    new = scene.plane.wait_end(answer.json()["execution_id"])
    assert [new["result"]["first"]["mark"], new["result"]["second"]["mark"]] == marks
