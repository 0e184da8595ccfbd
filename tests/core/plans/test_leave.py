"""Resets, suspensions and deletions over every state of what is left, and everything that may wait in it."""

from itertools import product
from typing import Any

import msgspec
import pytest

from holdfast.core import events as e
from holdfast.core import notices
from holdfast.core.plans import Plan, Write, command, delete, leave
from holdfast.core.plans.command import Aside
from holdfast.core.plans.delete import LAST_WORDS_MS, Deleted, Deletion
from holdfast.core.plans.leave import Moved, Underway
from holdfast.core.plans.repeats import NOTHING, RESET, Known
from holdfast.core.turns import OPEN, TurnState
from tests.core.plans.values import AT, CHAT, FRESH, PAGE, STATES, events, kinds, session, unattended, waiting, written

WORDS = Aside(message_id="m9", content="/new", sender="ann", dedup_key="k9", anchor="a9")
INBOXES = ((), ("message",), ("message", "timer"), ("timer",), ("message", "message"))


def underway(state: TurnState, inbox: tuple[str, ...] = (), **facts: object) -> Underway:
    of = session(state, queued=len(inbox), **facts)
    return Underway(session=of, unfinished=unattended(of), waiting=waiting(*inbox))


def check_left(plan: Plan[Any], state: TurnState, inbox: tuple[str, ...], why: str) -> None:
    """Its turn is stopped, messages are refused and told once with their words, other causes are dropped."""
    of_s1 = [write.event for write in plan.writes if write.session_id == "s1"]
    assert [event.turn_id for event in of_s1 if isinstance(event, e.StopRequested)] == (["t1"] if state in OPEN else [])
    ends = [event for event in of_s1 if isinstance(event, e.TurnEnded)]
    assert len(ends) == (state in (TurnState.WAITING, TurnState.ANSWERED))
    refused = {event.message_id: event.reason for event in of_s1 if isinstance(event, e.MessageRefused)}
    dropped = {event.cause_id: event.reason for event in of_s1 if isinstance(event, e.CauseDropped)}
    assert refused == {f"w{n}": why for n, what in enumerate(inbox, 1) if what == "message"}
    assert dropped == {f"w{n}": why for n, what in enumerate(inbox, 1) if what != "message"}
    told = [event for event in of_s1 if isinstance(event, e.MessageWritten) and event.message_id.endswith(".refused")]
    assert len(told) == bool(refused)
    for event in told:
        assert (event.role, event.message_id, event.delivery_id) == ("notice", f"{next(iter(refused))}.refused", event.message_id)
        assert all(f"> words {cause_id[1:]}" in event.text for cause_id in refused) and why in event.text


@pytest.mark.parametrize(("state", "inbox", "suspended"), list(product(STATES, INBOXES, (False, True))))
def test_a_reset_leaves_what_was_used_and_begins_a_new_session(state: TurnState, inbox: tuple[str, ...], suspended: bool) -> None:
    """A20, A22"""
    plan = leave.reset(underway(state, inbox, suspended=suspended, folder="/work"), FRESH, by="ann", dedup_key="k")
    if state is TurnState.NONE and not inbox and not suspended:
        assert plan.reply == Moved("s1", changed=False)
        assert [write.event for write in plan.writes] == [e.RequestNoted(what="reset", dedup_key="k")]
        return
    assert plan.reply == Moved("s2", changed=True, continues=False)
    check_left(plan, state, inbox, leave.RESET_FIRST)
    (created,) = events(plan, e.SessionCreated)
    assert (created.session_id, created.session_key, created.log, created.dedup_key) == ("s2", CHAT, "l2", "k")
    assert (created.auto_reset_reason, created.title, created.folder) == (None, None, "/work")
    assert written(plan)[-2:] == [("s2", "session.created", False), ("s2", "message.written", False)]
    begun = plan.writes[-1].event
    assert isinstance(begun, e.MessageWritten) and "/resume 3" in begun.text and begun.delivery_id == "s2.begun"
    assert "you asked for one" in begun.text


def test_a_session_that_begins_for_itself_is_one_record_of_its_own() -> None:
    created = e.SessionCreated(session_id="s9", session_key=CHAT, log="l9")
    assert leave.begin(created) == Plan((Write("s9", created),), None)


@pytest.mark.parametrize("ref", ["s2", NOTHING])
def test_a_repeated_reset_gives_the_first_reply(ref: str) -> None:
    """A22"""
    assert leave.reset_again(Known(RESET, "s2", ref)) == Moved("s2", changed=ref != NOTHING)


@pytest.mark.parametrize(("state", "inbox"), list(product(STATES, INBOXES)))
def test_a_reset_by_command_is_answered_in_the_session_that_is_current_afterwards(state: TurnState, inbox: tuple[str, ...]) -> None:
    """A22"""
    plan = command.reset(underway(state, inbox), FRESH, WORDS, command.Reset(("s2", "l2"), "ann"))
    changed = state is not TurnState.NONE or bool(inbox)
    assert plan.reply.session_id == ("s2" if changed else "s1")
    said, told = plan.writes[-2:]
    assert {said.session_id, told.session_id} == {plan.reply.session_id}
    assert isinstance(told.event, e.MessageWritten)
    assert ("you asked for one" in told.event.text) == changed
    # The reply says it; nothing else does.
    assert not any(event.message_id.endswith(".begun") for event in events(plan, e.MessageWritten))


