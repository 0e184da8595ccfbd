"""The writing side of running turns: their pieces are gathered by one tick for all turns, their records are written at once.

Nothing is shown before it is here and durable (P7): readers read the log, never a turn.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import msgspec
import structlog

from holdfast.core.blame import Interruption
from holdfast.core.errors import Bug, HoldfastError, Refused, StaleEpoch
from holdfast.core.events import (
    Event,
    ModelResponded,
    Reasoning,
    Text,
    ToolFinished,
    ToolOutput,
    ToolStarted,
    TurnAlive,
    TurnEnded,
    TurnInterrupted,
    TurnResumed,
)
from holdfast.core.output import Course, Piece
from holdfast.core.plans.causes import Cause
from holdfast.core.plans.start import StartedTurn
from holdfast.core.plans.wait import Waiting
from holdfast.core.redaction import NO_SECRETS, Held, Secrets
from holdfast.core.texts import Growing, storable
from holdfast.gateway.news import News
from holdfast.gateway.tasks import Tasks, heard
from holdfast.ports.process import Clock
from holdfast.ports.turns import StreamItem, Turns

TICK_S = 0.03
SLOW_TICK_S = 0.25
SLOW_COMMIT_S = 0.005
MAX_PENDING = 256 * 1024
# What is said at once is recorded in pieces of at most this much, so that no single event takes long to read, encode or send.
PIECE = 64 * 1024

# With one of these the attempt is over.
ENDS = (TurnEnded, TurnInterrupted, Interruption)

log = structlog.get_logger()


class TurnLog:
    """Where one attempt is written down. Keeps the turn's position; writes in order, one at a time."""

    def __init__(self, journal: "Journal", started: StartedTurn, news: News, *, step: int = 0, said: str = "") -> None:
        """`step`: the first one that is not on record. `said`: the last text of those that are."""
        self.lease, self.turn_id = started.lease, started.turn_id
        self.attempt, self.position = started.attempt, started.position
        self.spoke = False  # This attempt has something of its own to show.
        self.unread_results = False
        self._journal, self._news = journal, news
        self._lock = asyncio.Lock()
        self._pending: list[Event] = []
        self._pending_size = 0
        self.step, self._earlier, self._text = step, said, Growing()
        # What was said last and is not among the pending events yet, and where in the text it begins.
        self._said: list[str] = []
        self._said_from = 0
        self._starts_over = False
        self._outputs: dict[str, Course] = {}
        # What may be the beginning of a secret waits for what follows it.
        self._held_text, self._held_thought = journal.secrets.stream(), journal.secrets.stream()
        self._held_output: dict[str, Held[str]] = {}
        self._spoken = False
        self._room = asyncio.Event()
        self._room.set()
        self._closed = False
        self.interrupted = False  # Its interruption is on record.
        # What counts against the idle limit, and what a heartbeat adds to: the last thing this attempt did, and the last it wrote.
        self.last_sign = self.last_written = journal.clock.monotonic()
        self.signed = asyncio.Event()  # Something of this attempt is on record.

    @property
    def text(self) -> str:
        """The answer, as far as this attempt has it: the text of its step or, before that says something, the last one that was said."""
        return self._text.read() + self._held_text.waiting or self._earlier

    @property
    def offset(self) -> int:
        """How long the step's text is."""
        return self._text.length

    def keep(self, text: str) -> None:
        """The answer begins with what earlier attempts wrote."""
        self._gather()
        self._text, self._held_text, self._starts_over = Growing(text), self._journal.secrets.stream(), False

    def start_over(self) -> None:
        """What is said next stands in the place of the step's text. Until then, and if nothing more is said, that text stays (P7)."""
        self._starts_over, self._held_thought = True, self._journal.secrets.stream()

    async def say(self, text: str) -> None:
        self.spoke, self.unread_results = True, False
        if self._starts_over:
            self.keep("")
        text = self._held_text.add(storable(text))
        for start in range(0, len(text), PIECE):
            piece = text[start : start + PIECE]
            if self._text.length - self._said_from + len(piece) > PIECE:
                self._gather()
            if not self._said:
                self._said_from = self._text.length
            self._said.append(piece)
            self._text.add(piece)
            await self._grown(len(piece))

    async def think(self, text: str) -> None:
        self.spoke, self.unread_results = True, False
        text = self._held_thought.add(storable(text))
        for start in range(0, len(text), PIECE):
            await self._add(Reasoning(text=text[start : start + PIECE], step=self.step), min(PIECE, len(text) - start))

    def without_secrets(self, call_id: str, text: str) -> str:
        """A tool's output as it may be kept. What may be the beginning of a secret comes with what follows it."""
        if (held := self._held_output.get(call_id)) is None:
            held = self._held_output[call_id] = self._journal.secrets.stream()
        return held.add(storable(text))

    async def output(self, call_id: str, text: str) -> None:
        """Records as much of a tool's output, `without_secrets`, as is kept of it. Output is a sign of life whether it is recorded or not
        (P3).
        """
        now = self.last_sign = self._journal.clock.monotonic()
        if (course := self._outputs.get(call_id)) is None:
            course = self._outputs[call_id] = Course()
        for event in _outputs(call_id, course.add(text, now)):
            await self._add(event, len(event.text))

    def sample(self) -> None:
        """Puts the newest output on record that is due to be shown, though none has come since."""
        if self._closed:
            return
        now = self._journal.clock.monotonic()
        for call_id, course in self._outputs.items():
            if due := _outputs(call_id, course.sample(now)):
                self._gather()
                self._pending += due
                self._journal.dirty(self, urgent=False)

    def _last_outputs(self, events: tuple[Event | Interruption, ...]) -> list[Event]:
        """The end of the output of calls that these records end."""
        if any(isinstance(event, ENDS) for event in events):
            over = list(self._outputs)
        else:
            over = [event.call_id for event in events if isinstance(event, ToolFinished) and event.call_id in self._outputs]
        return [event for call_id in over for event in _outputs(call_id, self._end_output(call_id))]

    def _end_output(self, call_id: str) -> list[Piece]:
        course, held = self._outputs.pop(call_id), self._held_output.pop(call_id).end()
        return [*(course.add(held, self._journal.clock.monotonic()) if held else []), *course.end()]

    def _release(self, events: Sequence[Event | Interruption]) -> None:
        """With a step or the attempt its text is over: what was held back of it is no secret."""
        if not any(isinstance(event, (*ENDS, ModelResponded)) for event in events):
            return
        if thought := self._held_thought.end():
            self._gather()
            self._pending.append(Reasoning(text=thought, step=self.step))
        if text := self._held_text.end():
            if not self._said:
                self._said_from = self._text.length
            self._said.append(text)
            self._text.add(text)

    def silent_until(self, at: int | None) -> None:
        """The turn waits until then on purpose: its silence is no idleness."""
        if at is not None:
            wait_s = max(0, at - self._journal.clock.now()) / 1000
            self.last_sign = max(self.last_sign, self._journal.clock.monotonic() + wait_s)

    def beat(self) -> None:
        """Puts on record that the turn is still run, though it has nothing to show."""
        if not self._closed and not self.pending:
            self._pending.append(TurnAlive())
            self._journal.dirty(self, urgent=False)

    async def _add(self, event: Event, size: int) -> None:
        self._gather()
        self._pending.append(event)
        await self._grown(size)

    async def _grown(self, size: int) -> None:
        if self._closed:
            await asyncio.Event().wait()  # The turn is over for this attempt: what still speaks is about to be cancelled.
        self._pending_size += size
        self._journal.dirty(self, urgent=not self._spoken)
        self._spoken = True
        if self._pending_size > MAX_PENDING:  # From here on the speaker waits for the disk, not for the tick.
            self._room.clear()
            self._journal.dirty(self, urgent=True)
            await self._room.wait()

    async def record(self, *events: Event | Interruption) -> None:
        """Writes what is pending and these records in one append. A caller that is cancelled waits for it all the same: the write
        happens anyway, and the next write must know the position.
        """
        await self._journal.tasks.finish(self._record(events), name=f"record of {self.turn_id}")

    async def _record(self, events: tuple[Event | Interruption, ...]) -> None:
        async with self._lock:
            if self._closed:
                raise StaleEpoch(self.lease.session_id, self.lease.epoch)
            self._release(events)
            pieces = [*self._take(), *self._last_outputs(events)]
            try:
                await self._append([*pieces, *map(self._judged, events)])
            except HoldfastError as error:
                if not isinstance(error, Refused):  # What was refused for its content would be refused again.
                    self._give_back(pieces)
                self.lose(error)
                raise
            if any(isinstance(event, ENDS) for event in events):
                self._close()
            self.interrupted = self.interrupted or any(isinstance(event, Interruption) for event in events)

    async def respond(self, responded: ModelResponded, *events: Event) -> None:
        """Ends the step: its response, with what must be in the same transaction. The next one begins."""
        await self._journal.tasks.finish(self._respond(responded, events), name=f"step of {self.turn_id}")

    async def _respond(self, responded: ModelResponded, events: tuple[Event, ...]) -> None:
        if self._starts_over:
            self.keep("")
        await self._record((responded, *events))
        self._earlier = responded.text or self._earlier
        self.step, self._text = self.step + 1, Growing()

    async def wait(self, asking: tuple[str, ...]) -> Waiting:
        """Ends the attempt if the questions of these calls are still open, all of them: nothing is written after that."""
        return await self._journal.tasks.finish(self._wait(asking), name=f"wait of {self.turn_id}")

    async def _wait(self, asking: tuple[str, ...]) -> Waiting:
        async with self._writing() as journal:
            waiting, self.position = await journal.store.wait_turn(
                self.lease, turn_id=self.turn_id, attempt=self.attempt, position=self.position, asking=asking, at=journal.clock.now()
            )
            if waiting.open:
                self._close()
            return waiting

    async def take(self) -> tuple[Cause, ...]:
        """Takes the waiting messages that are meant to steer the turn."""
        return await self._journal.tasks.finish(self._take_causes(), name=f"causes of {self.turn_id}")

    async def _take_causes(self) -> tuple[Cause, ...]:
        async with self._writing() as journal:
            taken, self.position = await journal.store.take_causes(
                self.lease,
                turn_id=self.turn_id,
                attempt=self.attempt,
                position=self.position,
                step=self.step,
                offset=self.offset,
                at=journal.clock.now(),
            )
            if taken:
                self._sign()
            return taken

    @asynccontextmanager
    async def _writing(self) -> AsyncIterator["Journal"]:
        """For a write that the store decides: what is pending is written before it."""
        async with self._lock:
            if self._closed:
                raise StaleEpoch(self.lease.session_id, self.lease.epoch)
            pieces = self._take()
            try:
                if pieces:
                    await self._append(list(pieces))
                    pieces = []
                yield self._journal
            except HoldfastError as error:
                self._give_back(pieces)
                self.lose(error)
                raise

    def _judged(self, event: Event | Interruption) -> Event | Interruption:
        """What an attempt has to show counts up to the moment in which its interruption is written (A17)."""
        if isinstance(event, Interruption) and self.spoke:
            return msgspec.structs.replace(event, progressed=True)
        return event

    async def _append(self, events: list[Event | Interruption]) -> None:
        journal = self._journal
        self.position = await journal.store.append_turn(
            self.lease,
            turn_id=self.turn_id,
            attempt=self.attempt,
            position=self.position,
            events=events,
            at=journal.clock.now(),
        )
        for event in events:
            if isinstance(event, TurnResumed):
                self.attempt = event.attempt
            elif isinstance(event, ToolFinished):
                self.spoke = self.unread_results = True
            elif isinstance(event, ModelResponded):
                self.spoke, self.unread_results = True, False
            elif isinstance(event, ToolStarted):
                self.unread_results = False
        self._sign()

    def _gather(self) -> None:
        if self._said:
            self._pending.append(Text(offset=self._said_from, text="".join(self._said), step=self.step))
            self._said = []

    def _take(self) -> list[Event]:
        self._gather()
        events, self._pending, self._pending_size = self._pending, [], 0
        self._room.set()
        return events

    def _give_back(self, events: Sequence[Event]) -> None:
        self._pending = [*events, *self._pending]

    # for the journal's tick

    @property
    def pending(self) -> bool:
        return bool(self._pending or self._said) and not self._closed

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
            if any(not isinstance(event, TurnAlive) for event in item.events):
                self._sign()
            else:
                self.last_written = self._journal.clock.monotonic()
                self.signed.set()  # A heartbeat is a sign of life, but nothing that counts against the idle limit.
        else:
            self._give_back(item.events)
            self.lose(result)

    def _sign(self) -> None:
        self.last_sign = self.last_written = self._journal.clock.monotonic()
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


