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
from holdfast.core.pieces import Asks, Attaches, Begins, Calls, Drops, Notes, Piece, Remarks, Returns, Says, Settles, Thinks, Warns
from holdfast.core.plans.withdraw import WITHDRAWN
from holdfast.core.turns import Outcome
from tests.core.logs import STEPS, Log, asked, begun, fold, simple, story, text


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


def test_the_words_for_a_status_are_those_of_the_protocol() -> None:
    assert [*map(str, Status)] == ["queued", "in_progress", "completed", "failed", "cancelled", "incomplete"]


def remarks(pieces: Iterable[Piece]) -> list[str]:
    return [piece.text for piece in pieces if isinstance(piece, Remarks)]


def test_what_becomes_of_a_turn_on_its_way_is_remarked() -> None:
    log = begun().in_turn(e.ModelFailed(step=0, tries=1, error="x", why="No key."), e.ContextCompacted(through=1, summary="s", model="m"))
    log.in_turn(e.ModelFailed(step=0, tries=2, error="x", why="Busy.", model="p:m", retry_at=5), e.TurnAlive())
    followed, pieces = answering(log.cut("restart_timeout").resumed(2).items)
    assert remarks(pieces) == [
        "The model did not answer: No key.",
        "The conversation has become too long for the model. It sees a summary of the earlier messages from here on.",
        "p:m did not answer and is asked again: Busy.",
        "Interrupted by a restart.",
        "Continued (attempt 2).",
    ]
    assert followed.spent.requests == 1 and pieces.count(Begins()) == 2
    assert (followed.status, followed.turn and followed.turn.attempt) == (Status.IN_PROGRESS, 2)


def test_a_turn_that_continues_after_an_answer_was_not_interrupted() -> None:
    log = waiting(question("q1")).said("m2", "so").in_turn(answered("q1", "m2"))
    log.in_turn(e.TurnResumed(attempt=2, rule="R9", reason="answered"))
    assert remarks(answering(log.items, "m2")[1]) == []


def test_words_of_the_gateway_about_others_are_not_for_this_reader() -> None:
    log = Log().said("m1", "hi")
    for name in ("s1.held.5", "m9.reply", "m9.waits", "s1.begun"):
        log.free(e.MessageWritten(message_id=name, role="notice", content=name))
    log.started("t1", "m1", "hi").free(e.MessageWritten(message_id="s1.held.6", role="notice", content="later"))
    followed, pieces = answering(log.items)
    assert pieces == [Remarks("s1.held.5"), Begins()] and not followed.waited


def test_a_notice_in_the_turn_warns() -> None:
    log = begun().cut().in_turn(e.MessageWritten(message_id="n", role="notice", content="Send /resume.")).left()
    assert Warns("Send /resume.") in answering(log.items)[1]


def test_thoughts_of_an_attempt_that_is_over_come_too_late() -> None:
    log = begun().in_turn(e.Reasoning(text="a")).cut().resumed(2).in_turn(text("x", 0))
    log.attempt = 1
    log.in_turn(e.Reasoning(text="late"))
    log.attempt = 2
    pieces = answering(log.in_turn(e.Reasoning(text="b")).items)[1]
    assert [piece for piece in pieces if isinstance(piece, Thinks)] == [Thinks("t1.0.1", "a"), Thinks("t1.0.2", "b")]


def test_results_of_calls_that_are_not_shown_are_not_shown_either() -> None:
    ask = e.ToolStarted(call_id="c1", name="ask_user", arguments={}, effect=Effect.PURE)
    done = e.ToolFinished(call_id="c1", outcome=ToolOutcome.DONE, content="so")
    run = e.ToolStarted(call_id="c2", name="terminal", arguments={}, effect=Effect.PURE)
    ran = e.ToolFinished(call_id="c2", outcome=ToolOutcome.FAILED, content="no")
    _, pieces = answering(begun().in_turn(ask, done, run, ran, ran).items)
    assert pieces[1:] == [Calls(call_id="c2", name="terminal", arguments={}), Returns("c2", ToolOutcome.FAILED, "no")]


def test_a_command_while_a_turn_runs_is_over_with_its_reply() -> None:
    log = begun().in_turn(text("one ", 0)).free(*command("/status", "It runs.")).in_turn(text("two", 4))
    followed, pieces = answering(log.items, "m2")
    assert (pieces, followed.over) == ([Notes("m2.reply", "It runs.")], True)
    assert texts(answering(log.items)[1]) == {"t1.0": "one two"}, "and the reader of the turn is not disturbed"


