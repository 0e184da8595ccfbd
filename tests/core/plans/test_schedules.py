"""What becomes of a time of a schedule that has come, over every fact that decides it (P6, E7)."""

from datetime import UTC
from itertools import product

import msgspec
import pytest

from holdfast.core import events as e
from holdfast.core import schedules as s
from holdfast.core.plans import schedules
from holdfast.core.plans.schedules import Fired, Snapshot
from holdfast.core.schedules import Due, Schedule, ScheduleOver, Timing, TooManySchedules
from holdfast.core.turns import TurnState
from tests.core.plans.values import CHAT, FRESH, PAGE, STATES, events, kinds, session, written

FLAGS = (False, True)
DUE = Due(due_at=500, next_at=900, missed=1)
SCHEDULE = Schedule(
    schedule_id="c1",
    session_id="s0",
    session_key=CHAT,
    text="one\ntwo",
    timing=Timing(cron="0 8 * * *"),
    missed="run",
    sender="ann",
    call_id=None,
    created_at=1,
    due_at=400,
    noted_at=1,
)


def found(**facts: object) -> Snapshot:
    return Snapshot(**{"schedule": SCHEDULE, "home": session(session_id="s0"), "current": session(TurnState.ENDED), **facts})  # type: ignore[arg-type]


@pytest.mark.parametrize(("suspended", "known", "waits", "late"), list(product(FLAGS, repeat=4)))
def test_a_time_is_one_cause_or_a_record_of_why_there_is_none(suspended: bool, known: bool, waits: bool, late: bool) -> None:
    due = msgspec.structs.replace(DUE, skipped=s.TOO_LATE if late else None)
    plan = schedules.fire(found(current=session(suspended=suspended), known=known, waits=waits), due, when="then")
    reason = s.TOO_LATE if late else s.KNOWN if known else s.SUSPENDED if suspended else s.STILL_WAITS if waits else None
    assert plan.reply == Fired(None if reason else "s1", reason)
    assert events(plan, e.ScheduleDue) == [
        e.ScheduleDue(schedule_id="c1", due_at=500, next_at=900, missed=1, cause_id=None if reason else "c1.500", skipped=reason)
    ]
    assert len(events(plan, e.CauseRecorded)) == (reason is None)
    assert len(events(plan, e.MessageWritten)) == (reason == s.SUSPENDED)
    assert not any(write.in_turn for write in plan.writes)


@pytest.mark.parametrize("state", STATES)
def test_whatever_the_session_is_at_the_cause_waits_in_its_inbox(state: TurnState) -> None:
    """P2"""
    plan = schedules.fire(found(current=session(state)), DUE, when="then")
    assert written(plan) == [("s0", "schedule.due", False), ("s1", "cause.recorded", False)]
    assert plan.writes[1].event == e.CauseRecorded(
        cause_id="c1.500",
        what="schedule",
        content="one\ntwo",
        sender="ann",
        schedule=e.DueTime(schedule_id="c1", due_at=500, when="then", missed=1),
        dedup_key="schedule|c1|500",
    )


def test_where_its_key_has_no_session_one_begins_without_a_word_about_what_was_deleted() -> None:
    plan = schedules.fire(found(current=None, fresh=FRESH), DUE, when="then")
    assert written(plan) == [("s0", "schedule.due", False), ("s2", "session.created", False), ("s2", "cause.recorded", False)]
    assert plan.reply == Fired("s2")
    assert schedules.fire(found(current=None), DUE, when="then").reply == Fired("s0")


@pytest.mark.parametrize(("before", "told"), [(None, True), (s.TOO_LATE, True), (s.SUSPENDED, False)])
@pytest.mark.parametrize("key", [CHAT, PAGE])
def test_people_of_a_suspended_conversation_are_told_when_it_begins_to_hold_a_schedule(before: str | None, told: bool, key: str) -> None:
    schedule = msgspec.structs.replace(SCHEDULE, skipped=before)
    plan = schedules.fire(found(schedule=schedule, current=session(suspended=True, session_key=key)), DUE, when="then")
    assert kinds(plan) == ["schedule.due", *(["message.written"] if told else [])]
    for notice in events(plan, e.MessageWritten):
        assert (notice.role, notice.delivery_id is not None) == ("notice", key == CHAT)
        assert notice.text.startswith("This was scheduled for then, but the conversation is suspended") and notice.text.endswith(
            "> one\n> two"
        )


def test_a_schedule_is_paused_once() -> None:
    plan = schedules.pause(SCHEDULE, by="ann")
    assert written(plan) == [("s0", "schedule.paused", False)]
    assert schedules.pause(msgspec.structs.replace(SCHEDULE, paused_at=7), by="ann").writes == ()


@pytest.mark.parametrize(
    ("timing", "now", "next_at", "missed"),
    [
        (Timing(every_s=100, since=0), 150_000, 200_000, 1),
        (Timing(every_s=100, since=0), 950_000, 1_000_000, 9),
        (Timing(every_s=100, since=0), 100_000, 200_000, 1),
        (Timing(every_s=100, since=0), 50_000, 100_000, 0),
        (Timing(once_at=100_000), 99_999, 100_000, 0),
        (Timing(cron="0 8 * * *"), 9 * 3_600_000, 32 * 3_600_000, 1),
    ],
)
def test_a_paused_schedule_continues_with_its_next_time_and_skips_what_came_meanwhile(
    timing: Timing, now: int, next_at: int, missed: int
) -> None:
    """P6, E7"""
    first = s.following(timing, 1, UTC)
    paused = msgspec.structs.replace(SCHEDULE, timing=timing, due_at=first, paused_at=7)
    plan = schedules.proceed(paused, now=now, zone=UTC, by="ann")
    assert events(plan, e.ScheduleContinued) == [e.ScheduleContinued(schedule_id="c1", by="ann", next_at=next_at, missed=missed)]
    assert schedules.proceed(msgspec.structs.replace(paused, paused_at=None), now=now, zone=UTC, by="ann").writes == ()


def test_one_whose_only_time_passed_while_it_was_paused_is_not_continued() -> None:
    paused = msgspec.structs.replace(SCHEDULE, timing=Timing(once_at=100), due_at=100, paused_at=7)
    with pytest.raises(ScheduleOver, match="Its time passed while it was paused: Thursday 1 January 1970"):
        schedules.proceed(paused, now=100, zone=UTC, by="ann")


@pytest.mark.parametrize(("here", "limit"), [(0, 0), (1, 1), (5, 3)])
def test_a_schedule_too_many_is_refused(here: int, limit: int) -> None:
    added = e.ScheduleAdded(schedule_id="c1", content="x", due_at=5)
    with pytest.raises(TooManySchedules):
        schedules.add(session(), added, here=here, limit=limit)
    assert schedules.add(session(), added, here=here, limit=here + 1).writes[0].event is added


def test_a_schedule_that_is_removed_says_who_removed_it_where_it_stands() -> None:
    plan = schedules.remove(SCHEDULE, by="bob")
    assert (plan.reply, written(plan)) == (SCHEDULE, [("s0", "schedule.removed", False)])
    assert events(plan, e.ScheduleRemoved) == [e.ScheduleRemoved(schedule_id="c1", by="bob")]
