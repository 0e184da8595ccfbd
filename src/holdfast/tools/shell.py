"""A shell command as a process: started with a pipe of our own, read as long as it runs, let go of when it has ended.

The pipe is ours, and the command is started past the event loop, because event loops leave ends of pipes open in what they start. What a
command leaves in the background may hold the pipe for days: its end does not say that the command is over, the shell's end does.
"""

import asyncio
import os
import signal
import subprocess
import threading
from pathlib import Path

CHUNK = 32 * 1024
# What is left in the background is read and thrown away, a chunk each time: otherwise it would be held up, or killed, by what it prints.
DISCARD_EVERY_S = 0.05


class Shell:
    """A command under way. `exited` is set when the shell itself has ended, whatever it left behind."""

    def __init__(self, process: "subprocess.Popen[bytes]", reading: int) -> None:
        self._process, self._reading = process, reading
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self.closed = False
        self.exited = asyncio.Event()
        try:
            self._handle = os.pidfd_open(process.pid)
        except (AttributeError, OSError):  # Not every system has these.
            threading.Thread(target=self._wait, name=f"waits for {process.pid}", daemon=True).start()
        else:
            self._loop.add_reader(self._handle, self._end_of_process)

    def _end_of_process(self) -> None:
        self._loop.remove_reader(self._handle)
        os.close(self._handle)
        self._process.wait()
        self._told()

    def _wait(self) -> None:
        self._process.wait()
        try:
            self._loop.call_soon_threadsafe(self._told)
        except RuntimeError:
            pass  # The loop is closed: nobody waits any more.

    def _told(self) -> None:
        self.exited.set()
        self._news.set()

    @property
    def code(self) -> int | None:
        """Its exit code; negative where a signal ended it, None before."""
        return self._process.returncode

    def take(self) -> bytes | None:
        """What was put out and not yet read, at most a chunk. None: nothing at the moment. Empty: nobody can put out anything any more."""
        if self.closed:
            return b""
        try:
            return os.read(self._reading, CHUNK)
        except BlockingIOError:
            return None

    async def news(self, timeout_s: float | None = None) -> bool:
        """Waits until there is something to take, or the shell has ended. False after the timeout."""
        self._news.clear()
        self._loop.add_reader(self._reading, self._news.set)
        try:
            async with asyncio.timeout(timeout_s):
                await self._news.wait()
        except TimeoutError:
            return False
        finally:
            self._loop.remove_reader(self._reading)
        return True

    async def exits(self, timeout_s: float) -> bool:
        """Waits until the shell has ended. False after the timeout."""
        try:
            async with asyncio.timeout(timeout_s):
                await self.exited.wait()
        except TimeoutError:
            return False
        return True

    def signal_group(self, number: int) -> None:
        """Reaches whatever is still in the command's process group."""
        try:
            os.killpg(self._process.pid, number)
        except (ProcessLookupError, PermissionError):
            pass

    def leave(self) -> None:
        """Others hold the pipe: what they put out from now on goes nowhere, and they are not held up."""
        if not self.closed:
            self._loop.add_reader(self._reading, self._discard)

    def _discard(self) -> None:
        self._loop.remove_reader(self._reading)
        if self.take() == b"":
            self.close()
        else:
            self._loop.call_later(DISCARD_EVERY_S, self.leave)

    def close(self) -> None:
        """Nobody reads it any more."""
        if not self.closed:
            self.closed = True
            self._loop.remove_reader(self._reading)
            os.close(self._reading)


def start(words: list[str], *, folder: Path, environment: dict[str, str]) -> Shell:
    """Starts it in a session of its own, with nothing to read. Raises `OSError`."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    try:
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=writing,
            stderr=writing,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
    except OSError:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    return Shell(process, reading)


def ended(code: int) -> str:
    """How a command ended, where it was not simply done."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"ended by signal {-code}"
