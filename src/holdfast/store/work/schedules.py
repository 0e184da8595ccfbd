"""Schedules: read from the catalog and the log, added, paused, removed, and advanced when one of their times has come."""

from typing import Any

from holdfast.core import events as e
from holdfast.core import schedules
from holdfast.core.content import Content
from holdfast.core.errors import NotFound
from holdfast.core.plans import schedules as plans
from holdfast.core.plans.schedules import UNREADABLE, Fired, Snapshot
from holdfast.core.reminders import Zones
from holdfast.core.schedules import FUTURE_MS, Due, Schedule
from holdfast.core.sessions import Session
from holdfast.ports.schedules import DueSchedules
from holdfast.store import queries as q
from holdfast.store import reads
from holdfast.store.log import number
from holdfast.store.tx import Tx
from holdfast.store.work import run, snapshots
from holdfast.store.work.repeats import known


def listed(tx: Tx, session_key: str | None) -> list[Schedule]:
    rows = tx.query(q.SCHEDULES_ALL) if session_key is None else tx.query(q.SCHEDULES_OF, session_key)
    return [_schedule(tx, *row) for row in rows]


def due(tx: Tx, now: int, limit: int) -> DueSchedules:
    rows = tx.query(q.SCHEDULES_DUE, now, now + FUTURE_MS, limit)
    return DueSchedules(tuple(_schedule(tx, *row) for row in rows), tx.query(q.NEXT_DUE, now)[0][0])


def find(tx: Tx, schedule_id: str) -> Schedule | None:
    rows = tx.query(q.SCHEDULE, schedule_id)
    return _schedule(tx, *rows[0]) if rows else None


def here(tx: Tx, session_key: str) -> int:
    """How many a key has."""
    return int(tx.query(q.SCHEDULES_COUNT, session_key)[0][0])


def made_schedule(tx: Tx, dedup_key: str | None, text: Content) -> Schedule | None:
    repeated = known(tx, dedup_key, text)
    return None if repeated is None else _found(tx, repeated.ref)


def add_schedule(tx: Tx, session_id: str, added: e.ScheduleAdded, limit: int, at: int) -> Schedule:
    repeated = made_schedule(tx, added.dedup_key, added.content)
    if repeated is not None:
        return repeated
    session = snapshots.current(tx, session_id)
    return _found(tx, run(tx, plans.add(session, added, here=here(tx, session.session_key), limit=limit), at))


def remove_schedule(tx: Tx, schedule_id: str, by: str, at: int) -> Schedule:
    return run(tx, plans.remove(_found(tx, schedule_id), by=by), at)


def pause_schedule(tx: Tx, schedule_id: str, by: str, at: int) -> Schedule:
    run(tx, plans.pause(_found(tx, schedule_id), by=by), at)
    return _found(tx, schedule_id)


def continue_schedule(tx: Tx, schedule_id: str, zones: Zones, by: str, at: int) -> Schedule:
    schedule = _found(tx, schedule_id)
    run(tx, plans.proceed(schedule, now=at, zone=zones(schedule.timing.time_zone), by=by), at)
    return _found(tx, schedule_id)


def fire_schedule(
    tx: Tx, session_id: str, schedule_id: str, expect: int, come: Due, when: str, names: tuple[str, str], at: int
) -> Fired | None:
    schedule = find(tx, schedule_id)
    if schedule is None or not schedules.stands(schedule, due_at=expect):
        return None  # It was removed, or its time does not count any more.
    return run(tx, plans.fire(_snapshot(tx, schedule, come, names), come, when=when), at)


def _snapshot(tx: Tx, schedule: Schedule, come: Due, names: tuple[str, str]) -> Snapshot:
    home, current = tx.session(schedule.session_id), reads.current_session(tx, schedule.session_key)
    return Snapshot(
        schedule=schedule,
        home=home,
        current=current,
        fresh=snapshots.fresh(tx, home, names) if current is None else None,
        waits=current is not None and _waits(tx, current, schedule.schedule_id),
        known=tx.known(plans.dedup_key(schedule.schedule_id, come.due_at)) is not None,
    )


def _waits(tx: Tx, session: Session, schedule_id: str) -> bool:
    """A cause of it is named after it."""
    return bool(tx.query(q.WAITS_FROM, number(tx, session.session_id), f"{schedule_id}.", f"{schedule_id}/"))


def _found(tx: Tx, schedule_id: str) -> Schedule:
    found = find(tx, schedule_id)
    if found is None:
        raise NotFound("schedule", schedule_id)
    return found


def _schedule(tx: Tx, schedule_id: str, session_id: str, session_key: str, session: int, seq: int, *row: Any) -> Schedule:
    at, due_at, noted, last, skipped, paused = row
    added = tx.event_at(session, seq)
    if not isinstance(added, e.ScheduleAdded):  # It is told once more, so that somebody learns of it, and is over.
        added = e.ScheduleAdded(schedule_id=schedule_id, content=UNREADABLE, due_at=due_at, once_at=due_at, sender="")
    return Schedule(
        schedule_id=schedule_id,
        session_id=session_id,
        session_key=session_key,
        text=added.text,
        timing=schedules.timing_of(added),
        missed=added.missed,
        sender=added.sender,
        call_id=added.call_id,
        created_at=at,
        due_at=due_at,
        noted_at=noted,
        last_at=last,
        skipped=skipped,
        paused_at=paused,
    )
