"""The signs of life of a turn, what a human asked for, and which results nobody read: what recovery decides by."""

import msgspec
import pytest

from holdfast.core import events as e
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.events import Event
from holdfast.core.turns import Outcome
from tests.core.logs import CALL, Log, asked, begun, fold, text


def signed_by(log: Log, event: Event) -> bool:
    """Whether the last event of the turn is a sign of life."""
    before = fold(log).turns[-1].signed_at
    after = fold(log.in_turn(event)).turns[-1].signed_at
    assert after in (before, 1000 + len(log.items))
    return after != before


def test_the_start_of_a_turn_is_a_sign_of_life() -> None:
    assert fold(Log().said("m1", "hi").started("t1", "m1", "hi")).turns[0].signed_at == 1002


@pytest.mark.parametrize(
    "event",
    [
        text("x", 0),
        e.Reasoning(text="hm"),
        e.TurnAlive(),
        e.ToolStarted(call_id="c2", name="n", arguments={}, effect=Effect.PURE),
        e.ToolOutput(call_id="c1", text="x"),
        e.ToolFinished(call_id="c1", outcome=ToolOutcome.DONE, content="r"),
        e.ToolFinished(call_id="c1", outcome=ToolOutcome.FAILED, content="r"),
        e.QuestionAsked(question_id="q", call_id="c1", content="?", expires_at=0),
    ],
    ids=lambda event: event.kind,
)
def test_what_a_turns_own_process_adds_is_a_sign_of_life(event: Event) -> None:
    """R6"""
    assert signed_by(begun().in_turn(CALL), event)


def test_an_answer_to_its_question_is_a_sign_of_life() -> None:
    """R6: its user has spoken."""
    assert signed_by(asked(), e.QuestionAnswered(question_id="q1", call_id="c1", content="yes"))


@pytest.mark.parametrize(
    "event",
    [
        e.TurnTaken(owner=2, epoch=2),
        e.TurnInterrupted(reason="crash", restarts=1),
        e.ToolFinished(call_id="c1", outcome=ToolOutcome.UNKNOWN, content="It may have run."),
        e.MessageWritten(message_id="n", role="notice", content="told"),
        e.TurnEnded(outcome=Outcome.FAILED),
    ],
    ids=lambda event: event.kind,
)
def test_what_a_recovery_writes_is_no_sign_of_life(event: Event) -> None:
    """R6"""
    assert not signed_by(begun().in_turn(CALL), event)


def test_a_turn_that_is_taken_up_left_and_cut_over_and_over_ages() -> None:
    """R6: an attempt that added nothing of its own is no sign of life, nor is a mark that is refreshed."""
    log = begun().in_turn(text("x", 0)).cut()
    sign = fold(log).turns[0].signed_at
    assert sign == 1004
    log.in_turn(e.TurnTaken(owner=2, epoch=2)).resumed(2).cut().left("R8").free(e.SessionChanged(resume_pending=True)).resumed(3).cut()
    assert fold(log).turns[0].signed_at == sign
    assert fold(log.resumed(4).in_turn(e.TurnAlive())).turns[0].signed_at == 1000 + len(log.items)


def test_what_others_add_to_the_session_is_no_sign_of_life_of_its_turn() -> None:
    log = begun().said("m2", "more").free(e.StopRequested(turn_id="t1", by="owner"), e.SessionResumed(by="owner"))
    assert fold(log).turns[0].signed_at == 1002


def test_a_sign_whose_time_is_missing_counts_as_none() -> None:
    """R6: a time that is missing is not fresh."""
    log = begun().in_turn(text("x", 0))
    lost = [msgspec.structs.replace(log.items[-1], at=0)]
    assert fold([*log.items[:-1], *lost]).turns[0].signed_at is None


# --- what a human asked for, and what nobody read


def test_a_human_who_resumes_the_session_asks_for_its_turn_until_it_goes_on_or_is_cut_again() -> None:
    """R6, R7: whoever asked is heard once."""
    log = begun().cut().left()
    assert not fold(log).turns[0].asked
    log.free(e.SessionResumed(by="owner"))
    assert fold(log).turns[0].asked
    assert not fold(log.resumed(2)).turns[0].asked
    log.free(e.SessionResumed(by="owner"))
    assert not fold(log.cut()).turns[0].asked
    assert fold(Log().free(e.SessionResumed(by="owner"))).turns == []


def test_results_are_unread_until_the_agent_says_thinks_or_calls_something() -> None:
    """B4"""
    result = e.ToolFinished(call_id="c1", outcome=ToolOutcome.DONE, content="r")
    assert not fold(begun().in_turn(CALL)).turns[0].unread_results
    assert fold(begun().in_turn(CALL, result)).turns[0].unread_results
    for read in (text("x", 0), e.Reasoning(text="hm"), e.ToolStarted(call_id="c2", name="n", arguments={}, effect=Effect.PURE)):
        assert not fold(begun().in_turn(CALL, result, read)).turns[0].unread_results
    for aside in (e.TurnAlive(), e.ToolOutput(call_id="c1", text="x"), e.TurnInterrupted(reason="crash", restarts=1)):
        assert fold(begun().in_turn(CALL, result, aside)).turns[0].unread_results
    assert fold(asked().in_turn(e.QuestionAnswered(question_id="q1", call_id="c1", content="yes"))).turns[0].unread_results


@pytest.mark.parametrize("unread", [False, True])
def test_an_ended_turn_says_itself_whether_it_left_results_unread(unread: bool) -> None:
    """B4: also where its pieces are gone, and whatever they would have told."""
    result = e.ToolFinished(call_id="c1", outcome=ToolOutcome.DONE, content="r")
    for events in ((CALL, result), (CALL, result, text("read", 0))):
        log = begun().in_turn(*events, e.TurnEnded(outcome=Outcome.FAILED, unread_results=unread))
        assert [fold(items).turns[0].unread_results for items in (log.items, log.records())] == [unread, unread]


