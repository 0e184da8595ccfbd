"""Background processes on record: before one starts, when it is known to have ended or printed something, and when nobody needs to be told
any more. What is told is decided in the transaction that records it, so that it is told once (E2, E3, E6).
"""

from collections.abc import Sequence

import msgspec

from holdfast.core import processes, replies, resume
from holdfast.core.errors import StaleEpoch
from holdfast.core.events import CauseDropped, CauseRecorded, Event, ProcessConsumed, ProcessEnded, ProcessMatched, ProcessStarted
from holdfast.core.plans import Plan, Write, to_session
from holdfast.core.processes import Facts, Matches, Moment, Process, Telling, TooManyProcesses
from holdfast.core.sessions import Session
from holdfast.core.turns import TurnState

CONSUMED = "what it tells of is known already"


class Starting(msgspec.Struct, frozen=True, kw_only=True):
    """`sender`, `anchor`: of what its turn answers. `known`: the process, if its start is on record already. `running`: how many run."""

    session: Session
    sender: str
    anchor: str | None = None
    known: Process | None = None
    running: int = 0


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """`session`: the one it was started in; `current`: the current one of that key, None where that is deleted."""

    process: Process
    session: Session
    current: Session | None = None


def start(found: Starting, wanted: ProcessStarted, *, most: int) -> Plan[bool]:
    """Only the turn that runs here may start one. The same one again changes nothing: a call that was interrupted is made again."""
    session = found.session
    if found.known is not None:
        return Plan((), False)
    held = session.turn_state is TurnState.RUNNING and (session.turn_id, session.owner) == (wanted.turn_id, wanted.owner)
    if not held or session.stop_requested:
        raise StaleEpoch(session.session_id, session.epoch)
    if found.running >= most:
        raise TooManyProcesses(found.running)
    started = msgspec.structs.replace(wanted, generation=session.generation, sender=found.sender, anchor=found.anchor)
    return Plan((Write(session.session_id, started),), True)


def end(found: Ending, ended: ProcessEnded, *, tail: str, matches: Matches, now: int, window_s: float) -> Plan[Telling]:
    """Records the end of a process, and tells it. `matches`: lines that are not told yet; those of an earlier moment are left out.
    `window_s`: how long an end is fresh.
    """
    process, session = found.process, found.session
    if process.end is not None:
        return Plan((), Telling.NOTHING)
    facts = Facts(
        consumed=process.consumed is not None,
        deleted=session.deleted,
        notify=process.notify,
        lost=ended.lost is not None,
        stopped=ended.stopped,
        ended_by_person=ended.by is not None,
        current=session.current and not session.suspended and not _left(session),
        fresh=resume.is_fresh(ended.ended_at, now=now, window_s=window_s),
    )
    told = processes.telling(facts)
    writes = [Write(session.session_id, ended)]
    lines = f"It had printed {processes.listed(matches)}" if matches.seen == moment(session) else ""
    text = processes.ended(process, ended, tail=tail, matched=lines)
    name = f"{process.process_id}.ended"
    if told is Telling.TURN:
        cause = CauseRecorded(cause_id=name, what=processes.ENDED, content=text, sender=process.sender, anchor=process.anchor)
        writes.append(Write(session.session_id, cause))
    elif told is Telling.NOTICE:
        where = found.current or session  # People look where the conversation is now.
        writes.append(Write(where.session_id, replies.written(where.session_key, "notice", name, text, anchor=process.anchor)))
    return Plan(tuple(writes), told)


def _left(session: Session) -> bool:
    """Its turn was interrupted, and a person is to continue it before anything else starts here (A23)."""
    return session.left and session.turn_state is TurnState.INTERRUPTED


def moment(session: Session) -> Moment:
    """To which lines belong that are seen now."""
    away = session.deleted or session.suspended or not session.current or _left(session)
    return Moment(generation=session.generation, during=session.open_turn, away=away)


def match(found: Ending, matches: Matches, *, at: int) -> Plan[bool]:
    """Lines that were seen while a turn is open are for that turn: it may take them, and none starts from them (E3). Where the conversation
    is elsewhere they are nobody's. Those of an earlier moment are only put on record, so that nobody finds them again.
    """
    process, session, here = found.process, found.session, moment(found.session)
    if process.consumed or process.end is not None or matches.through <= process.scanned or not matches.lines:
        return Plan((), False)
    if matches.seen != here:
        late = ProcessMatched(process_id=process.process_id, lines=0, through=matches.through, streak=process.streak)
        return Plan((Write(session.session_id, late),), False)
    if here.away:
        return Plan((), False)
    events: list[Event] = [
        ProcessMatched(process_id=process.process_id, lines=matches.lines, through=matches.through, streak=processes.streak(process, at)),
        CauseRecorded(
            cause_id=f"{process.process_id}.matched.{matches.through}",
            what=processes.MATCHED,
            content=processes.matched(process, matches),
            sender=process.sender,
            anchor=process.anchor,
            generation=here.generation,
            during=here.during,
        ),
    ]
    return Plan(tuple(to_session(session.session_id, events)), True)


def consume(process: Process, waiting: Sequence[str], *, how: str) -> Plan[bool]:
    """`waiting`: the ids of causes of this process that no turn has taken yet."""
    if process.consumed is not None:
        return Plan((), False)
    events = [ProcessConsumed(process_id=process.process_id, how=how), *untold(waiting)]
    return Plan(tuple(to_session(process.session_id, events)), True)


def untold(waiting: Sequence[str]) -> list[CauseDropped]:
    """What waited to be told of a process that is consumed."""
    return [CauseDropped(cause_id=cause_id, reason=CONSUMED) for cause_id in waiting]