def _outputs(call_id: str, pieces: list[Piece]) -> list[ToolOutput]:
    return [ToolOutput(call_id=call_id, text=piece.text, omitted=piece.omitted) for piece in pieces]


class Journal:
    """One tick for all turns. The first piece of an attempt goes out at once, later ones with the tick."""

    def __init__(self, store: Turns, clock: Clock, tasks: Tasks, secrets: Secrets = NO_SECRETS) -> None:
        self.store, self.clock, self.tasks, self.secrets = store, clock, tasks, secrets
        self._dirty: dict[int, TurnLog] = {}
        self._wake = asyncio.Event()
        self._urgent = asyncio.Event()
        self._tick_s = TICK_S

    def dirty(self, turn: TurnLog, *, urgent: bool) -> None:
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
        turns = [turn for turn in dirty.values() if turn.ready]
        for turn in dirty.values():
            if turn.pending and not turn.ready:  # It is just writing a record: its later pieces come with the next tick.
                self.dirty(turn, urgent=False)
        if not turns:
            return
        items = [await turn.begin() for turn in turns]
        began = self.clock.monotonic()
        results: list[int | Exception]
        try:
            results = await self.store.append_streams(items, at=self.clock.now())
        except HoldfastError as error:
            if isinstance(error, Bug):
                raise
            log.warning("pieces could not be stored", turns=len(turns), error=str(error))
            results = [error] * len(turns)
        took = self.clock.monotonic() - began
        self._tick_s = TICK_S if took < SLOW_COMMIT_S else min(SLOW_TICK_S, max(TICK_S, took * 6))
        for turn, item, result in zip(turns, items, results, strict=True):
            turn.finish(item, result)
