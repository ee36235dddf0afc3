"""Reasoners that tell with which trace they were called, and call on."""

import os
from contextvars import ContextVar

from agentfield import Agent

app = Agent(node_id=os.environ["NODE_ID"])
HEADERS = ContextVar("headers", default={})


@app.middleware("http")
async def keep_headers(request, call_next):
    names = ("traceparent", "tracestate", "x-execution-id")
    HEADERS.set({name: request.headers[name] for name in names if name in request.headers})
    return await call_next(request)


@app.reasoner()
async def heard() -> dict:
    return HEADERS.get()


@app.reasoner()
async def onward(agent: str) -> dict:
    return {"here": HEADERS.get(), "there": await app.call(f"{agent}.heard")}


if __name__ == "__main__":
    app.run(host="127.0.0.1", port=int(os.environ["AGENT_PORT"]), auto_port=False)
