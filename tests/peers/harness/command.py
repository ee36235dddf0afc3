"""The `muster` command as a person runs it: its exit code and its two streams."""

import json
import subprocess

from .plane import binary, quiet_environment


class Ran:
    """A command that has ended."""

    def __init__(self, arguments, code, out, err):
        self.arguments = arguments
        self.code = code
        self.out = out
        self.err = err

    def __repr__(self):
        said = " ".join(self.arguments)
        return f"muster {said}\n-> {self.code}\n{self.out}\n{self.err}"

    def ok(self):
        assert self.code == 0, self
        return self

    def json(self):
        self.ok()
        return json.loads(self.out)

    def failed(self, code, category):
        """Exit code and category of a failure, which has a hint and an empty stdout or an id."""
        assert self.code == code, self
        assert f"error[{category}]" in self.err, self
        return self


class Cli:
    """Commands of the owner of a plane."""

    def __init__(self, plane, folder):
        self.plane = plane
        self.folder = folder

    def environment(self):
        return quiet_environment(
            HOME=self.folder,
            MUSTER_SERVER=self.plane.url,
            MUSTER_API_KEY=(self.plane.data / "owner.key").read_text().strip(),
            TERM="xterm",
            LANG="C.UTF-8",
        )

    def __call__(self, *arguments, within=90, stdin=None):
        arguments = [str(argument) for argument in arguments]
        ran = subprocess.run(
            [binary(), *arguments],
            env=self.environment(),
            cwd=self.folder,
            stdin=subprocess.DEVNULL if stdin is None else None,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=within,
        )
        return Ran(arguments, ran.returncode, ran.stdout, ran.stderr)
