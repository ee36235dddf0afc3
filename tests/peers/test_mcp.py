"""The MCP lane with the official clients, against the real plane and real SDK agents: execution
contract, section 8, and the rows on refusals, queues, shutdown and scopes on this lane."""

import threading
import time
from types import SimpleNamespace

import jsonschema
import pytest

from harness.mcp_clients import CLIENTS, ProtocolError, PythonClient, TypeScriptClient
from harness.waiting import until

TOOLS = {
    "discover_agents": "reads",
    "get_reasoner_schema": "reads",
    "execute_reasoner": "calls",
    "wait_run": "reads",
    "get_run": "reads",
    "list_runs": "reads",
    "cancel_run": "ends",
    "why": "reads",
}


@pytest.fixture(scope="module")
def shared(module_world):
    plane = module_world.plane()
    module_world.agent(plane, "basic.py", "basic").expect_error("kaput|cancelled")
    module_world.agent(plane, "chain.py", "chain").expect_error("cancelled")
    return SimpleNamespace(plane=plane, output=module_world.output)


@pytest.fixture(params=CLIENTS, scope="module")
def client(request, shared):
    client = CLIENTS[request.param](shared.plane)
    client.schemas = {tool["name"]: tool for tool in client.tools()}
    client.kind = request.param
    yield client
    client.close()


@pytest.fixture
def open_clients():
    """Clients of one test, closed with it."""
    opened = []

    def open_one(kind, plane, key=None):
        opened.append(CLIENTS[kind](plane, key))
        return opened[-1]

    yield open_one
    for client in opened:
        client.close()


def rows(plane):
    return plane.store.count("executions")


def fits(client, tool, given):
    """The result is what the tool's own schema says."""
    jsonschema.validate(given.content, client.schemas[tool]["outputSchema"])
    return given


def owner_key(plane):
    return (plane.data / "owner.key").read_text().strip()


def make_key(plane, name, *scopes):
    answer = plane.http.post(
        "/api/v1/keys",
        json={"name": name, "scopes": list(scopes)},
        headers={"X-API-Key": owner_key(plane)},
    )
    assert answer.status_code == 201, answer.text
    return answer.json()["key"]


# --- the protocol ---------------------------------------------------------------------------------


def test_each_client_negotiates_its_version_and_gets_no_session(client):
    expected = "2026-07-28" if client.kind == "python, new protocol" else "2025-11-25"
    assert client.version == expected
    assert client.server == "muster"
    assert "execute_reasoner" in client.instructions


def test_tools_are_listed_with_schemas_and_hints(client):
    assert list(client.schemas) == list(TOOLS)
    for name, effect in TOOLS.items():
        tool = client.schemas[name]
        jsonschema.Draft202012Validator.check_schema(tool["inputSchema"])
        jsonschema.Draft202012Validator.check_schema(tool["outputSchema"])
        assert tool["inputSchema"]["additionalProperties"] is False
        assert 40 < len(tool["description"]) <= 400
        hints = tool["annotations"]
        assert hints["readOnlyHint"] == (effect == "reads")
        assert hints["destructiveHint"] == (effect != "reads")
        assert hints["idempotentHint"] == (effect != "calls")


def test_an_unknown_tool_is_an_error_of_the_protocol(client):
    with pytest.raises(ProtocolError) as caught:
        client.call("no_such_tool")
    assert caught.value.code == -32602


@pytest.mark.parametrize(
    ("tool", "given", "says"),
    [
        ("discover_agents", {"agents": "x"}, "there is no argument agents"),
        ("discover_agents", {"limit": 0}, "limit must be a whole number"),
        ("get_reasoner_schema", {}, "target is required"),
        ("get_reasoner_schema", {"target": "no dot"}, "dot"),
        ("execute_reasoner", {"input": {}}, "target is required"),
        ("execute_reasoner", {"target": "basic.hello", "input": "x"}, "input must be an object"),
        ("execute_reasoner", {"target": "basic.hello", "wait_seconds": 9999}, "wait_seconds"),
        ("wait_run", {"id": "run_1", "wait_seconds": "long"}, "wait_seconds must be"),
        ("wait_run", {"id": 5}, "id must be text"),
        ("get_run", {"id": "run_1", "cursor": "zzz"}, "cursor"),
        ("list_runs", {"status": "failed"}, "status must be a list"),
        ("cancel_run", {"id": "run_1", "why": "x"}, "there is no argument why"),
        ("why", {"id": None}, "id is required"),
    ],
)
def test_arguments_that_do_not_fit_are_tool_errors(client, shared, tool, given, says):
    before = rows(shared.plane)
    body = fits(client, tool, client.call(tool, given)).refused("validation")
    assert says in body["message"]
    assert rows(shared.plane) == before


# --- each tool ------------------------------------------------------------------------------------


