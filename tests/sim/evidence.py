"""What is left when a simulated world has come to rest, read from a copy of its disk by SQL alone: sessions, turns, events."""

import itertools
from collections.abc import Iterator
from typing import NamedTuple, TypeVar

import apsw
from msgspec import UNSET

from holdfast.core import events as e
from holdfast.core import keys
from holdfast.core.effects import ToolOutcome
from holdfast.store.sqlite.connection import fetch
from tests.sim.world import Span, World

E = TypeVar("E", bound=e.Event)


class Row(e.Logged, frozen=True):
    """`id` is its place in the order of commits over all sessions."""

    id: int = 0


class Entry(NamedTuple):
    """An event of the log, in its place and decoded."""

    item: Row
    event: e.Event


class Entries(list[Entry]):
    def of(self, kind: type[E]) -> list[tuple[Row, E]]:
        return [(item, event) for item, event in self if isinstance(event, kind)]


class TurnRecord:
    """One turn as the log has it."""

    def __init__(self, session: "SessionRecord", first: Row, started: e.TurnStarted) -> None:
        self.session, self.id, self.started = session, first.turn_id or "", started
        self.log = Entries()
        self.text = ""
        self.answer: e.MessageWritten | None = None
        self.end: e.TurnEnded | None = None
        self.calls: dict[str, e.ToolStarted] = {}
        self.results: dict[str, tuple[ToolOutcome, str]] = {}
        self.responses: list[e.ModelResponded] = []
        self.steered: list[str] = []  # What it took while it ran, in the words of that moment.
        self.stopped_at: int | None = None


def cause_of(event: e.MessageAccepted | e.CauseRecorded) -> str:
    return event.message_id if isinstance(event, e.MessageAccepted) else event.cause_id


class SessionRecord:
    def __init__(self, created: e.SessionCreated) -> None:
        self.session_id, self.session_key = created.session_id, created.session_key
        self.chats = keys.parse(created.session_key).platform != "web"
        self.log = Entries()  # What was written in time; `whole` has also what reached the log late.
        self.whole = Entries()
        self.epoch = 0
        self.turns: list[TurnRecord] = []

    @property
    def suspended(self) -> bool:
        """At the end of its log."""
        for _, event in reversed(self.log):
            if isinstance(event, e.SessionResumed):
                return False
            if isinstance(event, e.SessionChanged) and event.suspended is not UNSET:
                return bool(event.suspended)
        return False


class Evidence:
    """The log of a world at rest, read from a copy of its disk by SQL alone."""

    def __init__(self, world: World, db: apsw.Connection) -> None:
        self.world, self.db = world, db
        self.sessions: dict[int, SessionRecord] = {}
        self.log, self.late = Entries(), Entries()
        rows = fetch(db, "SELECT id, session, seq, turn, epoch, attempt, position, kind, at, body FROM event ORDER BY id")
        for id_, session, seq, turn, epoch, attempt, position, kind, at, body in rows:
            event = e.decode(kind, body)
            if isinstance(event, e.SessionCreated):
                self.sessions[session] = SessionRecord(event)
            record = self.sessions[session]
            item = Row(record.session_id, seq, turn, attempt, position, kind, at, body, epoch, id=id_)
            record.whole.append(Entry(item, event))
            if turn is not None and epoch < record.epoch:
                self.late.append(Entry(item, event))
                continue
            record.epoch = max(record.epoch, epoch)
            record.log.append(Entry(item, event))
            self.log.append(Entry(item, event))
        for record in self.sessions.values():
            _read_turns(record)

    @property
    def turns(self) -> Iterator[TurnRecord]:
        return itertools.chain.from_iterable(session.turns for session in self.sessions.values())

    def alive(self, event_id: int) -> list[int]:
        """The owners that lived when an event was written."""
        spans = self.world.spans
        return [span.owner for span in spans if span.after_id < event_id and (span.until_id is None or event_id <= span.until_id)]

    def span(self, event_id: int) -> Span:
        """The newest process that had begun when an event was written."""
        return next(span for span in reversed(self.world.spans) if span.after_id < event_id)


def _read_turns(session: SessionRecord) -> None:
    recorded: dict[str, str] = {}
    for item, event in session.log:
        if isinstance(event, e.MessageAccepted | e.CauseRecorded):
            recorded[cause_of(event)] = event.text
        elif isinstance(event, e.MessageEdited):
            recorded[event.message_id] = event.text
        if isinstance(event, e.TurnStarted):
            session.turns.append(TurnRecord(session, item, event))
            session.turns[-1].text = recorded.get(event.causes[0], "")  # Of a message it is what the user wrote.
        turn = session.turns[-1] if session.turns else None
        if isinstance(event, e.StopRequested) and turn is not None and turn.stopped_at is None:
            if event.turn_id == turn.id and turn.end is None:  # One that comes after the end stops nothing.
                turn.stopped_at = item.seq
        if isinstance(event, e.QuestionAnswered) and turn is not None and item.turn_id is None:
            # While the attempt still runs, or after it was interrupted, an answer is nobody's but its question's.
            asked = next(each for each in session.turns if any(of.call_id == event.call_id for _, of in each.log.of(e.QuestionAsked)))
            asked.log.append(Entry(item, event))
            if event.verdict is None:
                asked.results[event.call_id] = (ToolOutcome.DONE, event.text)
        if item.turn_id is None or turn is None:
            continue
        turn.log.append(Entry(item, event))
        match event:
            case e.MessageWritten(role="user"):
                turn.text = event.text
            case e.MessageWritten(role="assistant"):
                turn.answer = event
            case e.ToolStarted():
                turn.calls[event.call_id] = event
            case e.ToolFinished():
                turn.results[event.call_id] = (event.outcome, event.result)
            case e.QuestionAnswered(verdict=None):
                turn.results[event.call_id] = (ToolOutcome.DONE, event.text)
            case e.ModelResponded():
                turn.responses.append(event)
            case e.CauseTaken():
                turn.steered.append(recorded[event.cause_id])
            case e.TurnEnded():
                turn.end = event