# Of each event of a turn: whether it is a sign of life, whether its attempt has shown something with it, and whether it reads results.
NOTED: dict[Event, tuple[bool, bool, bool]] = {
    e.TurnAlive(): (True, False, False),
    e.TurnWaiting(question_ids=("q",)): (True, False, False),
    e.CauseTaken(cause_id="m2"): (True, False, False),
    e.ModelFailed(step=0, tries=1, error="Timeout", why="no answer"): (True, False, False),
    e.ContextCompacted(through=1, summary="before"): (True, False, False),
    text("x", 0): (True, True, True),
    e.Reasoning(text="hm"): (True, True, True),
    e.ModelResponded(step=0): (True, True, True),
    e.ToolOutput(call_id="c1", text="x"): (True, False, False),
    e.ToolFinished(call_id="c1", outcome=ToolOutcome.DONE, content="r"): (True, True, False),
    e.ToolFinished(call_id="c1", outcome=ToolOutcome.FAILED, content="r"): (True, True, False),
    e.ToolFinished(call_id="c1", outcome=ToolOutcome.UNKNOWN, content="r"): (False, False, False),
    e.QuestionAsked(question_id="q", call_id="c1", content="?", expires_at=0, ends_attempt=False): (True, False, False),
    e.QuestionAnswered(question_id="q", call_id="c1", content="yes"): (True, False, False),
    e.TurnTaken(owner=2, epoch=2): (False, False, False),
    e.TurnLeft(rule="R7"): (False, False, False),
    e.MessageWritten(message_id="n", role="notice", content="told"): (False, False, False),
}
STARTED = e.ToolStarted(call_id="c2", name="n", arguments={}, effect=Effect.PURE)  # A value with a dict is no key.


@pytest.mark.parametrize(("event", "noted"), [*NOTED.items(), (STARTED, (True, False, True))], ids=lambda value: getattr(value, "kind", ""))
def test_what_each_event_says_about_its_turn(event: Event, noted: tuple[bool, bool, bool]) -> None:
    """R4, R6, B4"""
    log = begun().in_turn(CALL, e.ToolFinished(call_id="c1", outcome=ToolOutcome.DONE, content="r")).cut().resumed(2)
    before = fold(log).turns[0]
    assert (before.spoke, before.unread_results) == (False, True)
    found = fold(log.in_turn(event)).turns[0]
    assert (found.signed_at != before.signed_at, found.spoke, not found.unread_results) == noted


@pytest.mark.parametrize(
    "event", [event for event in (*NOTED, STARTED) if not isinstance(event, e.TurnTaken | e.TurnLeft)], ids=lambda event: event.kind
)
def test_what_an_earlier_lease_adds_late_moves_no_sign_of_a_later_one(event: Event) -> None:
    """R4, R6, P2: it is no sign of life of the new attempt, nothing that one said, and nothing it read."""
    log = begun().in_turn(CALL).cut().resumed(2).in_turn(e.ToolFinished(call_id="c1", outcome=ToolOutcome.DONE, content="r"))
    log.cut().resumed(3).in_turn(e.TurnAlive())
    before = fold(log).turns[0]
    more = Log()
    more.items, more.turn, more.epoch, more.attempt, more.position = list(log.items), "t1", 1, 1, 1000
    found = fold(more.in_turn(event)).turns[0]
    assert (found.signed_at, found.spoke, found.unread_results) == (before.signed_at, False, True)


@pytest.mark.parametrize("late", [True, False])
def test_a_late_result_is_read_by_what_a_later_lease_said(late: bool) -> None:
    """B4"""
    log = begun().in_turn(CALL).cut().resumed(2).in_turn(text("x", 0))
    more = Log()
    more.items, more.turn, more.attempt = list(log.items), "t1", 1 if late else 2
    more.epoch, more.position = (1, 1000) if late else (log.epoch, log.position)
    found = fold(more.in_turn(e.ToolFinished(call_id="c1", outcome=ToolOutcome.DONE, content="r"))).turns[0]
    assert found.unread_results is not late


def test_an_answer_that_came_while_its_turn_ran_is_a_sign_of_life_and_unread_until_the_agent_goes_on() -> None:
    """B4, R6: also where the agent said something after it had asked, and nothing since."""
    asks = e.QuestionAsked(question_id="q1", call_id="c1", content="?", expires_at=99, ends_attempt=False)
    log = begun().in_turn(CALL, asks, text("Wait. ", 0)).free(e.QuestionAnswered(question_id="q1", call_id="c1", content="yes"))
    turn = fold(log).turns[0]
    assert (turn.signed_at, turn.unread_results) == (1000 + len(log.items), True)
    assert not fold(log.in_turn(text("So.", 6))).turns[0].unread_results


def test_results_of_version_0_1_are_read_by_what_came_after_them() -> None:
    """A3, B4: its rows name no lease."""
    result = e.ToolFinished(call_id="c1", outcome=ToolOutcome.DONE, content="r")
    for events, unread in (((CALL,), False), ((CALL, result), True), ((CALL, result, text("x", 0)), False)):
        items = [msgspec.structs.replace(item, epoch=None) for item in begun().in_turn(*events).items]
        assert fold(items).turns[0].unread_results is unread
    alone = [msgspec.structs.replace(item, epoch=None) for item in begun().in_turn(text("x", 0)).items]
    assert not fold(alone).turns[0].unread_results
