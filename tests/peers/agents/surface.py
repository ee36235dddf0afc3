"""Uses what the SDK offers beside calls: memory and its events, notes, logs, discovery."""

import asyncio
import os

from agentfield import Agent
from agentfield.logger import log_info

app = Agent(node_id=os.environ["NODE_ID"])
heard = []


@app.reasoner()
async def listen(pattern: str) -> dict:
    @app.memory.on_change(pattern)
    async def changed(event):
        heard.append({"key": event.key, "action": event.action, "data": event.data})

    return {"listening": pattern}


@app.reasoner()
async def remember(key: str) -> dict:
    memory = app.memory
    await memory.set(key, {"n": 1})
    first = await memory.get(key)
    await memory.set(key, None)
    null = await memory.get(key, default="absent")
    await memory.global_scope.set(f"{key}.global", [1, 2])
    session = memory.session("session-of-the-test")
    await session.set(f"{key}.session", "text")
    listed = await session.list_keys()
    await memory.delete(key)
    gone = await memory.get(key, default="absent")
    return {
        "first": first,
        "null": null,
        "global": await memory.global_scope.get(f"{key}.global"),
        "session": await session.get(f"{key}.session"),
        "listed": listed,
        "gone": gone,
    }


@app.reasoner()
async def change(key: str, value: int) -> dict:
    await app.memory.global_scope.set(key, value)
    await app.memory.global_scope.delete(key)
    return {"changed": key}


@app.reasoner()
async def heard_so_far() -> list:
    return list(heard)


@app.reasoner()
async def history(pattern: str) -> list:
    events = await app.memory.events.history(patterns=pattern, limit=10)
    return [{"key": event.key, "action": event.action} for event in events]


@app.reasoner()
async def talk(text: str) -> dict:
    app.note(text, ["test", "talk"])
    log_info(text)
    await asyncio.sleep(0.2)
    return {"said": text}


@app.reasoner()
async def find(agent: str) -> dict:
    found = await asyncio.to_thread(app.discover, agent=agent, include_input_schema=True)
    capability = found.json.capabilities[0]
    return {
        "agent": capability.agent_id,
        "reasoners": sorted(one.id for one in capability.reasoners),
        "skills": sorted(one.id for one in capability.skills),
    }


if __name__ == "__main__":
    app.run(host="127.0.0.1", port=int(os.environ["AGENT_PORT"]), auto_port=False)
