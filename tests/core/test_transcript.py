"""The conversation folded from the log: what people see, whatever happened to it on the way."""

import itertools
import time
from collections.abc import Iterable

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core import events as e
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.events import Event, Logged, encode
from holdfast.core.transcript import Message, Transcript, Turn, answer_id
from holdfast.core.turns import Outcome, TurnState


class Log:
    """Writes a log as the store would. `turn` and `attempt` stand where the events say."""

    def __init__(self) -> None:
        self.items: list[Logged] = []
        self.turn: str | None = None
        self.attempt = 0
        self.position = 0

    def free(self, *events: Event) -> "Log":
        for event in events:
            seq = len(self.items) + 1
            self.items.append(Logged(seq, "s", seq, None, 0, 0, event.kind, 1000 + seq, encode(event)))
        return self

    def in_turn(self, *events: Event) -> "Log":
        for event in events:
            if isinstance(event, e.TurnStarted | e.TurnResumed):
                self.attempt = event.attempt
            seq = len(self.items) + 1
            self.items.append(Logged(seq, "s", seq, self.turn, self.attempt, self.position, event.kind, 1000 + seq, encode(event)))
            self.position += 1
        return self

    def said(self, message_id: str, text: str) -> "Log":
        return self.free(e.MessageAccepted(message_id=message_id, content=text))

    def started(self, turn: str, message_id: str, text: str, generation: int = 1) -> "Log":
        self.turn, self.position = turn, 0
        started = e.TurnStarted(generation=generation, attempt=1, cause="message", causes=(message_id,), owner=1, epoch=1)
        return self.in_turn(started, e.MessageWritten(message_id=message_id, role="user", content=text))

    def ended(self, text: str, outcome: Outcome = Outcome.COMPLETED) -> "Log":
        written = e.MessageWritten(message_id=answer_id(self.turn or ""), role="assistant", content=text)
        return self.in_turn(written, e.TurnEnded(outcome=outcome))

    def cut(self, reason: str = "crash", *, written: int = 0, restarts: int = 1) -> "Log":
        return self.in_turn(e.TurnInterrupted(reason=reason, restarts=restarts, written=written))

    def resumed(self, attempt: int, rule: str = "R9", why: str | None = None) -> "Log":
        return self.in_turn(e.TurnResumed(attempt=attempt, rule=rule, reason="crash", why=why))

    def left(self, rule: str = "R7", why: str | None = None) -> "Log":
        return self.in_turn(e.TurnLeft(rule=rule, why=why))

    def without(self, *lost: int) -> list[Logged]:
        """The log as it is read when these sequences are damaged."""
        return [
            Logged(item.id, "s", item.seq, None, 0, 0, "damaged", 0, encode(e.Damaged(reason="x"))) if item.seq in lost else item
            for item in self.items
        ]

    def records(self) -> list[Logged]:
        return [item for item in self.items if not item.event.stream]


def fold(items: Log | Iterable[Logged]) -> Transcript:
    return Transcript().extend(items.items if isinstance(items, Log) else items)


def shown(transcript: Transcript) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in transcript.messages]


def text(piece: str, offset: int) -> e.Text:
    return e.Text(offset=offset, text=piece)


def simple() -> Log:
    return Log().said("m1", "hi").started("t1", "m1", "hi").in_turn(text("one ", 0), text("two", 4)).ended("one two")


def test_a_plain_conversation() -> None:
    log = simple().said("m2", "more").started("t2", "m2", "more", generation=2).in_turn(text("three", 0)).ended("three")
    found = fold(log)
    assert shown(found) == [("user", "hi"), ("assistant", "one two"), ("user", "more"), ("assistant", "three")]
    assert [message.id for message in found.messages] == ["m1", "t1.answer", "m2", "t2.answer"]
    assert [message.turn_id for message in found.messages] == ["t1", "t1", "t2", "t2"]
    assert [(turn.id, turn.generation, turn.state, turn.outcome) for turn in found.turns] == [
        ("t1", 1, TurnState.ENDED, Outcome.COMPLETED), ("t2", 2, TurnState.ENDED, Outcome.COMPLETED),
    ]  # fmt: skip
    assert found.messages[0].created_at == 1001  # When it was accepted, not when its turn started.
    assert (found.queued, found.question, found.seq) == ({}, None, len(log.items))


