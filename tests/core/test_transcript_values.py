"""Every value of a conversation, whole: who said what and when, where in the log it stands, and what became of it."""

import msgspec
import pytest

from holdfast.core import events as e
from holdfast.core import notices
from holdfast.core.content import TextPart
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.messages import Answered, Delivery, Link, Message, Question, ToolCall, Turn
from holdfast.core.transcript import Transcript
from holdfast.core.turns import Outcome, TurnState
from holdfast.core.usage import Spent
from tests.core.logs import CALL, Log, asked, begun, fold, simple, text


def values(message: Message) -> dict[str, object]:
    """What is set of it, apart from what an answer is made of."""
    return {
        name: value
        for name in message.__struct_fields__
        if name not in ("made_of", "tool_calls") and (value := getattr(message, name)) not in (None, "complete") and value is not False
        if (name, value) != ("accepted", 0)
    }


def row(found: Transcript, message_id: str) -> dict[str, object]:
    (message,) = [message for message in found.messages if message.id == message_id]
    return values(message)


def test_nothing_is_known_of_an_empty_log() -> None:
    found = fold(Log())
    assert (found.messages, found.turns, found.queued, found.questions, found.calls, found.steps) == ([], [], {}, [], [], [])
    assert (found.answer_text, found.request, found.anchor, found.seq, found.last_at) == ("", None, None, 0, 0)


def test_what_waits_says_who_said_it_when_and_where_it_stands() -> None:
    log = Log().free(e.MessageAccepted(message_id="m1", content="hi", sender="ann", anchor="a1", sender_name="Ann"))
    log.free(e.CauseRecorded(cause_id="k1", what="process", content="It ended.", sender="bob", anchor="a2"))
    said, ended = fold(log).queued.values()
    assert values(said) == {
        "id": "m1", "role": "user", "content": "hi", "created_at": 1001, "sender": "ann", "sender_name": "Ann", "anchor": "a1", "seq": 1,
        "accepted": 1,
    }  # fmt: skip
    assert values(ended) == {
        "id": "k1", "role": "cause", "cause": "process", "content": "It ended.", "created_at": 1002, "sender": "bob", "anchor": "a2",
        "seq": 2, "accepted": 2,
    }  # fmt: skip
    assert (said.status, ended.status) == ("complete", "complete")
    assert fold(Log().said("m1", "hi")).queued["m1"].sender_name is None


def test_an_answer_is_as_old_as_its_first_words_until_it_is_whole() -> None:
    log = begun().in_turn(text("one ", 0), text("two", 4))
    growing = {"id": "t1.answer", "role": "assistant", "content": "one two", "turn_id": "t1", "created_at": 1004, "status": "partial"}
    assert row(fold(log), "t1.answer") == {**growing, "seq": 0}
    whole = {key: value for key, value in growing.items() if key != "status"}
    assert row(fold(log.ended("one two")), "t1.answer") == {**whole, "created_at": 1006, "seq": 6}
    assert fold(log).last_at == 1007


def test_an_answer_that_ends_without_words_of_its_own_is_complete_and_not_seen() -> None:
    found = fold(begun().in_turn(e.TurnEnded(outcome=Outcome.COMPLETED)))
    assert [message.id for message in found.messages] == ["m1"]
    cut = begun().in_turn(text("half", 0)).cut(written=4).in_turn(e.TurnEnded(outcome=Outcome.SET_ASIDE, rule="R6"))
    assert row(fold(cut), "t1.answer")["content"] == "half" and fold(cut).messages[1].status == "complete"


def test_a_message_outside_of_turns_stands_where_it_was_written() -> None:
    log = Log().said("m1", "/status").free(e.MessageWritten(message_id="m1", role="user", content="/status"))
    log.free(e.MessageWritten(message_id="m1.reply", role="notice", content="Idle."))
    found = fold(log)
    command = {"id": "m1", "role": "user", "content": "/status", "created_at": 1001, "status": "command", "seq": 2}
    assert row(found, "m1") == command and found.queued == {}
    assert row(found, "m1.reply") == {"id": "m1.reply", "role": "notice", "content": "Idle.", "created_at": 1003, "seq": 3}


