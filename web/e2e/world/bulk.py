"""An agent for many steps: it speaks the agents' HTTP directly, because thousands of calls through
the SDK take minutes. `bulk.wide` calls `bulk.leaf` many times, `bulk.deep` calls itself."""

import asyncio
import json
import os
import uuid

import aiohttp
from aiohttp import web

SERVER = os.environ["AGENTFIELD_SERVER"]
PORT = int(os.environ["AGENT_PORT"])
FUNCTIONS = {
    "reasoners": {
        "wide": {"width": {"type": "integer"}, "lanes": {"type": "integer"}},
        "deep": {"depth": {"type": "integer"}, "width": {"type": "integer"}},
        "mute": {},
        "late": {"seconds": {"type": "number"}},
    },
    "skills": {"leaf": {"n": {"type": "integer"}}, "other": {"n": {"type": "integer"}}},
}


class Bulk:
    def __init__(self, http):
        self.http = http
        self.tasks = set()

    async def call(self, function, input, headers, **options):
        """A call of this agent, as a child of the attempt that `headers` name; waits for its end."""
        sent = {
            "X-Run-ID": headers["X-Run-ID"],
            "X-Parent-Execution-ID": headers["X-Execution-ID"],
            "X-Caller-Agent-ID": "bulk",
        }
        for name in ("X-AgentField-Replay-Source-Run-ID", "X-AgentField-Replay-Before-Execution-ID", "X-AgentField-Replay-Mode"):
            if name in headers:
                sent[name] = headers[name]
        url = f"{SERVER}/api/v1/execute/bulk.{function}"
        async with self.http.post(url, json={"input": input, **options}, headers=sent) as answer:
            return answer.status, await answer.json(content_type=None)

    async def skill(self, request):
        body = await request.json()
        n = int(body.get("n", 0))
        await asyncio.sleep((n * 7919 % 97) / 1000)
        if n % 211 == 13:
            return web.json_response({"detail": f"KeyError: 'row {n}'"}, status=500)
        return web.json_response({"n": n, "double": 2 * n})

    async def reasoner(self, request):
        function = request.match_info["function"]
        body = await request.json()
        headers = request.headers.copy()
        task = asyncio.create_task(self.work(function, body or {}, headers))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return web.json_response({"status": "processing"}, status=202)

    async def work(self, function, body, headers):
        try:
            result = await getattr(self, function)(body, headers)
            said = {"status": "succeeded", "result": result}
        except Exception as error:  # noqa: BLE001 - told to the plane
            said = {"status": "failed", "error": f"{type(error).__name__}: {error}"}
        attempt = headers["X-Execution-ID"]
        async with self.http.post(f"{SERVER}/api/v1/executions/{attempt}/status", json={**said, "execution_id": attempt}) as answer:
            await answer.read()

    async def wide(self, body, headers):
        width, lanes = int(body.get("width", 2000)), int(body.get("lanes", 32))
        order = iter(range(width))
        failed = 0

        async def lane():
            nonlocal failed
            for n in order:
                status, _ = await self.call("other" if n % 40 == 7 else "leaf", {"n": n}, headers)
                failed += status >= 400

        await asyncio.gather(*(lane() for _ in range(lanes)))
        return {"width": width, "failed": failed}

    async def deep(self, body, headers):
        depth, width = int(body.get("depth", 4)), int(body.get("width", 4))
        if depth == 0:
            return {"depth": 0}
        calls = [self.call("deep", {"depth": depth - 1, "width": width}, headers) for _ in range(width)]
        calls.append(self.call("leaf", {"n": depth}, headers))
        await asyncio.gather(*calls)
        return {"depth": depth}

    async def mute(self, body, headers):
        await asyncio.sleep(86_400)

    async def late(self, body, headers):
        """Answers after that time, whether or not anybody still waits for it."""
        await asyncio.sleep(float(body.get("seconds", 3)))
        return {"late": True}


async def beat(http, instance):
    while True:
        await asyncio.sleep(1)
        try:
            async with http.post(f"{SERVER}/api/v1/nodes/bulk/heartbeat", json={"status": "ready", "instance_id": instance}) as answer:
                await answer.read()
        except aiohttp.ClientError:
            pass


async def main():
    instance = uuid.uuid4().hex
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(limit=0)) as http:
        bulk = Bulk(http)
        app = web.Application()
        app.router.add_get("/health", lambda _: web.json_response({"status": "healthy", "node_id": "bulk"}))
        app.router.add_post("/skills/{function}", bulk.skill)
        app.router.add_post("/reasoners/{function}", bulk.reasoner)
        app.router.add_post("/_internal/{rest:.*}", lambda _: web.json_response({"cancelled": False, "reason": "execution_not_active"}))
        runner = web.AppRunner(app, keepalive_timeout=75)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", PORT).start()
        schema = lambda properties: {"type": "object", "properties": properties}  # noqa: E731
        registration = {
            "id": "bulk", "team_id": "default", "base_url": f"http://127.0.0.1:{PORT}", "version": "1.0.0",
            "instance_id": instance, "lifecycle_status": "starting",
            "communication_config": {"protocols": ["http"], "heartbeat_interval": "2s"},
            **{
                kind: [{"id": name, "input_schema": schema(each), "tags": []} for name, each in functions.items()]
                for kind, functions in FUNCTIONS.items()
            },
        }
        async with http.post(f"{SERVER}/api/v1/nodes/register", json=registration) as answer:
            if answer.status >= 300:
                raise SystemExit(f"not registered: {json.dumps(await answer.json(content_type=None))}")
        await beat(http, instance)


if __name__ == "__main__":
    asyncio.run(main())
