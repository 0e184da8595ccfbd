"""Where a message goes, over every state of its session and every way a question may stand in it."""

from itertools import product
from typing import Any

import msgspec
import pytest

from holdfast.core import events as e
from holdfast.core import notices
from holdfast.core.content import TextPart, bytes_part
from holdfast.core.delivery import DeliveryState
from holdfast.core.errors import Deleted, DuplicateOtherContent, LaneFull
from holdfast.core.plans import Plan, accept, repeats
from holdfast.core.plans.accept import Accepted, Snapshot
from holdfast.core.plans.owe import Question
from holdfast.core.plans.repeats import Known
from holdfast.core.resets import Boundary
from holdfast.core.sessions import Session
from holdfast.core.turns import OPEN, TurnState
from tests.core.plans.values import AT, FRESH, STATES, events, kinds, session, unattended, written

SENT, PENDING, DEAD = DeliveryState.SENT, DeliveryState.PENDING, DeliveryState.DEAD
TOLD = e.MessageWritten(message_id="q1.asked", role="notice", content="Which?", delivery_id="q1.asked", anchor="a1")


def message(mode: str = "queue") -> e.MessageAccepted:
    return e.MessageAccepted(message_id="m9", content="hi", sender="ann", anchor="a9", mode=mode, dedup_key="k9")


def question(name: str = "q1", *deliveries: DeliveryState, form: str = "question", expires_at: int = AT + 1) -> Question:
    return Question(question_id=name, call_id=f"{name}.call", expires_at=expires_at, form=form, deliveries=deliveries, told=TOLD)


def plan(
    of: Session,
    *questions: Question,
    said: e.MessageAccepted | None = None,
    resets: tuple[Boundary, ...] = (),
    answers: bool = True,
    on_page: bool = False,
    most: int = 3,
    operator: bool = True,
) -> Plan[Accepted]:
    """As a store does it: it loads what the plan can need, and nothing else."""
    reason = accept.leaves(of, resets)
    found = Snapshot(
        session=of,
        fresh=None if reason is None else FRESH,
        questions=questions if reason is None else (),
        unfinished=unattended(of) if reason is None and accept.may_end(said or message(), questions, at=AT) else None,
    )
    return accept.plan(
        found, said or message(), reason=reason, answers=answers, on_page=on_page, max_waiting=most, at=AT, operator=operator
    )


@pytest.mark.parametrize(("state", "queued", "suspended", "mode"), list(product(STATES, (0, 2, 3), (False, True), ("queue", "steer"))))
def test_a_message_waits_in_its_session_begins_a_new_one_or_is_refused(state: TurnState, queued: int, suspended: bool, mode: str) -> None:
    """P1, A15, A20: suspended wins."""
    of = session(state, queued=queued, suspended=suspended)
    if queued >= 3 and not suspended:
        with pytest.raises(LaneFull):
            plan(of, said=message(mode))
        return
    made = plan(of, said=message(mode))
    target = "s2" if suspended else "s1"
    assert made.reply == Accepted("m9", target, duplicate=False)
    assert made.writes[-1].session_id == target and made.writes[-1].event == message(mode) and not made.writes[-1].in_turn
    assert kinds(made)[:-1] == (["session.created", "message.written"] if suspended else [])
    if suspended:
        (created,) = events(made, e.SessionCreated)
        assert (created.auto_reset_reason, created.title) == ("suspended", "A title (5)")


CASES = list(product(STATES, (0, 1), (False, True), (False, True), (0, AT)))


@pytest.mark.parametrize(("state", "queued", "pending", "current", "boundary"), CASES)
def test_a_session_at_rest_past_a_boundary_is_left_and_a_deleted_one_begins_without_a_word(
    state: TurnState, queued: int, pending: bool, current: bool, boundary: int
) -> None:
    """A19, A24"""
    of = session(state, queued=queued, resume_pending=pending, current=current, updated_at=5)
    reason = accept.leaves(of, (Boundary("idle", boundary),))
    at_rest = state is TurnState.ENDED and not queued and not pending
    assert reason == ("deleted" if not current else "idle" if at_rest and boundary else None)
    made = plan(of, resets=(Boundary("idle", boundary),))
    assert kinds(made) == {"deleted": ["session.created"], "idle": ["session.created", "message.written"], None: []}[reason] + [
        "message.accepted"
    ]


