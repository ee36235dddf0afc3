"""Frames of a Relay broker spoken by hand: those of 11.x, those that are wrong, and those that
come while the plane has much to do. And what a workspace key may not do."""

import hashlib
import threading
import time

import pytest
from harness.broker import fleet_node, owner, relay_key, wait_node, wait_worker, worker
from harness.scripted_broker import ScriptedBroker
from harness.waiting import until


@pytest.fixture(scope="module")
def here(module_world):
    plane = module_world.plane()
    return plane, relay_key(plane)


@pytest.fixture
def scripted(here):
    """Brokers of one test."""
    plane, key = here
    made = []

    def make(name, **options):
        made.append(ScriptedBroker(plane, key, name, **options))
        return made[-1].connect()

    yield make
    for broker in made:
        broker.close()


def test_frames_of_11_without_ids_are_taken_and_marked_as_proving_nothing(here, scripted):
    """2: 11.x frames carry no proof and are marked so."""
    plane, _ = here
    broker = scripted("eleven", ids=False)
    broker.sync()
    broker.beat()
    node = wait_node(plane, "eleven", "online")
    assert node["version"] == "relay-broker/11.8.2"
    assert "prove no application" in node["evidence"], node["evidence"]
    id = broker.identity("old-one")
    broker.sync([(id, "old-one")])
    shown = wait_worker(plane, id, "running")
    assert shown["name"] == "old-one"
    broker.beat(["old-one"])
    until("it is counted", lambda: fleet_node(plane, "eleven")["workers"] == 1, 5)


def test_an_inventory_is_never_refused_for_one_bad_item(here, scripted):
    """4: never fail an inventory as a whole."""
    plane, _ = here
    broker = scripted("mixed")
    good = broker.identity("good")
    id = broker.sync([("no id at all", "bad"), ("", "empty"), ("wrk_x", "made up"), (good, "good")])
    answer = until("it is answered", lambda: broker.answer_to(id), 5)
    assert answer == {"v": 1, "type": "reply", "id": id, "ok": True, "data": {}}
    assert wait_worker(plane, good, "running")["name"] == "good"
    until("it alone is counted", lambda: fleet_node(plane, "mixed")["workers"] == 1, 5)


def test_an_identity_is_kept_for_the_same_start_and_has_no_keys_too_many(here, scripted):
    """6.2: the reader of this answer refuses any key that it does not know."""
    broker = scripted("namer")
    answers = []
    for _ in range(2):
        id = broker.say("agent.register", name="namesake")
        answers.append(until("it is answered", lambda id=id: broker.answer_to(id), 5))
    for answer in answers:
        assert answer["ok"] is True
        assert set(answer["data"]) == {"agent_id", "token", "name"}
        assert answer["data"]["token"].startswith("at_live_")
    first, second = (answer["data"] for answer in answers)
    assert first["agent_id"] == second["agent_id"] and first["token"] != second["token"]
    id = broker.say("agent.deregister", agent_id=first["agent_id"], name="namesake")
    assert until("it is answered", lambda: broker.answer_to(id), 5)["data"] == {}
    id = broker.say("agent.register", name="namesake")
    third = until("it is answered", lambda: broker.answer_to(id), 5)["data"]
    assert third["agent_id"] != first["agent_id"]


def test_the_newest_link_of_a_node_wins_and_the_old_one_is_closed(here, scripted):
    """3, 1.6 of the wire: superseded is closed in good order, and what it still says is dropped."""
    plane, _ = here
    broker = scripted("newest")
    id = broker.identity("first")
    broker.sync([(id, "first")])
    wait_worker(plane, id, "running")
    old = broker.socket
    link = fleet_node(plane, "newest")["link"]
    broker.connect()
    broker.sync([(id, "first")])
    until("the newer one is taken", lambda: fleet_node(plane, "newest")["link"] > link, 5)
    until("the older one is closed", lambda: old.close_code is not None, 5)
    assert old.close_code == 1000, (old.close_code, old.close_reason)
    broker.beat(["first"])
    wait_node(plane, "newest", "online")


def test_a_living_agent_s_name_is_not_given_to_another_node(here, scripted):
    one, other = scripted("holder"), scripted("claimer")
    id = one.say("agent.register", name="mine")
    assert until("it is answered", lambda: one.answer_to(id), 5)["ok"]
    id = other.say("agent.register", name="mine")
    refused = until("it is answered", lambda: other.answer_to(id), 5)
    assert refused["ok"] is False and refused["code"] == "agent_already_exists", refused
    assert set(refused) == {"v", "type", "id", "ok", "code", "message"}


