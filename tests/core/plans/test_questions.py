"""Asking, answering and waiting, as tables."""

from itertools import product

import msgspec
import pytest

from holdfast.core import elicitation, keys, notices
from holdfast.core import events as e
from holdfast.core.content import ImagePart, TextPart
from holdfast.core.effects import ToolOutcome
from holdfast.core.elicitation import Elicited, Request
from holdfast.core.errors import QuestionClosed, UnknownChoice
from holdfast.core.plans import Plan, Write, answer, ask, take, wait
from holdfast.core.plans.answer import Answer, Snapshot
from holdfast.core.plans.ask import QUESTION_LIFE_MS, Asking
from holdfast.core.plans.causes import Cause
from holdfast.core.plans.ending import Unfinished
from holdfast.core.plans.owe import Question
from holdfast.core.plans.wait import Waiting
from holdfast.core.sessions import Session
from holdfast.core.turns import Outcome, TurnState

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
    assert (started.name, started.arguments) == ("ask_user", {"question": "why?", "choices": ["a", "b"]})
    words = "why?\n\n1. a\n2. b\n\nReply with a number, or in your own words."
    buttons = (e.Button("a", "q1 0"), e.Button("b", "q1 1"))
    carried = e.MessageWritten(message_id="q1.asked", role="notice", content=words, delivery_id="q1.asked", anchor="a1", buttons=buttons)
    assert owed == ([carried] if told else [])
    assert isinstance(question, e.QuestionAsked) and question.expires_at == NOW + QUESTION_LIFE_MS
    assert (question.ends_attempt, question.choices) == (False, ("a", "b"))


def test_a_question_may_have_parts_and_its_call_names_them_in_plain_values() -> None:
    """Arguments are what a model wrote, or could have."""
    content = (TextPart("Which one?"), ImagePart(blob="d1", size=3, media_type="image/png"))
    asked = Asking(question_id="q1", call_id="t1.0.1", content=content, choices=(), step=0, offset=0)
    started, question = ask.by_call(asked, session_key=PAGE, anchor=None, at=NOW)
    assert isinstance(started, e.ToolStarted) and isinstance(question, e.QuestionAsked)
    assert started.arguments == {"question": msgspec.to_builtins(content)} and question.content == content


@pytest.mark.parametrize(("name", "asks"), [("ask_user", True), ("ask", True), ("terminal", False), ("", False)])
def test_a_question_is_asked_by_its_name_or_the_one_it_had_in_version_0_1(name: str, asks: bool) -> None:
    """What stands in a log of that time is still a question."""
    assert ask.asks(name) is asks


def test_a_model_is_told_how_to_ask() -> None:
    assert set(ask.SCHEMA) == {"type", "properties", "required", "additionalProperties"}
    assert (ask.SCHEMA["type"], ask.SCHEMA["required"], ask.SCHEMA["additionalProperties"]) == ("object", ["question"], False)
    question, choices = ask.SCHEMA["properties"]["question"], ask.SCHEMA["properties"]["choices"]
    assert (question["type"], choices["type"], choices["items"]) == ("string", "array", {"type": "string"})
    assert question["description"].endswith(".") and choices["description"].endswith(".") and ask.DESCRIPTION.endswith("word.")


def test_a_question_stays_open_for_a_day() -> None:
    """R5"""
    assert QUESTION_LIFE_MS == 86_400_000


@pytest.mark.parametrize(
    ("questions", "stop_requested"), list(product(((), ("q1",), ("q1", "q2"), ("q1", "late"), ("late",)), (False, True)))
)
def test_a_turn_waits_for_what_is_open_in_that_transaction_and_for_nothing_else(questions: tuple[str, ...], stop_requested: bool) -> None:
    """A21, R5: a stop wins, and one question past its time ends the turn."""
    found = tuple(open_question(name, NOW if name == "late" else NOW + 1) for name in questions)
    asking = tuple(question.call_id for question in found)
    planned = wait.plan("s1", found, asking=asking, stop_requested=stop_requested, at=NOW)
    if stop_requested:
        assert (planned.writes, planned.reply) == ((), Waiting(open=(), expired=False, stopped=True))
    elif "late" in questions:
        assert (planned.writes, planned.reply) == ((), Waiting(open=(), expired=True, stopped=False))
    elif questions:
        assert planned.writes == (Write("s1", e.TurnWaiting(question_ids=questions), in_turn=True),)
        assert planned.reply == Waiting(open=questions)
    else:
        assert (planned.writes, planned.reply) == ((), Waiting(open=(), expired=False, stopped=False))