def test_a_lane_holds_a_hundred_messages() -> None:
    assert plan(session(queued=99), most=accept.MAX_WAITING).reply.session_id == "s1"
    with pytest.raises(LaneFull):
        plan(session(queued=100), most=accept.MAX_WAITING)


@pytest.mark.parametrize("full", [False, True])
def test_no_session_is_begun_for_a_message_that_nothing_may_hold(full: bool) -> None:
    of = session(TurnState.NONE, suspended=True, queued=9)
    if full:
        with pytest.raises(LaneFull) as refused:
            plan(of, most=0)
        assert refused.value.waiting == 0
    else:
        assert plan(of, most=1).reply.session_id == "s2"  # What waits in the one that is left does not count.


DELIVERIES = ((), (SENT,), (PENDING,), (DEAD,), (DEAD, PENDING), (DEAD, DEAD), (DEAD, SENT))


@pytest.mark.parametrize(
    ("deliveries", "answers", "on_page", "mode"), list(product(DELIVERIES, (False, True), (False, True), ("queue", "steer")))
)
def test_a_message_answers_the_question_that_its_sender_can_have_seen(
    deliveries: tuple[DeliveryState, ...], answers: bool, on_page: bool, mode: str
) -> None:
    """A27, R5: otherwise it waits behind it, and a question that will never arrive is sent again."""
    seen = on_page or not deliveries or SENT in deliveries
    lost = bool(deliveries) and set(deliveries) == {DEAD} and not on_page
    made = plan(session(TurnState.WAITING), question("q1", *deliveries), said=message(mode), answers=answers, on_page=on_page)
    answered = events(made, e.QuestionAnswered)
    if answers and seen:
        assert made.reply.answered == "q1"
        expected = e.QuestionAnswered(question_id="q1", call_id="q1.call", content="hi", message_id="m9", by="ann", last=True)
        assert answered == [expected]
        assert written(made) == [("s1", "message.accepted", False), ("s1", "question.answered", True)]
    else:
        assert made.reply.answered is None and answered == []
        again = events(made, e.MessageWritten)
        assert [event.delivery_id for event in again] == ([f"q1.asked.{len(deliveries) + 1}"] if lost else [])
        for event in again:
            assert (event.text, event.anchor, event.message_id) == ("Which?", "a1", event.delivery_id)


def test_an_answer_needs_no_place_in_a_full_inbox() -> None:
    """A27"""
    of = session(TurnState.WAITING, queued=3)
    assert plan(of, question("q1", SENT)).reply.answered == "q1"
    with pytest.raises(LaneFull):
        plan(of, question("q1", PENDING))


@pytest.mark.parametrize(("seen", "late"), list(product((False, True), (False, True))))
def test_an_answer_that_comes_too_late_ends_the_turn_and_is_the_next_message(seen: bool, late: bool) -> None:
    """R5"""
    asked = question("q1", SENT if seen else PENDING, expires_at=AT if late else AT + 1)
    made = plan(session(TurnState.WAITING), asked)
    if seen and late:
        assert kinds(made) == ["tool.finished", "message.written", "message.written", "turn.ended", "message.accepted"]
        assert [write.in_turn for write in made.writes] == [True] * 4 + [False]
    else:
        assert "turn.ended" not in kinds(made)
    assert (made.reply.answered is not None) == (seen and not late)


def test_one_question_that_expired_makes_every_answer_late() -> None:
    """R5: the first to expire ends the turn."""
    made = plan(session(TurnState.WAITING), question("q1", SENT), question("q2", SENT, expires_at=AT))
    assert made.reply.answered is None and "turn.ended" in kinds(made)


@pytest.mark.parametrize("state", OPEN)
def test_a_question_asked_again_takes_a_place_in_the_turn_only_where_no_process_counts_them(state: TurnState) -> None:
    """P2, R5"""
    made = plan(session(state), question("q1", DEAD))
    again, waits = made.writes
    assert isinstance(again.event, e.MessageWritten) and isinstance(waits.event, e.MessageAccepted)
    assert again.in_turn == (state is not TurnState.RUNNING)