@pytest.mark.parametrize("words", ["/approve q1", "/deny q1 no"])
def test_a_verdict_that_comes_while_the_attempt_runs_follows_it(words: str) -> None:
    log = begun().in_turn(approval("q1"), text("one ", 0)).free(answered("q1", verdict="approve", scope="once"), *command(words, "Yes."))
    followed, pieces = answering(log.in_turn(text("two", 4)).items, "m2")
    assert texts(pieces) == {"t1.0": "two"} and followed.status is Status.IN_PROGRESS and not followed.questions


def test_other_commands_do_not_ask_again_for_what_is_open() -> None:
    followed, pieces = answering(waiting(approval("q1")).free(*command("/status", "It waits.")).items, "m2")
    assert pieces == [Notes("m2.reply", "It waits.")] and (followed.over, followed.waiting) == (True, False)


def test_a_turn_that_waits_is_not_incomplete_because_a_start_left_it_so() -> None:
    log = begun().in_turn(question("q1"), text("x", 0), e.TurnLeft(rule="R5"))
    followed, _ = answering(log.items)
    assert (followed.status, followed.left) == (Status.IN_PROGRESS, False)


def test_a_turn_that_is_left_without_a_word_says_at_least_that_it_was_interrupted() -> None:
    assert answering(begun().cut().left().items)[0].why == "an interruption"


def test_a_question_of_version_0_1_ends_the_answer_by_itself() -> None:
    followed, pieces = answering(asked().items)
    assert (followed.over, followed.waiting) == (True, True) and isinstance(pieces[-2], Asks)


def test_a_step_that_nobody_finished_is_no_part_of_an_answer_without_it() -> None:
    log = begun().in_turn(e.ModelResponded(step=0, text="Done.")).in_turn(text("And al", 0, 1)).ended("Done.")
    _, pieces = answering(log.items)
    assert Drops("t1.1") in pieces and texts(pieces) == {"t1.0": "Done."}
    assert texts(answering(log.records())[1]) == {"t1.0": "Done."}


def test_a_piece_that_comes_behind_its_response_is_not_said_again() -> None:
    log = begun().in_turn(text("Don", 0), e.ModelResponded(step=0, text="Done."), text("e.", 3), text("x", 0, 1)).ended("x")
    assert texts(answering(log.items)[1]) == {"t1.0": "Done.", "t1.1": "x"}


def test_an_approval_says_which_call_it_is_for() -> None:
    _, pieces = answering(waiting(approval("q1")).items)
    asked_for = Asks(question_id="q1", form="approval", text="Which?", pattern="p", name="terminal", arguments={"command": "x"})
    assert [piece for piece in pieces if isinstance(piece, Asks)] == [asked_for]


def test_a_turn_that_continues_after_it_was_left_is_in_progress_again() -> None:
    log = begun().cut().left(why="interrupted by a crash 5 s earlier")
    followed, _ = answering(log.items)
    assert (followed.why, followed.ended_at) == ("interrupted by a crash 5 s earlier", 1005)
    followed, _ = answering(log.resumed(2).items)
    assert (followed.status, followed.why, followed.ended_at, followed.left) == (Status.IN_PROGRESS, None, 0, False)


def test_the_reason_of_a_turn_is_not_told_where_it_says_nothing_about_the_answer() -> None:
    log = begun().in_turn(e.TurnEnded(outcome=Outcome.FAILED, rule="R4", why="the recovery ended by itself"))
    assert answering(log.items)[0].why is None


def test_what_was_spent_before_a_reader_joined_is_not_counted_for_it() -> None:
    used = e.Usage(input=5, output=2)
    log = begun().in_turn(e.ModelResponded(step=0, text="Which?", usage=used, finish="calls"), question("q1"))
    log.in_turn(e.TurnWaiting(question_ids=("q1",))).said("m2", "so").in_turn(answered("q1", "m2")).resumed(2)
    log.in_turn(e.ModelResponded(step=1, text="So.", usage=used, finish="length")).ended("So.")
    followed, _ = answering(log.items, "m2")
    assert followed.spent.input == 5 and followed.turn is not None and followed.turn.finish == "length"
    assert answering(log.items)[0].spent.input == 5


def test_times_are_those_of_the_log() -> None:
    followed, _ = answering(simple().items)
    assert (followed.created_at, followed.ended_at) == (1001, 1007)


def test_another_turn_that_starts_ends_a_reader_whose_end_is_lost() -> None:
    log = simple().said("m2", "next").started("t2", "m2", "next", 2).ended("two")
    followed = Answering("m1", 1)
    pieces = [piece for item in log.without(7) for piece in followed.apply(item)]
    assert (followed.status, followed.why) == (Status.INCOMPLETE, "the end of this turn could not be read")
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
