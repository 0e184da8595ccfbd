"""The tick of running turns: what they have said since the last one is written together, that of a hundred turns in one transaction."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Protocol

import structlog

from holdfast.core.errors import Bug, HoldfastError, StoreAway
from holdfast.core.spools import Spooled
from holdfast.gateway.host import Host
from holdfast.gateway.spooling import Backlog, Spooling
from holdfast.gateway.tasks import heard
from holdfast.ports.turns import StreamItem, Turns

TICK_S = 0.03
SLOW_TICK_S = 0.25
SLOW_COMMIT_S = 0.005
# Turns whose pieces go into one transaction: what others want to store comes in between.
TOGETHER = 100

log = structlog.get_logger()


class Writing(Protocol):
    """A turn that has said something. `ready`: it is not just writing a record."""

    @property
    def pending(self) -> bool: ...

    @property
    def ready(self) -> bool: ...

    async def begin(self) -> StreamItem:
        """Its pieces, which nothing overtakes before `finish`."""

    def finish(self, item: StreamItem, result: int | Exception) -> None:
        """`result`: its position behind them, or why they are not stored."""

    async def begin_spooling(self) -> tuple[Backlog, list[Spooled]] | None:
        """The same, for its spool. None: there is no room in it."""

    def end_spooling(self, backlog: Backlog, items: list[Spooled], failure: Exception | None) -> None: ...


class Journal:
    """One tick for all turns. The first piece of an attempt goes out at once, later ones with the tick. `due`: there is something to
    write, or to look for.
    """

    def __init__(self, store: Turns, host: Host, spooling: Spooling, due: asyncio.Event) -> None:
        self.store, self.clock, self.tasks, self.secrets, self.spooling = store, host.clock, host.tasks, host.secrets, spooling
        self._dirty: dict[int, Writing] = {}
        self._wake = due
        self._urgent = asyncio.Event()
        self._tick_s = TICK_S

    def dirty(self, turn: Writing, *, urgent: bool) -> None:
        self._dirty[id(turn)] = turn
        self._wake.set()
        if urgent:
            self._urgent.set()

    async def run(self) -> None:
        while True:
            await self._wake.wait()
            await heard(self._urgent, self._tick_s)
            self._urgent.clear()
            self._wake.clear()
            await self._flush()

    async def _flush(self) -> None:
        dirty, self._dirty = self._dirty, {}
        began = self.clock.monotonic()
        for some in _groups(list(dirty.values())):
            await self._write(some)
        if not self.spooling.away:
            took = self.clock.monotonic() - began
            self._tick_s = TICK_S if took < SLOW_COMMIT_S else min(SLOW_TICK_S, max(TICK_S, took * 6))

    async def _write(self, some: Sequence[Writing]) -> None:
        turns = [turn for turn in some if turn.ready]
        for turn in some:
            if turn.pending and not turn.ready:  # It is just writing a record: its later pieces come with the next tick.
                self.dirty(turn, urgent=False)
        if self.spooling.away:
            return await self._spool(turns)
        if self.spooling.behind:  # They are being shipped, with what they have pending.
            turns = [turn for turn in turns if id(turn) not in self.spooling.behind]
        if not turns:
            return
        items = [await turn.begin() for turn in turns]
        results: list[int | Exception]
        try:
            results = await self.store.append_streams(items, at=self.clock.now())
        except HoldfastError as error:
            if isinstance(error, Bug):
                raise
            if not isinstance(error, StoreAway):
                log.warning("pieces could not be stored", turns=len(turns), error=str(error))
            results = [error] * len(turns)
        for turn, item, result in zip(turns, items, results, strict=True):
            turn.finish(item, result)

    async def _spool(self, turns: list[Writing]) -> None:
        """Nothing of it is shown before it is shipped. A turn whose spool is full keeps what it has, and is looked at with the next."""
        began = [(turn, await turn.begin_spooling()) for turn in turns]
        self._dirty |= {id(turn): turn for turn, _ in began if turn.pending}
        groups = [(turn, *taken) for turn, taken in began if taken is not None]
        if not groups:
            return
        failures = await self.spooling.put([(backlog, items) for _, backlog, items in groups])
        self._tick_s = SLOW_TICK_S
        for (turn, backlog, items), failure in zip(groups, failures, strict=True):
            turn.end_spooling(backlog, items, failure)


def _groups(turns: Sequence[Writing]) -> Iterator[Sequence[Writing]]:
    for start in range(0, len(turns), TOGETHER):
        yield turns[start : start + TOGETHER]
