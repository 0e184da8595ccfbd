"""One message followed through the log by a reader that only appends: what it is given, once, and when that is over."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings

from holdfast.core import events as e
from holdfast.core.answering import Answering, Status
from holdfast.core.content import ImagePart, TextPart
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.events import Logged
from holdfast.core.pieces import Asks, Attaches, Begins, Calls, Drops, Notes, Piece, Remarks, Returns, Says, Settles, Thinks
from holdfast.core.plans.withdraw import WITHDRAWN
from holdfast.core.turns import Outcome
from tests.core.logs import STEPS, Log, begun, fold, simple, story, text


def answering(items: Iterable[Logged], message_id: str = "m1") -> tuple[Answering, list[Piece]]:
    """Read as readers do: from the turn on that was open when the message came."""
    items = list(items)
    seq = next(item.seq for item in items if getattr(item.event, "message_id", None) == message_id)
    since = 0
    for item in items:
        if item.seq <= seq and item.kind in ("turn.started", "turn.ended"):
            since = item.seq if item.kind == "turn.started" else 0
    followed = Answering(message_id, seq)
    return followed, [piece for item in items if item.seq >= (since or seq) for piece in followed.apply(item)]


def texts(pieces: Iterable[Piece]) -> dict[str, str]:
    """What a reader has in the end, item by item."""
    found: dict[str, str] = {}
    for piece in pieces:
        if isinstance(piece, Says):
            found[piece.item] = found.get(piece.item, "") + piece.text
        elif isinstance(piece, Drops):
            del found[piece.item]
    return found


def question(question_id: str, call_id: str = "c1", **more: Any) -> e.QuestionAsked:
    return e.QuestionAsked(question_id=question_id, call_id=call_id, content="Which?", expires_at=99, ends_attempt=False, **more)


def approval(question_id: str, call_id: str = "c1") -> e.QuestionAsked:
    return question(question_id, call_id, form="approval", call=e.ProposedCall(name="terminal", arguments={"command": "x"}), pattern="p")


def answered(question_id: str, message_id: str | None = None, **more: Any) -> e.QuestionAnswered:
    return e.QuestionAnswered(question_id=question_id, call_id="c1", content="so", message_id=message_id, **more)


def waiting(*asked: e.QuestionAsked) -> Log:
    log = begun().in_turn(text("Well. ", 0), *asked)
    return log.in_turn(e.TurnWaiting(question_ids=tuple(each.question_id for each in asked)))


def test_an_answer_comes_in_its_pieces_and_is_whole_in_the_end() -> None:
    followed, pieces = answering(simple().items)
    assert pieces == [Begins(), Says("t1.0", "one "), Says("t1.0", "two"), Settles("t1.0", "one two")]
    assert (followed.status, followed.over, followed.waiting) == (Status.COMPLETED, True, False)


def test_from_the_records_alone_it_comes_at_once_and_is_the_same() -> None:
    assert answering(simple().records())[1] == [Begins(), Says("t1.0", "one two"), Settles("t1.0", "one two")]


def test_a_message_is_queued_until_its_turn_starts() -> None:
    log = begun().said("m2", "next")
    followed, pieces = answering(log.items, "m2")
    assert (followed.status, pieces, followed.held) == (Status.QUEUED, [], False)
    followed, pieces = answering(log.ended("one").started("t2", "m2", "next", 2).ended("two").items, "m2")
    assert texts(pieces) == {"t2.0": "two"} and followed.over


def test_an_attempt_that_writes_the_same_again_adds_only_what_is_new() -> None:
    log = begun().in_turn(text("one ", 0), text("two ", 4)).cut(written=8).resumed(2)
    log.in_turn(text("one ", 0), text("two ", 4), text("three", 8)).ended("one two three")
    _, pieces = answering(log.items)
    assert [piece.text for piece in pieces if isinstance(piece, Says)] == ["one ", "two ", "three"]
    assert [piece.text for piece in pieces if isinstance(piece, Remarks)] == ["Interrupted by a crash.", "Continued (attempt 2)."]
    assert texts(pieces) == {"t1.0": "one two three"}


def test_an_attempt_that_continues_where_the_last_one_ended_adds_to_it() -> None:
    log = begun().in_turn(text("1 2", 0)).cut(written=3).resumed(2).in_turn(text(" 3", 3)).ended("1 2 3")
    assert texts(answering(log.items)[1]) == {"t1.0": "1 2 3"}


def test_what_a_later_attempt_writes_over_is_dropped_and_begins_once_more() -> None:
    log = begun().in_turn(text("I think so", 0)).cut(written=10).resumed(2).in_turn(text("I ", 0), text("doubt it", 2)).ended("I doubt it")
    _, pieces = answering(log.items)
    assert pieces[-3:] == [Drops("t1.0"), Says("t1.0.1", "I doubt it"), Settles("t1.0.1", "I doubt it")]


def test_a_late_piece_of_an_earlier_attempt_is_given_to_nobody() -> None:
    log = begun().in_turn(text("old", 0)).cut(written=3).resumed(2).in_turn(text("new", 0))
    log.attempt = 1
    log.in_turn(text(" rest", 3))
    log.attempt = 2
    assert texts(answering(log.ended("new").items)[1]) == {"t1.0.1": "new"}


def test_steps_calls_and_thoughts_of_a_model_come_in_order() -> None:
    call = e.ProposedCall(name="terminal", arguments={})
    started = e.ToolStarted(call_id="t1.0.1", name="terminal", arguments={"command": "ls"}, effect=Effect.UNSAFE, approval="q0")
    used = e.Usage(input=5, output=2)
    log = begun().in_turn(e.Reasoning(text="hm"), text("Let me ", 0), text("look.", 7))
    log.in_turn(e.ModelResponded(step=0, text="Let me look.", calls=(call,), usage=used), started, started)
    log.in_turn(e.ToolFinished(call_id="t1.0.1", outcome=ToolOutcome.DONE, content="a b"))
    log.in_turn(text("Two.", 0, 1), e.ModelResponded(step=1, text="Two.", usage=used, provider="p", model="m")).ended("Two.")
    followed, pieces = answering(log.items)
    assert pieces == [
        Begins(),
        Thinks("t1.0.1", "hm"),
        Says("t1.0", "Let me "),
        Says("t1.0", "look."),
        Settles("t1.0", "Let me look.", interim=True),
        Calls(call_id="t1.0.1", name="terminal", arguments={"command": "ls"}, approval="q0"),
        Returns("t1.0.1", ToolOutcome.DONE, "a b"),
        Says("t1.1", "Two."),
        Settles("t1.1", "Two."),
    ]
    assert (followed.spent.input, followed.spent.output) == (10, 4)
    assert followed.turn is not None and followed.turn.model == "p:m"


def test_a_request_that_failed_starts_its_text_over() -> None:
    log = begun().in_turn(text("Hal", 0), e.ModelFailed(step=0, tries=1, error="cut", why="It broke off.", model="p:m", retry_at=9))
    _, pieces = answering(log.in_turn(text("Whole", 0), e.ModelResponded(step=0, text="Whole")).ended("Whole").items)
    assert texts(pieces) == {"t1.0.1": "Whole"}
    assert Remarks("p:m did not answer and is asked again: It broke off.") in pieces


def test_files_of_an_answer_are_given_with_it() -> None:
    image = ImagePart(blob="b" * 64, size=1, media_type="image/png", name="a.png")
    written = e.MessageWritten(message_id="a", role="assistant", content=(TextPart("See."), image))
    _, pieces = answering(begun().in_turn(written, e.TurnEnded(outcome=Outcome.COMPLETED)).items)
    assert Attaches("a", (image,)) in pieces and texts(pieces) == {"t1.0": "See."}


@pytest.mark.parametrize(
    ("ended", "status", "why"),
    [
        (e.TurnEnded(outcome=Outcome.COMPLETED), Status.COMPLETED, None),
        (e.TurnEnded(outcome=Outcome.FAILED, error="It broke."), Status.FAILED, "It broke."),
        (e.TurnEnded(outcome=Outcome.CANCELLED), Status.CANCELLED, None),
        (e.TurnEnded(outcome=Outcome.SET_ASIDE, rule="R6", why="interrupted long ago"), Status.INCOMPLETE, "interrupted long ago"),
    ],
)
def test_each_outcome_of_a_turn_has_a_status(ended: e.TurnEnded, status: Status, why: str | None) -> None:
    followed, _ = answering(begun().in_turn(ended).items)
    assert (followed.status, followed.why, followed.over) == (status, why, True)


def test_a_turn_that_is_left_is_incomplete_until_it_continues() -> None:
    log = begun().in_turn(text("half", 0)).cut(written=4).left(why="interrupted by a crash 5 s earlier")
    followed, pieces = answering(log.items)
    assert (followed.status, followed.left, followed.over) == (Status.INCOMPLETE, True, False)
    assert texts(pieces) == {"t1.0": "half"}
    followed, pieces = answering(log.resumed(2).in_turn(text("half", 0), text(" and whole", 4)).ended("half and whole").items)
    assert (followed.status, followed.left, followed.over) == (Status.COMPLETED, False, True)
    assert texts(pieces) == {"t1.0": "half and whole"}


def test_a_question_ends_the_answer_and_the_next_message_gets_what_follows() -> None:
    log = waiting(question("q1", choices=("a", "b")))
    followed, pieces = answering(log.items)
    assert (followed.status, followed.over, followed.waiting) == (Status.COMPLETED, True, True)
    assert Asks(question_id="q1", form="question", text="Which?", choices=("a", "b")) in pieces and texts(pieces) == {"t1.0": "Well. "}
    log.said("m2", "so").in_turn(answered("q1", "m2")).resumed(2).in_turn(text("Well. ", 0), text("So.", 6)).ended("Well. So.")
    followed, pieces = answering(log.items, "m2")
    assert texts(pieces) == {"t1.0": "So."} and followed.over and pieces[-1] == Settles("t1.0", "So.")
    assert answering(log.items)[0].status is Status.COMPLETED


def test_an_answer_to_one_of_two_questions_asks_for_the_other_again() -> None:
    log = waiting(question("q1"), question("q2", "c2")).said("m2", "so").in_turn(answered("q1", "m2", last=False))
    followed, pieces = answering(log.items, "m2")
    assert [piece.question_id for piece in pieces if isinstance(piece, Asks)] == ["q2"]
    assert (followed.status, followed.waiting, followed.over) == (Status.COMPLETED, True, True)


def test_an_answer_that_comes_while_the_attempt_runs_follows_it() -> None:
    log = begun().in_turn(text("Well. ", 0), question("q1"), text("Meanwhile ", 6)).said("m2", "so").free(answered("q1", "m2"))
    followed, pieces = answering(log.in_turn(text("this.", 16)).ended("Well. Meanwhile this.").items, "m2")
    assert texts(pieces) == {"t1.0": "this."} and followed.over


def test_a_message_behind_a_turn_that_needs_an_approval_is_held() -> None:
    log = waiting(approval("q1")).said("m2", "next")
    log.free(e.MessageWritten(message_id="m2.waits", role="notice", content="Your message waits."))
    followed, pieces = answering(log.items, "m2")
    assert (pieces, followed.held, followed.over) == ([Notes("m2.waits", "Your message waits.")], True, False)
    assert [asked.question_id for asked in followed.questions] == ["q1"]
    log.in_turn(answered("q1", verdict="approve", scope="once")).resumed(2).ended("Well. ").started("t2", "m2", "next", 2).ended("Done.")
    followed, pieces = answering(log.items, "m2")
    assert texts(pieces) == {"t2.0": "Done."} and not followed.held


def command(words: str, *reply: str) -> list[e.Event]:
    said: e.Event = e.MessageWritten(message_id="m2", role="user", content=words)
    return [said, *(e.MessageWritten(message_id="m2.reply", role="notice", content=each) for each in reply)]


def test_a_command_is_answered_by_its_reply() -> None:
    followed, pieces = answering(simple().free(*command("/help", "Help.")).items, "m2")
    assert (pieces, followed.status) == ([Notes("m2.reply", "Help.")], Status.COMPLETED)


def test_an_approval_shows_what_the_turn_does_with_it() -> None:
    log = waiting(approval("q1")).in_turn(answered("q1", verdict="approve", scope="once")).free(*command("/approve q1", "Approved."))
    followed, pieces = answering(log.resumed(2).in_turn(text("Well. ", 0), text("Done.", 6)).ended("Well. Done.").items, "m2")
    assert pieces[0] == Notes("m2.reply", "Approved.") and texts(pieces) == {"t1.0": "Done."} and followed.over


def test_an_approval_of_one_of_two_calls_asks_for_the_other_again() -> None:
    asked = waiting(approval("q1"), approval("q2", "c2"))
    log = asked.in_turn(answered("q1", verdict="deny", scope="once", last=False)).free(*command("/deny q1", "Denied."))
    followed, pieces = answering(log.items, "m2")
    assert [piece.question_id for piece in pieces if isinstance(piece, Asks)] == ["q2"] and followed.waiting


def test_an_approval_of_nothing_is_over_with_its_reply() -> None:
    followed, _ = answering(simple().free(*command("/approve", "Nothing here waits.")).items, "m2")
    assert followed.over and not followed.waiting


def test_a_resume_shows_the_turn_that_continues() -> None:
    log = begun().in_turn(text("half ", 0)).cut(written=5).left().free(e.SessionResumed(by="owner", goes_on=True))
    log.free(*command("/resume", "It continues.")).resumed(2).in_turn(text("half ", 0), text("whole", 5)).ended("half whole")
    followed, pieces = answering(log.items, "m2")
    assert texts(pieces) == {"t1.0": "whole"} and followed.over


@pytest.mark.parametrize(
    ("reason", "status", "why"),
    [(WITHDRAWN, Status.CANCELLED, None), ("the conversation was left first", Status.FAILED, "refused: the conversation was left first")],
)
def test_a_refused_message_has_no_answer(reason: str, status: Status, why: str | None) -> None:
    followed, pieces = answering(Log().said("m1", "hi").free(e.MessageRefused(message_id="m1", reason=reason)).items)
    assert (followed.status, followed.why, pieces, followed.over) == (status, why, [], True)


def test_a_message_that_a_turn_took_shares_the_rest_of_its_answer() -> None:
    log = (
        begun().in_turn(text("one ", 0)).said("m2", "quick").in_turn(e.CauseTaken(cause_id="m2", offset=4), text("two", 4)).ended("one two")
    )
    assert texts(answering(log.items, "m2")[1]) == {"t1.0": "two"}
    assert texts(answering(log.items, "m1")[1]) == {"t1.0": "one two"}


def test_a_new_conversation_says_first_why_it_is_one() -> None:
    created = e.SessionCreated(session_id="s", session_key="k", log="l")
    log = Log().free(created, e.MessageWritten(message_id="s.begun", role="notice", content="A new one."))
    log.said("m1", "hi").started("t1", "m1", "hi").ended("yo")
    followed = Answering("m1", 3)
    assert next(piece for item in log.items for piece in followed.apply(item)) == Notes("s.begun", "A new one.")


def test_damaged_records_end_no_reader_in_a_wait_without_end() -> None:
    log = simple().said("m2", "next").started("t2", "m2", "next", 2).ended("two")
    whole = {item.seq: item.kind for item in log.items}
    for lost in range(2, len(log.items) + 1):
        followed = Answering("m1", 1)
        for item in log.without(lost):
            followed.apply(item)
        assert followed.over, f"{whole[lost]} is damaged"
    followed = Answering("m1", 1)
    pieces = [piece for item in log.without(1) for piece in followed.apply(item)]
    assert texts(pieces) == {"t1.0": "one two"}


@settings(max_examples=200, derandomize=True, database=None, deadline=None)
@given(steps=STEPS)
def test_readers_of_any_log_have_what_the_conversation_shows(steps: list[str]) -> None:
    """P7: whatever was interrupted, written over or asked, the texts that were not dropped are those of the answer; and the settled ones
    are the same from the records alone.
    """
    log = story([*steps, "end"])
    found = fold(log)
    for turn in found.turns:
        if not turn.causes or not turn.causes[0].startswith("m"):
            continue
        followed, pieces = answering(log.items, turn.causes[0])
        assert followed.over or turn.outcome is None
        shown = [text for text in texts(pieces).values() if text]
        asked = any(item.turn_id == turn.id and item.event.move in ("turn.waiting", "question.asked (0.1)") for item in log.items)
        said = [step.text.read() for step in found.steps_of(turn.id) if step.text.read()]
        if not asked:
            assert shown == said
            settled = [piece.text for piece in pieces if isinstance(piece, Settles)]
            assert settled == said == [piece.text for piece in answering(log.records(), turn.causes[0])[1] if isinstance(piece, Settles)]
        assert len({piece.item for piece in pieces if isinstance(piece, Settles)}) == sum(isinstance(piece, Settles) for piece in pieces)
