"""The two incidents that the fleet is built against, made again with processes, and the rows of
the fault table that need a plane, a machine and its workers."""

import shutil
import time
from concurrent.futures import ThreadPoolExecutor

from harness.node import alive
from harness.plane import binary
from harness.proxy import Proxy
from harness.scripted_node import ScriptedNode
from harness.waiting import until

QUICK = {
    "fleet__heartbeat": "2s",
    "fleet__node_grace": "3s",
    "fleet__start_window": "200ms",
}


def placed(plane, cli, **wish):
    """A placement over HTTP; the worker's view."""
    key = (plane.data / "owner.key").read_text().strip()
    body = {"command": "sleep", "args": ["600"], **wish}
    answer = plane.http.post("/api/v1/fleet/workers", json=body, headers={"X-API-Key": key})
    assert answer.status_code == 201, answer.text
    return answer.json()["worker"]


def workers(plane, **query):
    answer = plane.http.get("/api/v1/fleet/workers", params={"limit": 200, **query})
    assert answer.status_code == 200, answer.text
    return answer.json()["workers"]


def worker(plane, id):
    answer = plane.http.get(f"/api/v1/fleet/workers/{id}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def history(plane, kind, id):
    answer = plane.http.get(f"/api/v1/fleet/{kind}/{id}/history", params={"limit": 500})
    assert answer.status_code == 200, answer.text
    return answer.json()["history"]


def logged(child, *words):
    return [line for line in child.lines if all(word in line for word in words)]


def link_fault(world, mode):
    """A machine behind a proxy, with two workers; then the proxy fails in a way that keeps both
    sockets open."""
    plane = world.plane(**QUICK)
    cli = world.cli(plane)
    proxy = world.also(Proxy(plane.port))
    node = world.node(cli, "mini", start=False, plane_url=proxy.url)
    node.start()
    ran = [placed(plane, cli, name=f"w-{n}") for n in range(2)]
    proxy.mode = mode

    view = node.wait_state("unreachable", within=120)
    assert view["workers"] is None and view["workers_reason"], view
    assert view["workers_last"]["value"] == 2, view
    assert sorted(view["worker_names"]) == ["w-0", "w-1"], view
    table = cli("nodes").ok().out
    assert "? last known 2" in table, table
    # A placement on it is refused at once, with the evidence.
    began = time.monotonic()
    refused = cli("spawn", "--node", "mini", "--", "true").failed(69, "node_unreachable")
    assert time.monotonic() - began < 15
    assert "mini" in refused.err and "ago" in refused.err, refused
    for one in ran:
        assert worker(plane, one["id"])["state"] == "unknown"
        assert alive(one["pid"]), "its workers run on"

    # Both sides have said so, with the reason and what comes next.
    until("the machine said it", lambda: logged(node.child, "unhealthy"), 60)
    until("the plane said it", lambda: logged(plane.child, "unreachable"), 60)
    local = node.status()
    assert "ready" != local["link"]["state"], local
    lines = [line["to"] for line in history(plane, "nodes", "mini") if line["kind"] == "node.state"]
    assert "suspect" in lines and "unreachable" in lines, lines

    proxy.mode = "pass"
    node.wait_state("online", within=120)
    until("both are confirmed", lambda: all(
        worker(plane, one["id"])["state"] == "running" for one in ran), 60)
    for one in ran:
        now = worker(plane, one["id"])
        assert now["pid"] == one["pid"] and now["restarts"] == 0 and alive(one["pid"]), now
    assert node.view()["workers"] == 2
    placed(plane, cli, node="mini", name="w-after")
    return proxy


def test_incident_a_a_link_that_lives_only_as_a_socket_is_noticed(world):
    """Row: socket open, pongs flow, application replies withheld: unhealthy, logged, reconnected;
    the count is null; a placement says node_unreachable with the evidence."""
    proxy = link_fault(world, "withhold")
    assert proxy.withheld > 0


def test_incident_a_traffic_that_is_dropped_in_silence_is_noticed_by_both(world):
    """Row: traffic dropped silently both ways: suspect, unreachable, count null, workers keep
    running, all reconciled, nothing restarted."""
    link_fault(world, "drop")


def test_control_a_link_whose_replies_flow_is_never_dropped(world):
    """Row: control: the same proxy passing everything on loses nothing over many beats."""
    plane = world.plane(**{**QUICK, "fleet__heartbeat": "3s"})
    cli = world.cli(plane)
    proxy = world.also(Proxy(plane.port))
    node = world.node(cli, "steady", start=False, plane_url=proxy.url)
    node.start()
    began = time.monotonic()
    while time.monotonic() - began < 20:
        assert node.view()["state"] in ("online", "suspect")
        time.sleep(0.5)
    assert not logged(node.child, "unhealthy"), logged(node.child, "unhealthy")
    assert node.view()["state"] == "online"


def scripted(world, cli, name, count):
    """A scripted machine with so many workers, all confirmed."""
    node = world.also(ScriptedNode(cli, name)).connect()
    node.beat()
    node.inventory()

    def beating():
        node.beat()
        answer = cli.plane.http.get(f"/api/v1/fleet/nodes/{name}").json()
        return answer["state"] == "online"

    until(f"{name} is online", beating, 60, 0.5)
    for n in range(count):
        placed(cli.plane, cli, name=f"{name}-{n:02}", node=name)
        node.beat()
    node.inventory()
    node.beat()
    assert len(node.workers) == count
    return node


def test_incident_b_one_missed_beat_sweeps_nobody(world):
    """Row: one missed beat: nothing but a counter. Silence for longer makes its workers unknown,
    and ends none of them."""
    plane = world.plane(**{**QUICK, "fleet__heartbeat": "3s", "fleet__node_grace": "8s"})
    cli = world.cli(plane)
    node = scripted(world, cli, "quiet", 11)
    # One beat of three seconds is left out.
    time.sleep(5)
    states = [one["state"] for one in workers(plane)]
    assert states == ["running"] * 11, states
    node.beat()
    view = plane.http.get("/api/v1/fleet/nodes/quiet").json()
    assert view["state"] in ("online", "suspect") and view["workers"] == 11, view

    until("they are unknown", lambda: {one["state"] for one in workers(plane)} == {"unknown"}, 90, 0.5)
    assert len(workers(plane)) == 11 and not workers(plane, state="exited")

    def back():
        node.beat()
        node.inventory()
        return {one["state"] for one in workers(plane)} == {"running"}

    until("all are confirmed again", back, 90, 0.5)
    assert not workers(plane, state="exited,lost")


def test_incident_b_twenty_believed_and_eleven_told_is_a_drift_with_nine_names(world):
    """Row: the daemon reports 11, the plane believes 20: drift with the nine names; they end
    `exited (unobserved)`, and the eleven live."""
    plane = world.plane(**QUICK)
    cli = world.cli(plane)
    node = scripted(world, cli, "drifting", 20)
    gone = sorted(node.workers)[:9]
    names = sorted(node.workers.pop(id) for id in gone)
    seen = {}

    def told():
        node.beat()
        drift = plane.http.get("/api/v1/fleet/drift").json()["drift"]
        for one in drift:
            seen.update(one)
        return bool(seen)

    until("the difference is told", told, 60, 0.5)
    assert seen["name"] == "drifting", seen
    assert (seen["believed"], seen["claimed"]) == (20, 11), seen
    text = cli("drift").ok().out
    assert "20 believed, 11 claimed" in text, text
    # Nobody was swept by a count: that takes inventories. The first one has the names.
    assert len(workers(plane)) == 20
    node.inventory()

    def named():
        drift = plane.http.get("/api/v1/fleet/drift").json()["drift"]
        return sorted(drift[0]["missing"]) if drift and drift[0]["missing"] else None

    assert until("the nine are named", named, 60) == names
    text = cli("drift").ok().out
    assert all(f"missing  {name}" in text for name in names), text
    assert len(workers(plane)) == 20

    def settled():
        node.beat()
        node.inventory()
        return len(workers(plane)) == 11

    until("two inventories say so", settled, 60, 0.5)
    ended = workers(plane, state="exited")
    assert sorted(one["name"] for one in ended) == names
    assert {one["ended_how"] for one in ended} == {"unobserved"}
    assert {one["id"] for one in workers(plane)} == set(node.workers)
    lines = [line for line in history(plane, "nodes", "drifting") if line["kind"] == "drift"]
    assert any(all(name in line["evidence"] for name in names) for line in lines), lines
    for id in gone:
        kinds = [line["to"] for line in history(plane, "workers", id)]
        assert kinds.count("exited") == 1, kinds


def test_incident_b_bindings_that_nobody_confirms_expire(world):
    """Row: stale bindings expire after their time to live and are kept as history."""
    plane = world.plane(**{**QUICK, "fleet__binding_ttl": "6s"})
    cli = world.cli(plane)
    node = scripted(world, cli, "stale", 3)
    ids = sorted(node.workers)
    node.socket.close()
    until("they expire", lambda: not workers(plane), 120, 0.5)
    ended = workers(plane, ended="true")
    assert sorted(one["id"] for one in ended) == ids
    assert {one["ended_how"] for one in ended} == {"binding_expired"}


def test_a_plane_that_is_killed_finds_every_worker_again(world):
    """Row: plane kill -9 and back with 20 workers: all confirmed, none swept, none duplicated."""
    plane = world.plane(**QUICK)
    cli = world.cli(plane)
    node = world.node(cli, "edge-1")
    with ThreadPoolExecutor(4) as pool:
        started = list(pool.map(lambda n: placed(plane, cli, name=f"w-{n:02}"), range(20)))
    pids = {one["id"]: one["pid"] for one in started}
    for _ in range(2):
        plane.kill_9()
        plane.start()
        killed_at = until("it knows them", lambda: workers(plane), 30) and stamp(plane)
        node.wait_state("online", within=60)

        def confirmed(since=killed_at):
            found = workers(plane)
            return len(found) == 20 and all(
                one["state"] == "running" and (one["confirmed_at"] or "") > since for one in found
            )

        until("all are confirmed", confirmed, 60)
        assert {one["id"]: one["pid"] for one in workers(plane)} == pids
        assert not workers(plane, state="exited,lost,unknown")
    assert all(alive(pid) for pid in pids.values())
    assert all(one["restarts"] == 0 for one in workers(plane))
    assert node.view()["workers"] == 20


def stamp(plane):
    """The plane's clock."""
    return plane.http.get("/api/v1/why/nobody").headers.get("date") and time.strftime(
        "%Y-%m-%dT%H:%M:%S", time.gmtime()
    )


def test_a_daemon_that_is_killed_finds_its_workers_and_tells_exits_once(world):
    """Row: daemon kill -9 and back: every worker still runs; an exit in between is reported once,
    with its code."""
    plane = world.plane(**{**QUICK, "fleet__node_grace": "8s"})
    cli = world.cli(plane)
    node = world.node(cli, "edge-1")
    stay = [placed(plane, cli, name=f"stay-{n}") for n in range(5)]
    script = "trap 'exit 9' TERM; while :; do sleep 0.1; done"
    goes = placed(plane, cli, name="goes", command="sh", args=["-c", script])
    node.kill_9()
    assert all(alive(one["pid"]) for one in stay)
    import os
    import signal

    os.kill(goes["pid"], signal.SIGTERM)
    until("it has ended", lambda: not alive(goes["pid"]), 30)
    node.start()
    ended = until("its exit is told", lambda: (lambda one: one if one["state"] == "exited" else None)(
        worker(plane, goes["id"])), 60)
    assert ended["exit"]["code"] == 9 and ended["ended_how"] == "reported", ended
    for one in stay:
        now = worker(plane, one["id"])
        assert now["state"] == "running" and now["pid"] == one["pid"] and alive(one["pid"]), now
    # Once more: what was acknowledged is not told again.
    node.kill_9()
    node.start()
    told = [line for line in history(plane, "workers", goes["id"]) if line["to"] == "exited"]
    assert len(told) == 1, told
    assert len(workers(plane)) == 5


def test_a_daemon_is_upgraded_under_its_workers(world):
    """Row: the daemon stops, another build of it starts from another path: every worker runs on."""
    plane = world.plane(**QUICK)
    cli = world.cli(plane)
    node = world.node(cli, "edge-1")
    ran = [placed(plane, cli, name=f"w-{n}") for n in range(3)]
    assert node.stop() == 0
    assert all(alive(one["pid"]) for one in ran), "a stopped daemon leaves its workers"
    newer = world.folder / "muster-newer"
    shutil.copy(binary(), newer)
    node.program = str(newer)
    node.start()
    until("all are confirmed", lambda: all(
        worker(plane, one["id"])["state"] == "running" for one in ran), 60)
    for one in ran:
        now = worker(plane, one["id"])
        assert now["pid"] == one["pid"] and now["restarts"] == 0, now
    # What the old build holds, the new one ends.
    cli("release", ran[0]["id"], "--grace", "1s").ok()
    assert not alive(ran[0]["pid"])
