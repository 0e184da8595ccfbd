"""Deleting a session, bringing it back, and what stays known of it."""

import pytest

from holdfast.core import events as e
from holdfast.core.plans import Plan, delete
from holdfast.core.plans.delete import Deleted, Deletion
from holdfast.core.plans.leave import Underway
from holdfast.core.turns import OPEN, TurnState
from holdfast.core.usage import DaySpent, Spent
from tests.core.plans.values import AT, CHAT, STATES, events, kinds, session, waiting

SPENT = (DaySpent(day="2026-11-16", spent=Spent(requests=2, cost=9), turns=1),)


def gone(state: TurnState = TurnState.ENDED, *, untold: bool = False) -> Deleted:
    found = session(state, deleted_at=AT - 100, undo_until=AT - 10)
    return Deleted(session=found, by="ann", why=None, untold=untold, pointed_at=True, spent=SPENT)


def test_what_waits_in_a_deleted_session_is_refused_with_the_reason() -> None:
    """A20"""
    plan = delete.delete(Underway(session=session(), waiting=waiting("message")), by="ann", until=AT + 10, at=AT)
    assert plan.reply == Deletion("s1", AT, AT + 10)
    assert [event.reason for event in events(plan, e.MessageRefused)] == ["the conversation was deleted first"]


def test_the_processes_of_a_deleted_session_are_consumed_and_nobody_is_told_of_them() -> None:
    """A28"""
    found = Underway(session=session(queued=1), waiting=waiting("process"), processes=("p1", "p2"))
    plan = delete.delete(found, by="ann", until=AT + 10, at=AT)
    assert kinds(plan) == ["session.deleted", "process.consumed", "process.consumed", "cause.dropped"]
    assert events(plan, e.ProcessConsumed)[1] == e.ProcessConsumed(process_id="p2", how="deleted")


def test_deleting_again_changes_nothing_and_gives_the_first_reply() -> None:
    found = Underway(session=session(deleted_at=AT - 100, undo_until=AT + 5))
    assert delete.delete(found, by="ann", until=AT + 10, at=AT) == Plan((), Deletion("s1", AT - 100, AT + 5))


def test_only_what_is_deleted_is_brought_back() -> None:
    assert delete.undelete(session(), by="ann") == Plan((), False)
    back = delete.undelete(session(deleted_at=AT), by="ann")
    assert back.reply is True and kinds(back) == ["session.undeleted"]


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("waited_ms", [0, 59_999, 60_000])
def test_a_turn_that_was_told_to_stop_has_a_minute_for_its_last_words(state: TurnState, waited_ms: int) -> None:
    plan = delete.purge(gone(state), waited_ms=waited_ms, at=AT)
    assert plan.reply is (state not in OPEN or waited_ms == 60_000)
    assert kinds(plan) == (["session.purged"] if plan.reply else [])


@pytest.mark.parametrize("untold", [False, True])
def test_the_tombstone_says_who_deleted_what_and_those_who_were_refused_are_told(untold: bool) -> None:
    """A20"""
    plan = delete.purge(gone(untold=untold), waited_ms=0, at=AT)
    (tombstone,) = events(plan, e.SessionPurged)
    assert (tombstone.session_id, tombstone.session_key, tombstone.deleted_at, tombstone.by) == ("s1", CHAT, AT - 100, "ann")
    assert (tombstone.created_at, tombstone.generation, tombstone.current) == (1, 5, True)
    assert tombstone.spent == SPENT
    assert [(told.role, told.delivery_id) for told in events(plan, e.MessageWritten)] == [("notice", "s1.deleted")] * untold
