"""Where one attempt is written down: what it says is gathered and written with the journal's tick, its records are written at once.

Nothing is shown before it is here and durable (P7): readers read the log, never a turn. While the store is away, what may be spooled is.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import msgspec
import structlog

from holdfast.core import spools
from holdfast.core.blame import Interruption
from holdfast.core.errors import HoldfastError, Refused, StaleEpoch, StoreAway
from holdfast.core.events import Event, ModelResponded, ToolFinished, ToolStarted, TurnAlive, TurnEnded, TurnInterrupted, TurnResumed
from holdfast.core.plans.causes import Cause
from holdfast.core.plans.start import StartedTurn
from holdfast.core.plans.wait import Waiting
from holdfast.core.spools import Spooled
from holdfast.gateway.journal import Journal
from holdfast.gateway.news import News
from holdfast.gateway.spooling import Backlog
from holdfast.gateway.unwritten import Unwritten
from holdfast.ports.turns import StreamItem

T = TypeVar("T")
MAX_UNWRITTEN = 256 * 1024

# With one of these the attempt is over.
ENDS = (TurnEnded, TurnInterrupted, Interruption)

log = structlog.get_logger()


class TurnLog:
    """Where one attempt is written down. Keeps the turn's position; writes in order, one at a time."""

    def __init__(
        self,
        journal: Journal,
        started: StartedTurn,
        news: News,
        *,
        step: int = 0,
        said: str = "",
        begun: int = 0,
        unread_results: bool = False,
    ) -> None:
        """`step`: the first one that is not on record; `begun`: the earlier attempt that began to write it, if one did. `said`: the last
        text of those that are. `unread_results`: of tools, which no model has seen.
        """
        self.lease, self.turn_id = started.lease, started.turn_id
        self.attempt, self.position = started.attempt, started.position
        self.spoke = False  # This attempt has something of its own to show.
        self.first_text_at: float | None = None
        self.unread_results = unread_results
        self._journal, self._news = journal, news
        self._lock = asyncio.Lock()
        self._unwritten = Unwritten(journal.secrets.stream, step=step, said=said)
        self._unwritten_size, self._begun = 0, begun
        self._spoken = False
        self._backlog: Backlog | None = None  # What could not be stored yet, while the store is away.
        self._waiting = 0  # How many records wait for the store to come back.
        self._room = asyncio.Event()
        self._room.set()
        self._closed = False
        self.interrupted = False  # Its interruption is on record.
        # What counts against the idle limit, and what a heartbeat adds to: the last thing this attempt did, and the last it wrote.
        self.last_sign = self.last_written = journal.clock.monotonic()
        self.signed = asyncio.Event()  # Something of this attempt is on record.

    # what is said and put out

    @property
    def step(self) -> int:
        """The first one that is not on record."""
        return self._unwritten.step

    @property
    def text(self) -> str:
        """The answer, as far as this attempt has it: the text of its step or, before that says something, the last one that was said."""
        return self._unwritten.text

    @property
    def says_more(self) -> bool:
        """Whether this attempt has said something, or ended a step."""
        return self._unwritten.says_more

    @property
    def begun(self) -> int:
        """The attempt that began to write the step; 0 for none."""
        return self.attempt if self._unwritten.begun else self._begun

    @property
    def holds_back(self) -> bool:
        """Whether some text is held back because it may be the beginning of a secret."""
        return self._unwritten.holds_back

    @property
    def offset(self) -> int:
        """How long the step's text is."""
        return self._unwritten.offset

    def keep(self, text: str) -> None:
        """The answer begins with what earlier attempts wrote."""
        self._unwritten.keep(text)

    def start_over(self) -> None:
        """What is said next stands in the place of the step's text. Until then, and if nothing more is said, that text stays (P7)."""
        self._unwritten.start_over()

    async def say(self, text: str) -> None:
        self.spoke, self.unread_results = True, False
        if self.first_text_at is None:
            self.first_text_at = self._journal.clock.monotonic()
        for size in self._unwritten.say(text):
            await self._grown(size)

    async def think(self, text: str) -> None:
        self.spoke, self.unread_results = True, False
        for size in self._unwritten.think(text):
            await self._grown(size)

    def without_secrets(self, call_id: str, text: str) -> str:
        """A tool's output as it may be kept. What may be the beginning of a secret comes with what follows it."""
        return self._unwritten.without_secrets(call_id, text)

    async def output(self, call_id: str, text: str) -> None:
        """Records as much of a tool's output, `without_secrets`, as is kept of it. Output is a sign of life whether it is recorded or not
        (P3).
        """
        now = self.last_sign = self._journal.clock.monotonic()
        for size in self._unwritten.put_out(call_id, text, now):
            await self._grown(size)

    def sample(self) -> None:
        """Puts the newest output on record that is due to be shown, though none has come since."""
        if not self._closed and self._unwritten.sample(self._journal.clock.monotonic()):
            self._journal.dirty(self, urgent=False)

    def _last_outputs(self, events: tuple[Event | Interruption, ...]) -> list[Event]:
        """The end of the output of calls that these records end."""
        over = [event.call_id for event in events if isinstance(event, ToolFinished)]
        ends = any(isinstance(event, ENDS) for event in events)
        return self._unwritten.end_outputs(None if ends else over, self._journal.clock.monotonic())

    def silent_for(self, seconds: float) -> None:
        """The turn waits for so long on purpose: its silence is no idleness."""
        self.last_sign = max(self.last_sign, self._journal.clock.monotonic() + seconds)

    def beat(self) -> None:
        """Puts on record that the turn is still run, though it has nothing to show."""
        if not self._closed and not self.pending:
            self._unwritten.add(TurnAlive())
            self._journal.dirty(self, urgent=False)

    async def _grown(self, size: int) -> None:
        if self._closed:
            await asyncio.Event().wait()  # The turn is over for this attempt: what still speaks is about to be cancelled.
        self._unwritten_size += size
        self._journal.dirty(self, urgent=not self._spoken)
        self._spoken = True
        if self._unwritten_size > MAX_UNWRITTEN:  # From here on the speaker waits for the disk, not for the tick.
            self._room.clear()
            self._journal.dirty(self, urgent=True)
            await self._room.wait()

    async def record(self, *events: Event | Interruption) -> None:
        """Writes what is pending and these records in one append. A caller that is cancelled waits for it all the same: the write
        happens anyway, and the next write must know the position. It does not wait for a store that is away.
        """
        while not await self._journal.tasks.finish(self._recorded(events), name=f"record of {self.turn_id}"):
            await self._until_back()

    async def _recorded(self, events: tuple[Event | Interruption, ...]) -> bool:
        """False: the store is away, and these are records that wait for it."""
        async with self._lock:
            if self._closed:
                raise StaleEpoch(self.lease.session_id, self.lease.epoch)
            if any(isinstance(event, (*ENDS, ModelResponded)) for event in events):
                self._unwritten.end_text()
            pieces = [*self._take(), *self._last_outputs(events)]
            try:
                await self._append([*pieces, *map(self._judged, events)])
            except StoreAway:
                return await self._put_by(pieces, events)
            except HoldfastError as error:
                if not isinstance(error, Refused):  # What was refused for its content would be refused again.
                    self._unwritten.give_back(pieces)
                self.lose(error)
                raise
            if any(isinstance(event, ENDS) for event in events):
                self._close()
            self.interrupted = self.interrupted or any(isinstance(event, Interruption) for event in events)
            return True

    async def _put_by(self, pieces: list[Event], events: tuple[Event | Interruption, ...]) -> bool:
        """The store is away. Whether all of it is in the spool; where it is not, the pieces are kept for later. An interruption does not
        wait: its process may be about to end, and the next one finds what is in the spool.
        """
        self._journal.spooling.store_is_away()
        results = [event for event in events if isinstance(event, Event)]
        if spools.may_hold(events):
            return await self._spool([*pieces, *results], then_kept=pieces)
        if any(isinstance(event, Interruption) for event in events):
            await self._spool(pieces, then_kept=pieces)
            raise StoreAway
        self._keep(pieces)
        return False

    async def _spool(self, events: list[Event], *, then_kept: list[Event]) -> bool:
        """Whether there was room for them. `then_kept`: those of them that stay pending if there was not."""
        spooling, backlog, items = self._journal.spooling, *self._to_spool(events)
        if not items:
            return True
        if not spooling.reserve(backlog, items, results=True):
            self._keep(then_kept)
            return False
        [failure] = await spooling.put([(backlog, items)])
        if failure is not None:
            self._unwritten.give_back(then_kept)
            self.lose(failure)
            raise failure
        self._is_behind(backlog)
        self._note(events)
        return True

    def _to_spool(self, events: Sequence[Event]) -> tuple[Backlog, list[Spooled]]:
        spooling = self._journal.spooling
        backlog = self._backlog or spooling.backlog(self.lease, self.turn_id)
        return backlog, spooling.items(events, position=self.position + len(backlog.items), attempt=self.attempt)

    def _keep(self, pieces: Sequence[Event]) -> None:
        self._unwritten.give_back(pieces)
        self._journal.dirty(self, urgent=False)

    def _is_behind(self, backlog: Backlog) -> None:
        self._backlog = backlog
        self._journal.spooling.is_behind(self)

    async def ship(self) -> None:
        """The store is back: what was spooled is stored, with what is pending."""
        async with self._lock:
            if self._closed or self._backlog is None:
                return
            pieces = self._take()
            try:
                await self._append(list(pieces))
            except StoreAway:
                self._journal.spooling.store_is_away()
                self._keep(pieces)
            except HoldfastError as error:
                self._unwritten.give_back(pieces)
                self.lose(error)

    async def _until_back(self) -> None:
        """A record waits for the store. Its agent can do nothing about that."""
        self._waiting += 1
        try:
            await self._journal.spooling.until_back()
        finally:
            self._waiting -= 1
            self.last_sign = self._journal.clock.monotonic()

    @property
    def waits_for_store(self) -> bool:
        """A record of it waits, or there is no room for what it says next: its silence is no idleness."""
        return self._waiting > 0 or not self._room.is_set()

    def leave(self) -> None:
        """The attempt is over. What it could not store any more is shipped without it."""
        self._journal.spooling.behind.pop(id(self), None)
        backlog, self._backlog = self._backlog, None
        if backlog is not None:
            self._journal.spooling.leave_behind(backlog)

    async def respond(self, responded: ModelResponded, *events: Event) -> None:
        """Ends the step: its response, with what must be in the same transaction. The next one begins."""
        responded = msgspec.structs.replace(responded, thoughts=self._unwritten.end_step())
        while not await self._journal.tasks.finish(self._responded(responded, events), name=f"step of {self.turn_id}"):
            await self._until_back()

    async def _responded(self, responded: ModelResponded, events: tuple[Event, ...]) -> bool:
        if not await self._recorded((responded, *events)):
            return False
        self._unwritten.next_step(responded.text)
        self._begun = 0
        return True

    async def wait(self, asking: tuple[str, ...]) -> Waiting:
        """Ends the attempt if the questions of these calls are still open, all of them: nothing is written after that."""
        journal = self._journal

        async def wait(position: int, before: Sequence[Spooled]) -> tuple[Waiting, int]:
            found = await journal.store.wait_turn(
                self.lease,
                turn_id=self.turn_id,
                attempt=self.attempt,
                position=position,
                asking=asking,
                at=journal.clock.now(),
                before=before,
            )
            if found[0].open:
                self._close()
            return found

        self._unwritten.end_text()
        return await self._decided(wait, name="wait")

    async def take(self) -> tuple[Cause, ...]:
        """Takes the waiting messages that are meant to steer the turn."""
        journal = self._journal

        async def take(position: int, before: Sequence[Spooled]) -> tuple[tuple[Cause, ...], int]:
            found = await journal.store.take_causes(
                self.lease,
                turn_id=self.turn_id,
                attempt=self.attempt,
                position=position,
                step=self.step,
                offset=self.offset,
                at=journal.clock.now(),
                before=before,
            )
            if found[0]:
                self.last_sign = self.last_written = journal.clock.monotonic()
            return found

        return await self._decided(take, name="causes")

    async def _decided(self, write: Callable[[int, Sequence[Spooled]], Awaitable[tuple[T, int]]], *, name: str) -> T:
        """A write that the store decides: what is pending is written before it. It waits for a store that is away."""
        while (found := await self._journal.tasks.finish(self._decide(write), name=f"{name} of {self.turn_id}")) is None:
            await self._until_back()
        return found[0]

    async def _decide(self, write: Callable[[int, Sequence[Spooled]], Awaitable[tuple[T, int]]]) -> tuple[T] | None:
        """None: the store is away."""
        async with self._lock:
            if self._closed:
                raise StaleEpoch(self.lease.session_id, self.lease.epoch)
            pieces = self._take()
            try:
                if self._backlog is not None:
                    return (await self._decided_behind(self._backlog, pieces, write),)
                if pieces:
                    await self._append(list(pieces))
                    pieces = []
                decided, self.position = await write(self.position, ())
            except StoreAway:
                self._journal.spooling.store_is_away()
                self._keep(pieces)
                return None
            except HoldfastError as error:
                self._unwritten.give_back(pieces)
                self.lose(error)
                raise
            return (decided,)

    async def _decided_behind(
        self, backlog: Backlog, pieces: list[Event], write: Callable[[int, Sequence[Spooled]], Awaitable[tuple[T, int]]]
    ) -> T:
        _, items = self._to_spool(pieces)
        before = [*backlog.items, *items]
        decided, self.position = await write(self.position + len(before), before)
        await self._shipped(backlog)
        return decided

    def _judged(self, event: Event | Interruption) -> Event | Interruption:
        """What an attempt has to show counts up to the moment in which its interruption is written (A17)."""
        if isinstance(event, Interruption) and self.spoke:
            return msgspec.structs.replace(event, progressed=True)
        return event

    async def _append(self, events: list[Event | Interruption]) -> None:
        journal, backlog = self._journal, self._backlog
        before: Sequence[Spooled] = () if backlog is None else backlog.items
        self.position = await journal.store.append_turn(
            self.lease,
            turn_id=self.turn_id,
            attempt=self.attempt,
            position=self.position + len(before),
            events=events,
            at=journal.clock.now(),
            before=before,
        )
        if backlog is not None:
            await self._shipped(backlog)
        self._note(events)

    async def _shipped(self, backlog: Backlog) -> None:
        self._backlog = None
        self._journal.spooling.behind.pop(id(self), None)
        await self._journal.spooling.shipped(backlog)

    def _note(self, events: Sequence[Event | Interruption]) -> None:
        """They are on record."""
        for event in events:
            if isinstance(event, TurnResumed):
                self.attempt = event.attempt
            elif isinstance(event, ToolFinished):
                self.spoke = self.unread_results = True
            elif isinstance(event, ModelResponded):
                self.spoke, self.unread_results = True, False
            elif isinstance(event, ToolStarted):
                self.unread_results = False
        self._sign(events)

    def _take(self) -> list[Event]:
        self._unwritten_size = 0
        self._room.set()
        return self._unwritten.take()

    # for the journal's tick

    @property
    def pending(self) -> bool:
        return bool(self._unwritten) and not self._closed

    @property
    def ready(self) -> bool:
        return self.pending and not self._lock.locked()

    async def begin(self) -> StreamItem:
        await self._lock.acquire()
        return StreamItem(self.lease, self.turn_id, self.attempt, self.position, tuple(self._take()))

    def finish(self, item: StreamItem, result: int | Exception) -> None:
        self._lock.release()
        if isinstance(result, int):
            self.position = result
            self._sign(item.events)
        elif isinstance(result, StoreAway):
            self._journal.spooling.store_is_away()
            self._keep(item.events)
        else:
            self._unwritten.give_back(item.events)
            self.lose(result)

    async def begin_spooling(self) -> tuple[Backlog, list[Spooled]] | None:
        """None: there is no room. What is pending stays, and an agent that says more waits."""
        await self._lock.acquire()
        backlog, items = self._to_spool(self._unwritten.look())
        count = self._journal.spooling.reserve(backlog, items, results=False)
        if not count:
            self._lock.release()
            return None
        if count == len(items):
            self._take()
        else:
            self._unwritten.take(count)
        return backlog, items[:count]

    def end_spooling(self, backlog: Backlog, items: list[Spooled], failure: Exception | None) -> None:
        self._lock.release()
        if failure is None:
            self._is_behind(backlog)
            self._sign([item.event for item in items])
        else:
            self._unwritten.give_back([item.event for item in items])
            self.lose(failure)

    def _sign(self, events: Sequence[Event | Interruption]) -> None:
        """They are on record, or in the spool, from now on. A heartbeat is a sign of life, but nothing that counts against the idle limit;
        what was spooled was a sign when that was done, and is none when it is shipped.
        """
        if not events:
            return
        self.last_written = self._journal.clock.monotonic()
        if any(not isinstance(event, TurnAlive) for event in events):
            self.last_sign = self.last_written
        self.signed.set()

    def lose(self, error: Exception) -> None:
        """The turn is not ours any more, or cannot be written: its attempt must let go of it."""
        if not self._closed:
            self._close()
            log.warning("turn cannot be written", turn=self.turn_id, session=self.lease.session_id, error=str(error))
            self._news.lost(error)

    def reopen(self) -> None:
        """For the one last record after a write that could not be made."""
        self._closed = False

    def _close(self) -> None:
        self._closed = True
        self._room.set()
