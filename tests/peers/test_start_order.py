"""Who starts first must not matter."""

from harness.waiting import until


def test_a_call_before_the_agent_ran_is_a_404_without_a_row(world):
    plane = world.plane()
    for lane in (plane.call, plane.submit):
        answer = lane("early-agent.hello", {"name": "x"})
        assert answer.status_code == 404, answer.text
        assert answer.json()["error_category"] == "target_not_found"
    assert plane.store.count("executions") == 0
    world.agent(plane, "basic.py", "early-agent")
    assert plane.call("early-agent.hello", {"name": "x"}).status_code == 200


def test_an_agent_that_started_before_the_plane_is_found(world):
    plane = world.plane(start=False)
    agent = world.agent(plane, "basic.py", "first-agent")
    # The plane's absence is what this test provokes.
    agent.expect_error("memory events|Connect|connect")
    assert any("degraded" in line for line in agent.child.lines)
    plane.start()
    agent.wait_registered(within=45)
    until(
        "the agent answers through the plane",
        lambda: plane.call("first-agent.hello", {"name": "x"}).status_code == 200,
    )


def test_did_is_on_by_default_and_prints_no_error(world):
    plane = world.plane()
    agent = world.agent(plane, "basic.py", "did-agent")
    assert plane.call("did-agent.hello", {"name": "x"}).status_code == 200
    until("the agent has its identity", lambda: plane.store.data.exists())
    assert not agent.unexpected_errors()
    assert not [line for line in agent.child.lines if "DID" in line and "fail" in line.lower()]


def test_a_clean_goodbye_of_an_agent_is_printed_without_an_error(world):
    plane = world.plane()
    agent = world.agent(plane, "basic.py", "polite-agent")
    assert plane.call("polite-agent.hello", {"name": "x"}).status_code == 200
    agent.terminate()
    assert not agent.unexpected_errors()
