"""The course of a turn: its start, its interruptions and what was decided about them, its end."""

import msgspec

from holdfast.core.events.base import Event
from holdfast.core.turns import Outcome


class TurnStarted(Event, frozen=True):
    """`cause`: what kind of cause it was. `causes`: their ids; those of messages are message ids. `trial`: its session is a suspect, and
    this attempt runs on trial. `model`: the model or agent that was chosen for its session then, and that answers it to its end.
    `sender`: the person it works for and `day`: the date, where people may start only so many turns a day.
    """

    kind = "turn.started"
    generation: int
    attempt: int
    cause: str
    causes: tuple[str, ...] = msgspec.field(name="message_ids")
    owner: int
    epoch: int
    trial: bool = False
    model: str | None = None
    sender: str | None = None
    day: str | None = None


class TurnTaken(Event, frozen=True):
    """The lease changed hands while the turn was open."""

    kind = "turn.taken"
    owner: int
    epoch: int


class TurnAlive(Event, frozen=True):
    """The turn's process says that it still runs it, while a model or a tool has nothing to show."""

    kind = "turn.alive"
    stream = True


class TurnWaiting(Event, frozen=True):
    """The attempt is over and its lease free: the turn waits for answers to these questions, and continues after the last one."""

    kind = "turn.waiting"
    question_ids: tuple[str, ...]


class StopRequested(Event, frozen=True):
    """`turn_id`: the turn it is for, which may have ended already. `reply`: the delivery that tells the chat which asked. `why`: where
    nobody said stop.
    """

    kind = "stop.requested"
    turn_id: str
    by: str
    reply: str | None = None
    why: str | None = None
    dedup_key: str | None = None


class TurnInterrupted(Event, frozen=True):
    """`restarts` counts restarts in a row that interrupted this session, this one included; `deaths` the unclean deaths that interrupted
    this turn, in all. `written`: how long the answer was. `lived_ms`: how long the attempt lived, 0 where no restart is to blame.
    `died`: the owner whose death it was found after; nobody holds the turn from then on. `stream_id`: the journal of the attempt, where it
    is late: some of what the attempt did may be in it, and it could not be read when this was recorded.
    """

    kind = "turn.interrupted"
    reason: str
    restarts: int
    written: int = 0
    deaths: int = 0
    lived_ms: int = 0
    died: int | None = None
    stream_id: str | None = None


class Considered(msgspec.Struct, frozen=True):
    """A rule that was looked at for a decision: the fact it looked at, in words, and whether it applied. `known_as` and `numbers`: the same
    fact for those who word it themselves, in another language.
    """

    rule: str
    fact: str
    applies: bool
    known_as: str = ""
    numbers: tuple[int, ...] = ()


class TurnResumed(Event, frozen=True):
    """`why` says it in words, for people. `considered`: the rules up to the one that decided. `trial`: its session is a suspect, and this
    attempt runs on trial.
    """

    kind = "turn.resumed"
    attempt: int
    rule: str
    reason: str
    why: str | None = None
    trial: bool = False
    considered: tuple[Considered, ...] = ()


class TrialAwaited(Event, frozen=True):
    """An interrupted turn still waits for its trial. `aged_ms`: how old it was when it began to wait; waiting does not age it."""

    kind = "trial.awaited"
    turn_id: str
    aged_ms: int


class TrialPassed(Event, frozen=True):
    """A turn on trial has lived for long enough: its session is a suspect no more."""

    kind = "trial.passed"
    turn_id: str


class TurnLeft(Event, frozen=True):
    """It was decided that a turn nobody runs stays as it is."""

    kind = "turn.left"
    rule: str
    why: str | None = None
    considered: tuple[Considered, ...] = ()


class TurnEnded(Event, frozen=True):
    """`unread_results`: it ended with tool results that nobody processed. `still_pending`: the session's resume flag outlives it.
    `blamed_for`: the owner for whose death its session is suspended.
    """

    kind = "turn.ended"
    outcome: Outcome
    error: str | None = None
    rule: str | None = None
    why: str | None = None
    unread_results: bool = False
    still_pending: bool = False
    blamed_for: int | None = None
    considered: tuple[Considered, ...] = ()
