"""An agent without the SDK: it registers, beats, answers over plain HTTP, and remembers every
delivery. For tests that count deliveries or need an agent that outlives the plane."""

import json
import queue
import socket
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx

from .waiting import free_port


# The SDK sends a callback five times, with these pauses, and then gives it up.
SDK_WAITS = (1, 2, 4, 8, 0)


class PlainAgent:
    """Functions: `now` (a skill, answers 200), `later` (answers 202, calls back), `mute` (takes
    the call and never says a word), and `boom` (a skill, answers 500 and lets nothing more through
    its connection, as the SDK's server does)."""

    def __init__(self, plane, node_id, port=None, take=0.0, waits=SDK_WAITS):
        self.plane = plane
        self.node_id = node_id
        self.port = port or free_port()
        self.take = take
        self.waits = waits
        self.instance_id = uuid.uuid4().hex
        self.deliveries = {}
        self.under_way = 0
        self.waves = []
        self.cancels = []
        self.refused_callbacks = []
        self.given_up = []
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._later = queue.Queue()
        self._connections = set()
        self._threads = []
        self._server = None

    def start(self):
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), self._handler())
        self._server.daemon_threads = True
        work = [self._server.serve_forever, self._beat]
        work += [self._call_back] * 8
        self._threads = [threading.Thread(target=target, daemon=True) for target in work]
        self.register()
        for thread in self._threads:
            thread.start()
        return self

    def stop(self):
        self._stop.set()
        if self._server:
            self._server.shutdown()
            self._server.server_close()
        # A process that ends takes its open connections with it.
        for connection in list(self._connections):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        for _ in range(8):
            self._later.put(None)

    def register(self):
        body = {
            "id": self.node_id,
            "team_id": "default",
            "base_url": f"http://127.0.0.1:{self.port}",
            "version": "1.0.0",
            "instance_id": self.instance_id,
            "reasoners": [
                {"id": "later", "input_schema": {"type": "object"}, "tags": []},
                {"id": "mute", "input_schema": {"type": "object"}, "tags": []},
            ],
            "skills": [
                {"id": "now", "input_schema": {"type": "object"}, "tags": []},
                {"id": "boom", "input_schema": {"type": "object"}, "tags": []},
            ],
            "lifecycle_status": "starting",
            "communication_config": {"protocols": ["http"], "heartbeat_interval": "2s"},
        }
        answer = httpx.post(f"{self.plane.url}/api/v1/nodes/register", json=body, timeout=10)
        assert answer.status_code in (200, 201), answer.text

    def delivered(self, execution):
        """How often this execution was sent here."""
        with self._lock:
            return self.deliveries.get(execution, 0)

    def _note(self, attempt_id):
        with self._lock:
            execution = attempt_id.split("~")[0]
            self.deliveries[execution] = self.deliveries.get(execution, 0) + 1

    def _beat(self):
        with httpx.Client(base_url=self.plane.url, timeout=5) as http:
            while not self._stop.wait(1.0):
                body = {"status": "ready", "instance_id": self.instance_id}
                try:
                    http.post(f"/api/v1/nodes/{self.node_id}/heartbeat", json=body)
                except httpx.TransportError:
                    pass

    def _call_back(self):
        """As the SDK does: again after each of `waits`; a 4xx is final."""
        while (attempt_id := self._later.get()) is not None:
            time.sleep(self.take)
            body = {"status": "succeeded", "result": {"ok": True}, "execution_id": attempt_id}
            for wait in self.waits:
                try:
                    answer = httpx.post(
                        f"{self.plane.url}/api/v1/executions/{attempt_id}/status",
                        json=body,
                        timeout=30,
                    )
                except httpx.TransportError:
                    if self._stop.wait(wait):
                        return
                    continue
                if answer.status_code in (408, 429) or answer.status_code >= 500:
                    self._stop.wait(wait)
                    continue
                if answer.status_code >= 400:
                    self.refused_callbacks.append((attempt_id, answer.status_code, answer.text))
                break
            else:
                self.given_up.append(attempt_id)

    def _handler(agent):
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self):
                super().setup()
                agent._connections.add(self.connection)

            def finish(self):
                agent._connections.discard(self.connection)
                super().finish()

            def log_message(self, *_):
                pass

            def _answer(self, status, body):
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def do_GET(self):
                self._answer(200, {"status": "healthy", "node_id": agent.node_id})

            spoiled = False

            def do_POST(self):
                if self.spoiled:
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                attempt_id = self.headers.get("X-Execution-ID") or ""
                if self.path.startswith("/_internal/"):
                    agent.cancels.append(self.path)
                    self._answer(200, {"cancelled": True})
                elif self.path == "/skills/now":
                    agent._note(attempt_id)
                    with agent._lock:
                        agent.under_way += 1
                        agent.waves.append((time.monotonic(), agent.under_way))
                    time.sleep(agent.take)
                    with agent._lock:
                        agent.under_way -= 1
                    self._answer(200, {"echo": json.loads(body or b"null")})
                elif self.path == "/reasoners/mute":
                    agent._note(attempt_id)
                    agent._stop.wait()
                    self.close_connection = True
                elif self.path == "/skills/boom":
                    agent._note(attempt_id)
                    self._answer(500, {"detail": "kaput"})
                    self.spoiled = True
                elif self.path == "/reasoners/later":
                    agent._note(attempt_id)
                    agent._later.put(attempt_id)
                    self._answer(202, {"status": "processing", "execution_id": attempt_id})
                else:
                    self._answer(404, {"detail": "Not Found"})

        return Handler
