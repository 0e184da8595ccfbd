"""A turn's answer, step by step: its text, its calls and what it took, in the order of the turn, from pieces and from records."""

import time

import msgspec
import pytest

from holdfast.core import events as e
from holdfast.core.content import ImagePart, TextPart
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.events import Logged
from holdfast.core.messages import Attached, Called, Message, Said, Taken
from holdfast.core.steps import StepText, key
from holdfast.core.transcript import Transcript
from holdfast.core.turns import Outcome, TurnState
from tests.core.logs import Log, asked, begun, fold, shown, simple, text


def parts(answer: Message) -> list[tuple[str, str]]:
    """Each with its id and what it says or stands for."""

    def what(part: object) -> str:
        match part:
            case Said():
                return part.text
            case Called():
                return part.call_id
            case Taken():
                return part.message_id
            case Attached():
                return part.part.blob
            case _:
                raise AssertionError(part)

    return [(part.id, what(part)) for part in answer.answer]


def call(call_id: str, step: int = 0, offset: int = 0) -> e.ToolStarted:
    return e.ToolStarted(call_id=call_id, name="terminal", arguments={}, effect=Effect.UNSAFE, step=step, offset=offset)


def done(call_id: str) -> e.ToolFinished:
    return e.ToolFinished(call_id=call_id, outcome=ToolOutcome.DONE, content="r")


def both(log: Log) -> Message:
    """The newest answer, which is the same from the records alone."""
    grown, loaded = fold(log).messages[-1], fold(log.records()).messages[-1]
    assert (grown.text, grown.answer) == (loaded.text, loaded.answer)
    return grown


def test_an_answer_of_a_model_is_its_steps_with_their_calls_in_order() -> None:
    log = begun().in_turn(text("Let me ", 0), text("look.", 7), e.ModelResponded(step=0, text="Let me look."))
    log.in_turn(call("a"), call("b"), done("b"), done("a"))
    log.in_turn(e.ModelResponded(step=1), call("c", step=1), done("c"))
    log.in_turn(text("It ", 0, 2), text("is so.", 3, 2), e.ModelResponded(step=2, text="It is so.")).ended("It is so.")
    answer = both(log)
    assert parts(answer) == [("t1.0.0", "Let me look."), ("t1.0.1", "a"), ("t1.0.3", "b"), ("t1.1.1", "c"), ("t1.2.0", "It is so.")]
    assert [part.step for part in answer.answer] == [0, 0, 0, 1, 2]
    assert (answer.text, [found.step for found in answer.tool_calls]) == ("It is so.", [0, 0, 1])


def test_the_text_of_an_answer_is_the_last_that_was_said_while_the_next_step_says_nothing() -> None:
    log = begun().in_turn(text("One.", 0), e.ModelResponded(step=0, text="One."), call("a", offset=4), done("a"))
    assert fold(log).answer_text == "One."
    assert fold(log.in_turn(text("Tw", 0, 1))).answer_text == "Tw"
    log.in_turn(e.ModelResponded(step=1, text="Two."), call("b", step=1), done("b"), e.ModelResponded(step=2))
    assert both(log.ended("Two.")).text == "Two."
    assert parts(both(log)) == [("t1.0.0", "One."), ("t1.0.1", "a"), ("t1.1.0", "Two."), ("t1.1.1", "b")]


def test_a_response_fixes_its_steps_text_whatever_pieces_came() -> None:
    log = begun().in_turn(text("Helo", 0), e.ModelResponded(step=0, text="Hello."), text("late", 4))
    assert fold(log).answer_text == fold(log.records()).answer_text == "Hello."


def thoughts_of(log: Log | list[Logged]) -> list[tuple[int, str, bool]]:
    return [(each.step, each.text, each.kept) for each in fold(log).thoughts_of("t1")]


