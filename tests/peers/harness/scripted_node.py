"""A machine that says what the test wants: the frames of our daemon's link, spoken by hand."""

import json
import threading
import time
import uuid

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

MASK = (1 << 64) - 1


def digest(ids):
    """The same for every order: FNV-1a over the sorted ids, each with a NUL."""
    value = 0xCBF29CE484222325
    for name in sorted(ids):
        for byte in name.encode() + b"\0":
            value = ((value ^ byte) * 0x100000001B3) & MASK
    return f"{value:016x}"


class ScriptedNode:
    """Registers, beats and tells inventories when it is told to. Starts are answered as if a
    process ran."""

    def __init__(self, cli, name, max_workers=0):
        made = cli("nodes", "enroll", name, "--json").json()
        body = {"token": made["token"], "max_workers": max_workers, "labels": [], "host": "script"}
        answer = cli.plane.http.post("/api/v1/fleet/enroll", json=body)
        assert answer.status_code < 300, answer.text
        self.plane = cli.plane
        self.name = name
        self.id = answer.json()["node_id"]
        self.token = answer.json()["token"]
        self.epoch = uuid.uuid4().hex
        # Worker id -> name: what it says that it has.
        self.workers = {}
        self.answered = []
        self.socket = None
        self.seq = 0
        self.pid = 100_000
        self._lock = threading.Lock()

    def connect(self):
        self.socket = connect(
            self.plane.url.replace("http", "ws", 1) + "/v1/node/ws",
            additional_headers={"Authorization": f"Bearer {self.token}"},
            ping_interval=None,
            legacy=True,
        )
        offer = {"epoch": self.epoch, "beat_ms": 1000, "pid": 1, "host": "script"}
        self.say(
            type="node.register",
            name=self.name,
            node_id=self.id,
            provider={"name": "muster", "instance_id": uuid.uuid4().hex},
            capabilities=[{"name": "muster:link-v1", "kind": "capacity", "metadata": offer}],
            max_agents=0,
            tags=[],
            version="0.1.0",
        )
        threading.Thread(target=self._listen, args=(self.socket,), daemon=True).start()
        return self

    def say(self, **frame):
        frame.setdefault("v", 1)
        frame.setdefault("id", uuid.uuid4().hex)
        with self._lock:
            self.socket.send(json.dumps(frame))
        return frame["id"]

    def _listen(self, socket):
        try:
            for text in socket:
                frame = json.loads(text)
                kind = frame["type"]
                if kind == "action.invoke" and frame["action"] == "spawn":
                    self._spawn(frame)
                elif kind == "muster.ask":
                    self.say(type="reply", id=frame["id"])
                elif kind in ("reply", "error"):
                    self.answered.append(frame)
        except ConnectionClosed:
            pass

    def _spawn(self, frame):
        given = frame["input"]
        self.workers[given["worker_id"]] = given["name"]
        self.pid += 1
        output = {"outcome": "started", "pid": self.pid, "started_at": stamp()}
        self.say(type="action.result", invocation_id=frame["invocation_id"], output=output)

    def beat(self, count=None):
        """Tells its count; another one than it has when the test wants that."""
        self.seq += 1
        ids = list(self.workers)
        return self.say(
            type="muster.beat",
            seq=self.seq,
            count=len(ids) if count is None else count,
            digest=digest(ids),
            load=0.1,
        )

    def inventory(self):
        workers = [
            {
                "worker_id": id,
                "name": name,
                "state": "running",
                "pid": 100_000,
                "started_at": stamp(),
                "restarts": 0,
            }
            for id, name in self.workers.items()
        ]
        return self.say(type="muster.inventory", workers=workers)

    def close(self):
        if self.socket is not None:
            self.socket.close()


def stamp():
    """Now, in microseconds: what a moment is on the link."""
    return int(time.time() * 1_000_000)
