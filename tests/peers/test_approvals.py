"""People in the loop, with the published SDK: it pauses, a person decides, it goes on. The
plane or the agent dies in between; decisions are forged, late, or never come."""

import hashlib
import hmac
import json
import time
from types import SimpleNamespace

import pytest

from harness.waiting import until

SECRET = "a secret of the test"


@pytest.fixture(scope="module")
def shared(module_world):
    plane = module_world.plane(auth__approval_webhook_secret=SECRET)
    agent = module_world.agent(plane, "people.py", "people")
    return SimpleNamespace(plane=plane, agent=agent, output=module_world.output)


def key(plane):
    return {"X-API-Key": (plane.data / "owner.key").read_text().strip()}


def submit(plane, function, **input):
    answer = plane.submit(f"people.{function}", input)
    assert answer.status_code == 202, answer.text
    return answer.json()["execution_id"]


def waits(plane, id):
    return plane.wait_status(id, "waiting", within=30)


def decide(plane, id, decision, **more):
    body = {"decision": decision, **more}
    path = f"/api/v1/executions/{id}/approval-response"
    return plane.http.post(path, json=body, headers=key(plane))


def person(plane, path, body=None):
    return plane.http.post(path, json=body or {}, headers=key(plane))


def signed(body, secret=SECRET, at=None):
    at = int(time.time()) if at is None else at
    mac = hmac.new(secret.encode(), f"{at}.{body}".encode(), hashlib.sha256).hexdigest()
    return {"X-Hax-Signature": f"t={at},v1={mac}"}


@pytest.mark.parametrize("decision", ["approved", "rejected", "request_changes"])
def test_every_decision_reaches_the_code_that_paused(shared, decision):
    plane = shared.plane
    request = f"req-{decision}"
    id = submit(plane, "decide", request=request, url="https://people.example/1")
    shown = waits(plane, id)
    assert shown["status_reason"] == "waiting_for_approval"
    assert shown["approval_request_id"] == request
    assert shown["approval_status"] == "pending"
    assert shown["approval_request_url"] == "https://people.example/1"
    assert shown["wait"]["reference"] == request
    answer = decide(plane, id, decision, feedback="said so", response={"by": "ada"})
    assert answer.status_code == 200, answer.text
    end = plane.wait_end(id)
    assert end["status"] == "succeeded", end
    assert end["result"] == {
        "decision": decision,
        "feedback": "said so",
        "response": {"by": "ada"},
        "approved": decision == "approved",
        "changes": decision == "request_changes",
    }
    assert decide(plane, id, decision).status_code == 200, "the same again"
    other = "rejected" if decision == "approved" else "approved"
    assert decide(plane, id, other).status_code == 409


def test_a_parent_waits_with_its_child_and_goes_on_by_itself(shared):
    plane = shared.plane
    id = submit(plane, "parent", request="req-child")
    parent = waits(plane, id)
    until(
        "the parent says for whom it waits",
        lambda: plane.execution(id)["status_reason"] == "awaiting_child",
    )
    parent = plane.execution(id)
    child = parent["wait"]["reference"]
    assert plane.execution(child)["parent_execution_id"] == id
    assert decide(plane, child, "approved").status_code == 200
    end = plane.wait_end(id)
    assert end["status"] == "succeeded", end
    assert end["result"]["child"]["decision"] == "approved"


def test_an_agent_that_polls_sees_the_decision(shared):
    plane = shared.plane
    id = submit(plane, "polls", request="req-polls")
    waits(plane, id)
    answer = decide(plane, id, "rejected", response={"why": "dear"})
    assert answer.status_code == 200, answer.text
    end = plane.wait_end(id)
    assert end["status"] == "succeeded", end
    assert end["result"] == {"status": "rejected", "response": {"why": "dear"}}


def test_an_approval_that_nobody_decides_expires(shared):
    plane = shared.plane
    id = submit(plane, "decide", request="req-expires", hours=0.0005)
    waits(plane, id)
    end = plane.wait_end(id, within=30)
    assert end["status"] == "succeeded", end
    assert end["result"]["decision"] == "expired"
    assert decide(plane, id, "approved").status_code == 409, "too late"