def test_a_node_cannot_end_what_another_node_runs(here, scripted):
    """Security: a node's frames can touch only its own workers."""
    plane, _ = here
    one, other = scripted("owner"), scripted("stranger")
    owned = one.identity("owned")
    one.sync([(owned, "owned")])
    wait_worker(plane, owned, "running")
    id = other.say("agent.deregister", agent_id=owned, name="owned")
    until("it is answered", lambda: other.answer_to(id), 5)
    id = other.sync([(owned, "owned")])
    until("it is answered", lambda: other.answer_to(id), 5)
    id = one.sync([(owned, "owned")])
    until("it is answered", lambda: one.answer_to(id), 5)
    shown = worker(plane, owned)
    assert shown["state"] == "running" and shown["node_name"] == "owner"


def test_a_beat_that_names_what_no_inventory_has_is_a_drift(here, scripted):
    """1, 4: the broker's two rosters are compared; a difference that lasts is told with names."""
    plane, _ = here
    broker = scripted("drifting")
    seen = broker.identity("seen")
    broker.sync([(seen, "seen")])
    wait_worker(plane, seen, "running")

    def drift():
        broker.beat(["seen", "ghost"])
        lines = plane.http.get("/api/v1/fleet/drift", headers=owner(plane)).json()["drift"]
        return next((line for line in lines if line["name"] == "drifting"), None)

    line = until("the drift", drift, 10, 0.2)
    assert "ghost" in line["surplus"] and line["claimed"] == 2 and line["believed"] == 1, line
    assert fleet_node(plane, "drifting")["drift"] is True
    ghost = broker.identity("ghost")
    broker.sync([(seen, "seen"), (ghost, "ghost")])
    wait_worker(plane, ghost, "running")

    def settled():
        broker.beat(["seen", "ghost"])
        return not fleet_node(plane, "drifting")["drift"]

    until("it is settled", settled, 10, 0.2)


def test_an_inventory_is_answered_within_a_second_under_load(here, scripted):
    """1.5 of the wire: a slow answer would have every broker reconnect at once."""
    plane, _ = here
    broker = scripted("busy")
    stop = threading.Event()
    broken = []

    def load():
        number = 0
        while not stop.is_set():
            number += 1
            body = {"name": f"writer-{threading.get_ident()}-{number % 50}", "type": "human"}
            headers = {"Authorization": f"Bearer {here[1]}"}
            answer = plane.http.post("/v1/channels", json=body, headers=headers)
            if answer.status_code not in (201, 409):
                broken.append(answer.text)

    names = [f"busy-{number}" for number in range(200)]
    agents = [(broker.identity(name), name) for name in names]
    threads = [threading.Thread(target=load) for _ in range(8)]
    for thread in threads:
        thread.start()
    try:
        slowest = 0.0
        for _ in range(20):
            began = time.monotonic()
            id = broker.sync(agents)
            until("it is answered", lambda id=id: broker.answer_to(id), 5, 0.005)
            slowest = max(slowest, time.monotonic() - began)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not broken, broken[:3]
    assert slowest < 1, slowest


def test_an_enrolment_keeps_names_and_ids_apart(here):
    """2 of the wire: a name that another id holds is 409, the same id again rotates the token."""
    plane, key = here
    headers = {"Authorization": f"Bearer {key}"}
    body = {"node_id": "node_apart", "name": "apart", "kind": "ws", "role": "broker"}
    first = plane.http.post("/v1/nodes", json=body, headers=headers)
    assert first.status_code == 201, first.text
    again = plane.http.post("/v1/nodes", json=body, headers=headers)
    assert again.status_code == 201
    assert again.json()["data"]["token"] != first.json()["data"]["token"]
    other = plane.http.post("/v1/nodes", json={**body, "node_id": "node_b"}, headers=headers)
    assert other.status_code == 409, other.text
    assert other.json()["error"]["code"] == "node_name_conflict"
    stranger = {"Authorization": f"Bearer {relay_key(plane)}"}
    taken = plane.http.post("/v1/nodes", json={**body, "name": "mine"}, headers=stranger)
    assert taken.status_code == 403, taken.text
    direct = plane.http.post("/v1/nodes", json={**body, "role": "direct"}, headers=headers)
    assert direct.status_code == 501


