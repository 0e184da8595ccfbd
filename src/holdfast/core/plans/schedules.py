"""Schedules of a session key: how one is added, paused and removed, and what becomes of a time that has come (P6, E7)."""

from datetime import tzinfo

import msgspec

from holdfast.core import reminders, replies, schedules
from holdfast.core.events import (
    CauseRecorded,
    DueTime,
    Event,
    ScheduleAdded,
    ScheduleContinued,
    ScheduleDue,
    SchedulePaused,
    ScheduleRemoved,
)
from holdfast.core.plans import Plan, Write, to_session
from holdfast.core.plans.leave import DELETED, Fresh, beginning
from holdfast.core.schedules import Due, Schedule, ScheduleOver, TooManySchedules
from holdfast.core.sessions import Session

WHAT = "schedule"
UNREADABLE = "(this schedule was damaged on disk and cannot be read)"


class Fired(msgspec.Struct, frozen=True):
    """`session_id`: where the cause waits that was recorded, None if none was; `skipped` says why."""

    session_id: str | None
    skipped: str | None = None


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """`home`: the session in whose log it stands. `current`: its key's current session; where that is deleted None, and `fresh` is one to
    begin. `waits`: the cause of an earlier time is still in the inbox. `known`: this time was told before.
    """

    schedule: Schedule
    home: Session
    current: Session | None
    fresh: Fresh | None = None
    waits: bool = False
    known: bool = False


def cause_id(schedule_id: str, due_at: int) -> str:
    return f"{schedule_id}.{due_at}"


def dedup_key(schedule_id: str, due_at: int) -> str:
    """One time of a schedule is told once, whichever process and whichever clock finds it due."""
    return f"schedule|{schedule_id}|{due_at}"


def add(session: Session, added: ScheduleAdded, *, here: int, limit: int) -> Plan[str]:
    """`here`: how many its key has already. Raises `TooManySchedules`."""
    if here >= limit:
        raise TooManySchedules(limit)
    return Plan((Write(session.session_id, added),), added.schedule_id)


def remove(schedule: Schedule, *, by: str) -> Plan[Schedule]:
    return Plan((Write(schedule.session_id, ScheduleRemoved(schedule_id=schedule.schedule_id, by=by)),), schedule)


def pause(schedule: Schedule, *, by: str) -> Plan[None]:
    """One that is paused already stays as it is."""
    if schedule.paused_at is not None:
        return Plan((), None)
    return Plan((Write(schedule.session_id, SchedulePaused(schedule_id=schedule.schedule_id, by=by)),), None)


def proceed(schedule: Schedule, *, now: int, zone: tzinfo, by: str) -> Plan[None]:
    """Continues a paused one with its first time from now on. What came meanwhile is skipped. Raises `ScheduleOver`."""
    if schedule.paused_at is None:
        return Plan((), None)
    next_at = schedules.following(schedule.timing, now, zone)
    if next_at is None:
        raise ScheduleOver(reminders.time_of(schedule.due_at, zone, schedule.timing.time_zone))
    missed = schedules.passed(schedule, next_at, zone)
    continued = ScheduleContinued(schedule_id=schedule.schedule_id, by=by, next_at=next_at, missed=missed)
    return Plan((Write(schedule.session_id, continued),), None)


def fire(found: Snapshot, due: Due, *, when: str) -> Plan[Fired]:
    """One cause, or a record of why there is none, and the next time. `when`: the time that has come, in words."""
    schedule, skipped = found.schedule, due.skipped or _skipped(found)
    come = ScheduleDue(
        schedule_id=schedule.schedule_id,
        due_at=due.due_at,
        next_at=due.next_at,
        missed=due.missed,
        cause_id=None if skipped else cause_id(schedule.schedule_id, due.due_at),
        skipped=skipped,
    )
    writes = [Write(schedule.session_id, come)]
    if skipped is not None:
        return Plan((*writes, *_told(found, due, skipped, when)), Fired(None, skipped))
    if found.current is not None:
        session_id = found.current.session_id
    elif found.fresh is not None:
        session_id = found.fresh.session_id
        writes += beginning(found.home, found.fresh, reason=DELETED)
    else:
        session_id = found.home.session_id
    return Plan((*writes, Write(session_id, _cause(schedule, due, when))), Fired(session_id))


def _skipped(found: Snapshot) -> str | None:
    if found.known:
        return schedules.KNOWN
    if found.current is not None and found.current.suspended:
        return schedules.SUSPENDED
    return schedules.STILL_WAITS if found.waits else None


def _cause(schedule: Schedule, due: Due, when: str) -> CauseRecorded:
    """With the rights of the one who made it; its turn is no answer to a message, so its reply hangs on none."""
    return CauseRecorded(
        cause_id=cause_id(schedule.schedule_id, due.due_at),
        what=WHAT,
        content=schedule.text,
        sender=schedule.sender,
        schedule=DueTime(schedule_id=schedule.schedule_id, due_at=due.due_at, when=when, missed=due.missed),
        dedup_key=dedup_key(schedule.schedule_id, due.due_at),
    )


def _told(found: Snapshot, due: Due, skipped: str, when: str) -> list[Write]:
    """In a suspended conversation nothing starts by itself, but its people learn what was due, the first time."""
    if skipped != schedules.SUSPENDED or found.schedule.skipped == skipped or found.current is None:
        return []
    session = found.current
    notice_id = f"{cause_id(found.schedule.schedule_id, due.due_at)}.suspended"
    told: list[Event] = [replies.written(session.session_key, "notice", notice_id, schedules.suspended(found.schedule.text, when))]
    return to_session(session.session_id, told)
