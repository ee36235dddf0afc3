"""Rows of the fault table between two networks: everything lost in the middle, a machine that
stands still. Sockets stay open at both ends throughout."""

import signal
import time

import pytest

from harness import network
from harness.node import alive
from harness.router import Router
from harness.waiting import until
from test_fleet_incidents import logged, placed, worker

pytestmark = pytest.mark.skipif(not network.allowed(), reason="makes network namespaces, which needs root")

QUICK = {
    "fleet__heartbeat": "1s",
    "fleet__node_grace": "5s",
    "fleet__start_window": "200ms",
}


def far(world):
    """A plane here, and a machine behind a router with two workers."""
    router = world.also(Router())
    plane = world.plane(host=router.here, **QUICK)
    cli = world.cli(plane)
    node = world.node(cli, "far", start=False, prefix=router.prefix)
    node.start()
    ran = [placed(plane, cli, name=f"w-{n}") for n in range(2)]
    return router, plane, cli, node, ran


def test_traffic_lost_silently_both_ways_is_noticed_by_both_sides_and_costs_nothing(world):
    """Row: both sides notice; suspect, unreachable; the count is null; the workers keep running;
    all reconciled within 2 s of the new connection, nothing restarted."""
    router, plane, cli, node, ran = far(world)
    router.lose_everything()
    node.wait_state("suspect", "unreachable", within=60)
    view = node.wait_state("unreachable", within=60)
    assert view["workers"] is None and view["workers_last"]["value"] == 2, view
    # The machine knows it as well, by itself, and says why and what comes next.
    local = until(
        "it gave the link up",
        lambda: (s := node.status())["link"]["state"] in ("reconnecting", "connecting") and s,
        60,
    )
    assert len(local["workers"]) == 2, local
    assert local["link"]["last_acknowledged_ms_ago"] > 2000, local
    assert logged(node.child, "the link to the plane is unhealthy", "does not acknowledge")
    until("the plane said it", lambda: logged(plane.child, "unreachable"), 60)
    for one in ran:
        assert worker(plane, one["id"])["state"] == "unknown"
        assert alive(one["pid"])
    router.mend()
    ready = until("a new connection", lambda: len(logged(node.child, "link to the plane is ready")) > 1, 60)
    connected = time.monotonic()
    until(
        "all are confirmed",
        lambda: all(worker(plane, one["id"])["state"] == "running" for one in ran),
        30,
    )
    took = time.monotonic() - connected
    assert ready and took < 2, f"{took:.1f} s"
    for one in ran:
        now = worker(plane, one["id"])
        assert (now["pid"], now["restarts"]) == (one["pid"], 0), now
    node.wait_state("online", within=60)


def test_an_exit_while_everything_is_lost_is_told_once_with_its_code(world):
    router, plane, cli, node, _ = far(world)
    short = placed(plane, cli, name="short", command="sh", args=["-c", "sleep 12; echo bye; exit 7"])
    router.lose_everything()
    until("it ended there", lambda: node.status()["exits_waiting"] == 1, 60)
    assert worker(plane, short["id"])["state"] in ("running", "unknown")
    router.mend()
    ended = until(
        "its exit is known",
        lambda: (w := worker(plane, short["id"]))["state"] == "exited" and w,
        60,
    )
    assert ended["exit"]["code"] == 7 and "bye" in ended["exit"]["output"], ended
    until("the outbox is empty", lambda: node.status()["exits_waiting"] == 0, 30)


def test_a_machine_that_stood_still_concludes_nothing_and_comes_back(world):
    """A daemon that was stopped for longer than every deadline: it says that it stood still, not
    that the plane was silent, and dials anew."""
    _, plane, cli, node, ran = far(world)
    node.child.signal(signal.SIGSTOP)
    try:
        node.wait_state("unreachable", within=120)
        assert all(alive(one["pid"]) for one in ran)
    finally:
        node.child.signal(signal.SIGCONT)
    node.wait_state("online", within=60)
    until("it said so", lambda: logged(node.child, "stood still"), 30)
    assert not logged(node.child, "does not acknowledge")
    for one in ran:
        now = worker(plane, one["id"])
        assert (now["state"], now["pid"], now["restarts"]) == ("running", one["pid"], 0), now