NOT_FOR_BROKERS = [
    ("POST", "/api/v1/fleet/workers"),
    ("POST", "/api/v1/fleet/workers/w/release"),
    ("GET", "/api/v1/fleet/nodes"),
    ("GET", "/api/v1/fleet/workers"),
    ("POST", "/api/v1/fleet/nodes/n/drain"),
    ("POST", "/api/v1/execute/a.b"),
    ("POST", "/api/v1/execute/async/a.b"),
    ("GET", "/api/v1/executions"),
    ("GET", "/api/v1/runs"),
    ("GET", "/api/v1/events"),
    ("GET", "/api/v1/nodes"),
    ("POST", "/api/v1/nodes/register"),
    ("POST", "/api/v1/nodes/a/heartbeat"),
    ("POST", "/api/v1/memory/set"),
    ("POST", "/api/v1/memory/get"),
    ("GET", "/api/v1/keys"),
    ("POST", "/api/v1/keys"),
    ("GET", "/api/v1/audit"),
    ("POST", "/api/v1/hold"),
    ("POST", "/api/v1/backup"),
    ("POST", "/mcp"),
    ("GET", "/metrics"),
    ("POST", "/v1/agents/spawn"),
    ("POST", "/v1/actions/spawn/invoke"),
    ("POST", "/v1/actions/release/invoke"),
    ("POST", "/v1/nodes/n/actions/spawn/invoke"),
    ("GET", "/v1/actions/spawn/invocations/i"),
    ("GET", "/v1/node/ws"),
]


@pytest.mark.parametrize(("method", "path"), NOT_FOR_BROKERS)
def test_a_workspace_key_and_an_agent_s_token_do_nothing_else(here, method, path):
    """Security: every worker of a broker sees these; also on loopback, where no key may do more."""
    plane, key = here
    headers = {"Authorization": f"Bearer {key}"}
    body = {"name": "prober", "type": "human", "metadata": {"identity_key": "prober"}}
    agent = plane.http.post("/v1/agents", json=body, headers=headers)
    token = agent.json()["data"]["token"]
    for shown in (key, token):
        headers = {"Authorization": f"Bearer {shown}"}
        json = {} if method == "POST" else None
        answer = plane.http.request(method, path, json=json, headers=headers)
        assert answer.status_code == 403, (path, shown[:8], answer.status_code, answer.text)
        if path.startswith("/v1/"):
            assert answer.json()["error"]["code"] == "permission_denied"


def test_what_is_not_there_is_501_in_relay_s_envelope(here):
    plane, key = here
    headers = {"Authorization": f"Bearer {key}"}
    for method, path in [("POST", "/v1/dm"), ("GET", "/v1/search"), ("PUT", "/v1/agents")]:
        answer = plane.http.request(method, path, headers=headers)
        assert answer.status_code == 501, answer.text
        assert answer.json()["ok"] is False
        assert answer.json()["error"]["code"] == "not_supported"
    missing = plane.http.get("/v1/agents/nobody", headers=headers)
    assert missing.status_code == 404
    assert missing.json()["error"]["code"] == "agent_not_found"
    nobody = plane.http.get("/v1/agents")
    assert nobody.status_code == 401 and nobody.json()["error"]["code"] == "unauthenticated"


def test_an_operator_starts_and_releases_over_relay_s_surface(here, scripted):
    """Section 2 of the wire, for keys that may do so elsewhere."""
    plane, _ = here
    broker = scripted("operated", version="relay-broker/12.4.1")
    broker.sync()
    broker.beat()
    wait_node(plane, "operated", "online")

    def run():
        asked = until("a spawn", lambda: invoked(broker, "spawn"), 10)
        broker.say("action.result", invocation_id=asked["invocation_id"], output={"spawned": True})

    thread = threading.Thread(target=run)
    thread.start()
    wanted = {"name": "asked", "harnessConfig": {"runtime": "pty", "command": "cat"}}
    path = "/v1/nodes/operated/actions/spawn/invoke"
    answer = plane.http.post(path, json={"input": wanted}, headers=owner(plane))
    thread.join()
    assert answer.status_code == 201, answer.text
    data = answer.json()["data"]
    assert data["status"] == "completed" and data["output"]["spawned"] is True
    shown = plane.http.get(
        f"/v1/actions/spawn/invocations/{data['invocation_id']}", headers=owner(plane)
    )
    assert shown.json()["data"]["status"] == "completed"
    invoke = invoked(broker, "spawn")
    assert invoke["input"]["harnessConfig"]["command"] == "cat"
    assert invoke["input"]["harnessConfig"]["env"]["AGENTFIELD_SERVER"] == plane.url


