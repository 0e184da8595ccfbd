"""What a conversation says about an interruption: what was decided, by which rule, and why."""

import pytest

from holdfast.core import events as e
from holdfast.core.turns import Outcome, TurnState
from tests.core.logs import Log, asked, begun, fold, text


def decision(log: Log) -> tuple[str | None, str | None, int | None]:
    """What the newest interruption row says, the same from the records alone."""
    whole, loaded = ([message for message in fold(items).messages if message.role == "interruption"][-1] for items in (log, log.records()))
    assert (whole.decision, whole.rule, whole.attempt) == (loaded.decision, loaded.rule, loaded.attempt)
    assert fold(log).turns[-1].rule == whole.rule
    return whole.decision, whole.rule, whole.attempt


def test_a_cut_over_which_nothing_was_decided_says_nothing() -> None:
    assert decision(begun().cut()) == (None, None, None)


def test_a_turn_that_was_resumed_says_by_which_rule_and_why() -> None:
    """P8"""
    why = "interrupted by a crash 12 s earlier"
    assert decision(begun().cut().resumed(2, "R9", why)) == ("resumed: rule R9, interrupted by a crash 12 s earlier", "R9", 2)
    assert decision(begun().cut().resumed(2)) == ("resumed: rule R9", "R9", 2)


def test_a_turn_that_was_left_says_so_and_says_anew_what_became_of_it() -> None:
    """R7, B14"""
    log = begun().cut().left("R7", "interrupted by a crash 5 s earlier")
    assert decision(log) == ("left: rule R7, interrupted by a crash 5 s earlier", "R7", None)
    assert fold(log).turns[0].state is TurnState.INTERRUPTED
    log.left("R8", "interrupted by a crash 1 h earlier")
    assert decision(log) == ("left: rule R8, interrupted by a crash 1 h earlier", "R8", None)
    log.free(e.SessionResumed(by="owner")).resumed(2, "R9", "interrupted by a crash 2 h earlier")
    assert decision(log) == ("resumed: rule R9, interrupted by a crash 2 h earlier", "R9", 2)
    assert decision(log.ended("whole")) == ("resumed: rule R9, interrupted by a crash 2 h earlier", "R9", 2)


@pytest.mark.parametrize(
    ("rule", "outcome", "told"),
    [
        ("R0", Outcome.CANCELLED, "cancelled: rule R0, why"),
        ("R2", Outcome.SET_ASIDE, "set aside: rule R2, why"),
        ("R6", Outcome.SET_ASIDE, "set aside: rule R6, why"),
        ("R4", Outcome.FAILED, "ended: rule R4, why"),
    ],
)
def test_a_turn_that_does_not_go_on_says_how_it_ended_by_which_rule_and_why(rule: str, outcome: Outcome, told: str) -> None:
    log = begun().in_turn(text("x", 0)).cut(written=1).in_turn(e.MessageWritten(message_id="t1.answer", role="assistant", content="x"))
    assert decision(log.in_turn(e.TurnEnded(outcome=outcome, rule=rule, why="why"))) == (told, rule, None)


def test_an_end_of_its_own_changes_no_decision() -> None:
    """The row tells of the cut; how the resumed attempt ended is the turn's own affair."""
    log = begun().cut().resumed(2, why="why").in_turn(e.TurnEnded(outcome=Outcome.CANCELLED, rule="R0", why="stopped"))
    found = fold(log)
    assert [message.decision for message in found.messages if message.role == "interruption"] == ["resumed: rule R9, why"]
    assert found.turns[0].rule == "R0"


def test_a_waiting_turn_that_is_left_waits_on() -> None:
    """R5"""
    found = fold(asked().left("R5"))
    assert (found.turns[0].state, found.turns[0].rule) == (TurnState.WAITING, "R5")
    assert found.questions and [message.role for message in found.messages] == ["user", "assistant"]


@pytest.mark.parametrize(("cause", "told"), [("message", None), ("process", "process"), ("schedule", "schedule")])
def test_an_interruption_says_what_its_turn_had_started_from_unless_that_was_a_message(cause: str, told: str | None) -> None:
    log = Log()
    log.turn = "t1"
    log.in_turn(e.TurnStarted(generation=1, attempt=1, cause=cause, causes=("k1",), owner=1, epoch=1)).cut()
    assert [message.cause for message in fold(log).messages if message.role == "interruption"] == [told]
