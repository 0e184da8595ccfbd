"""Journals that were late, as people read them: an honest row, filled in where it belongs, once (F1, F2, F5, F7, F8)."""

import msgspec
import pytest

from holdfast.core import events as e
from holdfast.core.effects import ToolOutcome
from holdfast.core.events import Event, encode
from holdfast.core.history import History, Result
from holdfast.core.journals import State
from holdfast.core.messages import Awaited, Message
from holdfast.core.transcript import Transcript
from holdfast.core.turns import Outcome
from tests.core.logs import CALL, Log, begun, fold, shown, text

DONE = e.ToolFinished(call_id="c1", outcome=ToolOutcome.DONE, content="42")
UNKNOWN = e.ToolFinished(call_id="c1", outcome=ToolOutcome.UNKNOWN, content="nobody knows")


class LateLog(Log):
    """`arrives` writes what reached the log late: a record that says so, and events of the first lease in the places behind `position`."""

    def cut_late(self) -> "LateLog":
        self.behind = self.position
        interrupted = e.TurnInterrupted(reason="crash", restarts=1, written=3, stream_id=f"{self.turn}.1")
        self.in_turn(interrupted)
        return self

    def looked(self, state: State = State.RECOVERING, tries: int = 0) -> "LateLog":
        self.free(e.JournalChanged(turn_id=self.turn or "", stream_id=f"{self.turn}.1", state=state, tries=tries))
        return self

    def arrives(self, *events: Event, state: State = State.RECOVERED, said: str = "", at: int | None = None) -> "LateLog":
        calls = tuple(event.call_id for event in events if isinstance(event, e.ToolFinished))
        changed = e.JournalChanged(turn_id=self.turn or "", stream_id=f"{self.turn}.1", state=state, text=said, call_ids=calls)
        self.free(changed)
        for event in events:
            self._write(event, self.turn)
            self.items[-1] = msgspec.structs.replace(self.items[-1], epoch=1, attempt=1, position=self.behind, at=at or self.items[-1].at)
            self.behind += 1
        return self


def cut(*events: Event) -> LateLog:
    log = LateLog()
    log.said("m1", "hi")
    log.turn = "t1"
    started = e.TurnStarted(generation=1, attempt=1, cause="message", causes=("m1",), owner=1, epoch=1)
    log.in_turn(started, e.MessageWritten(message_id="m1", role="user", content="hi"), text("one", 0), *events)
    return log.cut_late()


def row(transcript: Transcript) -> Message:
    return [message for message in transcript.messages if message.role == "interruption"][-1]


def test_a_row_whose_journal_is_late_waits_for_it_and_claims_nothing() -> None:
    """F1"""
    found = fold(cut())
    waits = row(found)
    assert (waits.state, waits.awaits) == ("recovering", Awaited("t1.1", 0, waits.created_at))
    assert waits.text == "Interrupted by a crash. Some of its output has not arrived yet; Holdfast is looking for it."
    assert "nothing" not in waits.text and found.turns[-1].state == "interrupted" and not found.queued


def test_what_arrives_completes_the_answer_above_its_row() -> None:
    """F2: in its chronological place; the fields of waiting are gone, and what was filled in says so."""
    log = cut(CALL)
    log.left()
    log.arrives(text(" two", 3), DONE, text(" three", 7), said=" two three")
    found = fold(log)
    assert shown(found) == [
        ("user", "hi"),
        ("assistant", "one two three"),
        ("interruption", "Interrupted by a crash. Its output was recovered from the run journal."),
    ]
    answer, told = found.messages[1], row(found)
    assert (answer.recovered, told.state, told.awaits) == (True, "recovered", None)
    [call] = answer.tool_calls
    assert (call.outcome, call.result, call.recovered, call.late) == (ToolOutcome.DONE, "42", True, None)


def test_a_card_that_was_filled_in_has_its_own_duration_and_says_whether_it_failed() -> None:
    """F2: as recorded, not as it arrived."""
    failed = e.ToolFinished(call_id="c1", outcome=ToolOutcome.FAILED, content="no")
    log = cut(CALL)
    log.arrives(failed, at=5004)
    [call] = fold(log).calls
    assert (call.outcome, call.recovered, call.finished_at) == (ToolOutcome.FAILED, True, 5004)


def test_a_result_that_comes_after_its_call_was_closed_is_shown_late_and_the_agent_is_told_nothing_else() -> None:
    """F2, P5"""
    log = cut(CALL)
    log.in_turn(UNKNOWN)
    log.resumed(2)
    before = [item for item in History(fold(log)) if isinstance(item, Result)]
    log.arrives(DONE)
    found = fold(log)
    [call] = found.calls
    assert (call.outcome, call.result) == (ToolOutcome.UNKNOWN, "nobody knows")
    assert call.late is not None and (call.late.outcome, call.late.result) == (ToolOutcome.DONE, "42")
    assert [item for item in History(found) if isinstance(item, Result)] == before


def test_a_late_result_of_a_call_that_was_made_again_is_that_of_the_first_run() -> None:
    """F8: nothing is attached to the wrong call."""
    log = cut(CALL)
    log.resumed(2)
    log.in_turn(CALL, e.ToolFinished(call_id="c1", outcome=ToolOutcome.DONE, content="again"))
    log.arrives(DONE)
    [call] = fold(log).calls
    assert (call.result, call.late) == ("again", None)


