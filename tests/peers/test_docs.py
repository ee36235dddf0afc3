"""The documents are true: what they tell to run is run, in order, and prints what they show; and
every `muster` command that any of them names exists, with its flags."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from harness.child import Child
from harness.plane import ROOT, binary, quiet_environment
from harness.waiting import free_port, until

DOCS = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "examples").rglob("README.md")])
BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.M | re.S)


def blocks(text):
    """Language with its mark, and the body, of each fenced block."""
    return [(info.strip(), body) for info, body in BLOCK.findall(text)]


class Reader:
    """Somebody who follows a page: one shell in one folder, and a `muster dev` beside it."""

    def __init__(self, folder):
        self.folder = folder
        self.port = free_port()
        self.dev = None
        programs = folder / "programs"
        programs.mkdir()
        (programs / "muster").symlink_to(Path(binary()).resolve())
        (programs / "python").symlink_to(sys.executable)
        self.environment = quiet_environment(
            HOME=folder,
            PATH=f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            MUSTER_SERVER=f"http://127.0.0.1:{self.port}",
            VIRTUAL_ENV=sys.prefix,
            LANG="C.UTF-8",
        )

    def start_dev(self, words=()):
        """`muster dev`, as the page says, on a port of this test's own."""
        if self.dev:
            self.dev.terminate()
            self.dev.wait(60)
        command = ["muster", "dev", "--port", str(self.port), *words]
        self.dev = Child("dev", command, env=self.environment, cwd=self.folder)
        until("dev has an agent", lambda: "registered in" in self.dev.output(), 60)

    def run(self, script):
        # Pages name the port that a newcomer's plane has.
        script = script.replace("http://127.0.0.1:8080", self.environment["MUSTER_SERVER"])
        ran = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=120,
        )
        assert ran.returncode == 0, f"{script}\n-> {ran.returncode}\n{ran.stdout}\n{ran.stderr}"
        return ran.stdout

    def close(self):
        if self.dev:
            self.dev.end_group()


@pytest.fixture
def reader(tmp_path):
    reader = Reader(tmp_path)
    yield reader
    reader.close()


def matches(shown, printed):
    """What a page shows, with `…` for what differs each time, is somewhere in what was printed."""
    pattern = ".*?".join(re.escape(piece) for piece in shown.strip().split("…"))
    return re.search(pattern, printed, re.S) is not None


PAGES = [path for path in DOCS if any(info.startswith("sh run") for info, _ in blocks(path.read_text()))]


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_what_a_page_tells_to_run_runs(reader, page):
    reader.start_dev()
    printed = ""
    ran = 0
    for info, body in blocks(page.read_text()):
        if info == "sh run":
            printed = reader.run(body)
            ran += 1
        elif info == "sh dev":
            words = shlex.split(body)
            assert words[:2] == ["muster", "dev"], body
            reader.start_dev(words[2:])
        elif info == "text" and ran:
            assert matches(body, printed), f"the page shows\n{body}\nbut this was printed\n{printed}"
        elif len(info.split()) == 2:
            (reader.folder / info.split()[1]).write_text(body)
    assert ran > 0


def commands_of(text):
    """Every command line that begins with `muster`, of fenced shell blocks and inline code."""
    found = []
    for info, body in blocks(text):
        if info.split(" ")[0] in ("sh", "bash", "console"):
            joined = body.replace("\\\n", " ")
            found += [line.strip().removeprefix("$ ") for line in joined.splitlines()]
    found += re.findall(r"`(muster [^`]+)`", BLOCK.sub("", text))
    pieces = [piece for line in found for piece in re.split(r"\s*(?:&&|\|\||\||;|\$\()\s*", line)]
    return [piece for piece in pieces if re.match(r"muster [a-z]", piece)]


# What the binary starts by itself, and does not list.
HIDDEN = {"holder"}
HELP = {}


def help_of(words):
    """The help of a command, or None when there is no such command."""
    key = tuple(words)
    if key not in HELP:
        ran = subprocess.run(
            [binary(), *words, "--help"], capture_output=True, text=True, timeout=30, env=quiet_environment()
        )
        HELP[key] = ran.stdout if ran.returncode == 0 else None
    return HELP[key]


def subcommands(text):
    listed = text.partition("Commands:\n")[2].split("\n\n")[0]
    return set(re.findall(r"^  ([a-z][a-z-]*)", listed, re.M))


@pytest.mark.parametrize("page", DOCS, ids=[str(page.relative_to(ROOT)) for page in DOCS])
def test_every_command_that_a_page_names_exists(page):
    for command in commands_of(page.read_text()):
        words = command.split(" -- ")[0].split("#")[0].split()[1:]
        if words[0] in HIDDEN:
            continue
        path = []
        text = help_of(path)
        for word in words:
            if word not in subcommands(text):
                break
            path.append(word)
            text = help_of(path)
        # A group of commands may be named alone; what follows it must be one of them.
        takes_command = "<COMMAND>" in text.partition("Usage:")[2].splitlines()[0]
        alone = len(words) == len(path)
        assert path and (alone or not takes_command), f"{page.name}: `{command}`: there is no such command"
        for flag in [word.split("=")[0].rstrip(",.)]") for word in words if re.match(r"-{1,2}[a-z]", word)]:
            assert re.search(rf"(^|[\s,]){re.escape(flag)}\b", text), f"{page.name}: `{command}`: no {flag}"
