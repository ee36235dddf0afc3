"""Several processes of one agent id at once: two for a while, and a rolling update, both under
load. Nothing is orphaned, and nothing fails."""

import os
import threading
import time

import httpx
import pytest

from harness.waiting import until

# The contract says five minutes; the suite spends this much of its time on it. Orphans would show
# after three beats (6 s) and the drain grace, which is cut to 10 s here.
SECONDS = float(os.environ.get("TWO_PROCESSES_SECONDS", 75))


class Load(threading.Thread):
    """Calls one function again and again; remembers who answered, and everything that was not
    a 200."""

    def __init__(self, plane, target, input=None, pause=0.05):
        super().__init__(daemon=True)
        self.plane, self.target, self.input, self.pause = plane, target, input or {}, pause
        self.answers, self.wrong, self.halt = [], [], threading.Event()

    def run(self):
        http = httpx.Client(base_url=self.plane.url, timeout=120)
        while not self.halt.wait(self.pause):
            answer = http.post(f"/api/v1/execute/{self.target}", json={"input": self.input})
            if answer.status_code == 200:
                self.answers.append(answer.json()["result"])
            else:
                self.wrong.append(f"{answer.status_code} {answer.text}")


def end(loads):
    for load in loads:
        load.halt.set()
    for load in loads:
        load.join(90)
        assert not load.is_alive(), "a caller is stuck"
        assert not load.wrong, f"{load.target}: {len(load.wrong)} failed: {load.wrong[:3]}"


def not_succeeded(plane):
    return [row for row in plane.store.executions().values() if row["status"] != "succeeded"]


def loads_on(plane, node):
    loads = [Load(plane, f"{node}.who") for _ in range(3)]
    loads += [Load(plane, f"{node}.slow", {"seconds": 3}) for _ in range(4)]
    loads += [Load(plane, f"{node}.slow_skill", {"seconds": 1})]
    for load in loads:
        load.start()
    return loads


@pytest.mark.xdist_group("busy")
def test_two_processes_of_one_id_under_load_orphan_nothing(world):
    """Row: two processes of one id (the contract's five minutes; see `SECONDS`)."""
    plane = world.plane(agents__drain_grace="10s")
    one = world.agent(plane, "basic.py", "twin")
    two = world.agent(plane, "basic.py", "twin")
    long = [plane.submit("twin.slow", {"seconds": SECONDS - 10}) for _ in range(6)]
    loads = loads_on(plane, "twin")
    time.sleep(SECONDS)
    end(loads)
    for submitted in long:
        view = plane.wait_end(submitted.json()["execution_id"])
        assert view["status"] == "succeeded", view
    seen = {answer["pid"] for load in loads[:3] for answer in load.answers}
    assert seen == {one.child.process.pid, two.child.process.pid}, "one of them took no call"
    assert not_succeeded(plane) == []
    states = {i["state"] for i in plane.http.get("/api/v1/nodes/twin").json()["instances"]}
    assert states == {"active"}


@pytest.mark.xdist_group("busy")
def test_a_rolling_update_under_load_orphans_nothing(world):
    """Row: a rolling update under load: the new process starts, the old one gets SIGTERM."""
    plane = world.plane(agents__drain_grace="10s")
    process = world.agent(plane, "basic.py", "rolled")
    loads = loads_on(plane, "rolled")
    pids = [process.child.process.pid]
    for _ in range(3):
        time.sleep(4)
        newer = world.agent(plane, "basic.py", "rolled")
        pids.append(newer.child.process.pid)
        until(
            "the new process takes calls",
            lambda: any(
                answer["pid"] == pids[-1] for load in loads[:3] for answer in load.answers[-50:]
            ),
        )
        process.child.terminate()
        process = newer
    time.sleep(4)
    end(loads)
    time.sleep(15)
    assert not_succeeded(plane) == []
    seen = {answer["pid"] for load in loads[:3] for answer in load.answers}
    assert seen == set(pids)