def test_agents_are_found_and_their_schemas_read(client):
    found = fits(client, "discover_agents", client.call("discover_agents", agent="basic")).ok()
    assert found["total_agents"] == 1
    agent = found["agents"][0]
    assert agent["state"] == "active"
    targets = {function["target"]: function["type"] for function in agent["functions"]}
    assert targets["basic.hello"] == "reasoner"
    assert targets["basic.add"] == "skill"

    schema = client.call("get_reasoner_schema", target="basic.hello")
    schema = fits(client, "get_reasoner_schema", schema).ok()
    assert schema["input_schema"]["properties"]["name"]["type"] == "string"
    assert schema["input_schema"]["required"] == ["name"]
    missing = client.call("get_reasoner_schema", target="basic.nothing_here")
    body = fits(client, "get_reasoner_schema", missing).refused("target_not_found")
    assert "basic" in body["message"]


def test_a_call_answers_at_once_and_its_end_is_waited_for(client, shared):
    given = client.call("execute_reasoner", target="basic.slow", input={"seconds": 1})
    given = fits(client, "execute_reasoner", given).ok()
    assert given["status"] in ("queued", "running")
    assert given["done"] is False
    assert shared.plane.store.executions()[given["execution_id"]]["lane"] == "mcp"
    end = fits(client, "wait_run", client.call("wait_run", id=given["run_id"])).ok()
    assert end["done"] is True
    assert end["status"] == "succeeded"
    assert end["execution"]["result"] == {"slept": 1}


@pytest.mark.parametrize(
    ("function", "given", "result"),
    [
        ("hello", {"name": "é\u0000😀"}, {"hello": "é\u0000😀"}),
        ("add", {"a": 2, "b": 3}, 5),
        ("nothing", {}, None),
        ("listing", {}, [1, "two", None, {"three": 3.5}]),
    ],
)
def test_a_call_may_wait_for_its_result(client, function, given, result):
    call = client.call(
        "execute_reasoner", target=f"basic.{function}", input=given, wait_seconds=30
    )
    got = fits(client, "execute_reasoner", call).ok()
    assert got["done"] is True
    assert got["execution"]["result"] == result


def test_a_call_that_fails_is_the_error_and_the_execution_at_once(client):
    call = client.call(
        "execute_reasoner", target="basic.boom", input={"why": "kaput"}, wait_seconds=30
    )
    body = fits(client, "execute_reasoner", call).refused("agent_error")
    assert "kaput" in body["message"]
    assert body["execution"]["status"] == "failed"
    why = fits(client, "why", client.call("why", id=body["execution_id"])).ok()
    assert why["state"] == "failed"


def test_a_run_is_shown_with_its_steps_and_found_again(client):
    call = client.call(
        "execute_reasoner",
        target="chain.relay",
        input={"path": ["chain", "chain"], "value": 1},
        wait_seconds=30,
    )
    root = fits(client, "execute_reasoner", call).ok()
    assert root["execution"]["result"]["value"] == 3
    run = fits(client, "get_run", client.call("get_run", id=root["run_id"])).ok()
    assert run["status"] == "succeeded"
    assert run["counts"] == {"succeeded": 3}
    assert [step["target"] for step in run["steps"]] == ["chain.relay"] * 3
    parents = [step.get("parent_execution_id") for step in run["steps"]]
    assert parents == [None, *(step["execution_id"] for step in run["steps"][:2])]
    assert [step["lane"] for step in run["steps"]][0] == "mcp"

    first = fits(client, "list_runs", client.call("list_runs", limit=1, agent="chain")).ok()
    assert first["runs"][0]["run_id"] == root["run_id"]
    found = client.call("list_runs", id_part=root["run_id"], status=["succeeded"])
    assert len(fits(client, "list_runs", found).ok()["runs"]) == 1
    for tool in ("get_run", "wait_run", "cancel_run", "why"):
        fits(client, tool, client.call(tool, id="run_nothing")).refused("not_found")


def test_a_run_is_cancelled_and_its_code_stops(client, shared, tmp_path):
    mark = tmp_path / "steps"
    call = client.call(
        "execute_reasoner",
        target="chain.wait_for_slow",
        input={"agent": "basic", "seconds": 60, "mark": str(mark)},
    )
    run = call.ok()["run_id"]
    until("the inner call works", mark.exists)
    stopped = client.call("cancel_run", id=run, reason="enough")
    stopped = fits(client, "cancel_run", stopped).ok()
    assert len(stopped["cancelled"]) == 2
    assert fits(client, "wait_run", client.call("wait_run", id=run)).ok()["status"] == "cancelled"

    def stands():
        before = mark.stat().st_size
        time.sleep(0.5)
        return mark.stat().st_size == before

    until("the code has stopped", stands)
    again = fits(client, "cancel_run", client.call("cancel_run", id=run))
    assert again.is_error is False or again.content["error_category"] == "conflict"
    late = client.call("execute_reasoner", target="basic.hello", input={"name": "x"}, run_id=run)
    late.refused("run_cancelled")