def test_an_answer_grows_and_is_whole_at_the_end() -> None:
    found, log = Transcript(), Log().said("m1", "hi").started("t1", "m1", "hi")
    found.extend(log.items)
    log.in_turn(text("one ", 0))
    found.apply(log.items[-1])
    assert (found.answer_text, found.messages[-1].status) == ("one ", "partial")
    log.in_turn(text("two", 4)).ended("one two!")
    found.extend(log.items[-3:])
    assert (found.answer_text, found.messages[-1].status) == ("one two!", "complete")


def test_an_answer_and_an_output_of_many_pieces_cost_their_length_and_not_its_square() -> None:
    """P8. Takes half a second; where each piece copied what came before it, minutes."""
    log = Log().said("m1", "hi").started("t1", "m1", "hi")
    log.in_turn(e.ToolStarted(call_id="c", name="terminal", arguments={}, effect=Effect.UNSAFE))
    log.in_turn(*(e.ToolOutput(call_id="c", text=f"{number:0999}\n") for number in range(20_000)))
    log.in_turn(*(text("x" * 1000, 1000 * number) for number in range(20_000)))
    began = time.process_time()
    found = fold(log)
    assert len(found.answer_text) == 20_000_000
    assert time.process_time() - began < 10
    [call] = found.calls
    assert call.output.endswith("19999\n") and call.output_omitted == 20_000_000 - 16 * 1024


def test_output_that_was_left_out_of_the_log_is_counted_where_it_is_missing() -> None:
    log = Log().said("m1", "hi").started("t1", "m1", "hi")
    log.in_turn(e.ToolStarted(call_id="c", name="terminal", arguments={}, effect=Effect.UNSAFE))
    log.in_turn(e.ToolOutput(call_id="c", text="begin"), e.ToolOutput(call_id="c", text="end", omitted=1_234_567))
    [call] = fold(log).calls
    assert (call.output, call.output_omitted) == ("begin\n[... 1,234,567 characters left out ...]\nend", 1_234_567)


def test_the_second_attempts_text_takes_the_place_of_what_it_does_not_keep() -> None:
    """The offset says how much of the answer so far stays."""
    log = Log().said("m1", "count").started("t1", "m1", "count").in_turn(text("1 2 ", 0), text("3 x", 4)).cut(written=7).resumed(2)
    assert fold(log).answer_text == "1 2 3 x"
    assert fold(log.in_turn(text("4 5", 6))).answer_text == "1 2 3 4 5"
    again = log.cut(written=9).resumed(3).in_turn(text("anew", 0)).ended("anew")
    found = fold(again)
    assert [message for message in shown(found) if message[0] == "assistant"] == [("assistant", "anew")]
    assert (found.turns[0].attempt, found.turns[0].rule) == (3, "R9")


def test_an_answer_is_one_message_below_the_rows_that_tell_of_its_cuts() -> None:
    log = Log().said("m1", "hi").started("t1", "m1", "hi").in_turn(text("one ", 0)).cut("crash", written=4).resumed(2)
    log.in_turn(text("two ", 4)).cut("restart_timeout", written=8).resumed(3).in_turn(text("three", 8)).ended("one two three")
    found = fold(log)
    assert [message.role for message in found.messages] == ["user", "interruption", "interruption", "assistant"]
    first, second = found.messages[1:3]
    assert (first.reason, first.rule, first.attempt, first.state, first.id) == ("crash", "R9", 2, "recovered", "t1.cut.1")
    assert (second.reason, second.rule, second.attempt, second.id) == ("restart_timeout", "R9", 3, "t1.cut.2")
    assert "crash" in first.text and "restart" in second.text and "kept" in first.text


def test_a_cut_before_anything_was_written_says_so() -> None:
    found = fold(Log().said("m1", "hi").started("t1", "m1", "hi").cut("shutdown_timeout"))
    row = found.messages[-1]
    assert (row.role, row.state, row.rule) == ("interruption", "neutral", None)
    assert "shutdown" in row.text and "before anything" in row.text
    assert found.turns[0].state is TurnState.INTERRUPTED