def test_a_turn_from_its_start_to_its_end() -> None:
    log = Log().said("m1", "hi")
    log.turn = "t1"
    log.in_turn(e.TurnStarted(generation=4, attempt=1, cause="message", causes=("m1",), owner=1, epoch=1, model="p:m"))
    started = Turn(
        id="t1", generation=4, attempt=1, cause="message", causes=("m1",), started_at=1002, attempt_started_at=1002, signed_at=1002,
        chosen="p:m",
    )  # fmt: skip
    assert fold(log).turns == [started] and started.state is TurnState.RUNNING
    used = e.ModelResponded(step=0, text="Zero.", usage=e.Usage(input=5, output=2), cost=3, provider="p", model="m")
    log.in_turn(e.ModelResponded(step=1, text="One."), used)
    spent = Spent(requests=2, input=5, output=2, cost=3, unpriced=1)
    said = msgspec.structs.replace(started, steps=2, spoke=True, signed_at=1004, spent=spent, model="p:m")
    assert fold(log).turns == [said]
    log.in_turn(e.TurnInterrupted(reason="crash", restarts=1, died=3))
    cut = msgspec.structs.replace(said, state=TurnState.INTERRUPTED, reason="crash", died=3)
    assert fold(log).turns == [cut]
    resumed = msgspec.structs.replace(
        cut, state=TurnState.RUNNING, attempt=2, attempt_started_at=1006, rule="R9", spoke=False
    )  # fmt: skip
    assert fold(log.resumed(2)).turns == [resumed]
    log.in_turn(e.TurnEnded(outcome=Outcome.FAILED, error="no network", unread_results=True))
    ended = msgspec.structs.replace(
        resumed, state=TurnState.ENDED, outcome=Outcome.FAILED, error="no network", unread_results=True, ended_at=1007
    )
    assert fold(log).turns == [ended]


def test_a_turn_whose_time_is_missing_has_no_sign_of_life() -> None:
    """R6"""
    log = begun()
    items = [msgspec.structs.replace(item, at=0) if item.kind == "turn.started" else item for item in log.items]
    assert (fold(items).turns[0].signed_at, fold(items).last_at) == (None, 1003)
    assert fold([*log.items[:2], msgspec.structs.replace(log.items[2], at=0)]).last_at == 1002


def test_a_trial_that_is_awaited_does_not_age_its_turn() -> None:
    """A25"""
    log = begun().cut().free(e.TrialAwaited(turn_id="t1", aged_ms=100), e.TrialAwaited(turn_id="gone", aged_ms=1))
    assert fold(log).turns[0].signed_at == 1005 - 100


@pytest.mark.parametrize(("written", "worked"), [(0, False), (0, True), (4, False), (4, True)])
def test_the_row_of_an_interruption_says_what_was_interrupted_and_what_is_kept(written: int, worked: bool) -> None:
    """F1"""
    log = begun().in_turn(*([CALL] if worked else []))
    found = fold(log.cut("crash", written=written))
    kept = notices.interrupted("crash", written=written > 0, worked=worked, holes=False)
    state = "recovered" if written or worked else "neutral"
    assert row(found, "t1.cut.1") == {
        "id": "t1.cut.1", "role": "interruption", "content": kept, "turn_id": "t1", "created_at": 1000 + len(log.items), "state": state,
        "reason": "crash", "seq": 0, "step": 0, "offset": written, **({"written": written} if written else {}),
    }  # fmt: skip
    # What was written stands above the row, also where its pieces are gone.
    assert [message.id for message in found.messages] == ["m1", *(["t1.answer"] if written or worked else []), "t1.cut.1"]
    if written and not worked:
        assert [message.id for message in fold(log.records()).messages] == ["m1", "t1.answer", "t1.cut.1"]