def test_too_late_an_answer_for_a_full_inbox_changes_nothing() -> None:
    with pytest.raises(LaneFull):
        plan(session(TurnState.WAITING, queued=3), question("q1", SENT, expires_at=AT))


FORMS = list(product(("question", "approval"), (SENT, PENDING), ("question", "approval"), (SENT, PENDING)))


@pytest.mark.parametrize(("form", "state", "form_2", "state_2"), FORMS)
def test_of_several_questions_the_oldest_text_question_that_arrived_is_answered(
    form: str, state: DeliveryState, form_2: str, state_2: DeliveryState
) -> None:
    """A27: a plain message approves nothing."""
    both = question("q1", state, form=form), question("q2", state_2, form=form_2)
    made = plan(session(TurnState.WAITING), *both)
    can = [asked.question_id for asked in both if asked.form == "question" and asked.deliveries == (SENT,)]
    assert made.reply.answered == (can[0] if can else None)
    assert all(not event.last for event in events(made, e.QuestionAnswered))


@pytest.mark.parametrize("state", OPEN)
def test_an_answer_takes_a_place_in_the_turn_only_where_no_process_counts_them(state: TurnState) -> None:
    """P2"""
    made = plan(session(state), question("q1", SENT))
    assert made.writes[-1].in_turn == (state is not TurnState.RUNNING)


@pytest.mark.parametrize("digest", [b"same", b"other", None])
def test_a_repeated_message_gives_the_first_reply_or_is_refused(digest: bytes | None) -> None:
    """P1"""
    known = Known(digest, "s1", "m1")
    if digest == b"same":
        assert accept.again(repeats.check(known, "client|k", b"same"), "q1") == Accepted("m1", "s1", duplicate=True, answered="q1")
    else:
        with pytest.raises(Deleted if digest is None else DuplicateOtherContent) as refused:
            repeats.check(known, "client|k", b"same")
        # What is purged cannot be brought back, and a client knows its id without what stands before it in the key.
        expected = Deleted("s1", undoable=False) if digest is None else DuplicateOtherContent("k")
        assert str(refused.value) == str(expected)


@pytest.mark.parametrize(("reply_to", "expected"), [("r2", "q2"), ("r1", "q1"), ("r9", "q1"), (None, "q1")])
def test_a_message_answers_the_question_it_replies_to_else_the_oldest(reply_to: str | None, expected: str) -> None:
    """A27"""
    asked = tuple(
        Question(question_id=f"q{n}", call_id=f"c{n}", expires_at=AT + n, deliveries=(SENT,), receipts=(f"r{n}",)) for n in (1, 2)
    )
    found = Snapshot(session=session(TurnState.WAITING), questions=asked)
    made = accept.plan(found, message(), reason=None, answers=True, on_page=False, max_waiting=3, at=AT, reply_to=reply_to, operator=True)
    assert made.reply.answered == expected


@pytest.mark.parametrize("other", [None, SENT, PENDING])
def test_a_message_while_only_approvals_are_open_waits_and_says_so(other: DeliveryState | None) -> None:
    """A plain message approves nothing. Next to a question it waits for that one, or answers it."""
    questions = [question("q1", SENT, form="approval"), *([] if other is None else [question("q2", other)])]
    made = plan(session(TurnState.WAITING), *questions)
    assert made.reply.answered == ("q2" if other is SENT else None)
    told = events(made, e.MessageWritten)
    assert [(event.role, event.message_id, event.anchor) for event in told] == ([("notice", "m9.waits", "a9")] if other is None else [])
    assert [event.text for event in told] == ([notices.waits_for_approval()] if other is None else [])


def test_a_message_that_was_said_for_later_is_not_told_that_an_approval_is_open() -> None:
    """Its sender knows that it waits."""
    made = plan(session(TurnState.WAITING), question("q1", SENT, form="approval"), answers=False)
    assert kinds(made) == ["message.accepted"]


@pytest.mark.parametrize(("form", "state"), list(product(("question", "approval"), (SENT, DEAD))))
def test_nobody_waits_for_an_answer_to_a_turn_that_is_being_stopped(form: str, state: DeliveryState) -> None:
    """A21: a message is the next one then; no question is asked again."""
    made = plan(session(TurnState.RUNNING, stop_requested=True), question("q1", state, form=form))
    assert made.reply.answered is None and kinds(made) == ["message.accepted"]


