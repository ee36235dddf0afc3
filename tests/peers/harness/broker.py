"""The published broker of Agent Relay, unmodified, as a node of a plane."""

import json
import os

import httpx

from .child import Child
from .plane import ROOT
from .waiting import until

BROKER = ROOT / ".test/relay/node_modules/@agent-relay/broker-linux-x64/bin/agent-relay-broker"


def owner(plane):
    """The headers of the plane's owner."""
    return {"X-API-Key": (plane.data / "owner.key").read_text().strip()}


def relay_key(plane):
    """A workspace key, as an operator makes one for a broker."""
    wanted = {"name": "brokers of a test", "scopes": ["relay"]}
    made = plane.http.post("/api/v1/keys", json=wanted, headers=owner(plane))
    assert made.status_code == 201, made.text
    return made.json()["key"]


class Broker:
    """One broker. It sees no variable but its own, and no home but its folder: nothing of it
    leaves this machine."""

    def __init__(self, plane, folder, key, name="broker-1", **environment):
        if not os.access(BROKER, os.X_OK):
            raise RuntimeError(f"no broker at {BROKER}: run `cargo xtask test`, which installs it")
        self.plane = plane
        self.folder = folder
        self.key = key
        self.name = name
        self.environment = environment
        self.child = None
        self.past = []
        for part in ("home", "work"):
            (folder / part).mkdir(parents=True, exist_ok=True)

    def start(self):
        (self.folder / "state" / "connection.json").unlink(missing_ok=True)
        environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.folder / "home"),
            "RELAYCAST_BASE_URL": self.plane.url,
            "RELAY_WORKSPACE_KEY": self.key,
            "DO_NOT_TRACK": "1",
            **{name: str(value) for name, value in self.environment.items()},
        }
        command = [str(BROKER), "init", "--instance-name", self.name]
        command += ["--state-dir", str(self.folder / "state")]
        self.child = Child(self.name, command, env=environment, cwd=self.folder / "work")
        self.past.append(self.child)
        return self

    def kill_9(self):
        self.child.kill_9()

    def terminate(self, within=30):
        self.child.terminate()
        return self.child.wait(within)

    def close(self):
        for child in self.past:
            child.end_group()

    # --- its own API, as somebody on its machine uses it ----------------------------------------

    def own(self, method, path, **options):
        connection = json.loads((self.folder / "state" / "connection.json").read_text())
        headers = {"x-api-key": connection["api_key"]}
        url = connection["url"] + path
        return httpx.request(method, url, headers=headers, timeout=30, **options)

    def relay(self, method, path, **options):
        """Asks the plane as the broker would."""
        headers = {"Authorization": f"Bearer {self.key}"}
        return self.plane.http.request(method, path, headers=headers, **options)


# --- the fleet, as an operator sees it ------------------------------------------------------------


def fleet_node(plane, name):
    answer = plane.http.get(f"/api/v1/fleet/nodes/{name}", headers=owner(plane))
    assert answer.status_code == 200, answer.text
    return answer.json()


def wait_node(plane, name, *states, within=30):
    """The node once it is in one of these states."""

    def there():
        answer = plane.http.get(f"/api/v1/fleet/nodes/{name}", headers=owner(plane))
        node = answer.json()
        return node if answer.status_code == 200 and node["state"] in states else None

    return until(f"{name} is {' or '.join(states)}", there, within)


def worker(plane, id):
    answer = plane.http.get(f"/api/v1/fleet/workers/{id}", headers=owner(plane))
    assert answer.status_code == 200, answer.text
    return answer.json()


def wait_worker(plane, id, *states, within=30):
    """The worker once it is in one of these states."""

    def there():
        answer = plane.http.get(f"/api/v1/fleet/workers/{id}", headers=owner(plane))
        shown = answer.json()
        return shown if answer.status_code == 200 and shown["state"] in states else None

    return until(f"{id} is {' or '.join(states)}", there, within)


def place(plane, status=201, **wanted):
    """Places a worker; the answer."""
    answer = plane.http.post("/api/v1/fleet/workers", json=wanted, headers=owner(plane))
    assert answer.status_code == status, answer.text
    return answer.json()


def release(plane, id):
    path = f"/api/v1/fleet/workers/{id}/release"
    answer = plane.http.post(path, json={}, headers=owner(plane))
    assert answer.status_code in (200, 202), answer.text
    return answer.json()
