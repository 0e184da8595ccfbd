"""A conversation that begins with what another one said: the same words, and nothing of it happens once more."""

import pytest
from hypothesis import given, settings

from holdfast.core import events as e
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.errors import NotFound
from holdfast.core.plans import Plan, branch
from holdfast.core.plans.branch import Names, NotOverYet, Origin
from holdfast.core.sessions import Session
from holdfast.core.transcript import Transcript
from holdfast.core.turns import Outcome, TurnState
from tests.core.logs import STEPS, Log, begun, fold, simple, story, text

SESSION = Session(session_id="s1", session_key="agent:main:telegram:dm:7", log="l1", generation=1, seq=9, created_at=1, updated_at=1)


def branched(log: Log, message_id: str) -> Plan[str]:
    turns = branch.turns_up_to(fold(log), message_id)
    records = [item for item in log.records() if branch.concerns(item, turns)]
    names = Names(session_id="s2", session_key="agent:main:web:page:s2", log="l2", turns={turn: f"new.{turn}" for turn in turns})
    origin = Origin(session=SESSION, message_id=message_id, turns=turns, records=tuple(records))
    return branch.plan(origin, names, by="owner")


def written(plan: Plan[str]) -> Transcript:
    """The conversation that the plan makes."""
    log = Log()
    for write in plan.writes:
        if write.starts is not None:
            log.turn = write.starts
        (log.in_turn if write.in_turn else log.free)(write.event)
    return fold(log)


def said(transcript: Transcript, turns: tuple[str, ...]) -> list[tuple[str, str]]:
    found = [message for message in transcript.messages if message.turn_id in turns]
    return [(message.role, message.text) for message in found if message.role in ("user", "assistant")]


def events(plan: Plan[str], kind: type[e.Event]) -> list[e.Event]:
    return [write.event for write in plan.writes if isinstance(write.event, kind)]


def test_a_branch_from_an_answer_has_everything_up_to_it_and_says_where_it_is_from() -> None:
    log = simple().said("m2", "more").started("t2", "m2", "more", 2).in_turn(text("three", 0)).ended("three")
    plan = branched(log, "t1.answer")
    made = written(plan)
    assert [(message.role, message.text) for message in made.messages[:-1]] == [("user", "hi"), ("assistant", "one two")]
    assert made.messages[-1].role == "notice" and "is copied from there" in made.messages[-1].text
    (origin,) = events(plan, e.SessionBranched)
    assert isinstance(origin, e.SessionBranched) and (origin.origin, origin.message_id) == ("s1", "t1.answer")
    assert [message.text for message in written(branched(log, "t2.answer")).messages][:4] == ["hi", "one two", "more", "three"]


def test_a_branch_from_a_request_has_what_was_said_before_it() -> None:
    log = simple().said("m2", "more").started("t2", "m2", "more", 2)
    assert [message.text for message in written(branched(log, "m2")).messages[:-1]] == ["hi", "one two"]
    assert written(branched(log, "m1")).turns == []


def test_an_answer_that_is_being_written_and_a_message_that_is_not_there_are_refused() -> None:
    with pytest.raises(NotOverYet):
        branched(begun().in_turn(text("one", 0)), "t1.answer")
    with pytest.raises(NotFound):
        branched(simple(), "m9")


