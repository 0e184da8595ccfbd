"""The states of a turn, as one table: (state, what was recorded) -> state. A missing pair is a bug."""

from enum import StrEnum
from typing import ClassVar, Protocol

from holdfast.core.errors import Bug


class TurnState(StrEnum):
    """NONE: the session never had a turn. ANSWERED: its last open question is answered, but no attempt has continued it yet."""

    NONE = "none"
    RUNNING = "running"
    WAITING = "waiting"
    ANSWERED = "answered"
    INTERRUPTED = "interrupted"
    ENDED = "ended"


class Outcome(StrEnum):
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SET_ASIDE = "set_aside"


class Moving(Protocol):
    """An event, as far as this table knows one. `move` is its kind, or its kind and what makes it move differently."""

    kind: ClassVar[str]

    @property
    def move(self) -> str: ...


S = TurnState
# `question.asked (0.1)` ended its attempt; since then `turn.waiting` does, and a turn may ask several questions. An answer continues the
# turn if it is the last one that is waited for; answers may also come while the attempt still runs, or after it was interrupted.
TABLE: dict[tuple[TurnState, str], TurnState] = {
    (S.NONE, "turn.started"): S.RUNNING,
    (S.ENDED, "turn.started"): S.RUNNING,
    (S.RUNNING, "question.asked (0.1)"): S.WAITING,
    (S.RUNNING, "question.asked"): S.RUNNING,
    (S.RUNNING, "turn.waiting"): S.WAITING,
    (S.RUNNING, "turn.interrupted"): S.INTERRUPTED,
    (S.RUNNING, "turn.ended"): S.ENDED,
    (S.INTERRUPTED, "turn.left"): S.INTERRUPTED,
    (S.WAITING, "question.answered (last)"): S.ANSWERED,
    (S.RUNNING, "question.answered (last)"): S.RUNNING,
    (S.INTERRUPTED, "question.answered (last)"): S.INTERRUPTED,
    (S.WAITING, "question.answered"): S.WAITING,
    (S.RUNNING, "question.answered"): S.RUNNING,
    (S.INTERRUPTED, "question.answered"): S.INTERRUPTED,
    (S.WAITING, "turn.left"): S.WAITING,
    (S.WAITING, "turn.ended"): S.ENDED,
    (S.ANSWERED, "turn.resumed"): S.RUNNING,
    (S.ANSWERED, "turn.ended"): S.ENDED,
    (S.INTERRUPTED, "turn.resumed"): S.RUNNING,
    (S.INTERRUPTED, "turn.ended"): S.ENDED,
}
# The kinds that may stand in the table.
MOVES = frozenset(move.partition(" ")[0] for _, move in TABLE)

# Turns that somebody must be running, or must resume or decide about. A waiting turn waits for its user alone.
OPEN = (S.RUNNING, S.WAITING, S.ANSWERED, S.INTERRUPTED)


def after(state: TurnState, event: Moving) -> TurnState:
    """The state once this event is recorded. Kinds that move nothing leave it as it is."""
    if event.kind not in MOVES:
        return state
    try:
        return TABLE[state, event.move]
    except KeyError:
        raise Bug(f"A turn that is {state} cannot record {event.move}.") from None


def before(state: TurnState, event: Moving) -> TurnState:
    """The state in which this event was recorded, where that cannot be the one known: a record between them is damaged."""
    if event.kind not in MOVES or (state, event.move) in TABLE:
        return state
    return next(known for known, move in TABLE if move == event.move)


def shown(state: TurnState) -> str:
    """The state as users know it: an answered turn still waits until it runs again."""
    return S.WAITING if state is S.ANSWERED else state