# busy


@pytest.mark.parametrize(
    ("state", "left", "stop", "queued", "on_page"), list(product(STATES, (False, True), (False, True), (0, 2), (False, True)))
)
def test_a_message_that_interrupts_is_recorded_with_the_stop_of_the_turn_that_is_open(
    state: TurnState, left: bool, stop: bool, queued: int, on_page: bool
) -> None:
    """A21, P1: the stop stands first, and a turn that belongs to no process ends with it. One that was left is set aside instead (A23)."""
    of = session(state, left=left, stop_requested=stop, queued=queued)
    made = plan(of, said=message("interrupt"), answers=False, on_page=on_page)
    at_work = state in OPEN and not (left and state is TurnState.INTERRUPTED)
    ended = at_work and not stop and state in (TurnState.WAITING, TurnState.ANSWERED)
    assert [event.turn_id for event in events(made, e.StopRequested)] == (["t1"] if at_work and not stop else [])
    assert [event.why for event in events(made, e.StopRequested)] == (["interrupted by a new message"] if at_work and not stop else [])
    assert ("turn.ended" in kinds(made)) is ended
    assert made.writes[-1].event == message("interrupt") and made.reply == Accepted("m9", "s1")


@pytest.mark.parametrize(("answers", "deliveries"), list(product((False, True), DELIVERIES)))
def test_a_message_that_interrupts_a_waiting_turn_asks_nothing_again(answers: bool, deliveries: tuple[DeliveryState, ...]) -> None:
    """A27, R5: where it is the answer to a question, it is that and interrupts nothing."""
    made = plan(session(TurnState.WAITING), question("q1", *deliveries), said=message("interrupt"), answers=answers)
    if answers and (not deliveries or SENT in deliveries):
        assert kinds(made) == ["message.accepted", "question.answered"]
    else:
        assert kinds(made) == ["stop.requested", "tool.finished", "message.written", "turn.ended", "message.accepted"]


@pytest.mark.parametrize(("state", "left", "queued", "suspended"), list(product(STATES, (False, True), (0, 2), (False, True))))
def test_a_message_that_is_not_to_wait_is_refused_where_it_would(state: TurnState, left: bool, queued: int, suspended: bool) -> None:
    """P1: on record with its words, and said to its sender. Otherwise it is a message like any other."""
    of = session(state, left=left, queued=queued, suspended=suspended)
    made = plan(of, said=message("reject"), answers=False)
    busy = not suspended and (queued > 0 or (state in OPEN and not (left and state is TurnState.INTERRUPTED)))
    assert made.reply.refused is busy
    if busy:
        assert kinds(made) == ["message.accepted", "message.refused", "message.written"]
        (refused,), (told,) = events(made, e.MessageRefused), events(made, e.MessageWritten)
        assert (refused.message_id, refused.reason) == ("m9", "the conversation was busy")
        assert (told.role, told.message_id, told.delivery_id, told.anchor) == ("notice", "m9.refused", "m9.refused", "a9")
        assert made.writes[0].event == message("reject")
    else:
        assert made.writes[-1].event == message("queue")


def test_a_full_lane_refuses_what_would_wait_and_not_what_is_refused_anyway() -> None:
    of = session(TurnState.RUNNING, queued=3)
    assert plan(of, said=message("reject"), answers=False).reply.refused
    with pytest.raises(LaneFull):
        plan(of, said=message("interrupt"), answers=False)


@pytest.mark.parametrize("queued", [0, 1])
def test_a_message_that_finds_a_question_expired_is_refused_only_if_others_wait(queued: int) -> None:
    """R5, P1: the turn ends with it."""
    asked = question("q1", SENT, expires_at=AT)
    made = plan(session(TurnState.WAITING, queued=queued), asked, said=message("reject"))
    assert made.reply.refused is (queued == 1) and kinds(made)[3] == "turn.ended"


def test_a_message_that_is_not_to_wait_answers_a_question_like_any_other() -> None:
    """A27"""
    made = plan(session(TurnState.WAITING, queued=1), question("q1", SENT), said=message("reject"))
    assert made.reply == Accepted("m9", "s1", answered="q1") and kinds(made) == ["message.accepted", "question.answered"]