@pytest.mark.parametrize(("questions", "stop_requested"), list(product(((), ("q2",), ("late",)), (False, True))))
def test_a_turn_does_not_wait_while_an_answer_is_there_that_its_attempt_has_not_heard(
    questions: tuple[str, ...], stop_requested: bool
) -> None:
    """A27, A21: what stands behind the answered call may run first. The attempt hears of the answer before a stop closes the others."""
    found = tuple(open_question(name, NOW if name == "late" else NOW + 1) for name in questions)
    asking = ("q1.call", *(question.call_id for question in found))
    planned = wait.plan("s1", found, asking=asking, stop_requested=stop_requested, at=NOW)
    assert (planned.writes, planned.reply) == ((), Waiting(answered=("q1.call",), stopped=stop_requested))


@pytest.mark.parametrize(("owner", "others"), list(product((None, 7), (0, 1))))
def test_an_answer_takes_a_position_only_of_a_turn_that_no_process_holds(owner: int | None, others: int) -> None:
    """P2: the positions of a held turn are its holder's. The last answer says that it is."""
    state = TurnState.WAITING if owner is None else TurnState.RUNNING
    found = Snapshot(
        session=session(owner=owner, turn_state=state), question_id="q1", call_id="c1", state="open", expires_at=NOW + 1, others=others
    )
    planned = answer.plan(found, Answer(content="because", by="ann", dedup_key="k1"), at=NOW)
    answered = e.QuestionAnswered(question_id="q1", call_id="c1", content="because", by="ann", last=others == 0, dedup_key="k1")
    assert planned.writes == (Write("s1", answered, in_turn=owner is None),) and planned.reply == "s1"


@pytest.mark.parametrize(
    ("state", "expires_at", "of_session", "why"),
    [
        ("open", NOW, {}, "expired"),
        ("answered", NOW + 1, {}, "answered"),
        ("expired", NOW + 1, {}, "expired"),
        ("cancelled", NOW + 1, {}, "cancelled"),
        ("ended", NOW + 1, {}, "ended"),
        ("open", NOW + 1, {"suspended": True}, "suspended"),
        ("open", NOW + 1, {"stop_requested": True}, "cancelled"),
    ],
)
def test_a_question_that_is_closed_takes_no_answer(state: str, expires_at: int, of_session: dict[str, bool], why: str) -> None:
    """R5, A21: a late answer is told so."""
    found = Snapshot(session=session(**of_session), question_id="q1", call_id="c1", state=state, expires_at=expires_at, others=0)
    with pytest.raises(QuestionClosed) as closed:
        answer.plan(found, Answer(content="because", by="ann"), at=NOW)
    assert str(closed.value) == str(QuestionClosed("q1", why))


@pytest.mark.parametrize(("choices", "taken"), [(("a", "b"), True), (("b",), False), ((), False)])
def test_what_is_chosen_must_be_a_choice_and_what_is_said_need_not(choices: tuple[str, ...], taken: bool) -> None:
    """R5"""
    found = Snapshot(session=session(), question_id="q1", call_id="c1", state="open", expires_at=NOW + 1, others=0, choices=choices)
    assert answer.plan(found, Answer(content="a", by="ann"), at=NOW).writes
    if taken:
        assert answer.plan(found, Answer(content="a", by="ann", chosen=True), at=NOW).writes
    else:
        with pytest.raises(UnknownChoice):
            answer.plan(found, Answer(content="a", by="ann", chosen=True), at=NOW)


@pytest.mark.parametrize(("number", "words"), [(0, "a"), (1, "b"), (2, None), (None, None)])
def test_an_answer_by_number_has_the_words_of_that_choice(number: int | None, words: str | None) -> None:
    """R5: as buttons of chats give it. A number that is none of them is refused, and one that is not given changes nothing."""
    found = Snapshot(session=session(), question_id="q1", call_id="c1", state="open", expires_at=NOW + 1, others=0, choices=("a", "b"))
    given = Answer(by="ann", number=number)
    expected = given if words is None else msgspec.structs.replace(given, content=words, chosen=True)
    assert answer.chosen(found, given) == expected
    if number == 2:
        with pytest.raises(UnknownChoice):
            answer.plan(found, answer.chosen(found, given), at=NOW)
    else:
        assert answer.plan(found, answer.chosen(found, given), at=NOW).writes


@pytest.mark.parametrize(("form", "verdict"), [("question", None), ("elicitation", "given")])
def test_what_a_call_itself_asked_is_known_by_its_verdict(form: str, verdict: str | None) -> None:
    found = Snapshot(session=session(), question_id="q1", call_id="c1", state="open", expires_at=NOW + 1, others=0, form=form)
    [written] = answer.plan(found, Answer(content="x", by="ann"), at=NOW).writes
    assert isinstance(written.event, e.QuestionAnswered) and written.event.verdict == verdict
    assert found.seen, "a question counts as read unless something says that it is still on its way"