@pytest.mark.parametrize("outcome", [Outcome.CANCELLED, Outcome.SET_ASIDE, Outcome.FAILED])
def test_a_cut_turn_that_does_not_go_on_keeps_its_text_above_the_row(outcome: Outcome) -> None:
    log = Log().said("m1", "hi").started("t1", "m1", "hi").in_turn(text("half", 0)).cut(written=4)
    log.in_turn(
        e.MessageWritten(message_id="t1.answer", role="assistant", content="half"), e.TurnEnded(outcome=outcome, rule="R2", error="why")
    )
    for items in (log.items, log.records()):
        found = fold(items)
        assert [message.role for message in found.messages] == ["user", "assistant", "interruption"]
        assert (found.messages[1].text, found.messages[1].status, found.messages[2].rule) == ("half", "complete", "R2")
        assert (found.turns[0].outcome, found.turns[0].rule, found.turns[0].error) == (outcome, "R2", "why")


def test_tool_calls_are_matched_by_their_id_also_when_parallel_and_of_one_name() -> None:
    """F8"""
    calls = [e.ToolStarted(call_id=f"c{n}", name="terminal", arguments={"n": n}, effect=Effect.UNSAFE) for n in range(3)]
    log = Log().said("m1", "hi").started("t1", "m1", "hi").in_turn(*calls)
    log.in_turn(e.ToolOutput(call_id="c2", text="two"), e.ToolOutput(call_id="c0", text="ze"), e.ToolOutput(call_id="c0", text="ro"))
    log.in_turn(e.ToolFinished(call_id="c2", outcome=ToolOutcome.FAILED, content="r2"))
    log.in_turn(e.ToolFinished(call_id="c0", outcome=ToolOutcome.DONE, content="r0"), e.ToolOutput(call_id="nobody", text="x"))
    found = {call.call_id: call for call in fold(log).calls}
    assert [(call.output, call.outcome, call.result) for call in found.values()] == [
        ("zero", ToolOutcome.DONE, "r0"), ("", None, None), ("two", ToolOutcome.FAILED, "r2"),
    ]  # fmt: skip


def test_a_call_that_is_repeated_stays_one_call_with_the_output_of_its_last_run() -> None:
    started = e.ToolStarted(call_id="c1", name="fetch", arguments={}, effect=Effect.PURE)
    log = Log().said("m1", "hi").started("t1", "m1", "hi").in_turn(started, e.ToolOutput(call_id="c1", text="half")).cut().resumed(2)
    log.in_turn(started, e.ToolOutput(call_id="c1", text="whole"), e.ToolFinished(call_id="c1", outcome=ToolOutcome.DONE, content="r"))
    [call] = fold(log).calls
    assert (call.attempt, call.output, call.outcome, call.finished_in) == (2, "whole", ToolOutcome.DONE, 2)


def asked() -> Log:
    log = Log().said("m1", "hi").started("t1", "m1", "hi").in_turn(text("Well. ", 0))
    log.in_turn(e.ToolStarted(call_id="c1", name="ask", arguments={"question": "Which?"}, effect=Effect.PURE))
    return log.in_turn(e.QuestionAsked(question_id="q1", call_id="c1", content="Which?", expires_at=99))


def test_a_question_waits_for_its_answer() -> None:
    found = fold(asked())
    assert found.question and (found.question.question_id, found.question.turn_id, found.question.expires_at) == ("q1", "t1", 99)
    assert found.turns[0].state is TurnState.WAITING


def test_an_answer_from_the_chat_is_a_message_and_the_calls_result() -> None:
    log = asked().said("m2", "the blue one")
    log.in_turn(e.QuestionAnswered(question_id="q1", call_id="c1", content="the blue one", message_id="m2"))
    found = fold(log)
    assert (found.question, found.queued, found.turns[0].state) == (None, {}, TurnState.ANSWERED)
    assert (found.calls[0].outcome, found.calls[0].result) == (ToolOutcome.DONE, "the blue one")
    assert shown(found)[-1] == ("user", "the blue one") and found.messages[-1].id == "m2"
    found = fold(log.resumed(2, "answer").in_turn(text("Blue.", 6)).ended("Well. Blue."))
    assert shown(found) == [("user", "hi"), ("user", "the blue one"), ("assistant", "Well. Blue.")]
    assert found.turns[0].rule == "answer"


