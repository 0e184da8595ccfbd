"""Schedules as the API shows them."""

import msgspec

from holdfast import time_zones
from holdfast.api.times import rfc3339, rfc3339_or_none
from holdfast.core import reminders
from holdfast.core.events import DueTime
from holdfast.core.schedules import Schedule


class DueTimeView(msgspec.Struct, kw_only=True):
    """Which time of which schedule started a turn. `when` says it in words; `missed`: how many times before it passed untold."""

    schedule_id: str
    due_at: str
    when: str
    missed: int


class ScheduleView(msgspec.Struct, kw_only=True):
    """Starts a turn from `text` at certain times: `at` once, every `every_s` seconds, or as `cron` says in `time_zone`; `when` says it in
    words. It stands in the session `session_id` and works in the current session of its key. `missed`: what is done about a time at which
    Holdfast could start nothing. `by`: whose rights its turns have; `call_id`: the call of an agent that made it. `due_at`: the next time;
    `last_at`: the last one that came, and `skipped` why it started no turn; `paused_at`: since when none of its times is due; each null if
    it does not apply.
    """

    schedule_id: str
    session_id: str
    session_key: str
    text: str
    when: str
    at: str | None
    every_s: int | None
    cron: str | None
    time_zone: str
    missed: str
    by: str
    call_id: str | None
    created_at: str
    due_at: str
    last_at: str | None
    skipped: str | None
    paused_at: str | None


class SchedulesView(msgspec.Struct):
    schedules: list[ScheduleView]


def due_time(due: DueTime) -> DueTimeView:
    return DueTimeView(schedule_id=due.schedule_id, due_at=rfc3339(due.due_at), when=due.when, missed=due.missed)


def schedule(found: Schedule) -> ScheduleView:
    timing = found.timing
    return ScheduleView(
        schedule_id=found.schedule_id,
        session_id=found.session_id,
        session_key=found.session_key,
        text=found.text,
        when=reminders.told(timing, time_zones.zone_or_utc(timing.time_zone)),
        at=rfc3339_or_none(timing.once_at),
        every_s=timing.every_s,
        cron=timing.cron,
        time_zone=timing.time_zone,
        missed=found.missed,
        by=found.sender,
        call_id=found.call_id,
        created_at=rfc3339(found.created_at),
        due_at=rfc3339(found.due_at),
        last_at=rfc3339_or_none(found.last_at),
        skipped=found.skipped,
        paused_at=rfc3339_or_none(found.paused_at),
    )
