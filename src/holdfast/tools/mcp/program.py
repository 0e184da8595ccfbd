"""A server that is a program: its process and its pipes. Lines go in and come out; none is longer than we want to hold, and nothing that it
says or does not read holds up anybody else.
"""

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec

from holdfast.tools import shell as shells
from holdfast.tools.mcp.bounds import MOST_BYTES, too_complex
from holdfast.tools.mcp.pace import Pace
from holdfast.tools.shell import CHUNK, DISCARD_EVERY_S, Shell

# So much of a line that is not kept is looked at, to know which answer it would have been.
HEAD = 1024
# The newest of what it says besides: it may say why it ended.
LAST_WORDS = 2_000
# After its input was closed; and until the end of a process is noticed that ended by itself.
LEAVES_S, NOTICED_S = 1.0, 0.1


class TooMuch(msgspec.Struct, frozen=True):
    """A line that was not kept, because of its length or of what is in it. `head`: its beginning."""

    head: bytes
    size: int


class Program:
    """`shell`: the process, and what it puts out."""

    def __init__(self, shell: Shell, inward: int, aside: int) -> None:
        self._shell, self._in, self._aside = shell, inward, aside
        self._loop = asyncio.get_running_loop()
        self._writing = asyncio.Lock()
        self._said = b""
        self._by_itself = True
        self._listen_aside()

    async def lines(self) -> AsyncIterator[bytes | TooMuch]:
        """What it puts out, until it can put out nothing more."""
        pace, line = Pace(), _Line()
        while True:
            exited = self._shell.exited.is_set()  # Before the pipe is looked at: what it put out is in it then.
            chunk = self._shell.take()
            if chunk == b"" or (chunk is None and exited):  # Its children may hold the pipe for ever.
                return
            if chunk is None:
                await self._shell.news()
                continue
            *whole, rest = chunk.split(b"\n")
            for piece in whole:
                line.add(piece)
                yield line.take()
            line.add(rest)
            await pace.keep(size=len(chunk), messages=len(whole))

    async def send(self, line: bytes) -> None:
        """Waits as long as it does not read. Raises `OSError` once it cannot."""
        async with self._writing:
            left = memoryview(line)
            while left:
                try:
                    left = left[os.write(self._in, left) :]
                except BlockingIOError:
                    await self._writable()

    async def _writable(self) -> None:
        ready = asyncio.Event()
        self._loop.add_writer(self._in, ready.set)
        try:
            await ready.wait()
        finally:
            self._loop.remove_writer(self._in)

    def _listen_aside(self) -> None:
        if self._aside >= 0:
            self._loop.add_reader(self._aside, self._hear_aside)

    def _hear_aside(self) -> None:
        """A chunk at a time: one that complains without end is held up by nobody but itself."""
        self._loop.remove_reader(self._aside)
        if self._read_aside():
            self._loop.call_later(DISCARD_EVERY_S, self._listen_aside)
        else:
            self._close_aside()

    def _read_aside(self) -> bool:
        """False once nothing more can come."""
        if self._aside < 0:
            return False
        try:
            chunk = os.read(self._aside, CHUNK)
        except BlockingIOError:
            return True
        self._said = (self._said + chunk)[-LAST_WORDS:]
        return bool(chunk)

    def _close_aside(self) -> None:
        if self._aside >= 0:
            self._loop.remove_reader(self._aside)
            os.close(self._aside)
            self._aside = -1

    @property
    def last_words(self) -> str:
        """How it ended, if nobody told it to, and what it said last on its standard error."""
        self._read_aside()
        lines = [line.strip() for line in self._said.decode("utf-8", "replace").splitlines() if line.strip()]
        how = f"it ended ({shells.ended(self._shell.code)})" if self._by_itself and self._shell.code is not None else ""
        return ": ".join(part for part in (how, lines[-1][:500] if lines else "") if part)

    async def leave(self) -> None:
        """Closes its input, which asks it to end, and gives it a moment for that."""
        self._by_itself = await self._shell.exits(NOTICED_S)
        self.close_input()
        await self._shell.exits(LEAVES_S)

    async def gone(self, timeout_s: float) -> None:
        """Waits until it has ended, but not longer than that."""
        await self._shell.exits(timeout_s)

    def close_input(self) -> None:
        if self._in >= 0:
            self._loop.remove_writer(self._in)
            os.close(self._in)
            self._in = -1

    def close(self) -> None:
        """Whatever still runs of it is heard no more."""
        self._read_aside()
        self.close_input()
        self._close_aside()
        self._shell.close()


class _Line:
    """A line as it comes."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0

    def add(self, piece: bytes) -> None:
        self._size += len(piece)
        self._pieces.append(piece)
        if self._size > MOST_BYTES:
            self._pieces = [b"".join(self._pieces)[:HEAD]]

    def take(self) -> bytes | TooMuch:
        line = b"".join(self._pieces)
        found = TooMuch(line[:HEAD], self._size) if self._size > MOST_BYTES or too_complex(line) else line
        self._pieces, self._size = [], 0
        return found


def start(words: list[str], *, folder: Path, environment: dict[str, str]) -> Program:
    """Starts it in a session of its own. Raises `OSError`."""
    theirs: list[int] = []
    ours: list[int] = []
    try:
        for stream in ("in", "out", "aside"):
            reading, writing = os.pipe()
            theirs.append(reading if stream == "in" else writing)
            ours.append(writing if stream == "in" else reading)
            os.set_blocking(ours[-1], False)
        process = subprocess.Popen(
            words, stdin=theirs[0], stdout=theirs[1], stderr=theirs[2], cwd=folder, env=environment, start_new_session=True
        )
    except OSError:
        for each in ours:
            os.close(each)
        raise
    finally:
        for each in theirs:
            os.close(each)
    inward, outward, aside = ours
    return Program(Shell(process, outward), inward, aside)
