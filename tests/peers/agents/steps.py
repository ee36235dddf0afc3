"""A run of three steps, the third of which fails while a file says so. Every step writes down
that it ran, so that a test can count."""

import asyncio
import os
import uuid
from pathlib import Path

from agentfield import Agent

app = Agent(node_id=os.environ["NODE_ID"], tags=os.environ.get("TAGS", "").split(",") if os.environ.get("TAGS") else None)
RAN = Path(os.environ["RAN"])


def ran(what: str) -> None:
    with RAN.open("a", encoding="utf-8") as file:
        file.write(f"{what}\n")


@app.reasoner()
async def step(name: str) -> dict:
    ran(f"step {name}")
    return {"name": name, "mark": uuid.uuid4().hex}


@app.reasoner()
async def fragile(name: str) -> dict:
    ran(f"fragile {name}")
    if Path(os.environ["BROKEN"]).exists():
        raise ValueError(f"{name} is broken")
    return {"name": name}


@app.reasoner()
async def chain(worker: str, order: int) -> dict:
    ran(f"chain {order}")
    one = await app.call(f"{worker}.step", name="one")
    two = await app.call(f"{worker}.step", name="two")
    three = await app.call(f"{worker}.fragile", name="three")
    return {"one": one, "two": two, "three": three, "order": order}


@app.reasoner()
async def twice(worker: str) -> dict:
    """Two equal calls one after the other, then a step that may fail."""
    first = await app.call(f"{worker}.step", name="same")
    second = await app.call(f"{worker}.step", name="same")
    last = await app.call(f"{worker}.fragile", name="last")
    return {"first": first, "second": second, "last": last}


@app.reasoner()
async def slow(seconds: float) -> dict:
    await asyncio.sleep(seconds)
    return {"slept": seconds}


if __name__ == "__main__":
    app.run(host="127.0.0.1", port=int(os.environ["AGENT_PORT"]), auto_port=False)
