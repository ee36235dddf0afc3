"""Waits by asking again, with a deadline that a slow machine also meets."""

import os
import random
import socket
import time


def until(what, ask, within=30.0, every=0.05):
    """Returns the first truthy answer of `ask`; fails and names `what` after `within` seconds."""
    end = time.monotonic() + within
    while True:
        answer = ask()
        if answer:
            return answer
        if time.monotonic() > end:
            raise AssertionError(f"not within {within:g} s: {what} (last answer: {answer!r})")
        time.sleep(every)


# Below the ports that the system gives to outgoing connections: one that a process left for a
# moment must not be taken by a client meanwhile.
_ports = random.Random(os.urandom(8))


def free_port():
    """A loopback port that nobody listened on a moment ago."""
    while True:
        port = _ports.randrange(10_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def port_is_open(port):
    """Whether somebody listens."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0