def test_thoughts_are_those_of_responses_and_of_the_step_that_is_under_way() -> None:
    """P7: they look the same while they grow, once they are loaded, and after their pieces were pruned."""
    log = begun().in_turn(e.Reasoning(text="They want "), e.Reasoning(text="a greeting."))
    assert thoughts_of(log) == [(0, "They want a greeting.", False)]
    log.in_turn(e.ModelResponded(step=0, thoughts="They want a greeting.", text="Hi."), e.Reasoning(text="late"))
    log.in_turn(e.Reasoning(text="And now?", step=1))
    assert thoughts_of(log) == [(0, "They want a greeting.", True), (1, "And now?", False)]
    failed = e.ModelFailed(step=1, tries=1, error="busy", why="It is overloaded.", model="m", retry_at=99)
    log.in_turn(failed)
    assert thoughts_of(log) == [(0, "They want a greeting.", True)]
    log.in_turn(e.Reasoning(text="Once more", step=1))
    log.ended("Hi.")
    assert thoughts_of(log) == thoughts_of(log.records()) == [(0, "They want a greeting.", True)]


def test_what_an_agent_of_another_program_thought_is_kept_as_far_as_it_was_read() -> None:
    """P7: over an interruption, after which the same output is read again."""
    read = e.AgentRead(agent="a", process="p", session="s", how="new", offset=9)
    log = begun().in_turn(e.Reasoning(text="one "), e.Reasoning(text="two"))
    log.in_turn(msgspec.structs.replace(read, thoughts="one two"), e.Reasoning(text="three"))
    assert thoughts_of(log) == [(0, "one two", True), (0, "three", False)]
    log.in_turn(msgspec.structs.replace(read, thoughts="and three"))
    log.ended("Hi.")
    assert thoughts_of(log) == thoughts_of(log.records()) == [(0, "one two", True), (0, "and three", True)]


def test_thoughts_between_the_words_of_a_step_are_shown_while_it_is_under_way() -> None:
    assert thoughts_of(begun().in_turn(text("Well, ", 0), e.Reasoning(text="hm"))) == [(0, "hm", False)]


def test_a_response_that_came_without_thoughts_shows_none() -> None:
    assert thoughts_of(begun().in_turn(e.ModelResponded(step=0, text="Hi."))) == []


def test_the_thoughts_of_an_attempt_that_was_interrupted_are_over_with_it() -> None:
    """P7"""
    log = begun().in_turn(e.Reasoning(text="Hm.")).cut()
    assert thoughts_of(log) == [(0, "Hm.", False)]
    assert thoughts_of(log.resumed(2)) == thoughts_of(log.records()) == []


def test_an_agent_without_a_model_has_one_step_with_its_calls_where_they_were_made() -> None:
    log = begun().in_turn(call("a"), done("a"), text("First. ", 0), call("b", offset=7), call("c", offset=7), text("Then.", 7))
    log.in_turn(done("b"), done("c")).ended("First. Then.")
    assert parts(both(log)) == [("t1.0.1", "a"), ("t1.0.2", "First. "), ("t1.0.3", "b"), ("t1.0.5", "c"), ("t1.0.6", "Then.")]
    assert both(log).text == "First. Then."


def test_pieces_of_an_interrupted_step_stay_until_the_next_attempt_says_or_responds_something() -> None:
    log = begun().in_turn(e.ModelResponded(step=0, text="One."), call("a"), done("a"), text("Half of", 0, 1)).cut(written=7).resumed(2)
    assert fold(log).answer_text == "Half of"
    said = fold([*log.items, *begun_again(log, text("Other", 0, 1))])
    assert said.answer_text == "Other" and parts(said.messages[-1])[-1] == ("t1.1.0", "Other")
    responded = fold([*log.items, *begun_again(log, e.ModelResponded(step=1))])
    assert (responded.answer_text, parts(responded.messages[-1])) == ("One.", [("t1.0.0", "One."), ("t1.0.1", "a")])


def begun_again(log: Log, *events: e.Event) -> list[Logged]:
    """What these events would add to the log."""
    before = len(log.items)
    more = Log()
    more.items, more.turn, more.attempt, more.epoch, more.position = list(log.items), log.turn, log.attempt, log.epoch, log.position
    return more.in_turn(*events).items[before:]