def test_what_an_earlier_attempt_said_stands_above_its_row_once_another_has_continued() -> None:
    """F2: as superseded, in a message of its own; the answer is the later attempt's."""
    log = cut()
    log.resumed(2)
    log.in_turn(text("new", 0))
    log.arrives(text(" two", 3), said=" two")
    found = fold(log)
    assert [(message.role, message.text, message.status) for message in found.messages] == [
        ("user", "hi", "complete"),
        ("assistant", " two", "superseded"),
        ("interruption", "Interrupted by a crash. Its output was recovered from the run journal.", "complete"),
        ("assistant", "new", "partial"),
    ]
    assert found.messages[1].recovered and not found.messages[3].recovered
    assert found.answer_text == "new"


def test_what_arrives_before_the_next_attempt_has_spoken_is_not_said_twice() -> None:
    """F8"""
    log = cut()
    log.resumed(2)
    log.arrives(text(" two", 3), said=" two")
    texts = [message.text for message in fold(log).messages if message.role == "assistant"]
    assert sorted(texts) == [" two", "one"]
    log.in_turn(text("new", 0))
    assert [message.text for message in fold(log).messages if message.role == "assistant"] == [" two", "new"]


def test_a_journal_that_arrives_after_the_end_is_shown_and_the_answer_stays_what_it_was() -> None:
    """F2, P7: also for those who read the records alone."""
    log = cut()
    log.in_turn(
        e.MessageWritten(message_id="t1.answer", role="assistant", content="one"), e.TurnEnded(outcome=Outcome.SET_ASIDE, rule="R6")
    )
    log.arrives(text(" two", 3), said=" two")
    for found in (fold(log), fold(log.records())):
        assert [(message.role, message.text) for message in found.messages] == [
            ("user", "hi"),
            ("assistant", "one"),
            ("assistant", " two"),
            ("interruption", "Interrupted by a crash. Its output was recovered from the run journal."),
        ]


def test_a_journal_that_arrives_in_parts_is_one_message_that_grows() -> None:
    """F7"""
    log = cut()
    log.resumed(2)
    log.in_turn(text("new", 0))
    log.arrives(text(" two", 3), said=" two", state=State.RECOVERING)
    assert row(fold(log)).state == "recovering"
    log.arrives(text(" three", 7), said=" three")
    found = fold(log)
    assert [message.text for message in found.messages if message.status == "superseded"] == [" two three"]
    assert row(found).state == "recovered"


@pytest.mark.parametrize(("state", "tries", "waits"), ((State.RECOVERING, 3, True), (State.NEUTRAL, 0, False)))
def test_a_row_counts_its_tries_and_ends_neutral(state: State, tries: int, waits: bool) -> None:
    """F5"""
    log = cut().looked(state, tries)
    found = row(fold(log))
    assert (found.state, found.awaits) == (state, Awaited("t1.1", tries, found.created_at) if waits else None)
    if not waits:
        assert found.text == "Interrupted by a crash. Some output may be missing."


def test_a_journal_changes_only_the_row_that_waits_for_it() -> None:
    """F2: a turn may be interrupted again, and wait for another journal."""
    log = cut()
    log.resumed(2)
    log.in_turn(text("new", 0), e.TurnInterrupted(reason="crash", restarts=2, written=3, stream_id="t1.2"))
    log.arrives(text(" two", 3), said=" two")
    first, second = (message for message in fold(log).messages if message.role == "interruption")
    assert (first.state, second.state) == ("recovered", "recovering")
    assert second.awaits is not None and second.awaits.stream_id == "t1.2"


def test_a_journal_of_a_turn_that_nobody_knows_changes_nothing() -> None:
    log = begun()
    log.free(e.JournalChanged(turn_id="t9", stream_id="t9.1", state="recovered", text="x"))
    assert shown(fold(log)) == [("user", "hi")]


def test_late_encoded_events_are_those_that_were_spooled() -> None:
    """F8: repeated texts and line ends of any kind pass unchanged."""
    odd = "same \u2028 same"
    log = cut()
    log.arrives(text(odd, 3), text(odd, 3 + len(odd)), said=odd * 2)
    assert fold(log).answer_text == "one" + odd * 2
    assert encode(text(odd, 3)) == log.items[-2].body


def test_an_answer_is_completed_only_by_what_was_said() -> None:
    """F2: a result alone adds nothing to its text."""
    log = cut(CALL)
    log.arrives(DONE)
    assert [message.recovered for message in fold(log).messages if message.role == "assistant"] == [False]


def test_what_arrives_for_an_interruption_that_cannot_be_read_stands_above_the_answer() -> None:
    """F7: nobody knows the row any more; nothing of it is lost."""
    log = begun().in_turn(text("one", 0)).free(e.JournalChanged(turn_id="t1", stream_id="t1.1", state=State.RECOVERED, text="more"))
    assert shown(fold(log)) == [("user", "hi"), ("assistant", "more"), ("assistant", "one")]
    assert [message.status for message in fold(log).messages] == ["complete", "superseded", "partial"]


def test_a_row_that_waits_once_more_waits_since_then() -> None:
    log = cut().looked(State.NEUTRAL, 3).looked(State.RECOVERING, 4)
    assert row(fold(log)).awaits == Awaited("t1.1", 4, log.items[-1].at)