LATE = ["tool.finished", "message.written", "message.written", "turn.ended", "message.accepted"]


@pytest.mark.parametrize(
    ("state", "mode", "expected"),
    [
        (TurnState.WAITING, "interrupt", LATE),
        (TurnState.WAITING, "reject", LATE),
        (TurnState.RUNNING, "interrupt", ["stop.requested", "message.accepted"]),
        (TurnState.RUNNING, "reject", ["message.accepted", "message.refused", "message.written"]),
        (TurnState.RUNNING, "queue", ["message.accepted"]),
    ],
)
def test_an_answer_that_comes_too_late_finds_a_turn_that_ends_with_it_or_one_that_still_runs(
    state: TurnState, mode: str, expected: list[str]
) -> None:
    """R5, P1: only the first leaves nothing to interrupt and nothing to wait for."""
    assert kinds(plan(session(state), question("q1", SENT, expires_at=AT), said=message(mode))) == expected


def test_an_answer_that_comes_too_late_has_no_other_question_asked_again() -> None:
    """R5: they end with the turn."""
    assert kinds(plan(session(TurnState.WAITING), question("q1", SENT, expires_at=AT), question("q2", DEAD))) == LATE


def test_a_refusal_is_known_again() -> None:
    """P1"""
    known = accept.again(Known(b"", "s1", repeats.REFUSED + "m9"), None)
    assert known == Accepted("m9", "s1", duplicate=True, refused=True)


LIMIT = Question(question_id="q1", call_id="t1.limit.day_cost.5", expires_at=AT + 1, deliveries=(SENT,), told=TOLD)


@pytest.mark.parametrize(("operator", "others"), list(product((False, True), ((), ("question",), ("approval",)))))
def test_a_limit_that_concerns_others_is_not_lifted_by_whoever_writes(operator: bool, others: tuple[str, ...]) -> None:
    """A message of somebody else waits, or answers another question."""
    made = plan(session(TurnState.WAITING), LIMIT, *(question("q2", SENT, form=form) for form in others), operator=operator)
    expected = "q1" if operator else "q2" if others == ("question",) else None
    assert made.reply.answered == expected
    told = [event.text for event in events(made, e.MessageWritten)]
    assert told == ([] if expected else [notices.waits_for_operator()])


PICTURE = bytes_part(blob="a" * 64, size=5, media_type="image/png", name="cat.png")


@pytest.mark.parametrize(
    ("choices", "said", "expected"),
    [
        (("Red", "Blue", "7"), "1", "Red"),
        (("Red", "Blue", "7"), " 2\n", "Blue"),
        (("Red", "Blue", "7"), "3", "7"),
        (("Red", "Blue", "7"), "7", "7"),
        (("Red", "Blue", "7"), "0", "0"),
        (("Red", "Blue", "7"), "4", "4"),
        (("Red", "Blue", "7"), "-1", "-1"),
        (("Red", "Blue", "7"), " bLUE ", "Blue"),
        (("Red", "Blue", "7"), "green", "green"),
        (("Red", "Blue", "7"), ("1", PICTURE), ("1", PICTURE)),
        ((), "1", "1"),
        ((), " hm ", " hm "),
    ],
)
def test_an_answer_names_a_choice_by_its_number_or_its_words(choices: tuple[str, ...], said: Any, expected: Any) -> None:
    """A27: counted from 1. Other words are an answer, too, and so is what comes with a file."""
    said, expected = (
        each if isinstance(each, str) else tuple(TextPart(text=part) if isinstance(part, str) else part for part in each)
        for each in (said, expected)
    )
    asked = msgspec.structs.replace(question("q1", SENT), choices=choices)
    (answered,) = events(plan(session(TurnState.WAITING), asked, said=msgspec.structs.replace(message(), content=said)), e.QuestionAnswered)
    assert answered.content == expected


@pytest.mark.parametrize(("form", "verdict"), [("question", None), ("elicitation", "given")])
def test_what_a_tool_asked_for_in_the_middle_of_a_call_is_given_by_a_message(form: str, verdict: str | None) -> None:
    (answered,) = events(plan(session(TurnState.WAITING), question("q1", SENT, form=form)), e.QuestionAnswered)
    assert answered.verdict == verdict
