"""While the store is away: what running turns may record goes into their spools, everything else waits for the store. Once it is back,
all of it is shipped.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol

import structlog

from holdfast.core import spools
from holdfast.core.errors import HoldfastError, NotFound, StoreAway, Unavailable
from holdfast.core.events import Event
from holdfast.core.journals import Found, Limits, Sight
from holdfast.core.sessions import Lease
from holdfast.core.spools import Header, Spooled
from holdfast.gateway.host import Host
from holdfast.ports.journals import Journal, Journals
from holdfast.ports.spool import Group, Spool

SHIP_AGAIN_S = 5.0

log = structlog.get_logger()


class Backlog:
    """What one turn has in its spool and not in the store. Its events stand behind the store's position, in their order; `size` is the
    length of the file. They are kept here as well: its own process ships from memory, the file is for the one after its death.
    """

    __slots__ = ("header", "items", "size")

    def __init__(self, header: Header) -> None:
        self.header, self.size = header, 0
        self.items: list[Spooled] = []


class Behind(Protocol):
    """A turn with a backlog."""

    async def ship(self) -> None: ...


class Spooling:
    """`away`: the store takes no writes, as far as this process knows. `behind`: the turns that have a backlog. `size`: of all spools of
    this process. `due` is set when the store is back: also what had no room in a spool is to be written then.
    """

    def __init__(
        self, *, spool: Spool, store: Journals, host: Host, due: asyncio.Event, turn_bytes: int, all_bytes: int, limits: Limits
    ) -> None:
        self._spool, self._store, self._host, self._due, self._limits = spool, store, host, due, limits
        self._turn_bytes, self._all_bytes = turn_bytes, all_bytes
        self.away = False
        self.size = self._reserved = 0
        self.behind: dict[int, Behind] = {}
        self._left: list[Backlog] = []
        self._back = asyncio.Event()
        self._back.set()

    def backlog(self, lease: Lease, turn_id: str) -> Backlog:
        return Backlog(Header(session_id=lease.session_id, turn_id=turn_id, epoch=lease.epoch, owner=self._host.name))

    def items(self, events: Sequence[Event], *, position: int, attempt: int) -> list[Spooled]:
        """As they are spooled: in their places, at this time, without secrets."""
        at, seal = self._host.clock.now(), self._host.secrets.seal
        return [Spooled(place, attempt, at, event.kind, seal(event)[1]) for place, event in enumerate(events, position)]

    def reserve(self, backlog: Backlog, items: Sequence[Spooled], *, results: bool) -> int:
        """How many of these there is room for, the first ones; of `results`, all or none. They must be `put` next."""
        count = size = 0
        for item in items:
            more = size + item.size
            full = self.size + self._reserved + more > self._all_bytes
            if full or not spools.has_room(backlog.size, more, most=self._turn_bytes, results=results):
                break
            count, size = count + 1, more
        if results and count < len(items):
            return 0
        self._reserved += size
        return count

    async def put(self, groups: Sequence[tuple[Backlog, list[Spooled]]]) -> list[Exception | None]:
        """Adds to each backlog what is durable in its spool then. For each, why it is not."""
        try:
            results = await self._spool.append([Group(backlog.header, backlog.size, items) for backlog, items in groups])
        finally:
            self._reserved -= sum(item.size for _, items in groups for item in items)
        failures: list[Exception | None] = []
        for (backlog, items), result in zip(groups, results, strict=True):
            if isinstance(result, int):
                self.size += result - backlog.size
                backlog.size = result
                backlog.items += items
            failures.append(None if isinstance(result, int) else result)
        return failures

    async def shipped(self, backlog: Backlog) -> None:
        """All of it is in the store."""
        self.size -= backlog.size
        await self._spool.remove(backlog.header.owner, backlog.header.stream_id)

    def is_behind(self, turn: Behind) -> None:
        """It has a backlog. If the store came back while that was written, it is shipped at once."""
        self.behind[id(turn)] = turn
        if not self.away:
            self._host.tasks.spawn(turn.ship(), name="ship a spool")

    def leave_behind(self, backlog: Backlog) -> None:
        """Its attempt is over and cannot write it any more: it is shipped as what a dead process leaves is."""
        self._left.append(backlog)
        if not self.away:
            self._host.tasks.spawn(self._ship_what_is_left(), name="ship what an attempt left")

    def store_is_away(self) -> None:
        """From now on turns spool, until it is back."""
        if self.away:
            return
        self.away = True
        self._back.clear()
        log.warning("the store is away: running turns are written to their spools")
        self._host.tasks.spawn(self._return(), name="store away")

    async def until_back(self) -> None:
        await self._back.wait()

    async def _return(self) -> None:
        began = self._host.clock.monotonic()
        await self._store.writable()
        self.away = False
        self._back.set()
        away_s = round(self._host.clock.monotonic() - began, 1)
        log.info("the store is back", away_s=away_s, turns=len(self.behind), bytes=self.size)
        self._due.set()
        for turn in list(self.behind.values()):
            self._host.tasks.spawn(turn.ship(), name="ship a spool")
        await self._ship_what_is_left()

    async def _ship_what_is_left(self) -> None:
        """Again and again, until the store has taken all of it, or is away."""
        while self._left and not self.away:
            backlog = self._left.pop(0)
            try:
                await self._ship(backlog)
            except StoreAway:
                self._left.append(backlog)
                self.store_is_away()
            except Unavailable as error:
                self._left.append(backlog)
                log.warning("a spool is not shipped yet", journal=backlog.header.stream_id, error=str(error))
                await asyncio.sleep(max(SHIP_AGAIN_S, error.retry_after_s))

    async def _ship(self, backlog: Backlog) -> None:
        """Raises `Unavailable`. What the store refuses stays in its file, for the process after this one, and counts no longer here."""
        header = backlog.header
        journal, sight = Journal(header.session_id, header.turn_id, header.epoch), Sight(found=Found.WHOLE, size=backlog.size)
        try:
            await self._store.ship(journal, backlog.items, sight, limits=self._limits, at=self._host.clock.now())
        except NotFound:
            pass  # Its session was purged.
        except Unavailable:
            raise
        except HoldfastError as error:
            log.error("a spool cannot be shipped", journal=header.stream_id, error=str(error))
            self.size -= backlog.size
            return
        await self.shipped(backlog)
