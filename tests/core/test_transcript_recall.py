"""From which place of the log everything can be read that an agent is given behind a summary, and what is read from there."""

import pytest

from holdfast.core import events as e
from holdfast.core.history import History
from holdfast.core.transcript import Transcript
from tests.core.logs import Log, fold, text

SUMMARY = e.ContextCompacted(through=1, summary="what was said")
SHORTER = e.ContextCompacted(through=0, summary="", trimmed=("t2.0.1",))


def three_turns() -> Log:
    """The third message comes while the second turn runs."""
    log = Log().said("m1", "one").started("t1", "m1", "one", 1).ended("first")
    log.said("m2", "two").started("t2", "m2", "two", 2).said("m3", "three").ended("second")
    return log.started("t3", "m3", "three", 3)


def place(log: Log, kind: str, message_id: str = "") -> int:
    """In the log, of the first of its kind, or of a message."""
    return next(item.seq for item in log.items if item.kind == kind and getattr(item.event, "message_id", "") == message_id)


@pytest.mark.parametrize(("through", "message_id"), [(1, "m2"), (2, "m3")])
def test_what_is_behind_the_first_message_of_the_first_turn_that_is_left(through: int, message_id: str) -> None:
    log = three_turns()
    compacted = e.ContextCompacted(through=through, summary="s")
    assert fold(log).recall(compacted) == place(log, "message.accepted", message_id) - 1
    assert fold(log).recall(e.ContextCompacted(through=through, summary="", problem="no model")) == fold(log).recall(compacted)


def test_a_turn_whose_cause_does_not_wait_is_read_from_its_own_start() -> None:
    log = Log().said("m1", "one").started("t1", "m1", "one", 1).ended("first").started("t2", "m2", "two", 2)
    start = next(item.seq for item in log.items if item.turn_id == "t2")
    assert fold(log).recall(SUMMARY) == start - 1


def test_what_waited_when_the_turn_started_is_read_too_whoever_takes_it_and_whatever_it_says_now() -> None:
    log = Log().said("m1", "one").started("t1", "m1", "one", 1).said("m2", "later").said("m3", "now").ended("first")
    log.started("t2", "m3", "now", 2).free(e.MessageEdited(message_id="m2", content="much later", since=4))
    first = place(log, "message.accepted", "m2")
    assert fold(log).recall(SUMMARY) == first - 1
    short = Transcript(first - 1).extend(log.items[first - 1 :])
    assert [message.text for message in short.queued.values()] == ["much later"]


def test_shorter_results_leave_the_place_of_the_summary_before_them() -> None:
    log = three_turns()
    assert fold(log).recall(SHORTER) == 0
    log.in_turn(SUMMARY)
    assert fold(log).recall(SHORTER) == fold(three_turns()).recall(SUMMARY) > 0


def test_nothing_is_left_out_where_no_turn_is_left_or_a_link_to_another_program_may_lie_anywhere() -> None:
    log = three_turns()
    assert fold(log).recall(e.ContextCompacted(through=3, summary="s")) == 0
    log.in_turn(e.AgentStarted(agent="coder", process="p"))
    assert fold(log).recall(SUMMARY) == 0


def test_what_a_turn_did_whose_beginning_is_not_read_stands_nowhere() -> None:
    """Of a turn that was running when the first message that is needed came."""
    log = Log().said("m1", "one").started("t1", "m1", "one", 1).said("m2", "two").in_turn(text("half", 0)).ended("half")
    log.started("t2", "m2", "two", 2).in_turn(SUMMARY, text("so", 0))
    behind = fold(log).recall(SUMMARY)
    short = Transcript(behind).extend(log.items[behind:])
    assert [turn.id for turn in short.turns] == ["t2"] and list(History(short)) == list(History(fold(log)))
    assert "half" not in [message.text for message in short.messages]


def test_a_later_turn_whose_beginning_is_damaged_begins_with_the_first_event_that_reads() -> None:
    log = three_turns().in_turn(text("so", 0))
    behind = place(log, "message.accepted", "m2") - 1
    lost = next(item.seq for item in log.items if item.kind == "turn.started" and item.turn_id == "t3")
    short = Transcript(behind).extend(item for item in log.without(lost) if item.seq > behind)
    assert [turn.id for turn in short.turns] == ["t2", "t3"] and short.answer_text == "so"


def test_one_that_has_not_met_its_summary_or_the_first_turn_behind_it_is_not_complete() -> None:
    log = three_turns().in_turn(SUMMARY, text("so", 0))
    behind = fold(log).recall(SUMMARY)
    lost = {
        "turn": next(item.seq for item in log.items if item.kind == "turn.started" and item.turn_id == "t2"),
        "summary": place(log, "context.compacted"),
    }
    found = {what: Transcript(behind).extend(item for item in log.without(seq) if item.seq > behind) for what, seq in lost.items()}
    assert {what: short.complete for what, short in found.items()} == {"turn": False, "summary": False}
    assert not Transcript(behind).complete and Transcript().complete and Transcript(behind).extend(log.items[behind:]).complete
    assert list(found["turn"].queued) == []


def test_an_answer_whose_question_is_damaged_still_stands_in_the_whole_conversation() -> None:
    """P7: it waits there, as on the page."""
    log = Log().said("m1", "hi").started("t1", "m1", "hi")
    log.in_turn(e.QuestionAsked(question_id="q1", call_id="c1", content="Which?", expires_at=99, ends_attempt=False)).said("m2", "blue")
    log.free(e.QuestionAnswered(question_id="q1", call_id="c1", content="blue", message_id="m2", last=True))
    assert "m2" in fold(log.without(place(log, "question.asked"))).queued


@pytest.mark.parametrize("held", [False, True])
def test_an_answer_to_a_question_of_such_a_turn_does_not_wait_any_more(held: bool) -> None:
    """Also one that came while another process held the turn, and stands outside of it."""
    log = Log().said("m1", "one").started("t1", "m1", "one", 1)
    log.in_turn(e.QuestionAsked(question_id="q1", call_id="c1", content="Which?", expires_at=99, ends_attempt=False))
    log.said("m2", "blue")
    answer = e.QuestionAnswered(question_id="q1", call_id="c1", content="blue", message_id="m2", last=True)
    (log.free if held else log.in_turn)(answer)
    log.ended("done").said("m3", "two").started("t2", "m3", "two", 2)
    behind = place(log, "message.accepted", "m2") - 1
    assert list(Transcript(behind).extend(log.items[behind:]).queued) == []