def test_text_of_an_interrupted_step_becomes_a_record_with_the_end_of_its_turn() -> None:
    log = begun().in_turn(text("One.", 0), e.ModelResponded(step=0, text="One."), call("a", offset=4), done("a"), text("Half", 0, 1))
    log.cut(written=4).in_turn(
        e.MessageWritten(message_id="t1.answer", role="assistant", content="Half"), e.TurnEnded(outcome=Outcome.SET_ASIDE)
    )
    for items in (log.items, log.records()):
        answer = fold(items).messages[1]
        assert parts(answer) == [("t1.0.0", "One."), ("t1.0.1", "a"), ("t1.1.0", "Half")] and answer.text == "Half"


def test_an_answer_may_have_images_and_files() -> None:
    image = ImagePart(blob="d1", size=3, media_type="image/png")
    log = begun().in_turn(text("See:", 0))
    log.in_turn(
        e.MessageWritten(message_id="t1.answer", role="assistant", content=(TextPart("See:"), image)),
        e.TurnEnded(outcome=Outcome.COMPLETED),
    )
    assert parts(both(log)) == [("t1.0.0", "See:"), ("t1.0.1", "d1")] and both(log).text == "See:"


def test_content_is_parts_also_where_it_is_only_text() -> None:
    image = ImagePart(blob="d1", size=3, media_type="image/png", name="a.png")
    log = Log().free(e.MessageAccepted(message_id="m1", content=(TextPart("What is"), image, TextPart("this?"))))
    [message] = fold(log).queued.values()
    assert message.parts == (TextPart("What is"), image, TextPart("this?")) and message.text == "What is\n\nthis?"
    assert fold(begun()).messages[0].parts == (TextPart("hi"),)
    finished = e.ToolFinished(call_id="a", outcome=ToolOutcome.DONE, content=(TextPart("a picture"), image))
    [found] = fold(begun().in_turn(call("a"), finished)).calls
    assert (found.content, found.result) == ((TextPart("a picture"), image), "a picture")


# --- causes


def test_a_message_that_a_running_turn_takes_stands_above_its_answer_and_the_answer_says_where() -> None:
    log = begun().in_turn(text("One.", 0), e.ModelResponded(step=0, text="One."), call("a", offset=4), done("a"))
    log.said("m2", "also that").in_turn(e.CauseTaken(cause_id="m2"))
    log.in_turn(text("Two.", 0, 1), e.ModelResponded(step=1, text="Two.")).ended("Two.")
    found = fold(log)
    assert [(message.id, message.turn_id) for message in found.messages] == [("m1", "t1"), ("m2", "t1"), ("t1.answer", "t1")]
    assert parts(both(log)) == [("t1.0.0", "One."), ("t1.0.1", "a"), ("t1.0.3", "m2"), ("t1.1.0", "Two.")]
    assert found.queued == {} and found.request is found.messages[0] and found.turns[0].causes == ("m1",)


def test_a_cause_that_is_no_message_waits_is_taken_or_is_dropped() -> None:
    """P6, E6"""
    log = simple()
    for cause_id in ("k1", "k2", "k3"):
        log.free(e.CauseRecorded(cause_id=cause_id, what="process", content=f"{cause_id} ended with 0."))
    assert {(message.role, message.cause) for message in fold(log).queued.values()} == {("cause", "process")}
    log.free(e.CauseDropped(cause_id="k3", reason="stale"))
    log.turn = "t2"
    log.in_turn(e.TurnStarted(generation=2, attempt=1, cause="process", causes=("k1",), owner=1, epoch=2), e.CauseTaken(cause_id="k2"))
    found = fold(log.in_turn(text("Fine.", 0)).ended("Fine."))
    assert shown(found)[2:] == [("cause", "k1 ended with 0."), ("cause", "k2 ended with 0."), ("assistant", "Fine.")]
    assert found.queued == {} and found.request is found.messages[2]


# --- late


def late(log: Log, *events: e.Event, epoch: int, turn: str, attempt: int = 1) -> list[Logged]:
    """The log, and what a lease that is over wrote at its end."""
    more = Log()
    more.items, more.turn, more.epoch, more.attempt, more.position = list(log.items), turn, epoch, attempt, 1000
    return more.in_turn(*events).items