def test_an_answer_from_a_card_has_an_id_of_its_own() -> None:
    found = fold(asked().in_turn(e.QuestionAnswered(question_id="q1", call_id="c1", content="yes")))
    assert found.messages[-1].id == "q1.answer" and found.messages[-1].role == "user"


def test_a_question_that_expired_is_open_no_more() -> None:
    late = e.ToolFinished(call_id="c1", outcome=ToolOutcome.FAILED, content="late")
    found = fold(asked().in_turn(late, e.TurnEnded(outcome=Outcome.FAILED, error="late")))
    assert (found.question, found.turns[0].outcome, found.turns[0].error) == (None, Outcome.FAILED, "late")
    assert found.calls[0].outcome is ToolOutcome.FAILED


def test_a_stop_marks_the_turn_it_names_and_no_other() -> None:
    log = simple().said("m2", "more").started("t2", "m2", "more", generation=2)
    assert not fold(log.free(e.StopRequested(turn_id="t1", by="owner"))).turns[1].stop_requested
    found = fold(log.free(e.StopRequested(turn_id="t2", by="owner")).in_turn(e.TurnEnded(outcome=Outcome.CANCELLED)))
    assert found.turns[1].stop_requested and found.turns[1].outcome is Outcome.CANCELLED


def test_messages_wait_in_their_order_until_a_turn_takes_them() -> None:
    log = Log().said("m1", "one").said("m2", "two").said("m3", "three").said("m4", "four")
    log.started("t1", "m1", "one").free(e.MessageRefused(message_id="m3", reason="reset"))
    found = fold(log)
    assert list(found.queued) == ["m2", "m4"]
    assert [(message.text, message.status, message.turn_id) for message in found.messages] == [
        ("one", "complete", "t1"),
        ("three", "refused", None),
    ]
    assert all(message.turn_id is None for message in found.queued.values())


def test_a_notice_stands_below_the_message_it_is_about_and_above_its_answer() -> None:
    """C22: said while the message waits, it is read after it, whether the pieces of the answer are there or not."""
    log = Log().said("m1", "one").free(e.MessageWritten(message_id="n1", role="notice", content="It is kept.")).said("m2", "two")
    log.started("t1", "m1", "one").in_turn(e.Text(offset=0, text="an answer"))
    log.free(e.MessageWritten(message_id="n2", role="notice", content="Said since.")).ended("an answer")
    for items in (log.items, log.records()):
        assert [message.id for message in Transcript().extend(items).messages] == ["m1", "n1", "t1.answer", "n2"]


def test_a_command_is_a_message_that_no_turn_answers() -> None:
    log = simple().free(e.MessageWritten(message_id="m2", role="user", content="/status"))
    log.free(e.MessageWritten(message_id="m2.reply", role="notice", content="This conversation is idle."))
    found = fold(log)
    assert [(message.role, message.status, message.turn_id) for message in found.messages[-2:]] == [
        ("user", "command", None),
        ("notice", "complete", None),
    ]
    assert found.messages[0].status == "complete"
    assert found.request is found.messages[0]


def test_a_command_in_the_middle_of_a_turn_is_not_what_the_turn_answers() -> None:
    log = Log().said("m1", "hi").started("t1", "m1", "hi").free(e.MessageWritten(message_id="m2", role="user", content="/status"))
    found = fold(log.ended("Hello."))
    assert [(message.id, message.status) for message in found.messages] == [
        ("m1", "complete"),
        ("t1.answer", "complete"),
        ("m2", "command"),
    ]
    assert found.turns[0].causes == ("m1",)


def test_what_is_said_while_an_answer_is_written_stands_in_the_same_place_once_it_is_loaded_again() -> None:
    """P7"""
    log = begun().in_turn(text("Half ", 0)).free(e.MessageWritten(message_id="m2", role="user", content="/status"))
    log.free(e.MessageWritten(message_id="m2.reply", role="notice", content="It runs.")).in_turn(text("done.", 5)).ended("Half done.")
    assert shown(fold(log)) == shown(fold(log.records()))


