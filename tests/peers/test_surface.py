"""What the SDK offers beside calls, against the real plane."""

from types import SimpleNamespace

import pytest

from harness.waiting import until


@pytest.fixture(scope="module")
def shared(module_world):
    plane = module_world.plane()
    agent = module_world.agent(plane, "surface.py", "surface-agent")
    return SimpleNamespace(plane=plane, agent=agent, output=module_world.output)


def result(answer):
    assert answer.status_code == 200, answer.text
    return answer.json()["result"]


def test_memory_keeps_values_in_their_scopes(shared):
    got = result(shared.plane.call("surface-agent.remember", {"key": "k1"}))
    assert got["first"] == {"n": 1}
    assert got["null"] is None
    assert got["global"] == [1, 2]
    assert got["session"] == "text"
    assert got["listed"] == ["k1.session"]
    assert got["gone"] == "absent"


def test_memory_of_a_session_is_the_same_for_a_later_call_and_for_curl(shared):
    shared.plane.call("surface-agent.remember", {"key": "k2"})
    answer = shared.plane.http.post(
        "/api/v1/memory/get",
        json={"key": "k2.session", "scope": "session"},
        headers={"X-Session-ID": "session-of-the-test"},
    )
    assert answer.status_code == 200, answer.text
    assert answer.json()["data"] == "text"


def test_a_memory_change_reaches_the_agents_listener(shared):
    result(shared.plane.call("surface-agent.listen", {"pattern": "watched.*"}))
    result(shared.plane.call("surface-agent.change", {"key": "watched.a", "value": 7}))
    result(shared.plane.call("surface-agent.change", {"key": "other.a", "value": 8}))

    def heard():
        seen = result(shared.plane.call("surface-agent.heard_so_far"))
        return seen if len(seen) >= 2 else None

    seen = until("both changes were heard", heard)
    assert [one["key"] for one in seen] == ["watched.a", "watched.a"]
    assert [one["action"] for one in seen] == ["set", "delete"]
    assert seen[0]["data"] == 7


def test_the_history_of_changes_is_filtered_by_pattern(shared):
    result(shared.plane.call("surface-agent.change", {"key": "past.a", "value": 1}))
    events = result(shared.plane.call("surface-agent.history", {"pattern": "past.*"}))
    assert {event["key"] for event in events} == {"past.a"}
    assert {event["action"] for event in events} == {"set", "delete"}


def test_notes_and_logs_of_an_execution_can_be_read_back(shared):
    answer = shared.plane.call("surface-agent.talk", {"text": "a note of this test"})
    result(answer)
    id = answer.json()["execution_id"]

    def notes():
        got = shared.plane.http.get(f"/api/v1/executions/{id}/notes")
        assert got.status_code == 200, got.text
        return got.json()["notes"]

    (note,) = until("the note is there", notes)
    assert note["message"] == "a note of this test" and note["tags"] == ["test", "talk"]
    tagged = shared.plane.http.get(f"/api/v1/executions/{id}/notes?tags=other").json()
    assert tagged["notes"] == [] and tagged["total"] == 0

    def logs():
        got = shared.plane.http.get(f"/api/v1/executions/{id}/logs")
        assert got.status_code == 200, got.text
        text = got.text
        return "reasoner.started" in text and "reasoner.completed" in text

    until("the logs are there", logs)


def test_discovery_finds_agents_and_their_functions(shared):
    found = result(shared.plane.call("surface-agent.find", {"agent": "surface-agent"}))
    assert found["agent"] == "surface-agent"
    assert {"remember", "talk", "find"} <= set(found["reasoners"])


def test_each_success_leaves_an_execution_credential(shared):
    answer = shared.plane.call("surface-agent.heard_so_far")
    result(answer)
    id = answer.json()["execution_id"]

    def credential():
        tables = shared.plane.store.rows("select name from sqlite_master where type = 'table'")
        assert tables
        return credentials_of(shared.plane, id)

    until("the credential was issued", credential)


def credentials_of(plane, id):
    """Looks through every SQLite file: credentials are not decisions and lie beside them."""
    import sqlite3

    for path in plane.data.rglob("*"):
        if not path.is_file() or path.read_bytes()[:15] != b"SQLite format 3":
            continue
        db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        try:
            tables = [row[0] for row in db.execute("select name from sqlite_master where type='table'")]
            for table in tables:
                if "credential" in table:
                    query = f"select count(*) from {table} where execution = ?"
                    if db.execute(query, (id,)).fetchone()[0]:
                        return True
        finally:
            db.close()
    return False


def test_with_the_event_stream_on_calls_still_return_their_result(world):
    plane = world.plane()
    top = world.agent(plane, "chain.py", "s-top", AGENTFIELD_ASYNC_ENABLE_EVENT_STREAM="true")
    world.agent(plane, "chain.py", "s-leaf", AGENTFIELD_ASYNC_ENABLE_EVENT_STREAM="true")
    for value in range(10):
        answer = plane.call("s-top.relay", {"path": ["s-leaf"], "value": value})
        assert answer.status_code == 200, answer.text
        assert answer.json()["result"]["value"] == value + 1
    fan = plane.call("s-top.fan", {"agent": "s-leaf", "width": 12})
    assert fan.status_code == 200, fan.text
    assert fan.json()["result"]["sum"] == sum(range(12))
    assert not [line for line in top.child.lines if "Event stream returned" in line]
