"""A person at a terminal: a command on a pseudo terminal, with what it shows and what is typed."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import threading
import time

from .plane import binary


class Tty:
    def __init__(self, cli, *arguments, rows=30, cols=100, out=None, environment=None):
        """`out` is a file for its stdout, which is no terminal then."""
        self.shown = ""
        self._lock = threading.Lock()
        self.fd, theirs = pty.openpty()
        self.resize(rows, cols)
        self.before = termios.tcgetattr(theirs)
        self._theirs = theirs
        # A session of its own with this terminal. Not by `preexec_fn`: among the threads of a test a
        # fork that runs Python may never come to its `exec`.
        self.process = subprocess.Popen(
            ["setsid", "--ctty", binary(), *arguments],
            env={**cli.environment(), **(environment or {})},
            cwd=cli.folder,
            stdin=theirs,
            stdout=theirs if out is None else out,
            stderr=theirs,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        while True:
            # Asked before looking: what it wrote at its end is there by then.
            ended = self.process.poll() is not None
            ready, _, _ = select.select([self.fd], [], [], 0.05)
            if not ready:
                if ended:
                    return
                continue
            try:
                piece = os.read(self.fd, 65536)
            except OSError:
                return
            with self._lock:
                self.shown += piece.decode("utf-8", "replace")

    def type(self, text):
        os.write(self.fd, text.encode())

    def resize(self, rows, cols):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def mark(self):
        """Where what is shown next begins."""
        with self._lock:
            return len(self.shown)

    def see(self, text, after=0, within=60):
        """Waits until it is shown."""
        end = time.monotonic() + within
        while text not in self.shown[after:]:
            if time.monotonic() > end:
                raise AssertionError(f"{text!r} was not shown:\n{self.shown[after:]!r}")
            time.sleep(0.02)

    def wait(self, within=60):
        code = self.process.wait(within)
        self._reader.join(10)
        return code

    def is_restored(self):
        """Whether the terminal has its settings of before."""
        return termios.tcgetattr(self._theirs) == self.before

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(30)
        self._reader.join(10)
        os.close(self.fd)
        os.close(self._theirs)
