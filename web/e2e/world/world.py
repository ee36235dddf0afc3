"""Makes a world to look at, and for browser tests: starts agents against a plane, makes runs of
every kind, and prints their ids as JSON. Stays until its input ends, and does what lines of it
say; `README.md` has the lines. Needs the Python SDK (`agentfield`), nothing else."""

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx

HERE = Path(__file__).resolve().parent
SERVICES = ("geo", "weather", "hotel", "budget", "mail", "report")
SCRIPTS = {"trip": "trip.py", "bulk": "bulk.py", **dict.fromkeys(SERVICES, "services.py")}
HOSTILE = (
    "</script><script>window.__canary=1</script><img src=x onerror=\"window.__canary=2\">"
    " \u001b[31mred\u001b[0m \u202egnp.exe\u202c 9223372036854775807 NaN \x00 \u2066iso\u2069 {{7*7}} javascript:alert(1)"
)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class World:
    def __init__(self, url, key):
        self.http = httpx.Client(base_url=url, timeout=120, headers={"X-API-Key": key} if key else {})
        self.url, self.key = url, key
        self.ports, self.children = {}, {}
        self.made = {}

    # --- agents -----------------------------------------------------------------------------------

    def start(self, name, wait=True):
        port = self.ports.setdefault(name, free_port())
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("AGENTFIELD_", "AGENT_", "MUSTER_", "PORT"))}
        told = {
            "AGENTFIELD_SERVER": self.url, "AGENT_CALLBACK_URL": f"http://127.0.0.1:{port}",
            "AGENTFIELD_DISABLE_IP_DETECTION": "true", "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1",
            "AGENT_PORT": str(port), "ROLE": name,
        }
        if self.key:
            told["AGENTFIELD_API_KEY"] = self.key
        self.children[name] = subprocess.Popen(
            [sys.executable, str(HERE / SCRIPTS[name])], cwd=HERE, env={**kept, **told},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )
        if wait:
            self.until(f"{name} serves", lambda: self.serves(name), 90)

    def serves(self, name):
        if self.children[name].poll() is not None:
            raise SystemExit(f"{name} ended at its start; run it alone to see why")
        try:
            known = self.http.get(f"/api/v1/nodes/{name}").status_code == 200
            return known and httpx.get(f"http://127.0.0.1:{self.ports[name]}/health", timeout=5).status_code == 200
        except httpx.TransportError:
            return False

    def end(self, name, how):
        """`SIGKILL` without a goodbye, or `SIGTERM` with one."""
        child = self.children.pop(name)
        os.killpg(child.pid, how)
        child.wait(30)

    def close(self):
        for name in list(self.children):
            self.end(name, signal.SIGKILL)

    @staticmethod
    def until(what, true, within=60):
        end = time.monotonic() + within
        while not true():
            if time.monotonic() > end:
                raise SystemExit(f"not within {within} s: {what}")
            time.sleep(0.05)

    # --- runs -------------------------------------------------------------------------------------

    def submit(self, target, input, headers=None, **options):
        answer = self.http.post(f"/api/v1/execute/async/{target}", json={"input": input, **options}, headers=headers or {})
        if answer.status_code != 202:
            raise SystemExit(f"{target}: {answer.status_code} {answer.text[:400]}")
        body = answer.json()
        return {"run": body["run_id"], "execution": body["execution_id"]}

    def state(self, execution):
        return self.http.get(f"/api/v1/executions/{execution}").json()

    def ended(self, made, within=120):
        terminal = ("succeeded", "failed", "cancelled", "timeout")
        self.until(f"{made['run']} ends", lambda: self.state(made["execution"])["status"] in terminal, within)
        return made

    def steps(self, run):
        return self.http.get(f"/api/v1/runs/{run}/steps", params={"limit": 1000}).json()

    def make(self, kind, *given):
        """One kind of run; its ids."""
        self.made[kind] = made = getattr(self, f"make_{kind}")(*given)
        return made

    def make_trip(self):
        """Waits for a person at the end."""
        return self.submit("trip.plan", {"city": "Lyon"}, {"X-Session-ID": "demo"})

    def make_held(self):
        """Its hotel is away when it is asked: start it again within the grace."""
        self.end("hotel", signal.SIGKILL)
        return self.submit("trip.plan", {"city": "Graz", "days": 6})

    def make_done(self):
        return self.ended(self.submit("trip.plan", {"city": "Brno", "days": 8, "person": False}))

    def make_failed(self):
        return self.ended(self.submit("trip.nightly", {"fail": True}))

    def make_restarted(self):
        source = self.make("failed")
        answer = self.http.post(f"/api/v1/executions/{source['execution']}/restart", json={"reason": "try again", "input": {"fail": False}})
        body = answer.json()
        return self.ended({"run": body["run_id"], "execution": body["execution_id"], "source": source["run"]})

    def make_observed(self):
        return self.ended(self.submit("trip.observed", {}))

    def make_cancelled(self, width="6"):
        made = self.submit("trip.slow_tree", {"width": int(width)})
        self.until("its calls run", lambda: len(self.steps(made["run"]).get("steps", [])) > int(width))
        time.sleep(1)
        self.http.post(f"/api/v1/workflows/{made['run']}/cancel-tree", json={"reason": "not needed any more"})
        return made

    def make_detached(self):
        """The root has ended, its child goes on."""
        root = self.submit("bulk.mute", {}, deadline="2s")
        self.submit("weather.slow", {"seconds": 600}, {"X-Run-ID": root["run"], "X-Parent-Execution-ID": root["execution"]})
        return root

    def make_slow(self, width="2"):
        """A root and so many calls that take ten minutes."""
        return self.submit("trip.slow_tree", {"width": int(width)})

    def make_nested(self):
        """A function that calls its own agent."""
        return self.submit("trip.nightly", {})

    def make_paused(self):
        made = self.submit("trip.slow_tree", {"width": 3})
        self.until("its calls run", lambda: len(self.steps(made["run"]).get("steps", [])) > 3)
        self.http.post(f"/api/v1/workflows/{made['run']}/pause-tree", json={"reason": "lunch"})
        return made

    def make_timeout(self):
        return self.ended(self.submit("weather.slow", {"seconds": 60}, deadline="2s"))

    def make_late(self):
        """Ends by its deadline; what its agent answers comes after that."""
        made = self.ended(self.submit("bulk.late", {"seconds": 3}, deadline="1s"))
        self.until("its answer comes", lambda: self.state(made["execution"]).get("late_outcome"))
        return made

    def make_orphaned(self):
        """The agent that had it is gone, and another process has taken its place. Ends about a minute later."""
        made = self.submit("weather.slow", {"seconds": 600})
        self.until("it runs", lambda: self.state(made["execution"])["status"] == "running")
        time.sleep(1)
        self.end("weather", signal.SIGKILL)
        self.start("weather")
        return made

    def make_hostile(self):
        headers = {"X-Session-ID": "<img src=x onerror=alert(1)>"}
        self.ended(self.submit("report.hostile_error", {"text": HOSTILE}, headers))
        return self.ended(self.submit("report.hostile", {"text": HOSTILE}, headers))

    def make_big(self, mebibytes="63"):
        return self.ended(self.submit("report.big", {"mebibytes": int(mebibytes)}))

    def make_logs(self, lines="10000"):
        return self.submit("report.logs", {"lines": int(lines)})

    def make_wide(self, width="2000"):
        return self.ended(self.submit("bulk.wide", {"width": int(width) - 1, "lanes": 32}), 900)

    def make_growing(self, width="2000", lanes="2"):
        """As `wide`, not waited for."""
        return self.submit("bulk.wide", {"width": int(width) - 1, "lanes": int(lanes)})

    def make_deep(self, depth="4", width="4"):
        return self.ended(self.submit("bulk.deep", {"depth": int(depth), "width": int(width)}), 300)

    # --- what a line says -------------------------------------------------------------------------

    def obey(self, line):
        verb, *rest = line.split()
        if verb == "make":
            return {rest[0]: self.make(*rest)}
        if verb == "kill":
            self.end(rest[0], signal.SIGKILL)
        elif verb == "goodbye":
            self.end(rest[0], signal.SIGTERM)
        elif verb == "start":
            self.start(rest[0])
        else:
            return {"error": f"no such line: {line}"}
        return {verb: rest[0]}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="http://127.0.0.1:8080", help="the plane")
    parser.add_argument("--key", default="", help="a key, where the plane wants one")
    parser.add_argument("--runs", default="done,restarted,observed,timeout,hostile,deep,cancelled,paused,detached,trip")
    parser.add_argument("--agents", default=",".join(SCRIPTS))
    world = World(*(lambda given: (given.url, given.key))(given := parser.parse_args()))

    def say(what):
        print(json.dumps(what), flush=True)

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        names = [name for name in given.agents.split(",") if name]
        for name in names:
            world.start(name, wait=False)
        for name in names:
            world.until(f"{name} serves", lambda name=name: world.serves(name), 120)
        for kind in filter(None, given.runs.split(",")):
            world.make(kind)
        say({"agents": names, "runs": world.made})
        for line in sys.stdin:
            if line.strip():
                try:
                    say(world.obey(line))
                except (SystemExit, KeyError, AttributeError) as error:
                    say({"error": str(error)})
    except KeyboardInterrupt:
        pass
    finally:
        world.close()


if __name__ == "__main__":
    main()
