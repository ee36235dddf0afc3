"""Calls other agents through the plane: `relay` passes on along a list of agents, and the last
one answers."""

import asyncio
import os

from agentfield import Agent

app = Agent(node_id=os.environ["NODE_ID"])


@app.reasoner()
async def relay(path: list, value: int) -> dict:
    """Calls `relay` of the first agent in `path` with the rest; an empty path ends it."""
    if not path:
        return {"value": value, "seen": [app.node_id]}
    below = await app.call(f"{path[0]}.relay", path=path[1:], value=value + 1)
    return {"value": below["value"], "seen": [app.node_id, *below["seen"]]}


@app.skill()
def double(value: int) -> int:
    return value * 2


@app.reasoner()
async def through_skill(agent: str, value: int) -> dict:
    return {"doubled": await app.call(f"{agent}.double", value=value)}


@app.reasoner()
async def wait_for_slow(agent: str, seconds: float, mark: str) -> dict:
    return await app.call(f"{agent}.slow", seconds=seconds, mark=mark)


@app.reasoner()
async def fan(agent: str, width: int) -> dict:
    answers = await asyncio.gather(
        *(app.call(f"{agent}.relay", path=[], value=n) for n in range(width))
    )
    return {"sum": sum(answer["value"] for answer in answers)}


@app.reasoner()
async def helper(value: int) -> dict:
    return {"helped": value}


@app.reasoner()
async def in_process(value: int) -> dict:
    """Calls a reasoner of its own directly: an execution that the plane only observes."""
    return {"inner": await helper(value=value)}


@app.reasoner()
async def calls_missing(target: str) -> dict:
    return await app.call(target, x=1)


if __name__ == "__main__":
    app.run(host="127.0.0.1", port=int(os.environ["AGENT_PORT"]), auto_port=False)