def invoked(broker, action):
    frames = [f for f in broker.heard if f["type"] == "action.invoke" and f["action"] == action]
    return frames[-1] if frames else None


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/v1/agents", b"{", 400),
        ("POST", "/v1/agents", b"[]", 400),
        ("POST", "/v1/agents", b"{}", 400),
        ("POST", "/v1/agents", b'{"name":""}', 400),
        ("POST", "/v1/agents", b'{"name":"a b"}', 400),
        ("POST", "/v1/agents", b'{"name":"' + b"x" * 129 + b'"}', 400),
        ("POST", "/v1/agents", b'{"name":"x","type":"robot"}', 400),
        ("POST", "/v1/agents", b'{"name":"x","metadata":7}', 400),
        ("POST", "/v1/agents", b'{"name":"x","metadata":{"a":"' + b"y" * 17_000 + b'"}}', 413),
        ("POST", "/v1/agents", b"[" * 100_000, 400),
        ("POST", "/v1/agents", b'{"name":"\xff"}', 400),
        ("PATCH", "/v1/agents/nobody", b'{"status":"offline"}', 404),
        ("DELETE", "/v1/agents/nobody", b"", 404),
        ("POST", "/v1/nodes", b'{"node_id":"..","name":"x"}', 400),
        ("POST", "/v1/nodes", b'{"node_id":"n","name":"a/b"}', 400),
        ("POST", "/v1/nodes", b'{"node_id":"n","name":"x","max_agents":-1}', 400),
        ("POST", "/v1/nodes", b'{"node_id":7,"name":"x"}', 400),
        ("POST", "/v1/nodes/nowhere/agents", b'{"agent_name":"x"}', 404),
        ("DELETE", "/v1/nodes/nowhere/agents/%ff", b"", 404),
        ("POST", "/v1/channels", b'{"name":"#x"}', 400),
        ("POST", "/v1/channels/nowhere/join", b"", 403),
        ("GET", "/v1/channels/nowhere/members", b"", 404),
        ("POST", "/v1/agents/release", b'{"name":7}', 400),
    ],
)
def test_bad_input_is_a_clear_refusal_in_relay_s_envelope(here, method, path, body, status):
    """Never a 500 for bad input, and what was sent never stands in the answer."""
    plane, key = here
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    answer = plane.http.request(method, path, content=body, headers=headers)
    assert answer.status_code == status, answer.text
    assert answer.json()["ok"] is False and answer.json()["error"]["message"], answer.text
    assert "yyyy" not in answer.text and "xxxx" not in answer.text


def test_an_identity_that_was_taken_back_twice_is_answered_as_done(here, scripted):
    """3.4 of the wire: a cleanup that is not answered as finished is repeated for ever."""
    plane, key = here
    headers = {"Authorization": f"Bearer {key}"}
    broker = scripted("cleaner")
    id = broker.say("agent.register", name="cleaned")
    data = until("it is answered", lambda: broker.answer_to(id), 5)["data"]
    token = hashlib.sha256(data["token"].encode()).hexdigest()
    body = {"name": "cleaned", "delete_agent": True, "reason": "cleanup"}

    def send(hash):
        wanted = {**body, "expected_token_hash": hash}
        return plane.http.post("/v1/agents/release", json=wanted, headers=headers)

    # Of another life of the name: nothing is taken back.
    assert send("0" * 64).json()["data"]["status"] == "completed"
    assert plane.http.get("/v1/agents/cleaned", headers=headers).status_code == 200
    for _ in range(2):
        answer = send(token)
        assert answer.status_code == 200 and answer.json()["data"]["status"] == "completed"
    assert plane.http.get("/v1/agents/cleaned", headers=headers).status_code == 404
    assert plane.http.get(
        "/v1/agent", headers={"Authorization": f"Bearer {data['token']}"}
    ).status_code == 401
    # A workspace key stops nothing.
    id = broker.say("agent.register", name="cleaned")
    until("it is answered", lambda: broker.answer_to(id), 5)
    refused = plane.http.post("/v1/agents/release", json=body, headers=headers)
    assert refused.status_code == 403, refused.text
    stranger = {"Authorization": f"Bearer {relay_key(plane)}"}
    foreign = plane.http.delete("/v1/agents/cleaned", headers=stranger)
    assert foreign.status_code == 403, foreign.text
