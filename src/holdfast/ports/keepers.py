"""The seam between a gateway and the processes that outlive it: each has a keeper, and is known by a name."""

import asyncio
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Protocol

import msgspec

OUT, ERR = "out", "err"
# What is kept of one output.
MOST_BYTES = 64 * 1024 * 1024
GRACE_S = 1.0


class Name(msgspec.Struct, frozen=True, order=True):
    """`group`: whose it is, such as a session; `id`: which of them. Letters, digits and underscores."""

    group: str
    id: str


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """What to run: the program and its arguments, its folder, and the whole of its environment. `input`: it can be written to; otherwise it
    has nothing to read. `apart`: what it complains about is an output of its own (ERR). Of each output the newest `most_bytes` are kept;
    if it `holds`, the command waits instead until somebody has read what is kept of its output (OUT; nobody has to read what it complains
    about). `grace_s`: how long it has to end after it was asked to.
    """

    words: Sequence[str]
    folder: str
    environment: dict[str, str]
    input: bool = False
    apart: bool = False
    holds: bool = False
    most_bytes: int = MOST_BYTES
    grace_s: float = GRACE_S


class Loss(StrEnum):
    """Why nobody saw how it ended. NEVER_RAN: the start was not finished. KEEPER: its keeper was killed. MACHINE: the whole machine, or the
    container, was started again since. UNREADABLE: what its keeper has written down is damaged.
    """

    NEVER_RAN = "never_ran"
    KEEPER = "keeper"
    MACHINE = "machine"
    UNREADABLE = "unreadable"


class End(msgspec.Struct, frozen=True, kw_only=True):
    """How a process ended, and when (milliseconds since the epoch; of one that was `lost`, the last time it was known to run). Of `code`,
    `signal`, `problem` (why it could not be started) and `lost` one is set; none where the system did not let it die. `asked`: somebody
    had it killed.
    """

    at: int
    code: int | None = None
    signal: int | None = None
    problem: str | None = None
    lost: Loss | None = None
    asked: bool = False


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """How a process stands. It has an `end`; or it is `lost`, with neither a keeper nor an end; or it runs. `out`, `err`: how many bytes it
    has put out so far.
    """

    end: End | None = None
    lost: Loss | None = None
    out: int = 0
    err: int = 0

    @property
    def runs(self) -> bool:
        return self.end is None and self.lost is None


class Chunk(msgspec.Struct, frozen=True):
    """Some of an output: `data` begins at `offset`, which is later than the one that was asked for where what stood there is gone."""

    offset: int
    data: bytes

    @property
    def next(self) -> int:
        return self.offset + len(self.data)


class Keepers(Protocol):
    """Processes with a keeper each. They live on when the process that started them dies, and are found again by their names. Any process
    of a home may do any of this at any time. Every method raises `Unavailable` where the disk or the system does not answer.
    """

    async def start(self, name: Name, command: Command) -> End | None:
        """The command runs once this returns None. Otherwise how its start ended. A name is started once: a second start, also one at the
        same moment, changes nothing and gives the end of the first one, or None.
        """

    async def look(self, name: Name) -> Look: ...

    async def give_up(self, name: Name) -> End:
        """Ends one that is lost, for good: whatever it left running is killed, and no keeper of it will start any more. One that has ended
        stays as it is. One that is only being started counts as lost until it has a keeper, so ask whether its starter still lives first.
        Raises `Held` for one that runs after all.
        """

    async def read(self, name: Name, *, offset: int, limit: int, stream: str = OUT) -> Chunk:
        """Output from a place on, at most `limit` bytes. Nothing where there is no more yet."""

    async def write(self, name: Name, data: bytes) -> int:
        """To its input; how much of it was taken, which is less where the process does not read. Raises `InputClosed`."""

    async def close_input(self, name: Name) -> None:
        """The process comes to the end of its input once it has read what was written."""

    async def drop(self, name: Name, *, before: int, stream: str = OUT) -> None:
        """Its reader needs nothing before this place any more. Files that hold nothing else go, and a command that `holds`
        continues.
        """

    async def kill(self, name: Name) -> None:
        """Everything that it started is dead, or its end on its way, when this returns. One that has ended stays as it is."""

    async def names(self) -> list[Name]:
        """All whose files are still there."""

    async def forget(self, name: Name) -> None:
        """Kills it and removes its files. Raises `OSError`."""


async def kill_all(keepers: Keepers, names: Iterable[Name]) -> None:
    """At once. One that cannot be reached keeps no other from being killed; the first such error is raised when all have been tried."""
    outcomes = await asyncio.gather(*(keepers.kill(name) for name in names), return_exceptions=True)
    for outcome in outcomes:
        if outcome is not None:
            raise outcome
