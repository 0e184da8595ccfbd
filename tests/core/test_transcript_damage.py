"""A conversation of which some records could not be read."""

import itertools

import msgspec
import pytest

from holdfast.core import events as e
from holdfast.core import notices
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.messages import Answered
from holdfast.core.turns import Outcome, TurnState
from tests.core.logs import Log, asked, begun, fold, simple, text

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


def test_a_record_of_a_turn_whose_body_does_not_read_is_a_notice_of_that_turn() -> None:
    """A3: its place in the turn is known."""
    log = begun().in_turn(text("one ", 0), text("two", 4))
    items = [msgspec.structs.replace(item, body=b"{") if item.seq == 4 else item for item in log.items]
    (notice,) = [message for message in fold(items).messages if message.role == "notice"]
    assert (notice.id, notice.turn_id, notice.created_at) == ("notice.4", "t1", 1004)
    items.append(begun().in_turn(text("one ", 0), text("two", 4)).cut().items[-1])
    assert fold(items).messages[-1].text == notices.interrupted("crash", written=False, worked=False, holes=True)


def test_what_comes_late_of_a_turn_that_does_not_read_at_all_stands_nowhere() -> None:
    """A3: nobody takes the turn before for the newest one."""
    log = begun().ended("One.").said("m2", "more").started("t2", "m2", "more", generation=2).in_turn(text("lost", 0))
    late, first = log.items[-1], log.items.index(next(item for item in log.items if item.turn_id == "t2"))
    log.said("m3", "next").started("t3", "m3", "next", generation=3)
    items = [*log.without(*range(first + 1, late.seq + 1)), msgspec.structs.replace(late, seq=len(log.items) + 1)]
    found = fold(items)
    assert [turn.id for turn in found.turns] == ["t1", "t3"]
    assert "t2.answer" not in [message.id for message in found.messages]


def test_an_answer_counts_whose_question_or_call_does_not_read() -> None:
    """A3, P5"""
    log = asked().in_turn(e.QuestionAnswered(question_id="q1", call_id="c1", content="yes"))
    found = fold(log.without(6))
    assert log.items[5].kind == "question.asked"
    assert [(call.call_id, call.outcome, call.content) for call in found.calls] == [("c1", ToolOutcome.DONE, "yes")]
    assert [message.answers for message in found.messages if message.id == "q1.answer"] == [None]
    (answer,) = [message for message in fold(log.without(5)).messages if message.id == "q1.answer"]  # The call does not read.
    assert answer.answers == Answered(question_id="q1", form="question", text="Which?", name=None, arguments={}, by=None, verdict=None)


def test_a_message_that_was_not_read_before_its_turn_wrote_it_takes_no_cause_from_the_turn() -> None:
    log = Log().free(e.CauseRecorded(cause_id="k1", what="process", content="It ended.")).said("m1", "hi")
    log.turn = "t1"
    log.in_turn(e.TurnStarted(generation=1, attempt=1, cause="process", causes=("k1", "m1"), owner=1, epoch=1))
    log.in_turn(e.MessageWritten(message_id="m1", role="user", content="hi"))
    found = fold(log.without(2))
    assert found.turns[0].causes == ("k1", "m1")
    assert [message.id for message in found.messages] == ["notice.2", "k1", "m1"]