def test_nothing_is_sent_asked_or_counted_once_more() -> None:
    """P4, P5, P6: no delivery, no key, no question, no process; what models used was counted where it was used."""
    log = Log().free(e.MessageAccepted(message_id="m1", content="hi", dedup_key="k", anchor="a")).started("t1", "m1", "hi")
    log.in_turn(e.ModelResponded(step=0, text="Wait.", usage=e.Usage(input=9), cost=5))
    log.in_turn(e.ToolStarted(call_id="t1.0.1", name="ask", arguments={}, effect=Effect.PURE, approval="q0"))
    log.in_turn(e.QuestionAsked(question_id="q1", call_id="t1.0.1", content="Which?", expires_at=9, ends_attempt=False))
    log.in_turn(e.QuestionAnswered(question_id="q1", call_id="t1.0.1", content="That one."))
    log.in_turn(e.MessageWritten(message_id="t1.answer", role="assistant", content="Done.", delivery_id="d1", anchor="a"))
    log.in_turn(e.TurnEnded(outcome=Outcome.COMPLETED))
    plan = branched(log, "t1.answer")
    assert not events(plan, e.QuestionAsked) and not events(plan, e.QuestionAnswered)
    for write in plan.writes:
        assert not getattr(write.event, "delivery_id", None) and not getattr(write.event, "dedup_key", None)
        assert not getattr(write.event, "anchor", None) and not getattr(write.event, "approval", None)
    made = written(plan)
    assert made.spent.requests == 0
    (call,) = made.messages[1].tool_calls
    assert (call.call_id, call.result) == ("new.t1.0.1", "That one.")


@settings(max_examples=100, derandomize=True, database=None, deadline=None)
@given(steps=STEPS)
def test_a_branch_of_any_conversation_says_the_same(steps: list[str]) -> None:
    log = story(steps)
    whole = fold(log)
    over = [turn.id for turn in whole.turns if turn.state is TurnState.ENDED]
    answered = {message.turn_id for message in whole.messages if message.role == "assistant" and message.status == "complete"}
    for turn_id in [turn for turn in over if turn in answered][-1:]:
        made = written(branched(log, f"{turn_id}.answer"))
        turns = branch.turns_up_to(whole, f"{turn_id}.answer")
        copied = said(made, tuple(f"new.{turn}" for turn in turns))
        answers = [text for role, text in said(whole, turns) if role == "assistant" and text]
        assert [text for role, text in copied if role == "assistant" and text] == answers
        assert all(turn.state is TurnState.ENDED for turn in made.turns)


def test_of_a_long_conversation_the_newest_turns_are_copied() -> None:
    """P8: one transaction writes only so much."""
    log = Log()
    for number in range(1, 401):
        log.said(f"m{number}", "hi").started(f"t{number}", f"m{number}", "hi", number).in_turn(text("x", 0)).ended("x")
    turns = branch.turns_up_to(fold(log), "t400.answer")
    kept, left = branch.trimmed([item for item in log.records() if branch.concerns(item, turns)], turns)
    fit = branch.fitting(kept, turns)
    assert left == fit
    assert len(turns) == 400 and 200 <= len(fit) < 400 and fit[-1] == "t400"
    assert len([item for item in kept if item.turn_id is not None]) <= branch.MOST_EVENTS


@pytest.mark.parametrize("page", [1, 7, 100, 10_000])
def test_a_turn_that_is_too_large_is_dropped_whole_however_it_is_read(page: int) -> None:
    """Half of it would be a turn without a beginning."""
    log = simple().said("m2", "large").started("t2", "m2", "large", 2)
    for number in range(14):
        log.in_turn(e.ToolFinished(call_id=f"t2.{number}", outcome=ToolOutcome.DONE, content="x" * 100_000))
    log.ended("large").said("m3", "more").started("t3", "m3", "more", 3).in_turn(text("three", 0)).ended("three")
    assert copied(log, "t3.answer", page) == ("t3",)
    assert copied(log, "t2.answer", page) == ()
    assert copied(log, "t1.answer", page) == ("t1",)


def copied(log: Log, message_id: str, page: int) -> tuple[str, ...]:
    """The turns that are copied if so many records are read at once; each with its beginning."""
    turns = branch.turns_up_to(fold(log), message_id)
    records, found, left = list(log.records()), list[e.Logged](), turns
    for at in range(0, len(records), page):
        found, left = branch.trimmed([*found, *(item for item in records[at : at + page] if branch.concerns(item, left))], left)
    begun = {item.turn_id for item in found if isinstance(item.event, e.TurnStarted)}
    assert begun == {item.turn_id for item in found if item.turn_id is not None}
    return branch.fitting(found, turns)