def test_a_refused_message_stays_visible_in_its_place_and_what_nobody_accepted_is_not_refused() -> None:
    """A20: exactly one visible refusal."""
    log = simple().said("m2", "late").free(e.MessageRefused(message_id="m2", reason="reset"), e.MessageRefused(message_id="m9", reason="x"))
    log.free(e.MessageWritten(message_id="m2.refused", role="notice", content="This message was not answered"))
    found = fold(log)
    assert [(message.id, message.status) for message in found.messages[-2:]] == [("m2", "refused"), ("m2.refused", "complete")]
    assert found.queued == {}


def test_the_request_is_the_message_that_began_the_newest_turn_and_a_reply_hangs_on_its_anchor() -> None:
    """B11"""
    log = Log()
    assert (fold(log).request, fold(log).anchor) == (None, None)
    log.free(e.MessageAccepted(message_id="m1", content="one", sender="ann", anchor="upd-1"))
    log.free(e.MessageAccepted(message_id="m2", content="two", sender="bob", anchor="upd-2"))
    assert fold(log).request is None
    found = fold(log.started("t1", "m1", "one"))
    assert found.request and (found.request.id, found.request.sender, found.anchor) == ("m1", "ann", "upd-1")
    found = fold(log.ended("1").started("t2", "m2", "two", generation=2))
    assert found.request and (found.request.id, found.request.sender, found.anchor) == ("m2", "bob", "upd-2")
    found = fold(log.cut().resumed(2))
    assert found.anchor == "upd-2"
    assert fold(log.ended("2").said("m3", "three").started("t3", "m3", "three", generation=3)).anchor is None


# --- signs of life

CALL = e.ToolStarted(call_id="c1", name="terminal", arguments={}, effect=Effect.UNSAFE)


def begun() -> Log:
    return Log().said("m1", "hi").started("t1", "m1", "hi")


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


# --- decisions, in words


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
    assert found.question and [message.role for message in found.messages] == ["user", "assistant"]


def test_notices_and_other_roles_are_messages_of_their_own() -> None:
    log = simple().in_turn(e.MessageWritten(message_id="t1.aside", role="notice", content="Set aside."))
    assert shown(fold(log))[-1] == ("notice", "Set aside.")


def test_events_that_say_nothing_to_people_change_nothing() -> None:
    before = shown(fold(simple()))
    log = simple().free(e.SessionChanged(title="x"), e.DeliveryChanged(delivery_id="d", state="sent"), e.JournalPruned(through=3))
    log.free(e.SessionResumed(by="owner")).in_turn(e.TurnTaken(owner=2, epoch=2), e.Reasoning(text="hm"), e.TurnAlive())
    assert shown(fold(log)) == before


# --- damage

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


# --- any log


STEPS = st.lists(
    st.sampled_from(
        "say start start text text think alive tool output finish lost cut cut leave resume resume wish ask answer end stop notice"
        " refuse command".split()
    ),
    max_size=60,
).map(lambda steps: ["say", "start", *steps])


