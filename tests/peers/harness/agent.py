"""A real agent: a script of `agents/` that uses the published SDK, as a child process."""

import re
import sys
import time
from pathlib import Path

import httpx

from .child import Child
from .plane import quiet_environment
from .waiting import free_port, until

SCRIPTS = Path(__file__).resolve().parents[1] / "agents"

# How the SDK, its server and Python itself mark a line as an error.
ERROR_LINE = re.compile(
    r"❌|Traceback \(most recent|^ERROR|\bERROR:|\"level\": ?\"error\"|"
    r"never retrieved|never awaited|CRITICAL",
    re.IGNORECASE,
)


class Agent:
    """One agent id at one port; may be killed and started again."""

    def __init__(self, plane, script, node_id, port=None, **environment):
        self.plane = plane
        self.script = script
        self.node_id = node_id
        self.host = "127.0.0.1"
        self.port = port or free_port()
        self.environment = environment
        self.child = None
        # How long its last start took.
        self.started_in = 0.0
        self.past = []
        self.expected = []

    @property
    def url(self):
        return f"http://{self.host}:{self.port}"

    def start(self, wait=True):
        settings = {
            "AGENTFIELD_SERVER": self.plane.url,
            "AGENT_CALLBACK_URL": f"http://127.0.0.1:{self.port}",
            "AGENTFIELD_DISABLE_IP_DETECTION": "true",
            "PYTHONUNBUFFERED": "1",
            "NODE_ID": self.node_id,
            "AGENT_HOST": "127.0.0.1",
            "AGENT_PORT": self.port,
        }
        settings.update(self.environment)
        environment = quiet_environment(**settings)
        self.host = settings["AGENT_HOST"]
        command = [sys.executable, str(SCRIPTS / self.script)]
        self.child = Child(f"agent {self.node_id}", command, env=environment, cwd=SCRIPTS)
        self.past.append(self.child)
        if wait:
            began = time.monotonic()
            self.wait_serving()
            self.started_in = time.monotonic() - began
        return self

    def wait_serving(self, within=60):
        """Registered and listening: the SDK registers first and listens afterwards."""

        def serving():
            if not self.child.alive:
                raise AssertionError(f"{self.node_id} ended at its start\n" + self.child.output())
            try:
                health = httpx.get(f"{self.url}/health", timeout=5)
            except httpx.TransportError:
                return False
            return health.status_code == 200 and health.json().get("node_id") == self.node_id

        until(f"{self.node_id} serves", serving, within)

    def wait_registered(self, within=60):
        until(f"{self.node_id} is registered", lambda: self.plane.knows(self.node_id), within)
        return self

    def kill_9(self):
        self.child.kill_9()

    def terminate(self, within=60):
        self.child.terminate()
        return self.child.wait(within)

    def expect_error(self, pattern):
        """Error lines that match were provoked by the test."""
        self.expected.append(re.compile(pattern))
        return self

    def unexpected_errors(self):
        lines = [line for child in self.past for line in child.lines]
        return [
            line
            for line in lines
            if ERROR_LINE.search(line) and not any(known.search(line) for known in self.expected)
        ]

    def close(self):
        for child in self.past:
            child.end_group()
