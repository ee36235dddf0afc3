"""Reasoners and skills that succeed, fail, take long, or answer with unusual values."""

import asyncio
import os
from pathlib import Path

from agentfield import Agent

app = Agent(node_id=os.environ["NODE_ID"])


@app.reasoner()
async def hello(name: str) -> dict:
    return {"hello": name}


@app.skill()
def add(a: int, b: int) -> int:
    return a + b


@app.skill()
def skill_boom(why: str) -> dict:
    raise RuntimeError(why)


@app.reasoner()
async def boom(why: str) -> dict:
    raise RuntimeError(why)


@app.reasoner()
async def slow(seconds: float, mark: str = "") -> dict:
    """Leaves a line in a file every 50 ms, so that a test sees whether it still runs."""
    steps = max(1, int(seconds / 0.05))
    for step in range(steps):
        if mark:
            with Path(mark).open("a") as file:
                file.write(f"{step}\n")
        await asyncio.sleep(0.05)
    return {"slept": seconds}


@app.skill()
async def slow_skill(seconds: float) -> dict:
    await asyncio.sleep(seconds)
    return {"slept": seconds}


@app.reasoner()
async def scalar() -> int:
    return 42


@app.reasoner()
async def nothing() -> None:
    return None


@app.skill()
def skill_nothing() -> None:
    return None


@app.reasoner()
async def listing() -> list:
    return [1, "two", None, {"three": 3.5}]


@app.reasoner()
async def who() -> dict:
    return {"pid": os.getpid(), "port": int(os.environ["AGENT_PORT"])}


@app.reasoner(tags=["idempotent"])
async def again(seconds: float, mark: str) -> dict:
    """Leaves a line with its process at the start, so that a test sees who ran it."""
    with Path(mark).open("a") as file:
        file.write(f"{os.getpid()}\n")
    await asyncio.sleep(seconds)
    return {"pid": os.getpid()}


if __name__ == "__main__":
    app.run(host=os.environ.get("AGENT_HOST", "127.0.0.1"), port=int(os.environ["AGENT_PORT"]), auto_port=False)
