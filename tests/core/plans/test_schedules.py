"""What becomes of a time of a schedule that has come, over every fact that decides it (P6, E7)."""

from itertools import product

import msgspec
import pytest

from holdfast.core import events as e
from holdfast.core import schedules as s
from holdfast.core.plans import schedules
from holdfast.core.plans.schedules import Fired, Snapshot
from holdfast.core.schedules import Due, Schedule, Timing, TooManySchedules
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
