"""Asking, answering and waiting, as tables."""

from itertools import product

import pytest

from holdfast.core import events as e
from holdfast.core import keys
from holdfast.core.errors import QuestionClosed
from holdfast.core.plans import Write, answer, ask, take, wait
from holdfast.core.plans.answer import Answer, Snapshot
from holdfast.core.plans.ask import QUESTION_LIFE_MS, Asking
from holdfast.core.plans.causes import Cause
from holdfast.core.plans.owe import Question
from holdfast.core.plans.wait import Waiting
from holdfast.core.sessions import Session
from holdfast.core.turns import TurnState

PAGE, CHAT = str(keys.page_key("main", "s1")), "agent:main:telegram:dm:1"
NOW = 1000


def session(**fields: object) -> Session:
    known = {"session_id": "s1", "session_key": PAGE, "log": "l", "seq": 9, "created_at": 1, "updated_at": 2, "turn_id": "t1"}
    return Session(**(known | fields))  # type: ignore[arg-type]


def open_question(name: str, expires_at: int = NOW + 1) -> Question:
    return Question(question_id=name, call_id=f"{name}.call", expires_at=expires_at)


@pytest.mark.parametrize(("key", "told"), [(PAGE, False), (CHAT, True)])
def test_a_question_starts_its_call_and_is_owed_to_a_chat_and_ends_no_attempt(key: str, told: bool) -> None:
    """A27"""
    asked = Asking(question_id="q1", call_id="t1.0.1", content="why?", choices=("a", "b"), step=2, offset=5)
    events = ask.by_call(asked, session_key=key, anchor="a1", at=NOW)
    started, *owed, question = events
    assert isinstance(started, e.ToolStarted) and (started.call_id, started.step, started.offset) == ("t1.0.1", 2, 5)
    assert [type(event) for event in owed] == ([e.MessageWritten] if told else [])
    assert isinstance(question, e.QuestionAsked) and question.expires_at == NOW + QUESTION_LIFE_MS
    assert (question.ends_attempt, question.choices) == (False, ("a", "b"))


@pytest.mark.parametrize(
    ("questions", "stop_requested"), list(product(((), ("q1",), ("q1", "q2"), ("q1", "late"), ("late",)), (False, True)))
)
def test_a_turn_waits_for_what_is_open_in_that_transaction_and_for_nothing_else(questions: tuple[str, ...], stop_requested: bool) -> None:
    """A21, R5: a stop wins, and one question past its time ends the turn."""
    found = tuple(open_question(name, NOW if name == "late" else NOW + 1) for name in questions)
    planned = wait.plan("s1", found, stop_requested=stop_requested, at=NOW)
    if stop_requested:
        assert (planned.writes, planned.reply) == ((), Waiting(stopped=True))
    elif "late" in questions:
        assert (planned.writes, planned.reply) == ((), Waiting(expired=True))
    elif questions:
        assert planned.writes == (Write("s1", e.TurnWaiting(question_ids=questions), in_turn=True),)
        assert planned.reply == Waiting(open=questions)
    else:
        assert (planned.writes, planned.reply) == ((), Waiting())


@pytest.mark.parametrize(("owner", "others"), list(product((None, 7), (0, 1))))
def test_an_answer_takes_a_position_only_of_a_turn_that_no_process_holds(owner: int | None, others: int) -> None:
    """P2: the positions of a held turn are its holder's. The last answer says that it is."""
    state = TurnState.WAITING if owner is None else TurnState.RUNNING
    found = Snapshot(
        session=session(owner=owner, turn_state=state), question_id="q1", call_id="c1", state="open", expires_at=NOW + 1, others=others
    )
    planned = answer.plan(found, Answer(content="because", by="ann"), at=NOW)
    [write] = planned.writes
    assert isinstance(write.event, e.QuestionAnswered)
    assert (write.in_turn, write.event.last, write.event.by, planned.reply) == (owner is None, others == 0, "ann", "s1")


@pytest.mark.parametrize(
    ("state", "expires_at", "of_session", "why"),
    [
        ("open", NOW, {}, "expired"),
        ("answered", NOW + 1, {}, "answered"),
        ("expired", NOW + 1, {}, "expired"),
        ("cancelled", NOW + 1, {}, "cancelled"),
        ("open", NOW + 1, {"suspended": True}, "suspended"),
        ("open", NOW + 1, {"stop_requested": True}, "cancelled"),
    ],
)
def test_a_question_that_is_closed_takes_no_answer(state: str, expires_at: int, of_session: dict[str, bool], why: str) -> None:
    """R5, A21: a late answer is told so."""
    found = Snapshot(session=session(**of_session), question_id="q1", call_id="c1", state=state, expires_at=expires_at)
    with pytest.raises(QuestionClosed) as closed:
        answer.plan(found, Answer(content="because", by="ann"), at=NOW)
    assert str(closed.value) == str(QuestionClosed("q1", why))


@pytest.mark.parametrize("stop_requested", [False, True])
def test_a_running_turn_takes_what_is_meant_to_steer_and_leaves_the_rest(stop_requested: bool) -> None:
    """P6, P1, A21: one that is being stopped takes nothing."""
    waiting = [Cause(cause_id=name, content=name, steers=steers) for name, steers in (("a", False), ("b", True), ("c", True))]
    planned = take.plan("s1", waiting, stop_requested=stop_requested, step=3, offset=4)
    taken = [] if stop_requested else ["b", "c"]
    assert [cause.cause_id for cause in planned.reply] == taken
    assert [write.event for write in planned.writes] == [e.CauseTaken(cause_id=name, step=3, offset=4) for name in taken]
    assert all(write.in_turn for write in planned.writes)
