"""A machine that says what a test wants: the frames of the daemon's link, spoken by hand, so that it
can tell other workers than the plane believes in. Answers each line of its input with a line.

`forget NAME`: it has this worker no more, and never tells an exit. `remember`: it has all of them."""

import argparse
import asyncio
import json
import sys
import time
import uuid

import aiohttp

MASK = (1 << 64) - 1


def digest(ids):
    """FNV-1a over the sorted ids, each with a NUL: the same for every order."""
    value = 0xCBF29CE484222325
    for byte in b"".join(each.encode() + b"\0" for each in sorted(ids)):
        value = ((value ^ byte) * 0x100000001B3) & MASK
    return f"{value:016x}"


class Node:
    def __init__(self, socket, name, known):
        self.socket = socket
        self.name = name
        self.known = known
        self.workers = {}
        self.forgotten = {}
        self.told = False
        self.seq = 0

    async def say(self, **frame):
        await self.socket.send_json({"v": 1, "id": uuid.uuid4().hex, **frame})

    async def register(self):
        offer = {"epoch": uuid.uuid4().hex, "beat_ms": 1000, "pid": 1, "host": "by hand"}
        await self.say(
            type="node.register", name=self.name, node_id=self.known["node_id"], max_agents=0, tags=[], version="0.1.0",
            provider={"name": "muster", "instance_id": uuid.uuid4().hex},
            capabilities=[{"name": "muster:link-v1", "kind": "capacity", "metadata": offer}],
        )

    async def beat(self):
        self.seq += 1
        await self.say(type="muster.beat", seq=self.seq, count=len(self.workers), digest=digest(self.workers), load=0.1)

    async def inventory(self):
        # Two without a worker end it: what is forgotten is told once.
        if self.forgotten and self.told:
            return
        self.told = bool(self.forgotten)
        now = int(time.time() * 1_000_000)
        workers = [{"worker_id": id, "name": name, "state": "running", "pid": 100_000, "started_at": now, "restarts": 0} for id, name in self.workers.items()]
        await self.say(type="muster.inventory", workers=workers)

    async def beats(self):
        while True:
            await self.beat()
            await asyncio.sleep(0.5)

    async def listen(self):
        async for message in self.socket:
            frame = json.loads(message.data)
            if frame["type"] == "action.invoke" and frame["action"] == "spawn":
                given = frame["input"]
                self.workers[given["worker_id"]] = given["name"]
                output = {"outcome": "started", "pid": 100_000, "started_at": int(time.time() * 1_000_000)}
                await self.say(type="action.result", invocation_id=frame["invocation_id"], output=output)
            elif frame["type"] == "muster.ask":
                await self.say(type="reply", id=frame["id"])
                await self.inventory()
        raise SystemExit("the link ended")

    async def obey(self, line):
        verb, *rest = line.split()
        if verb == "forget":
            self.forgotten.update({id: name for id, name in self.workers.items() if name in rest})
            self.workers = {id: name for id, name in self.workers.items() if name not in rest}
        else:
            self.workers.update(self.forgotten)
            self.forgotten = {}
            await self.inventory()
        print(json.dumps({verb: sorted(self.workers.values())}), flush=True)


async def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--token", required=True, help="of an enrolment")
    parser.add_argument("--name", required=True)
    given = parser.parse_args()
    async with aiohttp.ClientSession() as http:
        body = {"token": given.token, "max_workers": 8, "labels": [], "host": "by hand"}
        async with http.post(f"{given.url}/api/v1/fleet/enroll", json=body) as answer:
            if answer.status >= 300:
                raise SystemExit(await answer.text())
            known = await answer.json()
        headers = {"Authorization": f"Bearer {known['token']}"}
        async with http.ws_connect(f"{given.url}/v1/node/ws", headers=headers, autoping=True) as socket:
            node = Node(socket, given.name, known)
            await node.register()
            await node.beat()
            await node.inventory()
            asyncio.get_running_loop().create_task(node.beats())
            listens = asyncio.get_running_loop().create_task(node.listen())
            print(json.dumps({"node": known["node_id"]}), flush=True)
            while line := await asyncio.to_thread(sys.stdin.readline):
                await node.obey(line)
            listens.cancel()


if __name__ == "__main__":
    asyncio.run(main())
