"""Waits for people as the SDK offers it: pauses for an approval, and calls one that does."""

import asyncio
import os

from agentfield import Agent

app = Agent(node_id=os.environ["NODE_ID"])


@app.reasoner()
async def decide(request: str, hours: float = 1, url: str = "") -> dict:
    """Pauses for a person and says what they said."""
    result = await app.pause(
        approval_request_id=request, approval_request_url=url, expires_in_hours=hours, timeout=60
    )
    return {
        "decision": result.decision,
        "feedback": result.feedback,
        "response": result.raw_response,
        "approved": result.approved,
        "changes": result.changes_requested,
    }


@app.reasoner()
async def parent(request: str) -> dict:
    return {"child": await app.call(f"{app.node_id}.decide", request=request)}


@app.reasoner()
async def polls(request: str) -> dict:
    """Asks without an address to be told at, and looks by itself."""
    execution = app._get_current_execution_context().execution_id
    await app.client.request_approval(execution_id=execution, approval_request_id=request)
    status = await app.client.wait_for_approval(execution, poll_interval=0.2, timeout=30)
    return {"status": status.status, "response": status.response}


@app.reasoner()
async def slow(seconds: float) -> dict:
    await asyncio.sleep(seconds)
    return {"slept": seconds}


if __name__ == "__main__":
    app.run(host="127.0.0.1", port=int(os.environ["AGENT_PORT"]), auto_port=False)
