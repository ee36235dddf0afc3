"""Fixtures: planes and agents that end with the test, and an agent that printed an error line
which the test did not provoke fails the test."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.agent import Agent  # noqa: E402
from harness.broker import Broker, relay_key  # noqa: E402
from harness.command import Cli  # noqa: E402
from harness.node import Node  # noqa: E402
from harness.plain_agent import PlainAgent  # noqa: E402
from harness.plane import Plane  # noqa: E402


class World:
    """Everything one test, or one module of tests, has started."""

    def __init__(self, folder):
        self.folder = folder
        self.planes = []
        self.agents = []
        self.plain = []
        self.nodes = []
        self.brokers = []
        # Whatever else must be closed: proxies, terminals, scripted nodes.
        self.others = []

    def plane(self, start=True, host="127.0.0.1", **settings):
        """A plane. Settings are named as in the configuration, with `__` for the dot."""
        data = self.folder / f"plane-{len(self.planes)}"
        settings = {name.replace("__", "."): value for name, value in settings.items()}
        plane = Plane(data, settings, host=host)
        self.planes.append(plane)
        return plane.start() if start else plane

    def agent(self, plane, script, node_id, start=True, **environment):
        agent = Agent(plane, script, node_id, **environment)
        self.agents.append(agent)
        return agent.start() if start else agent

    def plain_agent(self, plane, node_id, start=True, **options):
        agent = PlainAgent(plane, node_id, **options)
        self.plain.append(agent)
        return agent.start() if start else agent

    def cli(self, plane):
        """Commands as the plane's owner."""
        return Cli(plane, self.folder)

    def node(self, cli, name, start=True, **options):
        """A machine that has joined."""
        node = Node(cli, self.folder, name, **options)
        self.nodes.append(node)
        node.enroll()
        return node.start() if start else node

    def also(self, thing):
        """Closes it at the end."""
        self.others.append(thing)
        return thing

    def broker(self, plane, key=None, start=True, folder=None, **options):
        """A Relay broker under a workspace key of its own, unless it is given one."""
        key = key or relay_key(plane)
        folder = folder or self.folder / f"broker-{len(self.brokers)}"
        broker = Broker(plane, folder, key, **options)
        self.brokers.append(broker)
        return broker.start() if start else broker

    def close(self):
        for thing in self.others:
            thing.close()
        for node in self.nodes:
            node.close()
        for broker in self.brokers:
            broker.close()
        for agent in self.agents:
            agent.close()
        for agent in self.plain:
            agent.stop()
        for plane in self.planes:
            plane.close()

    def check(self):
        """What must hold after every test."""
        wrong = []
        for agent in self.agents:
            wrong += [f"{agent.node_id}: {line}" for line in agent.unexpected_errors()]
        for plane in self.planes:
            for child in plane.past:
                wrong += [f"plane: {line}" for line in child.lines if "panicked at" in line]
        for node in self.nodes:
            for child in node.past:
                wrong += [f"{child.name}: {line}" for line in child.lines if "panicked at" in line]
        assert not wrong, "error lines that no test provoked:\n" + "\n".join(wrong[:40])

    def output(self):
        children = [child for plane in self.planes for child in plane.past]
        children += [child for agent in self.agents for child in agent.past]
        children += [child for node in self.nodes for child in node.past]
        children += [child for broker in self.brokers for child in broker.past]
        return "\n".join(child.output() for child in children)


def pytest_collection_modifyitems(items):
    """What keeps a core busy for a minute is of one group, which runs one after another, and
    first: the others, which mostly wait, fill the time beside it."""
    items.sort(key=lambda item: item.get_closest_marker("xdist_group") is None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.failed:
        for name in ("world", "shared"):
            world = getattr(item, "funcargs", {}).get(name)
            if world is not None:
                report.sections.append(("children", world.output()))
    return report


def _world(folder):
    world = World(folder)
    try:
        yield world
    finally:
        world.close()
    world.check()


@pytest.fixture
def world(tmp_path):
    """Planes and agents of one test."""
    yield from _world(tmp_path)


@pytest.fixture(scope="module")
def module_world(tmp_path_factory):
    """Planes and agents of one module."""
    yield from _world(tmp_path_factory.mktemp("module"))
