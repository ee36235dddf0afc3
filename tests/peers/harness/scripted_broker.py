"""A broker that says what the test wants: the frames of 11.x (no ids, no answers awaited) or of
12.x, spoken by hand."""

import json
import threading
import uuid

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from .waiting import until


class ScriptedBroker:
    """A node of a workspace key, with an id of its own."""

    def __init__(self, plane, key, name, ids=True, node_id=None, version="relay-broker/11.8.2"):
        self.plane = plane
        self.name = name
        self.ids = ids
        self.version = version
        self.id = node_id or f"node_{uuid.uuid4().hex}"
        headers = {"Authorization": f"Bearer {key}"}
        body = {"node_id": self.id, "name": name, "kind": "ws", "role": "broker"}
        answer = plane.http.post("/v1/nodes", json=body, headers=headers)
        assert answer.status_code == 201, answer.text
        self.token = answer.json()["data"]["token"]
        self.heard = []
        self.closed = threading.Event()
        self.socket = None

    def connect(self):
        self.socket = connect(
            self.plane.url.replace("http", "ws", 1) + "/v1/node/ws",
            additional_headers={"Authorization": f"Bearer {self.token}"},
            ping_interval=None,
        )
        self.closed.clear()
        threading.Thread(target=self._listen, args=(self.socket,), daemon=True).start()
        self.say(
            "node.register",
            name=self.name,
            node_id=self.id,
            provider={"name": "broker", "instance_id": f"broker_{uuid.uuid4().hex}"},
            capabilities=capabilities(),
            max_agents=0,
            tags=[],
            version=self.version,
            resume_cursor=None,
        )
        return self

    def say(self, type, **frame):
        if self.ids and type != "node.heartbeat":
            frame["id"] = f"{type.replace('.', '_')}_{uuid.uuid4().hex}"
        self.socket.send(json.dumps({"v": 1, "type": type, **frame}))
        return frame.get("id")

    def identity(self, name):
        """The id that the plane gives a worker of this name: others are not taken."""
        id = f"agent_register_{uuid.uuid4().hex}"
        self.socket.send(json.dumps({"v": 1, "type": "agent.register", "id": id, "name": name}))
        answer = until("it has an identity", lambda: self.answer_to(id), 10)
        assert answer["ok"], answer
        return answer["data"]["agent_id"]

    def sync(self, agents=()):
        agents = [{"agent_id": id, "name": name} for id, name in agents]
        return self.say("inventory.sync", agents=agents)

    def beat(self, names=()):
        return self.say(
            "node.heartbeat",
            provider={"name": "broker", "instance_id": "broker_1"},
            name=self.name,
            node_id=self.id,
            capabilities=capabilities(names),
            max_agents=0,
            version=self.version,
            load=0.0,
            active_agents=len(names),
            handlers_live=True,
        )

    def answer_to(self, id):
        """The answer to a request, if it has come."""
        return next((frame for frame in self.heard if frame.get("id") == id), None)

    def _listen(self, socket):
        try:
            for text in socket:
                self.heard.append(json.loads(text))
        except ConnectionClosed:
            pass
        self.closed.set()

    def close(self):
        if self.socket is not None:
            self.socket.close()


def capabilities(names=None):
    shown = [{"name": "spawn:claude", "kind": "capacity"}, {"name": "release", "kind": "capacity"}]
    if names is not None:
        metadata = {"names": sorted(names)}
        live = {"name": "relay:live-agents:v1", "kind": "capacity", "metadata": metadata}
        shown.append(live)
    return shown
