"""Writes to a turn: its start, its records under a lease, and the hands it passes through."""

from collections.abc import Sequence

from holdfast.core import events as e
from holdfast.core.blame import Interruption
from holdfast.core.errors import StaleEpoch, StalePosition, ToldToStop
from holdfast.core.limits import Bounds
from holdfast.core.plans import approve, causes, leave, marks, processes, record, start
from holdfast.core.plans.start import StartedTurn, Verdict
from holdfast.core.sessions import Lease
from holdfast.store import reads
from holdfast.store.heads import Head
from holdfast.store.log import number
from holdfast.store.tx import Tx
from holdfast.store.work import run, snapshots
from holdfast.store.work.processes import causes_of
from holdfast.store.work.streams import append_stream, check_position


def start_turn(
    tx: Tx,
    session_id: str,
    owner: int,
    turn_id: str,
    at: int,
    trial: bool = False,
    safe: bool = False,
    bounds: Bounds | None = None,
) -> StartedTurn | None:
    head = tx.head(number(tx, session_id))
    lane = snapshots.lane(tx, head, owner)
    match start.verdict(lane):
        case Verdict.TURN_AWAY if lane.waits:
            run(tx, start.turn_away(lane, snapshots.waiting(tx, head.session)), at, {session_id: head})
        case Verdict.START:
            only_said = start.only_said(lane, safe=safe)
            cause, outdated = snapshots.next_cause(tx, head.session, lane.newest, only_said=only_said)
            while cause is not None and (reached := snapshots.reached(tx, session_id, cause, bounds)):
                run(tx, start.refuse(lane, cause, reached), at, {session_id: head})
                cause, outdated = snapshots.next_cause(tx, head.session, lane.newest, only_said=only_said)
            unfinished = snapshots.to_set_aside(tx, head, lane) if cause is not None else None
            plan = start.plan(
                lane,
                cause,
                outdated=outdated,
                unfinished=unfinished,
                owner=owner,
                turn_id=turn_id,
                trial=trial,
                day=bounds.day if bounds is not None else None,
            )
            if run(tx, plan, at, {session_id: head}):
                return StartedTurn(Lease(session_id, owner, head.epoch), turn_id, head.attempt, head.position)
    return None


def take_turn(
    tx: Tx,
    session_id: str,
    owner: int,
    turn_id: str,
    epoch: int,
    events: Sequence[e.Event | Interruption],
    at: int,
    seq: int | None = None,
) -> StartedTurn:
    head = tx.head(number(tx, session_id))
    if (head.epoch, head.turn) != (epoch, turn_id) or head.state not in record.TAKEABLE:
        raise StaleEpoch(session_id, epoch)
    if seq is not None and seq != head.seq:
        raise StalePosition(turn_id, seq, head.seq)
    if reads.told_to_stop(tx, owner):
        raise ToldToStop(session_id)
    planned = _planned(tx, head, Lease(session_id, owner, epoch), events)
    tx.append(head, e.TurnTaken(owner=owner, epoch=epoch + 1), at, in_turn=True)
    _append(tx, head, planned, at)
    return StartedTurn(Lease(session_id, owner, head.epoch), turn_id, head.attempt, head.position)


def append_turn(tx: Tx, lease: Lease, turn_id: str, attempt: int, position: int, events: Sequence[e.Event | Interruption], at: int) -> int:
    pieces: list[e.Event] = []
    for event in events:
        if isinstance(event, Interruption) or not event.stream:
            break
        pieces.append(event)
    else:
        return append_stream(tx, lease, turn_id, attempt, position, pieces, at)
    head = tx.head(number(tx, lease.session_id))
    if (head.epoch, head.owner, head.turn) != (lease.epoch, lease.owner, turn_id) or head.state not in record.HELD:
        raise StaleEpoch(lease.session_id, lease.epoch)
    check_position(head, turn_id, attempt, position)
    _append(tx, head, _planned(tx, head, lease, events), at)
    return head.position


def _planned(tx: Tx, head: Head, lease: Lease, events: Sequence[e.Event | Interruption]) -> list[e.Event]:
    for event in events:
        if isinstance(event, e.ToolStarted) and event.approval is not None:
            approve.check(event, turn_id=head.turn, granted=snapshots.granted(tx, head.session, event.approval))
    return record.plan(
        events,
        lease=lease,
        state=head.state,
        stop_requested=bool(head.stop),
        standing=snapshots.standing(tx, head) if record.counts(events) else None,
        told_to_stop=record.resumes(events) and reads.told_to_stop(tx, lease.owner),
    )


def _append(tx: Tx, head: Head, events: Sequence[e.Event], at: int) -> None:
    for event in events:
        tx.append(head, event, at, in_turn=True)
        if isinstance(event, e.ProcessConsumed):
            for dropped in processes.untold(causes_of(tx, head.session, event.process_id)):
                tx.append(head, dropped, at, in_turn=False)
    if any(leave.suspends(event) for event in events):
        key = tx.session(reads.name(tx, head.session)).session_key
        for event in causes.turned_away(key, snapshots.waiting(tx, head.session), causes.SUSPENDED_FIRST):
            tx.append(head, event, at, in_turn=False)


def leave_turn(tx: Tx, session_id: str, turn_id: str, left: e.TurnLeft, at: int) -> bool:
    session = tx.session(session_id)
    return run(tx, marks.left(session, turn_id, left, questions=snapshots.questions(tx, session), at=at), at)


def pass_trial(tx: Tx, lease: Lease, turn_id: str, at: int) -> bool:
    return run(tx, marks.trial_passed(tx.session(lease.session_id), lease, turn_id), at)


def await_trial(tx: Tx, session_id: str, turn_id: str, aged_ms: int, at: int) -> bool:
    return run(tx, marks.trial_awaited(tx.session(session_id), turn_id, aged_ms=aged_ms), at)
