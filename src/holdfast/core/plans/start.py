"""Whether a turn starts in a session now, and from which cause (P2, P6)."""

from enum import Enum, auto

import msgspec

from holdfast.core import content, limits, replies
from holdfast.core.events import CauseDropped, MessageRefused, MessageWritten, TurnStarted
from holdfast.core.limits import LimitReached, Reached
from holdfast.core.plans import Plan, Write, ending, to_session, to_turn
from holdfast.core.plans.causes import LEFT_FIRST, MESSAGE, OUTDATED, SUSPENDED_FIRST, Cause, turned_away
from holdfast.core.plans.ending import Unfinished
from holdfast.core.processes import ENDED, MATCHED
from holdfast.core.sessions import Lease
from holdfast.core.turns import TurnState


class StartedTurn(msgspec.Struct, frozen=True):
    """An attempt that now has to run. `position`: where its turn stands."""

    lease: Lease
    turn_id: str
    attempt: int
    position: int


class Lane(msgspec.Struct, frozen=True, kw_only=True):
    """What decides whether a turn starts. `left`: nobody runs the open turn, by a decision. `told_to_stop`: the process that asks.
    `another_ends`: another session of the key is still at the work it was told to stop. `generation`: of the
    key's newest turn; `newest`: of this session's. `model`: what was chosen to answer.
    """

    session_id: str
    session_key: str
    state: TurnState
    left: bool
    stop_requested: bool
    told_to_stop: bool
    suspended: bool
    current: bool
    another_ends: bool
    waits: bool
    generation: int
    newest: int
    epoch: int
    rule: str | None
    why: str | None
    model: str | None


class Verdict(Enum):
    REST = auto()
    TURN_AWAY = auto()
    START = auto()


def sets_aside(lane: Lane) -> bool:
    """A turn that was left ends when a human's message continues from it (A23)."""
    return lane.state is TurnState.INTERRUPTED and lane.left and not lane.stop_requested


def only_said(lane: Lane, *, safe: bool) -> bool:
    """Whether a turn starts only from what a person said: in safe mode (B14), and where a turn was left for a person to continue (A23)."""
    return safe or sets_aside(lane)


def verdict(lane: Lane) -> Verdict:
    """TURN_AWAY: no turn will ever start from what waits here. One chat has one agent at a time (A22)."""
    if lane.told_to_stop or (lane.state not in (TurnState.NONE, TurnState.ENDED) and not sets_aside(lane)):
        return Verdict.REST
    if lane.suspended or not lane.current:
        return Verdict.TURN_AWAY
    return Verdict.START if lane.waits and not lane.another_ends else Verdict.REST


def turn_away(lane: Lane, waiting: tuple[Cause, ...]) -> Plan[None]:
    why = SUSPENDED_FIRST if lane.suspended else LEFT_FIRST
    return Plan(tuple(to_session(lane.session_id, turned_away(lane.session_key, waiting, why))), None)


def refuse(lane: Lane, cause: Cause, reached: Reached) -> Plan[None]:
    """Its sender has had all the turns of this day, or used all that may be used: told aloud, and no turn starts (P1). The end of a process
    is told with it (E3); what one printed is not worth a word.
    """
    why, said = limits.forbids(reached), cause.what == MESSAGE
    refused = MessageRefused(message_id=cause.cause_id, reason=why) if said else CauseDropped(cause_id=cause.cause_id, reason=why)
    if cause.what == MATCHED:
        return Plan(tuple(to_session(lane.session_id, [refused])), None)
    words = f"{content.text(cause.content)}\n\n{LimitReached(reached)}" if cause.what == ENDED else str(LimitReached(reached))
    told = replies.written(lane.session_key, "notice", f"{cause.cause_id}.refused", words, anchor=cause.anchor)
    return Plan(tuple(to_session(lane.session_id, [refused, told])), None)


def plan(
    lane: Lane,
    cause: Cause | None,
    *,
    outdated: tuple[Cause, ...] = (),
    unfinished: Unfinished | None = None,
    owner: int,
    turn_id: str,
    trial: bool,
    day: str | None = None,
) -> Plan[bool]:
    """`cause`: the oldest one that is still current, None if there is none. `outdated`: those before it, which are dropped. `unfinished`:
    the turn that this one `sets_aside`. `day`: on which it counts for its sender, where that is limited.
    """
    writes = [Write(lane.session_id, CauseDropped(cause_id=gone.cause_id, reason=OUTDATED)) for gone in outdated]
    if cause is None:
        return Plan(tuple(writes), False)
    if unfinished is not None:
        writes += to_turn(lane.session_id, ending.set_aside(unfinished, rule=lane.rule, why=lane.why))
    started = TurnStarted(
        generation=lane.generation + 1,
        attempt=1,
        cause=cause.what,
        causes=(cause.cause_id,),
        owner=owner,
        epoch=lane.epoch + 1,
        trial=trial,
        model=lane.model,
        sender=cause.sender if day is not None else None,
        day=day if cause.sender is not None else None,
    )
    writes.append(Write(lane.session_id, started, True, turn_id))
    if cause.what == MESSAGE:  # Of any other cause its own record is what the conversation shows.
        writes.append(Write(lane.session_id, MessageWritten(message_id=cause.cause_id, role="user", content=cause.content), True))
    return Plan(tuple(writes), True)
