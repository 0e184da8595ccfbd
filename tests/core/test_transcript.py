"""The conversation folded from the log: what people see, whatever happened to it on the way."""

import msgspec
import pytest

from holdfast.core import elicitation, processes
from holdfast.core import events as e
from holdfast.core.effects import ToolOutcome
from holdfast.core.elicitation import Elicited, Request
from holdfast.core.transcript import Transcript
from holdfast.core.turns import Outcome, TurnState
from tests.core.logs import CALL, Log, begun, fold, shown, simple, text


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
    assert (found.queued, found.questions, found.seq) == ({}, [], len(log.items))


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


def test_notices_and_other_roles_are_messages_of_their_own() -> None:
    log = simple().in_turn(e.MessageWritten(message_id="t1.aside", role="notice", content="Set aside."))
    assert shown(fold(log))[-1] == ("notice", "Set aside.")


def test_events_that_say_nothing_to_people_change_nothing() -> None:
    before = shown(fold(simple()))
    log = simple().free(e.SessionChanged(title="x"), e.DeliveryChanged(delivery_id="d", state="sent"), e.JournalPruned(through=3))
    log.free(e.SessionResumed(by="owner")).in_turn(e.TurnTaken(owner=2, epoch=2), e.Reasoning(text="hm"), e.TurnAlive())
    assert shown(fold(log)) == before


def edit(message_id: str, words: str) -> e.MessageEdited:
    return e.MessageEdited(message_id=message_id, content=words, sender="ann", since=1)


def newest(found: Transcript, message_id: str) -> tuple[object, ...] | None:
    message = found.find(message_id)
    return None if message is None else (message.text, message.edited_at, message.seq)


def test_an_edited_message_reads_as_it_was_edited_last_wherever_it_stands() -> None:
    """P1: while it waits, once a turn has taken it, and where nobody knows it."""
    log = Log().said("m1", "old")
    assert newest(fold(log), "m1") == ("old", None, 1)
    assert newest(fold(log.free(edit("m1", "new"))), "m1") == ("new", 1002, 2)
    log.started("t1", "m1", "new").said("m2", "other")
    assert newest(fold(log), "m1") == ("new", 1002, 2) and newest(fold(log), "m2") == ("other", None, 5)
    log.free(edit("m1", "newer"), edit("m9", "of nothing"))
    found = fold(log)
    assert newest(found, "m1") == ("newer", 1006, 6) and newest(found, "m9") is None
    assert shown(found) == [("user", "newer")] and list(found.queued) == ["m2"]


def test_an_edited_message_is_known_as_edited_where_the_start_of_its_turn_is_damaged() -> None:
    """A3"""
    log = Log().said("m1", "old").free(edit("m1", "new")).started("t1", "m1", "new")
    assert newest(fold(log.without(3)), "m1") == ("new", 1002, 4)
    assert newest(fold(begun().without(1)), "m1") == ("hi", None, 3)


def elicits(number: int = 0, *, live: bool = False) -> e.QuestionAsked:
    """`number`: of the request that is due."""
    elicited = Elicited(requests=(Request(key="a", message="Sure?"), Request(key="b", message="Really?")), number=number, live=live)
    return e.QuestionAsked(
        question_id="q1", call_id="c1", content="Sure?", expires_at=9, form="elicitation", elicited=elicited, ends_attempt=False
    )


def asking(*, live: bool = False) -> Log:
    """A call that has started asks a person."""
    return begun().in_turn(CALL, elicits(live=live))


YES = e.QuestionAnswered(question_id="q1", call_id="c1", content="yes", verdict=elicitation.GIVEN)


@pytest.mark.parametrize("live", [False, True])
def test_a_call_that_asks_in_its_middle_rests_unless_it_runs_meanwhile(live: bool) -> None:
    found = fold(asking(live=live))
    assert [question.live for question in found.questions] == [live]
    assert [call.rests for call in found.calls] == [not live]
    [call] = fold(asking(live=live).in_turn(YES)).calls
    assert call.resting is not None and (call.outcome, call.resting.answers) == (None, {0: "yes"})


def test_a_call_that_asks_again_keeps_what_it_was_answered_and_rests_until_it_is_finished() -> None:
    log = asking().in_turn(YES, elicits(number=1), YES)
    [call] = fold(log).calls
    assert call.rests and call.resting is not None and call.resting.answers == {0: "yes", 1: "yes"}
    [call] = fold(log.in_turn(e.ToolFinished(call_id="c1", outcome=ToolOutcome.DONE, content="done"))).calls
    assert not call.rests


@pytest.mark.parametrize("called", [(), (CALL,)], ids=["whose start is lost", "that asked nothing"])
def test_an_answer_to_a_call_changes_nothing_of_it(called: tuple[e.Event, ...]) -> None:
    """The record of the question may be damaged, and that of the call."""
    assert [call.resting for call in fold(begun().in_turn(*called, YES)).calls] == [None] * len(called)


def test_a_question_that_was_closed_is_open_no_more() -> None:
    log = asking()
    assert [question.question_id for question in fold(log).questions] == ["q1"]
    log.in_turn(e.QuestionClosed(question_id="q1", call_id="c1", why="nobody answered in time"))
    assert fold(log).questions == []


def test_a_question_of_an_agent_is_not_live() -> None:
    log = begun().in_turn(CALL, e.QuestionAsked(question_id="q1", call_id="c1", content="Which?", expires_at=9, ends_attempt=False))
    assert [question.live for question in fold(log).questions] == [False]


def test_a_conversation_knows_its_processes_as_they_were_started_consumed_and_ended() -> None:
    started = e.ProcessStarted(process_id="p1", command="sleep 5", turn_id="t1", call_id="c1", owner=1)
    log = begun().in_turn(started)
    first = processes.started(started, session_id="s", at=log.items[-1].at)
    assert fold(log).processes == {"p1": first}
    log.free(e.ProcessConsumed(process_id="p1", how="read"), e.ProcessConsumed(process_id="p1", how="killed"))
    assert fold(log).processes == {"p1": msgspec.structs.replace(first, consumed="read")}
    ended = e.ProcessEnded(process_id="p1", ended_at=9, code=0)
    log.free(ended, e.ProcessConsumed(process_id="p9", how="read"), e.ProcessEnded(process_id="p9", ended_at=9))
    assert fold(log).processes == {"p1": msgspec.structs.replace(first, consumed="read", end=ended)}
