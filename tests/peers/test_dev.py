"""`muster dev -- python agent.py`: the file is edited again and again under load, and no call
fails."""

import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.agent import SCRIPTS
from harness.child import Child
from harness.plane import Plane, binary, quiet_environment
from harness.waiting import free_port, until

SECONDS = 60
# At most so many calls are under way at once.
CALLERS = 20


@pytest.mark.xdist_group("busy")
@pytest.mark.timeout(420)
def test_file_edits_under_ten_calls_a_second_fail_no_execution(world):
    """Row: `muster dev` restarts it on file changes, 10 calls a second, a minute."""
    folder = world.folder / "project"
    folder.mkdir()
    script = folder / "agent.py"
    shutil.copy(SCRIPTS / "basic.py", script)
    plane = Plane(folder / "data")
    world.planes.append(plane)
    agent_port = free_port()
    environment = quiet_environment(
        NODE_ID="edited",
        AGENT_PORT=agent_port,
        AGENT_CALLBACK_URL=f"http://127.0.0.1:{agent_port}",
        PYTHONUNBUFFERED="1",
        PYTHONDONTWRITEBYTECODE="1",
    )
    command = [binary(), "dev", "--port", str(plane.port), "--data", str(plane.data)]
    command += ["--", sys.executable, str(script)]
    plane.child = Child("dev", command, env=environment, cwd=folder)
    plane.past.append(plane.child)
    plane.wait_ready()
    until("the agent answers", lambda: plane.call("edited.who").status_code == 200, 60)

    pids = set()

    def seen(job):
        if job.exception() is None and job.result().status_code == 200:
            pids.add(job.result().json()["result"]["pid"])

    with ThreadPoolExecutor(CALLERS) as pool:
        end = time.monotonic() + SECONDS
        edits = 0
        edit_at = time.monotonic() + 3
        jobs = []
        ticks = 0
        # The calls that were under way when the last edit came.
        disturbed = []
        while time.monotonic() < end or edits < 5:
            assert time.monotonic() < end + 240, f"only {edits} edits were taken"
            under_way = [job for job in jobs if not job.done()]
            # Ten a second where the machine can; a machine that cannot gets no growing crowd.
            if len(under_way) < CALLERS:
                ticks += 1
                if ticks % 10 == 0:
                    jobs.append(pool.submit(plane.call, "edited.slow", {"seconds": 1}))
                else:
                    jobs.append(pool.submit(plane.call, "edited.who"))
                    jobs[-1].add_done_callback(seen)
            # An edit comes when the process of the last one is up and those who waited for it have
            # their answer: a process that is never let up answers nobody.
            if len(pids) <= edits or not all(job.done() for job in disturbed):
                edit_at = time.monotonic() + 3
            elif time.monotonic() > edit_at:
                edits += 1
                disturbed = under_way
                script.write_text(script.read_text() + f"\n# edit {edits}\n")
            time.sleep(0.1)
        answers = [job.result() for job in jobs]
    wrong = [f"{a.status_code} {a.text}" for a in answers if a.status_code != 200]
    assert not wrong, f"{len(wrong)} of {len(answers)}: {wrong[:5]}"
    assert len(pids) >= 5, f"the agent was not restarted on edits: {pids}"
    failed = [r for r in plane.store.executions().values() if r["status"] != "succeeded"]
    assert not failed, failed[:3]
    plane.child.terminate()
    assert plane.child.wait(30) in (0, 130, 143)
