"""A machine of the fleet: the real `muster node run` with a state folder of its own, and what of
it outlives the daemon."""

import json
import os
import signal
import subprocess

from .child import Child
from .plane import binary, quiet_environment
from .waiting import until


class Node:
    """One machine. Keeps its state over restarts of its daemon."""

    def __init__(self, cli, folder, name, plane_url=None, prefix=(), program=None, places=None):
        self.cli = cli
        self.name = name
        self.state = folder / f"n-{name}"
        self.plane_url = plane_url or cli.plane.url
        # What goes before each command: a network namespace.
        self.prefix = list(prefix)
        self.program = program or binary()
        # How many workers it takes; without it, any number.
        self.places = places
        self.child = None
        self.past = []

    def environment(self):
        return quiet_environment(HOME=self.state.parent, MUSTER_LOG="info")

    def enroll(self):
        """Joins the plane with a token that the owner made."""
        more = ["--max-workers", str(self.places)] if self.places else []
        made = self.cli("nodes", "enroll", self.name, "--json", *more).json()
        words = ["node", "enroll", "--plane", self.plane_url, "--token", made["token"]]
        words += ["--state", str(self.state)]
        done = subprocess.run(
            [*self.prefix, self.program, *words],
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return self

    def start(self, *options, online=True):
        command = [*self.prefix, self.program, "node", "run", "--state", str(self.state)]
        if self.places:
            command += ["--max-workers", str(self.places)]
        self.child = Child(f"node {self.name}", [*command, *options], env=self.environment())
        self.past.append(self.child)
        if online:
            self.wait_state("online")
        return self

    def view(self):
        answer = self.cli.plane.http.get(f"/api/v1/fleet/nodes/{self.name}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    def wait_state(self, *wanted, within=60):
        def there():
            if self.child is not None and not self.child.alive and "online" in wanted:
                raise AssertionError("the daemon ended\n" + self.child.output())
            view = self.view()
            return view if view["state"] in wanted else None

        return until(f"{self.name} is {' or '.join(wanted)}", there, within)

    def kill_9(self):
        """The daemon dies; its workers live in their holders."""
        self.child.kill_9()

    def stop(self, within=60):
        self.child.terminate()
        return self.child.wait(within)

    def status(self):
        """What the daemon says of itself, without the plane."""
        done = subprocess.run(
            [self.program, "node", "status", "--state", str(self.state), "--json"],
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=30,
        )
        # 75: it runs, and its link is not ready.
        assert done.returncode in (0, 75), done.stdout + done.stderr
        return json.loads(done.stdout)

    def close(self):
        """Ends the daemon, and every holder and worker it has left."""
        for child in self.past:
            child.end_group()
        mine = os.fsencode(str(self.state))
        # Again, for those that were just started.
        for _ in range(3):
            for pid in with_descendants(pid for pid in processes() if mine in command_of(pid)):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass


def processes():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def command_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


def parent_of(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return int(file.read().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0


def with_descendants(pids):
    """These processes and whatever they have started."""
    found = set(pids)
    parents = {pid: parent_of(pid) for pid in processes()}
    grown = True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        found |= more
        grown = bool(more)
    return found


def alive(pid):
    """Whether a process runs; one that nobody has waited for has ended."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