def test_a_signed_decision_is_taken_and_a_forged_or_old_one_is_not(shared):
    plane = shared.plane
    id = submit(plane, "decide", request="req-signed")
    waits(plane, id)
    path = "/api/v1/webhooks/approval-response"
    body = json.dumps({"requestId": "req-signed", "decision": "approved", "feedback": "ok"})

    def send(headers):
        headers = {"Content-Type": "application/json", **headers}
        return plane.http.post(path, content=body, headers=headers).status_code

    assert send({}) == 401
    assert send(signed(body, "another secret")) == 401
    assert send(signed(body + " ")) == 401
    assert send(signed(body, at=int(time.time()) - 3600)) == 401
    assert plane.execution(id)["status"] == "waiting"
    assert send(signed(body)) == 200
    assert plane.wait_end(id)["result"]["decision"] == "approved"


def test_only_the_request_id_and_several_fit(shared):
    plane = shared.plane
    shared.agent.expect_error("cancelled by upstream client")
    ids = [submit(plane, "decide", request="req-twice") for _ in range(2)]
    for id in ids:
        waits(plane, id)
    body = json.dumps({"requestId": "req-twice", "decision": "approved"})
    headers = {"Content-Type": "application/json", **signed(body)}
    answer = plane.http.post("/api/v1/webhooks/approval-response", content=body, headers=headers)
    assert answer.status_code == 409, answer.text
    named = {one["execution_id"] for one in answer.json()["details"]["approvals"]}
    assert named == set(ids)
    for id in ids:
        plane.cancel(id)


def test_a_paused_run_of_a_real_agent_goes_on_when_it_is_resumed(shared):
    plane = shared.plane
    id = submit(plane, "slow", seconds=0.5)
    until("it runs", lambda: plane.execution(id)["status"] == "running")
    assert person(plane, f"/api/v1/executions/{id}/pause").status_code == 200
    assert plane.execution(id)["state"] == "paused"
    end = plane.wait_end(id)
    assert end["status"] == "succeeded", "what was sent may end: " + str(end)

    run = plane.submit("people.decide", {"request": "req-run"}, X_Run_ID="run-paused")
    first = run.json()["execution_id"]
    waits(plane, first)
    assert person(plane, "/api/v1/workflows/run-paused/pause-tree").status_code == 200
    joined = plane.submit("people.slow", {"seconds": 0}, X_Run_ID="run-paused").json()
    assert decide(plane, first, "approved").status_code == 200
    time.sleep(1)
    assert plane.execution(first)["state"] == "paused"
    assert plane.execution(joined["execution_id"])["state"] == "paused"
    assert person(plane, "/api/v1/workflows/run-paused/resume-tree").status_code == 200
    assert plane.wait_end(first)["result"]["decision"] == "approved"
    assert plane.wait_end(joined["execution_id"])["status"] == "succeeded"


def test_a_plane_that_is_killed_while_an_agent_waits_keeps_the_approval(world):
    plane = world.plane()
    agent = world.agent(plane, "people.py", "people")
    agent.expect_error("heartbeat|connect|Connection|memory|Memory|note")
    id = submit(plane, "decide", request="req-restart")
    waits(plane, id)
    plane.kill_9()
    plane.start()
    shown = plane.execution(id)
    assert (shown["status"], shown["approval_status"]) == ("waiting", "pending")
    answer = decide(plane, id, "approved", feedback="after the restart")
    assert answer.status_code == 200, answer.text
    end = plane.wait_end(id)
    assert end["status"] == "succeeded", end
    assert end["result"]["feedback"] == "after the restart"


def test_an_agent_that_is_killed_while_it_waits_is_not_told_and_a_refusal_cancels(world):
    plane = world.plane()
    agent = world.agent(plane, "people.py", "people")
    id = submit(plane, "decide", request="req-killed")
    waits(plane, id)
    agent.kill_9()
    answer = decide(plane, id, "rejected")
    assert answer.status_code == 200, answer.text
    end = plane.wait_end(id, within=120)
    assert end["status"] in ("cancelled", "failed"), end
    assert end["status_reason"] in ("approval_rejected", "agent_restart_orphaned"), end
