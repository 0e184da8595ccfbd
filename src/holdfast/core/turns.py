"""The states of a turn, as one table: (state, what was recorded) -> state. A missing pair is a bug."""

from enum import StrEnum

from holdfast.core.errors import Bug


class TurnState(StrEnum):
    """NONE: the session never had a turn. ANSWERED: its question is answered, nobody has taken it up again yet."""

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


S = TurnState
TABLE: dict[tuple[TurnState, str], TurnState] = {
    (S.NONE, "turn.started"): S.RUNNING,
    (S.ENDED, "turn.started"): S.RUNNING,
    (S.RUNNING, "question.asked"): S.WAITING,
    (S.RUNNING, "turn.interrupted"): S.INTERRUPTED,
    (S.RUNNING, "turn.ended"): S.ENDED,
    (S.INTERRUPTED, "turn.left"): S.INTERRUPTED,
    (S.WAITING, "question.answered"): S.ANSWERED,
    (S.WAITING, "turn.left"): S.WAITING,
    (S.WAITING, "turn.ended"): S.ENDED,
    (S.ANSWERED, "turn.resumed"): S.RUNNING,
    (S.ANSWERED, "turn.ended"): S.ENDED,
    (S.INTERRUPTED, "turn.resumed"): S.RUNNING,
    (S.INTERRUPTED, "turn.ended"): S.ENDED,
}
MOVES = frozenset(kind for _, kind in TABLE)

# Turns that somebody must be running, or must resume or decide about. A waiting turn waits for its user alone.
OPEN = (S.RUNNING, S.WAITING, S.ANSWERED, S.INTERRUPTED)


def after(state: TurnState, kind: str) -> TurnState:
    """The state once an event of this kind is recorded. Kinds that move nothing leave it as it is."""
    if kind not in MOVES:
        return state
    try:
        return TABLE[state, kind]
    except KeyError:
        raise Bug(f"A turn that is {state} cannot record {kind}.") from None


def shown(state: TurnState) -> str:
    """The state as users know it: an answered turn still waits until it runs again."""
    return S.WAITING if state is S.ANSWERED else state