@pytest.mark.parametrize("lost", [2, 4])
def test_an_interruption_says_that_output_may_be_missing_where_a_record_of_its_turn_is_damaged(lost: int) -> None:
    """Whether the start of the turn is lost, or something of it. The next turn has no holes."""
    log = begun().in_turn(e.TurnAlive()).cut()
    holes = notices.interrupted("crash", written=False, worked=False, holes=True)
    assert [message.text for message in fold(log.without(lost)).messages if message.role == "interruption"] == [holes]
    log.in_turn(e.TurnEnded(outcome=Outcome.SET_ASIDE)).said("m2", "more").started("t2", "m2", "more", generation=2).cut()
    found = [message.text for message in fold(log.without(lost)).messages if message.role == "interruption"]
    assert found == [holes, notices.interrupted("crash", written=False, worked=False, holes=False)]


def test_a_damaged_record_is_a_notice_that_says_why() -> None:
    (notice,) = [message for message in fold(simple().without(5)).messages if message.role == "notice"]
    assert values(notice) == {
        "id": "notice.5", "role": "notice", "content": "One record of this conversation could not be read: x.", "created_at": 0, "seq": 0,
    }  # fmt: skip


def test_a_turn_whose_start_is_damaged_begins_with_what_reads() -> None:
    log = simple().said("m2", "more").started("t2", "m2", "more", generation=2).cut().resumed(2)
    start = next(item.seq for item in log.items if item.kind == "turn.started" and item.turn_id == "t2")
    first, second = fold(log.without(start)).turns
    assert (second.generation, second.attempt, second.cause, second.causes, second.started_at) == (2, 2, "message", ("m2",), 1010)
    alone = [item for item in log.without(start) if item.seq >= start]
    assert [turn.generation for turn in fold(alone).turns] == [1] and first.state is TurnState.ENDED


def test_a_question_with_the_call_that_asks_it() -> None:
    log = begun().in_turn(CALL)
    log.in_turn(e.QuestionAsked(question_id="q1", call_id="c1", content="Sure?", choices=("yes", "no"), form="approval", expires_at=99))
    log.in_turn(e.QuestionAsked(question_id="q2", call_id="c9", content="Why?", expires_at=98))
    call = ToolCall(call_id="c1", name="terminal", arguments={}, effect=Effect.UNSAFE, attempt=1, seq=4, started_at=1004)
    assert fold(log).questions == [
        Question(
            question_id="q1", turn_id="t1", call_id="c1", content="Sure?", asked_at=1005, expires_at=99, form="approval",
            choices=("yes", "no"), call=call,
        ),
        Question(question_id="q2", turn_id="t1", call_id="c9", content="Why?", asked_at=1006, expires_at=98, form="question"),
    ]  # fmt: skip


@pytest.mark.parametrize("held", [False, True])
def test_an_answer_is_a_message_of_its_turn_as_old_as_it_was_said(held: bool) -> None:
    """A27, P2: also where a process holds the turn, whose places the answer does not take."""
    log = asked() if not held else begun().in_turn(text("Well. ", 0), CALL).in_turn(
        e.QuestionAsked(question_id="q1", call_id="c1", content="Which?", expires_at=99, ends_attempt=False)
    )  # fmt: skip
    log.free(e.MessageAccepted(message_id="m2", content="blue", sender="ann", anchor="a2"))
    answered = e.QuestionAnswered(question_id="q1", call_id="c1", content="blue", message_id="m2", by="ann")
    found = fold(log.free(answered) if held else log.in_turn(answered))
    name, arguments = ("terminal", {}) if held else ("ask", {"question": "Which?"})
    what = Answered(question_id="q1", form="question", text="Which?", name=name, arguments=arguments, by="ann", verdict=None)
    assert row(found, "m2") == {
        "id": "m2", "role": "user", "content": "blue", "turn_id": "t1", "created_at": 1007, "seq": 8, "answers": what,
    }  # fmt: skip
    assert (found.questions, found.queued, found.turns[0].asked, found.turns[0].unread_results) == ([], {}, False, True)
    assert (found.calls[0].outcome, found.calls[0].result, found.calls[0].finished_in) == (ToolOutcome.DONE, "blue", 1)
    # While the turn runs, its answer continues below.
    assert [message.id for message in found.messages] == (["m1", "m2", "t1.answer"] if held else ["m1", "t1.answer", "m2"])


