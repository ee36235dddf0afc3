"""A child process whose output is kept, and which never outlives the test."""

import os
import signal
import subprocess
import threading


class Child:
    """One process. Lines of both streams are kept in the order in which they came."""

    def __init__(self, name, command, env=None, cwd=None):
        self.name = name
        self.lines = []
        self.process = subprocess.Popen(
            command,
            env=env,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line.decode("utf-8", "replace").rstrip("\n"))

    @property
    def alive(self):
        return self.process.poll() is None

    def signal(self, number):
        if self.alive:
            self.process.send_signal(number)

    def kill_9(self):
        """Ends it without a goodbye and waits until it is gone."""
        self.signal(signal.SIGKILL)
        self.wait()

    def terminate(self):
        """Asks it to end; does not wait."""
        self.signal(signal.SIGTERM)

    def wait(self, within=60):
        code = self.process.wait(within)
        self._reader.join(10)
        return code

    def end_group(self):
        """Ends it and whatever it started."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait(60)
        self._reader.join(10)

    def output(self, last=60):
        """The end of what it printed, without debug lines, each cut to a readable length."""
        lines = [line for line in self.lines if '"level":"debug"' not in line]
        return "\n".join([f"--- {self.name}", *(line[:400] for line in lines[-last:])])