@pytest.mark.parametrize("reason", ["suspended", "idle", "daily", "deleted", None])
def test_a_session_that_takes_the_place_of_another_says_why_and_how_to_get_back(reason: str | None) -> None:
    """A19"""
    writes = leave.beginning(session(session_key=PAGE), FRESH, reason=reason)
    created = writes[0].event
    assert isinstance(created, e.SessionCreated)
    assert created.auto_reset_reason == reason
    assert created.title == ("A title (5)" if reason == "suspended" else None)
    told = [write.event for write in writes[1:]]
    assert len(told) == (reason != "deleted")  # There is nothing to get back to.
    for event in told:
        assert isinstance(event, e.MessageWritten) and event.delivery_id is None and event.role == "notice"
        assert event.text == notices.begun(reason or "asked", 3) and "/resume 3" in event.text


def test_what_was_allowed_in_a_conversation_is_over_once_it_is_left() -> None:
    """Its rules are removed there, on record, before the new one begins."""
    writes = leave.beginning(session(), msgspec.structs.replace(FRESH, rules=("r1", "r2")), reason=None)
    removed = [e.RuleRemoved(rule_id=rule_id, by="reset") for rule_id in ("r1", "r2")]
    assert [(write.session_id, write.event) for write in writes[:2]] == [("s1", event) for event in removed]


@pytest.mark.parametrize(("suspended", "inbox"), list(product((True, False, None), INBOXES)))
def test_only_a_change_that_suspends_turns_away_what_waits(suspended: bool | None, inbox: tuple[str, ...]) -> None:
    """A20"""
    changed = e.SessionChanged(title="Other") if suspended is None else e.SessionChanged(suspended=suspended)
    plan = leave.change(underway(TurnState.RUNNING, inbox), changed)
    assert plan.writes[0].event is changed
    if suspended:
        check_left(plan, TurnState.NONE, inbox, "the conversation was suspended first")
    else:
        assert len(plan.writes) == 1
    assert leave.suspends(changed) is bool(suspended)
    assert not leave.suspends(e.SessionResumed(by="ann"))


@pytest.mark.parametrize(("state", "inbox"), list(product(STATES, INBOXES)))
def test_a_deletion_stands_before_what_it_ends_so_that_nobody_is_owed_that(state: TurnState, inbox: tuple[str, ...]) -> None:
    """A20"""
    plan = delete.delete(underway(state, inbox), by="ann", until=AT + 5, why="old", at=AT)
    assert plan.reply == Deletion("s1", AT, AT + 5)
    assert plan.writes[0].event == e.SessionDeleted(by="ann", purge_at=AT + 5, why="old")
    check_left(plan, state, inbox, delete.DELETED_FIRST)


@pytest.mark.parametrize("state", STATES)
def test_a_deleted_session_stays_as_it_is_until_it_is_brought_back(state: TurnState) -> None:
    of = session(state, deleted_at=40, undo_until=50)
    again = delete.delete(Underway(session=of, waiting=waiting("message")), by="ann", until=AT, at=AT)
    assert (again.writes, again.reply) == ((), Deletion("s1", 40, 50))
    back = delete.undelete(of, by="ann")
    assert back.reply and [write.event for write in back.writes] == [e.SessionUndeleted(by="ann")]
    assert delete.undelete(session(state), by="ann").writes == ()


@pytest.mark.parametrize(("state", "waited_ms", "untold"), list(product(STATES, (0, LAST_WORDS_MS), (False, True))))
def test_a_purge_begins_once_the_turn_has_ended_or_had_its_time(state: TurnState, waited_ms: int, untold: bool) -> None:
    of = session(state, deleted_at=40, undo_until=50)
    found = Deleted(session=of, by="ann", why="old", untold=untold, pointed_at=True)
    plan = delete.purge(found, waited_ms=waited_ms, at=AT)
    if state in OPEN and waited_ms < LAST_WORDS_MS:
        assert not plan.reply and plan.writes == ()
        return
    assert plan.reply
    (purged,) = events(plan, e.SessionPurged)
    assert (purged.session_id, purged.deleted_at, purged.by, purged.why, purged.current) == ("s1", 40, "ann", "old", True)
    assert kinds(plan)[1:] == (["message.written"] if untold else [])


def test_a_process_goes_on_when_its_session_is_left_and_its_end_that_waits_is_told() -> None:
    """E3"""
    found = Underway(session=session(TurnState.ENDED, queued=1), waiting=waiting("process"), processes=("p1",))
    plan = leave.reset(found, FRESH, by="ann")
    assert kinds(plan)[:2] == ["cause.dropped", "message.written"] and not events(plan, e.ProcessConsumed)
    assert [write.event.kind for write in leave.leaving(found, "ann", "why", tells=False)] == ["cause.dropped"]
