"""Schedules, and the times at which they are due."""

import msgspec

from holdfast.core.events.base import Event, Says


class DueTime(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which time of which schedule a cause stands for. `when` says it in words; `missed`: how many times before it were not told."""

    schedule_id: str
    due_at: int
    when: str = ""
    missed: int = 0


class ScheduleAdded(Says, frozen=True):
    """From now on a turn of this key starts from these words at certain times, with the rights of `sender`: once (`once_at`), every so
    many seconds since a time, or as a cron expression says in a time zone. `due_at`: the first time. `missed`: what is done about a time
    at which nothing could start ("run" or "skip"). `call_id`: the call of an agent that made it.
    """

    kind = "schedule.added"
    schedule_id: str
    due_at: int
    once_at: int | None = None
    every_s: int | None = None
    since: int = 0
    cron: str | None = None
    time_zone: str = "UTC"
    missed: str = "run"
    sender: str = "owner"
    call_id: str | None = None
    dedup_key: str | None = None


class ScheduleDue(Event, frozen=True):
    """A time of a schedule has come, after `missed` others. `cause_id`: the cause that was recorded for it, in the key's current session;
    or `skipped`: why none was. `next_at`: None after the last time, with which the schedule is over.
    """

    kind = "schedule.due"
    schedule_id: str
    due_at: int
    next_at: int | None = None
    missed: int = 0
    cause_id: str | None = None
    skipped: str | None = None


class SchedulePaused(Event, frozen=True):
    """None of its times is due until it is continued."""

    kind = "schedule.paused"
    schedule_id: str
    by: str


class ScheduleContinued(Event, frozen=True):
    """`next_at`: its first time from here on. `missed`: how many times came while it was paused, and are skipped."""

    kind = "schedule.continued"
    schedule_id: str
    by: str
    next_at: int
    missed: int = 0


class ScheduleRemoved(Event, frozen=True):
    kind = "schedule.removed"
    schedule_id: str
    by: str