def test_an_answer_that_names_no_message_has_the_questions_name_and_its_own_time() -> None:
    found = fold(asked().in_turn(e.QuestionAnswered(question_id="q1", call_id="c1", content="yes", verdict="approve")))
    what = Answered(
        question_id="q1", form="question", text="Which?", name="ask", arguments={"question": "Which?"}, by=None, verdict="approve"
    )
    assert row(found, "q1.answer") == {
        "id": "q1.answer", "role": "user", "content": "yes", "turn_id": "t1", "created_at": 1007, "seq": 7, "answers": what,
    }  # fmt: skip


def test_an_answer_to_what_nobody_asked_changes_nothing() -> None:
    log = begun().in_turn(CALL)
    before = fold(log)
    found = fold(log.free(e.QuestionAnswered(question_id="q9", call_id="c1", content="yes")))
    assert (found.calls, found.turns) == (before.calls, before.turns)
    assert [message.id for message in found.messages] == [message.id for message in before.messages]


def test_who_answers_an_interrupted_turn_wants_it_to_continue() -> None:
    """R7"""
    log = begun().in_turn(CALL)
    log.in_turn(e.QuestionAsked(question_id="q1", call_id="c1", content="Which?", expires_at=99, ends_attempt=False)).cut()
    answered = e.QuestionAnswered(question_id="q1", call_id="c1", content="yes")
    assert fold(log.in_turn(answered)).turns[0].asked
    wished = begun().in_turn(CALL, e.QuestionAsked(question_id="q1", call_id="c1", content="?", expires_at=9, ends_attempt=False))
    wished.free(e.SessionResumed(by="ann")).in_turn(answered)
    assert fold(wished).turns[0].asked


def test_the_end_of_a_turn_closes_its_own_questions() -> None:
    log = asked().in_turn(e.TurnEnded(outcome=Outcome.CANCELLED))
    log.said("m2", "more").started("t2", "m2", "more", generation=2)
    log.in_turn(e.QuestionAsked(question_id="q2", call_id="c2", content="Why?", expires_at=99))
    items = [*log.items, msgspec.structs.replace(log.items[6], seq=len(log.items) + 1)]
    assert log.items[6].kind == "turn.ended"
    assert [question.question_id for question in fold(items).questions] == ["q2"]


def test_what_a_call_puts_out_is_seen_whenever_it_is_read() -> None:
    found, log = Transcript(), begun().in_turn(CALL)
    found.extend(log.items)
    for number, expected in enumerate(("a", "ab"), 1):
        log.in_turn(e.ToolOutput(call_id="c1", text="ab"[number - 1]))
        found.apply(log.items[-1])
        assert found.calls[0].output == expected
    (call,) = [call for message in found.messages for call in message.tool_calls]
    assert call is found.calls[0]


def test_the_steps_of_a_turn_are_read_by_its_id() -> None:
    log = simple().said("m2", "more").started("t2", "m2", "more", generation=2).in_turn(text("new", 0))
    found = fold(log)
    assert [[step.text.read() for step in steps] for steps in (found.steps_of("t1"), found.steps_of("t2"), found.steps)] == [
        ["one two"], ["new"], ["new"],
    ]  # fmt: skip


def test_what_has_not_happened_yet_counts_nothing() -> None:
    """Of a call that has put out and finished nothing, a turn that has said nothing, and a question as most are."""
    call = ToolCall(call_id="c1", name="terminal", arguments={}, effect=Effect.UNSAFE, attempt=1)
    assert (call.output, call.output_omitted, call.finished_in, call.seq, call.step, call.result) == ("", 0, 0, 0, 0, None)
    turn = fold(begun()).turns[0]
    assert (turn.spoke, turn.steps, turn.asked, turn.unread_results, turn.stop_requested) == (False, 0, False, False, False)
    question = Question(question_id="q", turn_id="t", call_id="c", content="Which?", asked_at=1, expires_at=2)
    assert (question.form, question.text, question.parts) == ("question", "Which?", (TextPart("Which?"),))


PROPOSED = e.ProposedCall(name="terminal", arguments={"command": "git push"})
APPROVAL = e.QuestionAsked(
    question_id="q1", call_id="c1", content="May I?", expires_at=99, form="approval", call=PROPOSED, fingerprint="f1", pattern="git *",
    ends_attempt=False,
)  # fmt: skip