def test_an_idempotency_key_joins_the_first_call(client, shared):
    key = f"key of {client.kind}"
    call = {"target": "basic.add", "input": {"a": 1, "b": 1}, "idempotency_key": key}
    first = client.call("execute_reasoner", {**call, "wait_seconds": 30}).ok()
    before = rows(shared.plane)
    again = client.call("execute_reasoner", call).ok()
    assert again["replayed"] is True
    assert again["execution_id"] == first["execution_id"]
    other = {**call, "input": {"a": 2, "b": 2}}
    client.call("execute_reasoner", other).refused("idempotency_conflict")
    assert rows(shared.plane) == before


def test_progress_is_told_to_a_client_that_asks_for_it(client):
    told = []
    call = client.call(
        "execute_reasoner",
        target="basic.slow",
        input={"seconds": 1},
        wait_seconds=30,
        progress=told,
    )
    assert call.ok()["execution"]["result"] == {"slept": 1}
    assert told, "nothing was told"
    steps = [done for done, _, _ in told]
    assert steps == sorted(set(steps)), steps
    assert "basic.slow is" in told[0][2]


def test_a_wait_that_runs_out_leaves_the_call_alone(client, shared):
    call = client.call("execute_reasoner", target="basic.slow", input={"seconds": 4})
    id = call.ok()["execution_id"]
    once = fits(client, "wait_run", client.call("wait_run", id=id, wait_seconds=1)).ok()
    assert once["done"] is False
    assert once["execution"]["status"] == "running"
    assert "wait_run" in once["next"]
    # The client gives up before the plane does: nothing changes for the call.
    with pytest.raises(ProtocolError):
        client.call("wait_run", id=id, wait_seconds=60, timeout=0.5)
    assert shared.plane.wait_end(id)["status"] == "succeeded"


def test_a_client_that_is_killed_in_a_wait_changes_nothing(shared):
    client = TypeScriptClient(shared.plane)
    call = {"target": "basic.slow", "input": {"seconds": 3}, "wait_seconds": 60}
    lost = []

    def ask():
        try:
            client.call("execute_reasoner", call)
        except AssertionError as end:
            lost.append(end)

    before = rows(shared.plane)
    asking = threading.Thread(target=ask)
    asking.start()
    until("the call is taken", lambda: rows(shared.plane) == before + 1)
    client.kill()
    asking.join(30)
    assert lost, "the client got an answer"
    client.close()
    newest = shared.plane.http.get("/api/v1/executions?limit=1").json()["executions"][0]
    assert newest["lane"] == "mcp"
    assert shared.plane.wait_end(newest["execution_id"])["status"] == "succeeded"


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", CLIENTS)
def test_a_refused_call_leaves_no_row(world, open_clients, kind):
    plane = world.plane(admission__at_capacity="reject", admission__max_concurrent_per_agent=1)
    agent = world.agent(plane, "basic.py", "capped")
    client = open_clients(kind, plane)
    for target, given, category in [
        ("nobody.here", {}, "target_not_found"),
        ("capped.not_here", {}, "target_not_found"),
        ("capped.hello", {}, "validation"),
    ]:
        call = client.call("execute_reasoner", target=target, input=given)
        assert "execution_id" not in call.refused(category)
    assert rows(plane) == 0

    running = client.call("execute_reasoner", target="capped.slow", input={"seconds": 4}).ok()
    body = client.call("execute_reasoner", target="capped.add", input={"a": 1, "b": 1})
    assert body.refused("concurrency_limit")["retry_after"] == 1
    assert rows(plane) == 1
    assert client.call("wait_run", id=running["run_id"]).ok()["done"] is True

    # It says goodbye: down at once.
    agent.terminate()
    body = client.call("execute_reasoner", target="capped.add", input={"a": 1, "b": 1})
    assert body.refused("node_unavailable")["retry_after"] == 1
    assert rows(plane) == 1
    assert plane.store.count("payloads") == 2, "input and result of the one that ran"


@pytest.mark.parametrize("kind", CLIENTS)
def test_a_shutdown_answers_who_waits_and_refuses_new_calls(world, open_clients, kind):
    plane = world.plane(server__shutdown_timeout="4s")
    agent = world.agent(plane, "basic.py", "busy")
    # It goes on while the plane is away.
    agent.expect_error("memory events|[Cc]onnect|[Hh]eartbeat|attempt")
    waiting, client = open_clients(kind, plane), open_clients(kind, plane)
    held = {}

    def wait():
        call = {"target": "busy.slow", "input": {"seconds": 30}, "wait_seconds": 120}
        held["given"] = waiting.call("execute_reasoner", call)

    thread = threading.Thread(target=wait)
    thread.start()
    until("the call is taken", lambda: rows(plane) == 1)
    plane.child.terminate()

    def refused():
        call = client.call("execute_reasoner", target="busy.add", input={"a": 1, "b": 1})
        return call if call.is_error else None

    assert until("it drains", refused).refused("control_plane_shutdown")["retry_after"] == 1
    thread.join(30)
    given = held["given"].ok()
    assert (given["done"], given["shutting_down"]) == (False, True)
    assert plane.child.wait(30) == 0
    ids = list(plane.store.executions())
    assert given["execution_id"] in ids