def story(steps: list[str]) -> Log:
    """A log as the store allows it and the gateway writes it."""
    log, state, ids = Log(), TurnState.NONE, itertools.count(1)
    waiting: list[str] = []
    length = 0
    for step in steps:
        running, idle = state is TurnState.RUNNING, state in (TurnState.NONE, TurnState.ENDED)
        match step:
            case "say":
                waiting.append(f"m{next(ids)}")
                log.said(waiting[-1], f"text of {waiting[-1]}")
            case "start" if idle and waiting:
                message = waiting.pop(0)
                log.started(f"t{next(ids)}", message, f"text of {message}")
                state, length = TurnState.RUNNING, 0
            case "text" if running:
                log.in_turn(text(f"<{next(ids)}>", length))
                length = len(fold(log).answer_text)
            case "tool" if running:
                log.in_turn(e.ToolStarted(call_id=f"c{next(ids)}", name="n", arguments={}, effect=Effect.PURE))
            case "think" if running:
                log.in_turn(e.Reasoning(text="hm"))
            case "alive" if running:
                log.in_turn(e.TurnAlive())
            case "output" if running and fold(log).calls:
                log.in_turn(e.ToolOutput(call_id=fold(log).calls[-1].call_id, text="o"))
            case "finish" | "lost" if running and fold(log).calls:
                outcome = ToolOutcome.DONE if step == "finish" else ToolOutcome.UNKNOWN
                log.in_turn(e.ToolFinished(call_id=fold(log).calls[-1].call_id, outcome=outcome, content="r"))
            case "leave" if state in (TurnState.INTERRUPTED, TurnState.WAITING):
                log.left(f"R{next(ids) % 10}", "why")
            case "wish":
                log.free(e.SessionResumed(by="owner"))
            case "refuse" if waiting:
                log.free(e.MessageRefused(message_id=waiting.pop(), reason="reset"))
            case "command":
                log.free(e.MessageWritten(message_id=f"m{next(ids)}", role="user", content="/status"))
            case "cut" if running:
                log.cut(written=length)
                state = TurnState.INTERRUPTED
            case "resume" if state in (TurnState.INTERRUPTED, TurnState.ANSWERED):
                log.resumed(log.attempt + 1)
                state = TurnState.RUNNING
            case "ask" if running:
                log.in_turn(e.ToolStarted(call_id=f"c{next(ids)}", name="ask", arguments={}, effect=Effect.PURE))
                log.in_turn(e.QuestionAsked(question_id=f"q{next(ids)}", call_id=fold(log).calls[-1].call_id, content="?", expires_at=0))
                state = TurnState.WAITING
            case "answer" if state is TurnState.WAITING:
                question = fold(log).question
                assert question
                log.in_turn(e.QuestionAnswered(question_id=question.question_id, call_id=question.call_id, content="a"))
                state = TurnState.ANSWERED
            case "end" if not idle:
                if answer := fold(log).answer_text:
                    log.in_turn(e.MessageWritten(message_id=answer_id(log.turn or ""), role="assistant", content=answer))
                cut, unread = state is TurnState.INTERRUPTED, fold(log).turns[-1].unread_results
                how = Outcome.SET_ASIDE if cut else Outcome.FAILED if unread else Outcome.COMPLETED
                log.in_turn(e.TurnEnded(outcome=how, rule="R6" if cut else None, why="why" if cut else None, unread_results=unread))
                state = TurnState.ENDED
            case "stop" if not idle:
                log.free(e.StopRequested(turn_id=log.turn or "", by="owner"))
            case "notice" if running and fold(log).calls:
                log.in_turn(e.MessageWritten(message_id=f"n{next(ids)}", role="notice", content="n"))
    return log


def comparable(message: Message) -> tuple[object, ...]:
    calls = [(call.call_id, call.outcome, call.result) for call in message.tool_calls]
    decided = (message.state, message.rule, message.decision, message.attempt)
    return (message.id, message.role, message.text, message.turn_id, message.status, decided, calls)


def lasting(turn: Turn) -> Turn:
    """Without its last sign of life and its progress, which pieces give and which count only while it is open."""
    return msgspec.structs.replace(turn, signed_at=None, spoke=False)


@settings(max_examples=200, derandomize=True, database=None, deadline=None)
@given(steps=STEPS)
def test_a_conversation_whose_turns_are_over_is_the_same_without_its_pieces(steps: list[str]) -> None:
    """P7: what grew on one page is what loads on another, in the same order, also once the journal is pruned."""
    log = story([*steps, "end"])
    grown, loaded = fold(log), fold(log.records())
    assert [comparable(message) for message in loaded.messages] == [comparable(message) for message in grown.messages]
    assert list(map(lasting, loaded.turns)) == list(map(lasting, grown.turns))
    assert list(loaded.queued) == list(grown.queued)


@settings(max_examples=120, derandomize=True, database=None, deadline=None)
@given(steps=STEPS, data=st.data())
def test_any_log_with_any_damage_folds(steps: list[str], data: st.DataObject) -> None:
    log = story(steps)
    lost = data.draw(st.sets(st.integers(1, max(1, len(log.items)))))
    found = fold(log.without(*lost))
    assert len([message for message in found.messages if message.role == "notice" and message.id.startswith("notice.")]) == len(
        lost & {item.seq for item in log.items}
    )
    ids = [message.id for message in found.messages]
    assert len(ids) == len(set(ids))
