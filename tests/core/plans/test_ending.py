"""Every way a turn can end, over every fact an end depends on."""

from itertools import product

import pytest

from holdfast.core import events as e
from holdfast.core.content import Content, Part, TextPart, bytes_part
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.messages import ToolCall
from holdfast.core.plans import ending
from holdfast.core.plans.ending import Unfinished
from holdfast.core.turns import Outcome

PAGE, CHAT = "agent:main:web:dm:1", "agent:main:telegram:dm:1"


def call(call_id: str, outcome: ToolOutcome | None = None) -> ToolCall:
    return ToolCall(call_id=call_id, name="terminal", arguments={}, effect=Effect.UNSAFE, attempt=1, outcome=outcome)


CALLS = (call("done", ToolOutcome.DONE), call("open"), call("ask"))


def unfinished(key: str = CHAT, said: str = "so far", **facts: object) -> Unfinished:
    return Unfinished(session_key=key, turn_id="t", said=said, anchor="m7", **facts)  # type: ignore[arg-type]


def end_of(events: tuple[e.Event, ...]) -> e.TurnEnded:
    ended = events[-1]
    assert isinstance(ended, e.TurnEnded)
    assert not any(isinstance(event, e.TurnEnded) for event in events[:-1])
    return ended


def written(events: tuple[e.Event, ...]) -> dict[str, e.MessageWritten]:
    return {event.role: event for event in events if isinstance(event, e.MessageWritten)}


OUTCOMES = (Outcome.COMPLETED, Outcome.FAILED, Outcome.CANCELLED)


@pytest.mark.parametrize(("outcome", "recovers", "said_now", "pending"), list(product(OUTCOMES, *[(False, True)] * 3)))
def test_an_attempt_ends_as_its_outcome_its_words_and_its_past_say(outcome: Outcome, recovers: bool, said_now: bool, pending: bool) -> None:
    """P3, R4, A13"""
    error = "no network" if outcome is Outcome.FAILED else None
    turn = unfinished(resume_pending=pending)
    events = ending.by_agent(turn, outcome, error=error, recovers=recovers, said_now=said_now)
    ended, said = end_of(events), written(events)

    in_vain = recovers and (outcome is Outcome.FAILED or (outcome is Outcome.COMPLETED and not said_now))
    assert ended.outcome is (Outcome.FAILED if in_vain else outcome)
    assert (ended.rule, ended.why) == (("R4", ending.ENDED_BY_ITSELF) if in_vain else (None, None))
    assert ended.error == (error or ending.NO_ANSWER if in_vain else error)
    assert ended.still_pending == (outcome is Outcome.FAILED and not recovers and pending)
    # What people saw stays (P7), also where the attempt that ends added nothing to it.
    assert said["assistant"].text == turn.said
    assert ("notice" in said) == (ended.error is not None)
    if ended.error is not None:
        assert ended.error in said["notice"].text


def test_a_recovery_that_completed_without_any_answer_is_not_tried_again() -> None:
    """R4: it spoke, but nothing of it is an answer."""
    ended = end_of(ending.by_agent(unfinished(said=""), Outcome.COMPLETED, recovers=True, said_now=True))
    assert (ended.outcome, ended.rule) == (Outcome.FAILED, "R4")


@pytest.mark.parametrize(("outcome", "unread"), list(product(OUTCOMES, (False, True))))
def test_an_end_leaves_no_call_open_and_says_whether_results_were_not_read(outcome: Outcome, unread: bool) -> None:
    """P5, B1"""
    for calls in ((), CALLS[:1], CALLS[:2]):
        events = ending.by_agent(unfinished(calls=calls, unread_results=unread), outcome, recovers=False, said_now=True)
        assert not end_of(events).still_pending
        closed = [event for event in events if isinstance(event, e.ToolFinished)]
        assert [event.call_id for event in closed] == [open_call.call_id for open_call in calls if open_call.outcome is None]
        assert all(event.outcome is ToolOutcome.UNKNOWN for event in closed)
        assert all(("was stopped" in event.result) == (outcome is Outcome.CANCELLED) for event in closed)
        assert end_of(events).unread_results == (outcome is Outcome.FAILED and (unread or bool(closed)))


@pytest.mark.parametrize(("key", "said"), list(product((PAGE, CHAT), ("", "so far"))))
def test_an_expired_question_ends_its_turn_as_failed_and_says_so(key: str, said: str) -> None:
    """P3, R5: it is no unfinished work for the next message, so no mark stays and nothing counts as unread."""
    turn = unfinished(key, said, asking=("ask",), resume_pending=True)
    events = ending.expired(turn)
    ended = end_of(events)
    assert (ended.outcome, ended.still_pending, ended.unread_results) == (Outcome.FAILED, False, False)
    finished = events[0]
    assert isinstance(finished, e.ToolFinished)
    assert (finished.call_id, finished.outcome, finished.result) == ("ask", ToolOutcome.FAILED, ended.error)
    roles = [*(["assistant"] if said else []), *(["notice"] if key == CHAT else [])]
    assert list(written(events)) == roles
    for message in written(events).values():
        assert (message.delivery_id, message.anchor) == (message.message_id if key == CHAT else None, "m7")