# --- keys -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", CLIENTS)
def test_each_tool_needs_its_scope(world, open_clients, kind):
    plane = world.plane()
    world.agent(plane, "basic.py", "guarded").expect_error("cancelled")
    reader = open_clients(kind, plane, make_key(plane, "r", "read"))
    caller = open_clients(kind, plane, make_key(plane, "c", "call"))
    call = {"target": "guarded.add", "input": {"a": 1, "b": 2}, "wait_seconds": 30}

    body = reader.call("execute_reasoner", call).refused("permission_denied")
    assert "call" in body["message"]
    assert rows(plane) == 0
    mine = caller.call("execute_reasoner", call).ok()
    assert mine["execution"]["result"] == 3
    caller.call("list_runs").refused("permission_denied")
    assert len(reader.call("list_runs").ok()["runs"]) == 1
    reader.call("cancel_run", id=mine["run_id"]).refused("permission_denied")

    # Who only calls sees and stops its own, and nobody else's.
    others = plane.submit("guarded.slow", {"seconds": 20}).json()
    for tool in ("get_run", "wait_run", "why", "cancel_run"):
        caller.call(tool, id=others["run_id"]).refused("not_found")
    assert reader.call("get_run", id=others["run_id"]).ok()["status"] == "running"
    assert caller.call("get_run", id=mine["run_id"]).ok()["status"] == "succeeded"
    slow = {"target": "guarded.slow", "input": {"seconds": 20}}
    slow = caller.call("execute_reasoner", slow).ok()
    assert caller.call("cancel_run", id=slow["run_id"]).ok()["status"] == "cancelled"
    plane.cancel(others["execution_id"])
    assert caller.call("discover_agents").ok()["total_agents"] == 1


@pytest.mark.parametrize("kind", CLIENTS)
def test_without_a_key_that_is_known_there_is_no_way_in(world, kind):
    plane = world.plane(auth__require_key="true")
    for key in (None, "mk_nonsense"):
        with pytest.raises(BaseException) as caught:  # noqa: B017, PT011
            CLIENTS[kind](plane, key).close()
        assert not isinstance(caught.value, KeyboardInterrupt)
    client = CLIENTS[kind](plane, owner_key(plane))
    assert client.call("list_runs").ok()["runs"] == []
    client.close()


def test_payloads_never_reach_the_log_or_the_metrics(world, open_clients):
    canary = "canary-7f3a9"
    plane = world.plane(log="trace")
    world.plain_agent(plane, "private")
    client = open_clients("python, new protocol", plane)
    told = []
    call = {"target": "private.later", "input": {"a": canary}, "wait_seconds": 30}
    client.call("execute_reasoner", call, progress=told).ok()
    now = client.call("execute_reasoner", {**call, "target": "private.now"}).ok()
    assert now["execution"]["result"] == {"echo": {"a": canary}}
    client.call("get_run", id=now["run_id"]).ok()
    for wrong in ({"input": canary}, {canary: 1}, {"session_id": canary + "\n"}):
        body = client.call("execute_reasoner", {"target": "private.now", **wrong})
        assert canary not in str(body.refused("validation"))
    accept = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    for body in (
        {**message, "params": {"name": canary, "arguments": {"a": canary}}},
        {**message, "params": {"name": [canary]}},
        {**message, "method": canary},
        {**message, "method": "initialize", "params": {"protocolVersion": canary}},
        [canary],
    ):
        answer = plane.http.post("/mcp", json=body, headers=accept)
        assert answer.status_code < 500, answer.text
        assert canary not in answer.text
    assert canary not in plane.http.get("/metrics").text
    assert plane.terminate() == 0
    assert any('"level":"TRACE"' in line for line in plane.child.lines), "nothing was traced"
    leaked = [line for line in plane.child.lines if canary in line]
    assert not leaked, leaked[:3]


def test_both_clients_see_the_same_tools(shared):
    python, typescript = PythonClient(shared.plane), TypeScriptClient(shared.plane)
    ours, theirs = python.tools(), typescript.tools()
    python.close()
    typescript.close()
    for one, other in zip(ours, theirs, strict=True):
        for part in ("name", "description", "inputSchema", "outputSchema", "annotations"):
            assert one[part] == other[part], (one["name"], part)
