"""What a process took with it: ends as `agent_restart_orphaned` when its drain is over, also when
the plane itself is restarted meanwhile, and runs again where its function allows that."""

import time

import pytest

from harness.waiting import until

DRAIN = 12


def take(plane, node):
    """A call that the agent accepts and will not finish."""
    submitted = plane.submit(f"{node}.slow", {"seconds": 300})
    assert submitted.status_code == 202, submitted.text
    id = submitted.json()["execution_id"]
    until(
        "it is accepted",
        lambda: plane.store.rows(
            "select 1 from attempts_shown where execution = ? and accepted_at is not null", id
        ),
    )
    return id


def instances(plane, node):
    return plane.http.get(f"/api/v1/nodes/{node}").json()["instances"]


def ends_as_an_orphan(plane, id, began, soonest, latest):
    view = plane.wait_end(id, within=latest)
    took = time.monotonic() - began
    assert (view["status"], view["error_category"]) == ("failed", "agent_restart_orphaned"), view
    assert soonest <= took, f"it ended {took:.1f} s after its process"


def test_orphans_of_a_process_that_came_back_end_after_the_drain_grace(world):
    """An instance is gone by its own silence and another process at its address."""
    plane = world.plane(agents__drain_grace=f"{DRAIN}s")
    agent = world.agent(plane, "basic.py", "orphanage")
    id = take(plane, "orphanage")
    agent.kill_9()
    began = time.monotonic()
    agent.start()
    ends_as_an_orphan(plane, id, began, DRAIN - 2, 60)
    assert plane.call("orphanage.hello", {"name": "x"}).status_code == 200


@pytest.mark.parametrize("when", ["before it is found gone", "after it is found gone"])
def test_the_moment_of_an_orphan_survives_a_restart_of_the_plane(world, when):
    """Orphans with a stored drain timer: kill -9 of the agent, then of the plane within the
    drain grace."""
    # Until it is found gone three beats go by, each of at most 5 s.
    drain = DRAIN if when == "before it is found gone" else DRAIN + 15
    plane = world.plane(agents__drain_grace=f"{drain}s")
    agent = world.agent(plane, "basic.py", "keeper")
    agent.expect_error("memory events|Connect|connect|[Hh]eartbeat")
    id = take(plane, "keeper")
    agent.kill_9()
    began = time.monotonic()
    agent.start()
    if when == "after it is found gone":
        until(
            "the old process is gone",
            lambda: any("gone" in i["evidence"] for i in instances(plane, "keeper")),
        )
    plane.kill_9()
    plane.start()
    assert plane.execution(id)["status"] == "running"
    ends_as_an_orphan(plane, id, began, drain - 2, 75)


def test_orphans_of_a_process_that_never_came_back_end_too(world):
    """Gone by its own silence together with a refused dial; the plane is restarted with SIGTERM
    before the drain is over."""
    plane = world.plane(agents__drain_grace=f"{DRAIN}s", agents__restart_grace="3s")
    agent = world.agent(plane, "basic.py", "lost")
    id = take(plane, "lost")
    agent.kill_9()
    until(
        "it is gone",
        lambda: any("gone" in i["evidence"] for i in instances(plane, "lost")),
        within=40,
    )
    began = time.monotonic()
    assert plane.terminate() == 0
    plane.start()
    assert plane.execution(id)["status"] == "running"
    ends_as_an_orphan(plane, id, began, DRAIN - 4, 60)


def test_an_idempotent_function_runs_again_instead_of_being_orphaned(world, tmp_path):
    """`idempotent`: at least once. The process dies with the call; the next one gets it."""
    plane = world.plane(agents__drain_grace="3s")
    agent = world.agent(plane, "basic.py", "again")
    mark = tmp_path / "runs"
    submitted = plane.submit("again.again", {"seconds": 8, "mark": str(mark)})
    id = submitted.json()["execution_id"]
    until("it runs", lambda: mark.exists() and mark.read_text().strip())
    agent.kill_9()
    agent.start()
    view = plane.wait_end(id, within=60)
    assert view["status"] == "succeeded", view
    assert view["result"] == {"pid": agent.child.process.pid}
    assert len(mark.read_text().splitlines()) == 2
    attempts = plane.store.rows("select * from attempts_shown where execution = ?", id)
    assert len(attempts) == 2
