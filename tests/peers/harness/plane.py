"""The plane: the real binary on a free loopback port with a data folder of its own."""

import os
import threading
from pathlib import Path

import httpx

from .child import Child
from .store import StoreReader
from .waiting import free_port, until

ROOT = Path(__file__).resolve().parents[3]


def binary():
    """The binary under test: `MUSTER_BINARY`, else what cargo built last in this workspace."""
    named = os.environ.get("MUSTER_BINARY")
    if named:
        return named
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    built = [target / profile / "muster" for profile in ("release", "debug")]
    built = [path for path in built if path.exists()]
    if not built:
        raise RuntimeError("no muster binary: set MUSTER_BINARY or run `cargo xtask test`")
    return str(max(built, key=lambda path: path.stat().st_mtime))


def quiet_environment(**more):
    """This process's environment without anything that would configure plane or agent."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MUSTER_", "AGENTFIELD_", "AGENT_", "PORT"))
    }
    kept.update({name: str(value) for name, value in more.items()})
    return kept


class Plane:
    """One `muster server`. Keeps its port and its data over restarts."""

    def __init__(self, data, settings=None, port=None, host="127.0.0.1"):
        self.data = Path(data)
        self.port = port or free_port()
        self.host = host
        self.url = f"http://{host}:{self.port}"
        self.settings = settings or {}
        self.child = None
        self.past = []
        self.store = StoreReader(self.data)
        self._clients = []
        self._own = threading.local()

    @property
    def http(self):
        """A client of this thread: the library's connection pool is not made for many of them."""
        client = getattr(self._own, "client", None)
        if client is None:
            # Without certificates, which take long to read and are of no use here.
            key = self.data / "owner.key"
            # Beyond loopback every request needs one.
            shown = self.host != "127.0.0.1" and key.exists()
            headers = {"X-API-Key": key.read_text().strip()} if shown else {}
            client = httpx.Client(base_url=self.url, timeout=120, verify=False, headers=headers)
            if self.host == "127.0.0.1" or shown:
                self._own.client = client
            self._clients.append(client)
        return client

    def start(self, wait=True):
        environment = quiet_environment(
            **{f"MUSTER_{name.upper().replace('.', '__')}": v for name, v in self.settings.items()}
        )
        command = [binary(), "server", "--listen", f"{self.host}:{self.port}"]
        command += ["--data", str(self.data)]
        self.child = Child("plane", command, env=environment)
        self.past.append(self.child)
        if wait:
            self.wait_ready()
        return self

    def wait_ready(self, within=30):
        def ready():
            if not self.child.alive:
                raise AssertionError("the plane ended at its start\n" + self.child.output())
            try:
                return self.http.get("/readyz").status_code == 200
            except httpx.TransportError:
                return False

        until("the plane is ready", ready, within, 0.02)

    def kill_9(self):
        self.child.kill_9()

    def terminate(self, within=60):
        """SIGTERM, and its exit code."""
        self.child.terminate()
        return self.child.wait(within)

    def close(self):
        for client in self._clients:
            client.close()
        for child in self.past:
            child.end_group()

    # --- what a caller says -------------------------------------------------------------------

    def call(self, target, input=None, **headers):
        """The sync lane, as `curl` would use it."""
        return self.http.post(
            f"/api/v1/execute/{target}", json={"input": input or {}}, headers=spelled(headers)
        )

    def submit(self, target, input=None, **headers):
        """The async lane."""
        return self.http.post(
            f"/api/v1/execute/async/{target}", json={"input": input or {}}, headers=spelled(headers)
        )

    def execution(self, id):
        answer = self.http.get(f"/api/v1/executions/{id}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    def wait_status(self, id, *wanted, within=60):
        """The execution once it has one of these statuses."""

        def there():
            view = self.execution(id)
            return view if view["status"] in wanted else None

        return until(f"{id} is {' or '.join(wanted)}", there, within)

    def wait_end(self, id, within=60):
        return self.wait_status(id, "succeeded", "failed", "cancelled", "timeout", within=within)

    def cancel(self, id, reason="a test"):
        return self.http.post(f"/api/v1/executions/{id}/cancel", json={"reason": reason})

    def nodes(self):
        answer = self.http.get("/api/v1/nodes")
        assert answer.status_code == 200, answer.text
        body = answer.json()
        return body["nodes"] if isinstance(body, dict) else body

    def knows(self, node_id):
        return any(node.get("id") == node_id for node in self.nodes())


def spelled(headers):
    """`X_Run_ID="r"` becomes `X-Run-ID: r`."""
    return {name.replace("_", "-"): value for name, value in headers.items()}
