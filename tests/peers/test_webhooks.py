"""Webhooks as the SDK's client asks for them, and as its receivers check them."""

import asyncio
import hashlib
import hmac
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from agentfield.async_config import AsyncConfig
from agentfield.client import AgentFieldClient
from agentfield.types import WebhookConfig

from harness.waiting import until

SECRET = "whsec_not-base64-but-a-secret"


class Receiver:
    def __init__(self):
        self.seen = []
        seen = self.seen

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                seen.append((dict(self.headers.items()), body))
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hooks"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()


def submit(plane, target, inputs, webhook):
    async def work():
        client = AgentFieldClient(
            base_url=plane.url, async_config=AsyncConfig(fallback_to_sync=False)
        )
        try:
            return await client.execute_async(target, inputs, webhook=webhook)
        finally:
            await client.close_async_execution_manager()

    return asyncio.run(work())


def test_the_sdks_client_is_told_of_ends_with_the_signature_it_knows(world):
    plane = world.plane(webhooks__allow='["127.0.0.1"]')
    agent = world.agent(plane, "basic.py", "hooked")
    agent.expect_error("a test")
    receiver = Receiver()
    try:
        webhook = WebhookConfig(url=receiver.url, secret=SECRET, headers={"X-Own": "yes"})
        well = submit(plane, "hooked.hello", {"name": "you"}, webhook)
        until("the first message came", lambda: len(receiver.seen) >= 1)
        badly = submit(plane, "hooked.boom", {"why": "a test"}, webhook)
        until("the second message came", lambda: len(receiver.seen) >= 2)
    finally:
        receiver.close()
    bodies = []
    for headers, body in receiver.seen:
        found = {name.lower(): value for name, value in headers.items()}
        expected = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
        assert found["x-agentfield-signature"] == f"sha256={expected}"
        assert found["x-own"] == "yes"
        bodies.append(json.loads(body))
    first, second = bodies
    assert (first["execution_id"], first["event"]) == (well, "execution.completed")
    assert first["result"] == plane.http.get(f"/api/v1/executions/{well}").json()["result"]
    assert (second["execution_id"], second["event"]) == (badly, "execution.failed")
    assert second["error_message"]
    shown = plane.http.get(f"/api/v1/executions/{badly}").json()
    assert shown["webhook_registered"] is True
    assert [one["state"] for one in shown["webhook_events"]] == ["delivered"]