def test_a_stop_ends_a_turn_that_waits_without_a_word_to_its_chat_but_its_answer() -> None:
    """A21"""
    events = ending.stopped(unfinished(calls=CALLS, asking=("ask",)))
    results = {event.call_id: (event.outcome, event.result) for event in events if isinstance(event, e.ToolFinished)}
    assert results["ask"] == (ToolOutcome.FAILED, ending.STOPPED_WAITING)
    assert results["open"][0] is ToolOutcome.UNKNOWN
    assert list(written(events)) == ["assistant"]
    ended = end_of(events)
    assert (ended.outcome, ended.error, ended.unread_results, ended.still_pending) == (Outcome.CANCELLED, None, False, False)


@pytest.mark.parametrize(
    ("outcome", "allowed", "unread"), list(product((Outcome.CANCELLED, Outcome.SET_ASIDE), (False, True), (False, True)))
)
def test_a_rule_ends_a_turn_with_its_label_and_answers_only_who_is_allowed(outcome: Outcome, allowed: bool, unread: bool) -> None:
    """R0, R2, R6, R8"""
    suspended = e.SessionChanged(suspended=True)
    ended = e.TurnEnded(outcome=outcome, rule="R2", why="because", blamed_for=3)
    events = ending.ending(unfinished(unread_results=unread), ended, also=[suspended], owed=allowed)
    assert events[-2] is suspended
    assert (written(events)["assistant"].delivery_id is not None) == allowed
    last = end_of(events)
    assert (last.outcome, last.rule, last.why, last.blamed_for, last.still_pending) == (outcome, "R2", "because", 3, False)
    assert last.unread_results == (unread and outcome is Outcome.SET_ASIDE)


def test_a_message_that_continues_from_a_turn_that_was_left_sets_it_aside_and_keeps_the_mark() -> None:
    """A13, A23, P5"""
    events = ending.set_aside(unfinished(calls=CALLS, asking=("ask",)), rule="R7", why="held")
    results = {event.call_id: event for event in events if isinstance(event, e.ToolFinished)}
    assert results["ask"].result == ending.ENDED_WAITING
    assert results["open"].outcome is ToolOutcome.UNKNOWN
    last = end_of(events)
    assert (last.outcome, last.rule, last.why, last.still_pending) == (Outcome.SET_ASIDE, "R7", "held", True)


FILE = bytes_part(blob="f", size=1, media_type="text/csv", name="a.csv")
OTHER = bytes_part(blob="g", size=1, media_type="text/csv", name="b.csv")


def attaching(name: str, outcome: ToolOutcome | None, *parts: Part) -> ToolCall:
    made = call(f"{name}.{len(parts)}.{outcome}", outcome)
    made.name, made.content = name, (TextPart("It is attached."), *parts)
    return made


@pytest.mark.parametrize(
    ("said", "calls", "answer"),
    [
        ("Here.", [attaching("attach_file", ToolOutcome.DONE, FILE)], (TextPart("Here."), FILE)),
        ("", [attaching("attach_file", ToolOutcome.DONE, FILE)], (FILE,)),
        ("Here.", [attaching("attach_file", ToolOutcome.DONE, FILE), attaching("attach_file", ToolOutcome.DONE, FILE, OTHER)],
         (TextPart("Here."), FILE, OTHER)),
        ("Here.", [attaching("attach_file", ToolOutcome.FAILED, FILE), attaching("camera", ToolOutcome.DONE, FILE)], "Here."),
    ],
)  # fmt: skip
def test_an_answer_has_the_files_that_were_attached_once_each(said: str, calls: list[ToolCall], answer: Content) -> None:
    """P4: what a chat is sent."""
    events = ending.stopped(unfinished(said=said, calls=calls))
    (found,) = [event for event in events if isinstance(event, e.MessageWritten) and event.role == "assistant"]
    assert found.content == answer and found.delivery_id == found.message_id


@pytest.mark.parametrize(("begun", "recorded"), [(0, 0), (1, 0), (2, 2), (3, 3)])
def test_an_answer_says_which_later_attempt_began_to_write_it_once_more(begun: int, recorded: int) -> None:
    """P7: so that an interruption stands in the same place once the pieces are gone."""
    events = ending.by_agent(unfinished(begun=begun), Outcome.COMPLETED, recovers=False, said_now=True)
    assert written(events)["assistant"].begun == recorded