def test_a_late_piece_of_an_earlier_lease_stands_before_what_the_next_one_wrote() -> None:
    """P2, P7"""
    log = begun().in_turn(text("1 2 ", 0)).cut(written=4).resumed(2).in_turn(text("3 4 ", 4))
    assert fold(late(log, text("3 x", 4), epoch=1, turn="t1")).answer_text == "1 2 3 4 "
    log = begun().in_turn(text("1 2 ", 0)).cut(written=4).resumed(2)
    assert fold(late(log, text("3 ", 4), epoch=1, turn="t1")).answer_text == "1 2 3 "


def test_a_late_piece_goes_into_its_own_turn_and_moves_nothing_of_the_newest() -> None:
    """P2"""
    log = begun().in_turn(text("1 ", 0)).cut(written=2).in_turn(e.TurnEnded(outcome=Outcome.SET_ASIDE))
    log.said("m2", "more").started("t2", "m2", "more", generation=2).in_turn(text("new", 0))
    before = fold(log)
    found = fold(late(log, text("2 ", 2), e.TurnAlive(), epoch=1, turn="t1"))
    assert [(message.id, message.text) for message in found.messages if message.role == "assistant"] == [
        ("t1.answer", "1 2 "), ("t2.answer", "new"),
    ]  # fmt: skip
    assert found.turns[1] == before.turns[1] and found.turns[0].state is TurnState.ENDED


def test_a_late_piece_of_a_turn_that_is_not_read_begins_no_turn() -> None:
    """The newest turn alone is read where a turn is ended for its user: what an older one still adds is none of it."""
    log = simple().said("m2", "more").started("t2", "m2", "more", generation=2).in_turn(text("new", 0))
    own = [item for item in late(log, text("x", 0), epoch=1, turn="t1") if item.seq > simple().items[-1].seq]
    found = fold(own)
    assert [turn.id for turn in found.turns] == ["t2"] and found.answer_text == "new"


def test_a_late_result_counts_unless_a_later_lease_has_closed_the_call_or_run_it_again() -> None:
    """P5"""
    log = begun().in_turn(call("a")).cut().resumed(2)
    [found] = fold(late(log, done("a"), epoch=1, turn="t1")).calls
    assert (found.outcome, found.finished_in) == (ToolOutcome.DONE, 1)
    closed = e.ToolFinished(call_id="a", outcome=ToolOutcome.UNKNOWN, content="It may have run.")
    for newer, outcome in ((closed, ToolOutcome.UNKNOWN), (call("a"), None)):
        items = [*log.items, *begun_again(log, newer)]
        more = Log()
        more.items, more.epoch = items, log.epoch
        [found] = fold(late(more, e.ToolOutput(call_id="a", text="old"), done("a"), epoch=1, turn="t1")).calls
        assert found.outcome is outcome and (found.output == "old") is (newer is closed)


def test_late_pieces_cost_their_length_and_not_its_square() -> None:
    """P8: each of many earlier leases is late; takes half a second."""
    log, leases, each = begun(), 20, 1000
    for attempt in range(leases):
        log.in_turn(*(text("x" * 100, 100 * number) for number in range(each))).cut(written=100 * each).resumed(attempt + 2)
    pieces = [item for item in log.items if item.kind == "text"]
    items = [item for item in log.items if item.kind != "text"]
    for lease in range(len(pieces) - each, -1, -each):
        items += pieces[lease : lease + each]
    began, found = time.process_time(), Transcript()
    for number, item in enumerate(items):
        found.apply(item)
        if number % 1000 == 0:
            assert found.answer_text is not None
    assert found.answer_text == "x" * 100 * each
    assert time.process_time() - began < 10


# --- texts, outputs and calls


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


# --- questions


def test_a_question_waits_for_its_answer() -> None:
    found = fold(asked())
    assert [(question.question_id, question.turn_id, question.expires_at) for question in found.questions] == [("q1", "t1", 99)]
    assert found.turns[0].state is TurnState.WAITING


def test_an_answer_from_the_chat_is_a_message_and_the_calls_result() -> None:
    log = asked().said("m2", "the blue one")
    log.in_turn(e.QuestionAnswered(question_id="q1", call_id="c1", content="the blue one", message_id="m2"))
    found = fold(log)
    assert (found.questions, found.queued, found.turns[0].state) == ([], {}, TurnState.ANSWERED)
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
    assert (found.questions, found.turns[0].outcome, found.turns[0].error) == ([], Outcome.FAILED, "late")
    assert found.calls[0].outcome is ToolOutcome.FAILED