@pytest.mark.parametrize("stop_requested", [False, True])
def test_a_running_turn_takes_what_is_meant_to_steer_and_leaves_the_rest(stop_requested: bool) -> None:
    """P6, P1, A21: one that is being stopped takes nothing."""
    waiting = [Cause(cause_id=name, content=name, steers=steers) for name, steers in (("a", False), ("b", True), ("c", True))]
    planned = take.plan("s1", waiting, generation=5, stop_requested=stop_requested, step=3, offset=4)
    taken = [] if stop_requested else ["b", "c"]
    assert [cause.cause_id for cause in planned.reply] == taken
    assert [write.event for write in planned.writes] == [e.CauseTaken(cause_id=name, step=3, offset=4) for name in taken]
    assert all(write.in_turn for write in planned.writes)


@pytest.mark.parametrize(("generation", "stop_requested"), [(4, False), (5, False), (5, True)])
def test_a_correction_that_was_meant_for_an_earlier_turn_is_dropped(generation: int, stop_requested: bool) -> None:
    """P6"""
    correction = Cause(cause_id="m1.edit.9", content="x", what="edit", generation=4, steers=True)
    planned = take.plan("s1", (correction,), generation=generation, stop_requested=stop_requested, step=3, offset=4)
    assert planned.reply == ((correction,) if generation == 4 else ())
    dropped = [] if stop_requested else [("s1", "cause.dropped", False)]
    assert [(write.session_id, write.event.kind, write.in_turn) for write in planned.writes] == (
        [("s1", "cause.taken", True)] if generation == 4 else dropped
    )


@pytest.mark.parametrize(("key", "told"), [(PAGE, False), (CHAT, True)])
def test_a_call_that_has_started_asks_the_request_that_is_due_and_ends_no_attempt(key: str, told: bool) -> None:
    """A27"""
    requests = (Request(key="a", message="First?"), Request(key="b", message="Sure?"))
    elicited = Elicited(requests=requests, number=1, state="s", version="1")
    words = elicitation.question("mcp", requests[1], "That was no number.")
    *owed, asked = ask.elicitation(
        "q1", "c1", "mcp", elicited, problem="That was no number.", session_key=key, anchor="a1", expires_at=NOW + 5
    )
    buttons = (e.Button("Accept", "q1 0"), e.Button("Decline", "q1 1"))
    carried = e.MessageWritten(message_id="q1.asked", role="notice", content=words, delivery_id="q1.asked", anchor="a1", buttons=buttons)
    assert owed == ([carried] if told else [])
    assert asked == e.QuestionAsked(
        question_id="q1",
        call_id="c1",
        content=words,
        choices=("Accept", "Decline"),
        expires_at=NOW + 5,
        form="elicitation",
        elicited=elicited,
        ends_attempt=False,
    )


def test_a_long_choice_is_a_short_button() -> None:
    asked = Asking(question_id="q1", call_id="c1", content="why?", choices=("x" * 61,), step=0, offset=0)
    owed = ask.by_call(asked, session_key=CHAT, anchor=None, at=NOW)[1]
    assert isinstance(owed, e.MessageWritten) and [button.label for button in owed.buttons] == ["x" * 60]


@pytest.mark.parametrize(("key", "told"), [(PAGE, []), (CHAT, ["t1.error"])])
def test_a_question_that_nobody_answered_in_time_ends_a_turn_that_no_process_runs(key: str, told: list[str]) -> None:
    """R5: the turn fails with everything that it waited for, and a chat is told why."""
    ended = wait.expire("s1", Unfinished(session_key=key, turn_id="t1", said="", asking=("q1.call", "q2.call")))
    assert ended.reply is True and {(write.session_id, write.in_turn) for write in ended.writes} == {("s1", True)}
    events = [write.event for write in ended.writes]
    closed = [e.ToolFinished(call_id=name, outcome=ToolOutcome.FAILED, content=notices.expired()) for name in ("q1.call", "q2.call")]
    assert events[:2] == closed and [event.message_id for event in events[2:-1] if isinstance(event, e.MessageWritten)] == told
    assert isinstance(events[-1], e.TurnEnded) and (events[-1].outcome, events[-1].error) == (Outcome.FAILED, notices.expired())


def test_a_question_that_expires_leaves_a_turn_alone_that_a_process_runs() -> None:
    """R5: the process that runs it ends it."""
    assert wait.expire("s1", None) == Plan((), False)
