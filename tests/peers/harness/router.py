"""A machine in another network, behind a router that can lose everything: packets of both
directions vanish in the middle, no interface goes down, nobody gets a reset. Needs root."""

import subprocess
import uuid


class Router:
    """Three networks in a row: ours, the router's, and the one in which `there` is an address."""

    def __init__(self):
        tag = uuid.uuid4().hex[:6]
        net = int(tag[:4], 16) % 32
        self.router, self.name = f"mr-{tag}", f"mn-{tag}"
        self.ours = f"ma{tag}"
        near, far = f"10.187.{net}", f"10.188.{net}"
        self.here, self.there = f"{near}.1", f"{far}.2"
        for name in (self.router, self.name):
            self._run("ip", "netns", "add", name)
        self._cable(self.ours, f"mb{tag}", self.router)
        self._run("ip", "link", "add", f"mc{tag}", "netns", self.router, "type", "veth", "peer", "name", f"md{tag}", "netns", self.name)
        self._run("ip", "addr", "add", f"{self.here}/24", "dev", self.ours)
        self._run("ip", "link", "set", self.ours, "up")
        self._in(self.router, "ip", "addr", "add", f"{near}.2", "peer", self.here, "dev", f"mb{tag}")
        self._in(self.router, "ip", "link", "set", f"mb{tag}", "up")
        self._in(self.router, "ip", "addr", "add", f"{far}.1/24", "dev", f"mc{tag}")
        self._in(self.router, "ip", "link", "set", f"mc{tag}", "up")
        self._in(self.name, "ip", "addr", "add", f"{self.there}/24", "dev", f"md{tag}")
        self._in(self.name, "ip", "link", "set", f"md{tag}", "up")
        self._in(self.name, "ip", "link", "set", "lo", "up")
        self._in(self.name, "ip", "route", "add", "default", "via", f"{far}.1")
        self._run("ip", "route", "add", f"{far}.0/24", "via", f"{near}.2")
        self.far = f"{far}.0/24"
        self.mend()

    @property
    def prefix(self):
        """What goes before a command that runs there."""
        return ["ip", "netns", "exec", self.name]

    def lose_everything(self):
        """From now on no packet of either direction arrives."""
        self._forward(0)

    def mend(self):
        self._forward(1)

    def _forward(self, on):
        self._in(self.router, "sh", "-c", f"echo {on} > /proc/sys/net/ipv4/ip_forward")

    def _cable(self, ours, theirs, namespace):
        self._run("ip", "link", "add", ours, "type", "veth", "peer", "name", theirs)
        self._run("ip", "link", "set", theirs, "netns", namespace)

    def _in(self, namespace, *words):
        self._run("ip", "netns", "exec", namespace, *words)

    @staticmethod
    def _run(*words):
        done = subprocess.run(words, capture_output=True, text=True)
        assert done.returncode == 0, f"{words}: {done.stderr}"

    def close(self):
        subprocess.run(["ip", "link", "del", self.ours], capture_output=True)
        for name in (self.name, self.router):
            subprocess.run(["ip", "netns", "del", name], capture_output=True)
