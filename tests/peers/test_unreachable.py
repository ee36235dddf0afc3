"""An agent that beats and cannot be dialled at the address it gave: looked for elsewhere, and
when it is nowhere, said so with the address, the error and the fix."""

import time

from harness.waiting import until
from test_agent_restarts import state


def test_an_agent_with_a_wrong_address_is_found_where_it_registers_from(world):
    """The peer's address is dialled before anybody is told that the agent cannot be reached."""
    plane = world.plane()
    agent = world.agent(plane, "basic.py", "astray", AGENT_CALLBACK_URL="http://127.0.0.9")
    answer = plane.call("astray.hello", {"name": "x"})
    assert answer.status_code == 200, answer.text
    shown = state(plane, "astray")
    assert shown["base_url"] == f"http://127.0.0.1:{agent.port}"
    assert shown["registration"]["base_url"] == f"http://127.0.0.9:{agent.port}"
    began = time.monotonic()
    assert plane.call("astray.hello", {"name": "x"}).status_code == 200
    assert time.monotonic() - began < 5, "it is not looked for again"


def test_an_agent_that_is_nowhere_is_shown_with_address_error_and_fix(world):
    """`unreachable_callback`: in GET /nodes, in the event stream, and in the error of calls,
    which fail in 1 s from then on; a registration at the right address ends it."""
    plane = world.plane(agents__restart_grace="8s")
    agent = world.agent(plane, "basic.py", "nowhere", start=False)
    agent.environment = {
        "AGENT_HOST": "127.0.0.7",
        "AGENT_CALLBACK_URL": "http://127.0.0.9",
    }
    agent.start()
    first = plane.call("nowhere.hello", {"name": "x"})
    assert first.status_code == 504, first.text
    until("it is seen", lambda: fails_soon(plane), within=60, every=1)
    shown = state(plane, "nowhere")
    assert shown["state"] == "unreachable_callback", shown
    address = f"http://127.0.0.9:{agent.port}"
    for part in (address, f"http://127.0.0.1:{agent.port}", "refused", "AGENT_CALLBACK_URL"):
        assert part in shown["evidence"], shown["evidence"]
    began = time.monotonic()
    answer = plane.call("nowhere.hello", {"name": "x"})
    assert time.monotonic() - began < 6, "nobody waited the grace of 8 s again"
    assert answer.status_code == 504, answer.text
    body = answer.json()
    assert body["error_category"] == "agent_unreachable"
    assert address in body["message"] and "AGENT_CALLBACK_URL" in body["message"], body
    kinds = plane.store.rows("select kind from events_shown where agent = 'nowhere'")
    assert {"kind": "instance.unreachable_callback"} in kinds

    agent.kill_9()
    agent.environment = {}
    agent.start()
    until(
        "it answers",
        lambda: plane.call("nowhere.hello", {"name": "x"}).status_code == 200,
        within=30,
    )
    assert state(plane, "nowhere")["state"] == "active"


def fails_soon(plane):
    plane.call("nowhere.hello", {"name": "x"})
    return state(plane, "nowhere")["state"] == "unreachable_callback"
