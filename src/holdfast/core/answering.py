"""Follows one message through the log of its session: what a reader that only appends is given of its answer, and when that is over.

An answer is over when its turn ends, and also when the turn waits for a person: what comes after that answers the person's next message.
"""

from enum import StrEnum

from holdfast.core import commands, notices, usage
from holdfast.core import events as e
from holdfast.core.pieces import Asks, Begins, Notes, Piece, Remarks, TurnPieces
from holdfast.core.plans.withdraw import WITHDRAWN
from holdfast.core.turns import Outcome, TurnState

# Commands after which the turn continues that they are about.
_CONTINUING = {"approve": (TurnState.ANSWERED, TurnState.RUNNING), "resume": (TurnState.INTERRUPTED,)}
_CONTINUING["deny"] = _CONTINUING["approve"]
# In the id of the notice that nothing is answered for now.
HELD = ".held."
UNREADABLE = "the end of this turn could not be read"


class Status(StrEnum):
    """INCOMPLETE: its turn was interrupted, and does not continue by itself."""

    QUEUED = "queued"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    INCOMPLETE = "incomplete"


_ENDS = {
    Outcome.COMPLETED: Status.COMPLETED,
    Outcome.FAILED: Status.FAILED,
    Outcome.CANCELLED: Status.CANCELLED,
    Outcome.SET_ASIDE: Status.INCOMPLETE,
}


class Answering:
    """Apply the events of the session in order, from the start of the turn that was open when the message came, or from the message on.
    `seq`: where the message stands. `over`: nothing will be added any more. `waiting`: it is over because its turn waits for a person.
    `waited`: its sender was told that it waits for an approval. `why`: why it failed or is incomplete.
    """

    def __init__(self, message_id: str, seq: int) -> None:
        self.message_id, self._seq = message_id, seq
        self.status = Status.QUEUED
        self.created_at = self.ended_at = 0
        self.over = self.waiting = self.waited = False
        self.why: str | None = None
        self._turn: TurnPieces | None = None  # The newest one.
        self._mine: TurnPieces | None = None
        self._came = False
        self._begun: list[Piece] = []
        self._command: str | None = None

    @property
    def turn(self) -> TurnPieces | None:
        """The turn that answers it, once that is known."""
        return self._mine

    @property
    def spent(self) -> usage.Spent:
        return self._mine.spent if self._mine else usage.NOTHING

    @property
    def questions(self) -> list[Asks]:
        """Those that are open, and that somebody has to answer before there is more."""
        turn = self._mine or self._turn
        return list(turn.questions.values()) if turn is not None and turn.state is TurnState.WAITING else []

    @property
    def held(self) -> bool:
        """It waits behind a turn that waits for a person."""
        return not self.over and self._mine is None and bool(self.questions)

    @property
    def left(self) -> bool:
        """Its turn was interrupted, and nobody continues it for now."""
        return not self.over and self.status is Status.INCOMPLETE

    def apply(self, item: e.Logged) -> list[Piece]:
        event = item.event
        if self.over:
            return []
        pieces = self._follow(item, event)
        if item.seq == self._seq:
            return self._come(item, event)
        if not self._came:
            if isinstance(event, e.MessageWritten) and event.message_id.endswith(".begun"):
                self._begun = [Notes(event.message_id, event.text)]  # Why this is a new conversation.
            return []
        if self._mine is None:
            return self._find(item, event)
        if self._turn is not self._mine:
            return self._end(item, Status.INCOMPLETE, UNREADABLE)  # Another turn has started.
        return [*pieces, *self._judge(item, event)] if self._of_mine(item, event) else []

    def _of_mine(self, item: e.Logged, event: e.Event) -> bool:
        return self._mine is not None and (item.turn_id == self._mine.turn_id or isinstance(event, e.QuestionAnswered))

    def _follow(self, item: e.Logged, event: e.Event) -> list[Piece]:
        """What the newest turn gives with this, whosever it is."""
        if item.turn_id is not None and (self._turn is None or isinstance(event, e.TurnStarted)):
            self._turn = TurnPieces(item.turn_id)
        turn = self._turn
        if turn is None or not (item.turn_id == turn.turn_id or (item.turn_id is None and isinstance(event, e.QuestionAnswered))):
            return []
        return turn.apply(item, event)

    # before its turn

    def _come(self, item: e.Logged, event: e.Event) -> list[Piece]:
        self._came, self.created_at = True, item.at
        if isinstance(event, e.MessageWritten):
            command = commands.parse(event.text)
            self._command = command.name if command else ""
        return self._begun

    def _find(self, item: e.Logged, event: e.Event) -> list[Piece]:
        """The turn that the message starts, that takes it, or whose question it answers."""
        mine = self.message_id
        match event:
            case e.TurnStarted() if mine in event.causes:
                return self._join()
            case e.MessageWritten(role="user") if event.message_id == mine and item.turn_id is not None:
                return self._join()
            case e.CauseTaken() if event.cause_id == mine:
                return self._join()
            case e.QuestionAnswered() if event.message_id == mine:
                return [*self._join(), *self._wait_again(item)]
            case e.MessageRefused() if event.message_id == mine:
                withdrawn = event.reason == WITHDRAWN
                return self._end(item, Status.CANCELLED if withdrawn else Status.FAILED, None if withdrawn else f"refused: {event.reason}")
            case e.MessageWritten(role="notice") if item.turn_id is None:
                return self._notice(item, event)
        return []

    def _join(self) -> list[Piece]:
        self._mine, self.status = self._turn, Status.IN_PROGRESS
        if self._mine is not None:
            self._mine.begin_here()
        return [Begins()]

    def _notice(self, item: e.Logged, event: e.MessageWritten) -> list[Piece]:
        told: list[Piece] = [Notes(event.message_id, event.text)]
        if event.message_id != f"{self.message_id}.reply":
            if event.message_id.startswith(self.message_id):
                self.waited = True
                return told
            return [Remarks(event.text)] if HELD in event.message_id else []
        turn = self._turn
        if turn is not None and turn.state in _CONTINUING.get(self._command or "", ()):
            return [*told, *self._join()]
        again = self.questions if self._command in ("approve", "deny") else []
        self.waiting = bool(again)
        return [*told, *again, *self._end(item, Status.COMPLETED)]

    # in its turn

    def _wait_again(self, item: e.Logged) -> list[Piece]:
        """The turn still waits for other answers."""
        asked = self.questions
        if not asked:
            return []
        self.waiting = True
        return [*asked, *self._end(item, Status.COMPLETED)]

    def _judge(self, item: e.Logged, event: e.Event) -> list[Piece]:
        match event:
            case e.TurnEnded():
                status = _ENDS[event.outcome]
                why = event.error or (event.why if status is Status.INCOMPLETE else None)
                return self._end(item, status, why)
            case e.TurnWaiting() | e.QuestionAsked(ends_attempt=True):
                self.waiting = True
                return self._end(item, Status.COMPLETED)
            case e.TurnLeft() if self._mine is not None and self._mine.state is TurnState.INTERRUPTED:
                self.status, self.why, self.ended_at = Status.INCOMPLETE, event.why or notices.interrupted_by(""), item.at
            case e.TurnResumed():
                self.status, self.why, self.ended_at = Status.IN_PROGRESS, None, 0
        return []

    def _end(self, item: e.Logged, status: Status, why: str | None = None) -> list[Piece]:
        self.over, self.status, self.why, self.ended_at = True, status, why, item.at
        return self._mine.settle() if self._mine else []