def test_an_approval_is_known_until_its_call_starts_or_is_asked_for_again() -> None:
    """P5: it is used up by the call that it was for."""
    assert fold(Log()).approvals == {}
    log = begun().in_turn(APPROVAL)
    (question,) = fold(log).questions
    assert (question.call, question.fingerprint, question.pattern) == (PROPOSED, "f1", "git *")
    log.in_turn(e.QuestionAnswered(question_id="q1", call_id="c1", content="Approved.", by="ann", verdict="approve", reason="fine"))
    (approval,) = fold(log).approvals.values()
    assert (approval.question_id, approval.verdict, approval.fingerprint, approval.by, approval.reason) == (
        "q1", "approve", "f1", "ann", "fine",
    )  # fmt: skip
    again = msgspec.structs.replace(APPROVAL, question_id="q2")
    for used in (CALL, again):
        more = Log()
        more.items, more.turn, more.epoch, more.attempt, more.position = list(log.items), "t1", log.epoch, 1, log.position
        assert fold(more.in_turn(used)).approvals == {}


def test_a_turn_knows_which_requests_to_its_model_failed() -> None:
    failed = e.ModelFailed(step=0, tries=1, error="Timeout", why="no answer")
    assert [(failure.at, failure.event) for failure in fold(begun().in_turn(failed)).turns[0].failures] == [(1004, failed)]


def test_an_open_turn_that_has_said_nothing_knows_below_which_message_it_will() -> None:
    assert fold(Log()).above_answer is None
    log = begun()
    above = fold(log).above_answer
    assert above is not None and above.id == "m1"
    assert fold(begun().in_turn(text("x", 0))).above_answer is None
    assert fold(log.in_turn(e.TurnEnded(outcome=Outcome.COMPLETED))).above_answer is None
    log.said("m2", "more").started("t2", "m2", "more", generation=2)
    above = fold(log).above_answer
    assert above is not None and above.id == "m2"


@pytest.mark.parametrize("first", [e.CauseTaken(cause_id="m2"), e.ModelResponded(step=0, text="One."), CALL])
def test_an_answer_is_seen_from_its_first_record_on(first: e.Event) -> None:
    log = Log().said("m2", "also that").said("m1", "hi").started("t1", "m1", "hi").in_turn(first)
    assert fold(log).messages[-1].id == "t1.answer"


def test_an_interruption_after_one_character_keeps_it() -> None:
    """F1"""
    found = fold(begun().cut(written=1))
    assert (found.messages[-1].state, found.messages[1].id) == ("recovered", "t1.answer")
    assert found.messages[-1].text == notices.interrupted("crash", written=True, worked=False, holes=False)


def test_a_turn_of_version_0_1_whose_start_is_damaged_begins_with_what_reads() -> None:
    """A3: its rows name no lease."""
    items = [msgspec.structs.replace(item, epoch=None) for item in begun().in_turn(text("half", 0)).without(2)]
    found = fold(items)
    assert ([turn.id for turn in found.turns], found.answer_text) == (["t1"], "half")


def test_what_is_written_is_complete_before_its_turn_ends() -> None:
    log = begun().in_turn(e.MessageWritten(message_id="n1", role="notice", content="told"))
    log.in_turn(e.MessageWritten(message_id="t1.answer", role="assistant", content="One."))
    assert {message.id: message.status for message in fold(log).messages} == {"m1": "complete", "n1": "complete", "t1.answer": "complete"}


def test_what_nobody_has_told_of_yet_is_nothing() -> None:
    made = ToolCall(call_id="c", name="run", arguments={}, effect=Effect.PURE, attempt=1)
    assert (made.started_at, made.recovered, made.rests) == (0, False, False)
    delivery = Delivery(delivery_id="d", states=[])
    assert (delivery.tries, delivery.retry_at) == (0, 0)
    assert Link(process="p").starts == 0


def test_a_title_counts_in_what_a_conversation_used() -> None:
    log = begun().ended("hello").free(e.TitleMade(turn_id="t1", title="Plants", usage=e.Usage(input=5, output=1), model="m"))
    assert (fold(log).spent.input, fold(log).spent.output) == (5, 1)
