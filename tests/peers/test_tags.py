"""Tags that need an approval: the SDK waits with its start until a person decided."""

import httpx

from harness.waiting import until


def owner(plane):
    return {"X-API-Key": (plane.data / "owner.key").read_text(encoding="utf-8").strip()}


def test_the_sdk_waits_for_the_approval_and_then_serves(world):
    plane = world.plane(admission__tags_need_approval="finance*")
    ran = world.folder / "ran"
    agent = world.agent(
        plane, "steps.py", "billing", start=False,
        RAN=str(ran), BROKEN=str(world.folder / "no"), TAGS="finance.write",
    )
    agent.expect_error("pending|approval")
    agent.start(wait=False)
    agent.wait_registered()
    node = plane.http.get("/api/v1/nodes/billing").json()
    assert node["lifecycle_status"] == "pending_approval", node
    refused = plane.call("billing.step", {"name": "early"})
    assert refused.status_code == 503, refused.text
    assert refused.json()["error_category"] == "agent_pending_approval"
    assert "retry-after" not in refused.headers
    try:
        httpx.get(f"{agent.url}/health", timeout=1)
        raise AssertionError("it must not serve before the approval")
    except httpx.TransportError:
        pass
    answer = plane.http.post("/api/v1/tags/billing/approve", json={}, headers=owner(plane))
    assert answer.status_code == 200, answer.text
    assert answer.json()["callable"] is True
    agent.wait_serving()
    answer = until(
        "it is called",
        lambda: (a := plane.call("billing.step", {"name": "late"})).status_code == 200 and a,
        30,
    )
    assert answer.json()["result"]["name"] == "late"
    assert ran.read_text(encoding="utf-8") == "step late\n"