@pytest.mark.parametrize("read_in_between", [False, True])
def test_a_late_piece_of_an_earlier_lease_changes_no_text_that_was_written_since(read_in_between: bool) -> None:
    """P7: also where somebody has read the text before the piece came."""
    said = StepText()
    said.write((2, 1), 0, "xyz")
    assert not read_in_between or said.read() == "xyz"
    said.write((1, 5), 0, "ab")
    assert said.read() == "xyz"
    said.write((2, 2), 3, "!")
    assert said.read() == "xyz!"


def test_what_version_0_1_wrote_of_a_turn_stands_before_what_any_lease_since_wrote() -> None:
    """A3: its rows name no lease."""
    log = begun()
    old = [msgspec.structs.replace(item, epoch=None) for item in log.in_turn(text("half", 0)).items]
    new = log.in_turn(e.TurnResumed(attempt=2, rule="R9", reason="crash"), text("whole", 0)).items[len(old) :]
    ordered = sorted([*new, *old], key=key)
    assert [item.seq for item in ordered if item.turn_id] == [item.seq for item in [*old, *new] if item.turn_id]


def test_a_question_about_a_call_that_has_not_started_shows_the_call_as_its_step_proposes_it() -> None:
    """A27: who is asked to approve a call must see it."""
    proposed = e.ProposedCall(name="terminal", arguments={"command": "ls"})
    asked = e.QuestionAsked(question_id="q", call_id="t1.0.2", content="?", expires_at=99, form="approval", ends_attempt=False)
    log = begun().in_turn(e.ModelResponded(step=0, text="", calls=(e.ProposedCall(name="look", arguments={}), proposed)), asked)
    [question] = fold(log).questions
    assert question.call == proposed


# what a turn shows of itself on the way


def test_what_comes_later_stands_no_earlier_in_its_step() -> None:
    """An attempt that says less than the one before it makes its calls at smaller offsets."""
    log = begun().in_turn(text("One. Two.", 0), call("a", offset=5), call("b", offset=0))
    assert parts(both(log.ended("One. Two."))) == [("t1.0.0", "One. "), ("t1.0.1", "a"), ("t1.0.3", "b"), ("t1.0.4", "Two.")]


def test_a_turn_that_only_put_something_out_has_said_nothing() -> None:
    assert fold(begun().in_turn(call("a"), e.ToolOutput(call_id="a", text="out"))).answer_text == ""


def test_pieces_after_the_last_response_are_gone_where_the_answer_is_what_that_said() -> None:
    """P7"""
    log = begun().in_turn(e.ModelResponded(step=0, text="One."), text("Half", 0, 1)).ended("One.")
    assert parts(both(log)) == [("t1.0.0", "One.")]


def test_files_stand_in_the_last_step() -> None:
    image = ImagePart(blob="i", size=3, media_type="image/png", name="i.png")
    log = begun().in_turn(e.ModelResponded(step=0, text="One."), call("a"), done("a"), e.ModelResponded(step=1, text="Two."))
    log.in_turn(e.MessageWritten(message_id="t1.answer", role="assistant", content=(TextPart("Two."), image)))
    assert [(part.id, part.step) for part in fold(log).messages[-1].answer if isinstance(part, Attached)] == [("t1.1.1", 1)]


def test_a_call_that_runs_once_more_has_nothing_of_its_earlier_run() -> None:
    """P5: whoever reads it in between sees that it runs."""
    log = begun().in_turn(call("a"), e.ToolOutput(call_id="a", text="out", omitted=3), done("a"))
    found = fold(log)
    (first,) = found.calls
    assert (first.output, first.output_omitted > 0, first.outcome, first.content) != ("", False, None, None)
    count = len(log.items)
    found.extend(log.cut().resumed(2).in_turn(call("a")).items[count:])
    (again,) = found.calls
    assert (again.output, again.output_omitted, again.outcome, again.content, again.attempt) == ("", 0, None, None, 2)
    assert (again.recovered, again.late, again.finished_at) == (False, None, None) and again.started_at == log.items[-1].at
    assert [known.call_id for step in found.steps for known in step.calls] == ["a"]
