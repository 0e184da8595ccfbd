"""The rows of schedules."""

from holdfast.core import events as e
from holdfast.core.content import digest
from holdfast.store.heads import Head
from holdfast.store.projection.common import Rows, remember
from holdfast.store.rows import Change, Delete, Insert, Update

SCHEDULED = Insert("schedule", "schedule_id", "session", "seq", "at", "due", "noted", conflict="DO NOTHING")
NEXT_DUE = Update("schedule", "due", "noted", "last", "skipped", where="schedule_id = ?")
SCHEDULE_PAUSED = Update("schedule", "paused", "noted", where="schedule_id = ?")
SCHEDULE_CONTINUED = Update("schedule", "paused = NULL", "due", "noted", where="schedule_id = ?")
SCHEDULE_GONE = Delete("schedule", where="schedule_id = ?")
SCHEDULES_GONE = Delete("schedule", where="session = ?")


def _schedule_added(head: Head, event: e.ScheduleAdded, at: int, in_turn: bool) -> list[Change]:
    row = (event.schedule_id, head.session, head.seq, at, event.due_at, at)
    return [(SCHEDULED, row), *remember(event.dedup_key, digest(event.content), head, event.schedule_id)]


def _schedule_due(head: Head, event: e.ScheduleDue, at: int, in_turn: bool) -> list[Change]:
    if event.next_at is None:
        return [(SCHEDULE_GONE, (event.schedule_id,))]
    return [(NEXT_DUE, (event.next_at, at, event.due_at, event.skipped, event.schedule_id))]


def _schedule_paused(head: Head, event: e.SchedulePaused, at: int, in_turn: bool) -> list[Change]:
    return [(SCHEDULE_PAUSED, (at, at, event.schedule_id))]


def _schedule_continued(head: Head, event: e.ScheduleContinued, at: int, in_turn: bool) -> list[Change]:
    return [(SCHEDULE_CONTINUED, (event.next_at, at, event.schedule_id))]


def _schedule_removed(head: Head, event: e.ScheduleRemoved, at: int, in_turn: bool) -> list[Change]:
    return [(SCHEDULE_GONE, (event.schedule_id,))]


ROWS: Rows = {
    e.ScheduleAdded: _schedule_added,
    e.ScheduleDue: _schedule_due,
    e.SchedulePaused: _schedule_paused,
    e.ScheduleContinued: _schedule_continued,
    e.ScheduleRemoved: _schedule_removed,
}
