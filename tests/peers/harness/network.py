"""Two networks on this machine: a namespace with a cable to this one. Needs root."""

import os
import subprocess
import uuid

from .waiting import until


def allowed():
    """Whether namespaces may be made. Where root cannot make one the tests fail, and say why."""
    return os.geteuid() == 0


class Network:
    """A namespace of its own, in which `there` is an address and `here` is ours."""

    def __init__(self):
        tag = uuid.uuid4().hex[:6]
        net = int(tag[:4], 16) % 16000
        self.name = f"muster-{tag}"
        self.ours, self.theirs = f"mh{tag}", f"mt{tag}"
        base = f"10.{190 + net // 4000}.{net % 4000 // 64}.{net % 64 * 4}"
        head, last = base.rsplit(".", 1)
        self.here, self.there = f"{head}.{int(last) + 1}", f"{head}.{int(last) + 2}"
        self._run("ip", "netns", "add", self.name)
        self._run("ip", "link", "add", self.ours, "type", "veth", "peer", "name", self.theirs)
        self._run("ip", "link", "set", self.theirs, "netns", self.name)
        self._run("ip", "addr", "add", f"{self.here}/30", "dev", self.ours)
        self._run("ip", "link", "set", self.ours, "up")
        for words in (
            ["addr", "add", f"{self.there}/30", "dev", self.theirs],
            ["link", "set", self.theirs, "up"],
            ["link", "set", "lo", "up"],
        ):
            self._run(*self.prefix, "ip", *words)

    @property
    def prefix(self):
        """What goes before a command that runs there."""
        return ["ip", "netns", "exec", self.name]

    def unplug(self):
        """Packets of both directions are lost; no socket notices."""
        self._run("ip", "link", "set", self.ours, "down")

    def plug(self):
        self._run("ip", "link", "set", self.ours, "up")
        until("the cable is in", lambda: self._is_up(), 10)

    def _is_up(self):
        shown = subprocess.run(["ip", "addr", "show", self.ours], capture_output=True, text=True)
        return "state UP" in shown.stdout

    @staticmethod
    def _run(*words):
        done = subprocess.run(words, capture_output=True, text=True)
        assert done.returncode == 0, f"{words}: {done.stderr}"

    def close(self):
        subprocess.run(["ip", "link", "del", self.ours], capture_output=True)
        subprocess.run(["ip", "netns", "del", self.name], capture_output=True)
