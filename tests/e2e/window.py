"""A terminal window: one command at a time runs in it, and what it prints is seen as a person sees it."""

import contextlib
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Sequence
from pathlib import Path

from tests.e2e.command_line import environment
from tests.e2e.serving import wait_until

# The process that is to have the terminal takes it before it becomes the command. Ctrl-C counts there, also where whoever runs the tests
# ignores it, as a script does that runs them in the background.
TAKE = """
import fcntl, os, signal, sys, termios
signal.signal(signal.SIGINT, signal.SIG_DFL)
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp(sys.argv[1], sys.argv[1:])
"""
ESCAPE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class Window:
    def __init__(self, command: Sequence[str], *, cwd: Path, columns: int = 200, variables: dict[str, str] | None = None) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-c", TAKE, *command],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=cwd,
            env=environment(TERM="xterm", **(variables or {})),
            start_new_session=True,
        )
        os.close(theirs)
        self._read = bytearray()
        self._reader = threading.Thread(target=self._read_on, daemon=True)
        self._reader.start()

    def _read_on(self) -> None:
        with contextlib.suppress(OSError):  # The last one who had it open has gone.
            while part := os.read(self._ours, 65536):
                self._read += part

    @property
    def text(self) -> str:
        """What it printed, without colours. A carriage return starts its line over, as on a screen."""
        lines = ESCAPE.sub("", self._read.decode("utf-8", "replace")).replace("\r\n", "\n").split("\n")
        return "\n".join(line.rpartition("\r")[2] for line in lines)

    def wait_for(self, words: str, timeout_s: float = 60.0) -> None:
        wait_until(lambda: words in self.text or self.process.poll() is not None, timeout_s)
        assert words in self.text, self.text

    def press(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def wait(self, timeout_s: float = 60.0) -> int:
        """The exit code, once everything it printed was read."""
        code = self.process.wait(timeout_s)
        self._reader.join(10)
        return code

    def __enter__(self) -> "Window":
        return self

    def __exit__(self, *exc: object) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self._reader.join(10)
        os.close(self._ours)
