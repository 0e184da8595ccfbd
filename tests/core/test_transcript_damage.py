"""A conversation of which some records could not be read."""

import itertools

import pytest

from holdfast.core import events as e
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.turns import Outcome, TurnState
from tests.core.logs import fold, simple, text

STORY = (
    simple()
    .said("m2", "more")
    .started("t2", "m2", "more", generation=2)
    .in_turn(text("a", 0), e.ToolStarted(call_id="c", name="n", arguments={}, effect=Effect.PURE))
    .in_turn(e.ToolFinished(call_id="c", outcome=ToolOutcome.DONE, content="r"))
    .cut(written=1)
    .resumed(2)
    .in_turn(text("b", 1))
    .ended("ab")
)


@pytest.mark.parametrize("lost", range(1, len(STORY.items) + 1), ids=[item.kind for item in STORY.items])
def test_one_damaged_record_is_a_notice_in_its_place_and_no_message_goes_to_the_wrong_turn(lost: int) -> None:
    """Whatever record it is: the turns stay apart, both answers are there, nothing waits that was taken."""
    found = fold(STORY.without(lost))
    assert [message.id for message in found.messages if message.role == "notice"] == [f"notice.{lost}"]
    answers = {message.id: message.text for message in found.messages if message.role == "assistant"}
    assert answers == {"t1.answer": "one two", "t2.answer": "ab"}
    assert [turn.id for turn in found.turns] == ["t1", "t2"]
    assert found.queued == {}
    for message in found.messages:
        assert message.turn_id in (None, "t1" if message.id in ("m1", "t1.answer") else "t2")
    said = [message.text for message in found.messages if message.role == "user"]
    assert said == ["hi", "more"]


@pytest.mark.parametrize("lost", list(itertools.combinations(range(1, 10), 2)), ids=str)
def test_two_damaged_records_leave_a_conversation_that_reads(lost: tuple[int, int]) -> None:
    found = fold(STORY.without(*lost))
    assert len([message for message in found.messages if message.role == "notice"]) == 2
    assert found.seq == len(STORY.items)
    assert {message.id for message in found.messages if message.role == "assistant"} == {"t1.answer", "t2.answer"}


def test_a_turn_whose_start_is_damaged_can_go_on() -> None:
    """It has the message it answers, its attempt and its own answer: enough to be resumed."""
    log = simple().said("m2", "more").started("t2", "m2", "more", generation=2).in_turn(text("half", 0))
    start = next(item.seq for item in log.items if item.kind == "turn.started" and item.turn_id == "t2")
    found = fold(log.without(start))
    turn = found.turns[-1]
    assert (turn.id, turn.generation, turn.attempt, turn.causes, turn.state) == ("t2", 2, 1, ("m2",), TurnState.RUNNING)
    assert (found.answer_text, found.turns[0].outcome) == ("half", Outcome.COMPLETED)
