"""Asking for an approval, giving it, and using it up, as tables (R5, DESIGN 9)."""

from itertools import product
from typing import Any

import msgspec
import pytest

from holdfast.core import approvals
from holdfast.core import events as e
from holdfast.core.effects import Effect
from holdfast.core.errors import ApprovalVoid, BadInput, NotYours, QuestionClosed
from holdfast.core.plans import Plan, Write, answer, approve, ask, leave
from holdfast.core.plans.answer import Answer, Snapshot
from holdfast.core.plans.approve import Granted
from holdfast.core.plans.ask import QUESTION_LIFE_MS
from holdfast.core.policy import Pattern
from holdfast.core.turns import TurnState
from tests.core.plans.values import AT, CHAT, FRESH, PAGE, session

CALL = e.ProposedCall(name="terminal", arguments={"command": "git push"})
PRINT = approvals.fingerprint("terminal", {"command": "git push"}, "/work, no sandbox")


@pytest.mark.parametrize(("key", "told"), [(PAGE, False), (CHAT, True)])
def test_an_approval_is_asked_with_the_whole_call_and_starts_nothing(key: str, told: bool) -> None:
    """A27: and it is owed to a chat, with the words that answer it."""
    offer = Pattern("terminal", "git push *")
    events = ask.approval("q1", "t1.0.1", CALL, place="/work, no sandbox", offer=offer, session_key=key, anchor="a1", at=AT)
    *owed, asked = events
    assert isinstance(asked, e.QuestionAsked)
    assert (asked.form, asked.call, asked.fingerprint, asked.pattern) == ("approval", CALL, PRINT, "terminal(git push *)")
    assert (asked.call_id, asked.expires_at, asked.ends_attempt) == ("t1.0.1", AT + QUESTION_LIFE_MS, False)
    assert "git push" in asked.text and "/work, no sandbox" in asked.text
    assert len(owed) == told
    for message in owed:
        assert isinstance(message, e.MessageWritten) and (message.role, message.anchor) == ("notice", "a1")
        assert asked.text in message.text and "/approve q1" in message.text and "/deny q1" in message.text
        assert "terminal(git push *)" in message.text


def test_nothing_is_offered_for_always_where_there_is_no_pattern() -> None:
    [owed, asked] = ask.approval("q1", "c1", CALL, place="", offer=None, session_key=CHAT, anchor=None, at=AT)
    assert isinstance(asked, e.QuestionAsked) and asked.pattern is None
    assert isinstance(owed, e.MessageWritten) and "always" not in owed.text


HIDDEN = [*"\0\r\x1b\x7f\x9b\xad\u061c\u180e\u200b\u200f\u2028\u202e\u2060\u2066\ufe0f\ufeff\ufffb\U000e0041"]


@pytest.mark.parametrize("hidden", HIDDEN, ids=lambda letter: f"{ord(letter):04X}")
@pytest.mark.parametrize("extra", [{}, {"timeout": 5}])
def test_nobody_approves_in_a_chat_what_looks_like_something_else(hidden: str, extra: dict[str, Any]) -> None:
    """Characters that hide or turn others are written out in the question and in the pattern; what runs stays as it was proposed."""
    call = e.ProposedCall(name="terminal", arguments={"command": f"echo safe{hidden}; rm x"} | extra)
    offer = Pattern("terminal", f"echo{hidden} *")
    [owed, asked] = ask.approval("q1", "c1", call, place=f"/wo{hidden}rk", offer=offer, session_key=CHAT, anchor=None, at=AT)
    assert isinstance(asked, e.QuestionAsked) and isinstance(owed, e.MessageWritten)
    mark = f"⟨U+{ord(hidden):04X}⟩"
    assert hidden not in asked.text + owed.text and f"/wo{mark}rk" in asked.text and f"terminal(echo{mark} *)" in owed.text
    assert f"safe{mark}; rm x" in asked.text or (extra and ord(hidden) < 32)  # JSON has written out those already.
    assert (asked.call, asked.pattern) == (call, str(offer))
    assert asked.fingerprint == approvals.fingerprint("terminal", call.arguments, f"/wo{hidden}rk")


def test_words_of_every_language_are_shown_as_they_are() -> None:
    line = "echo 'größer 北京 שלום'\n\tprintf x"
    assert line in approvals.question("terminal", {"command": line}, "")


def found(**facts: Any) -> Snapshot:
    known: dict[str, Any] = {
        "session": session(TurnState.WAITING),
        "question_id": "q1",
        "call_id": "c1",
        "state": "open",
        "expires_at": AT + 1,
        "others": 0,
    }
    return Snapshot(**(known | {"form": "approval", "pattern": "terminal(git push *)", "asked_by": "ann"} | facts))


ANSWERS = [
    ("approve", "once", "", "Approved.", False),
    ("approve", "session", "", "Approved, and from now on in this conversation: terminal(git push *)", True),
    ("deny", "once", "not now", "Denied: not now", False),
    ("deny", "session", "", "Denied.", False),
]


@pytest.mark.parametrize(("given", "owner", "others"), list(product(ANSWERS, (None, 7), (0, 1))))
def test_a_verdict_is_recorded_and_always_adds_the_very_pattern_that_was_shown(
    given: tuple[str, str, str, str, bool], owner: int | None, others: int
) -> None:
    """P2: the positions of a held turn are its holder's."""
    verdict, scope, reason, shown, rule = given
    state = TurnState.WAITING if owner is None else TurnState.RUNNING
    said = Answer(by="ann", verdict=verdict, scope=scope, reason=reason, dedup_key="k")
    planned = answer.plan(found(session=session(state, owner=owner), others=others), said, at=AT)
    answered = e.QuestionAnswered(
        question_id="q1",
        call_id="c1",
        content=shown,
        by="ann",
        verdict=verdict,
        scope=scope,
        reason=reason or None,
        last=others == 0,
        dedup_key="k",
    )
    added = e.RuleAdded(rule_id="q1.rule", pattern="terminal(git push *)", by="ann")
    assert planned.writes == (*([Write("s1", added)] if rule else []), Write("s1", answered, in_turn=owner is None))


@pytest.mark.parametrize(
    ("by", "operator", "may"), [("ann", False, True), ("bob", False, False), ("bob", True, True), ("owner", True, True)]
)
def test_only_the_one_who_asked_for_the_work_or_an_operator_may_answer(by: str, operator: bool, may: bool) -> None:
    said = Answer(by=by, verdict="approve", scope="once", operator=operator)
    if may:
        assert answer.plan(found(), said, at=AT).writes
    else:
        with pytest.raises(NotYours):
            answer.plan(found(), said, at=AT)


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"form": "question"}, {"verdict": "approve"}),
        ({}, {"content": "yes"}),
        ({"pattern": None}, {"verdict": "approve", "scope": "session"}),
    ],
)
def test_an_answer_of_the_other_kind_is_refused(facts: dict[str, Any], said: dict[str, str]) -> None:
    with pytest.raises(BadInput):
        answer.plan(found(**facts), Answer(by="ann", **said), at=AT)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("state", "why"),
    [("used", "answered"), ("answered", "answered"), ("expired", "expired"), ("cancelled", "cancelled"), ("ended", "ended")],
)
def test_a_late_verdict_is_told_so(state: str, why: str) -> None:
    """R5"""
    with pytest.raises(QuestionClosed) as closed:
        answer.plan(found(state=state), Answer(by="ann", verdict="approve", scope="once"), at=AT)
    assert closed.value.code == f"question_{why}"


def test_the_same_verdict_is_known_again_and_another_one_is_not() -> None:
    said = Answer(by="ann", verdict="approve", scope="once")
    others = [
        Answer(by="ann", verdict="deny", scope="once"),
        Answer(by="ann", verdict="approve", scope="session"),
        Answer(by="ann", verdict="approve", scope="once", reason="r"),
        Answer(by="ann", content=""),
    ]
    assert said.known_by == Answer(by="bob", verdict="approve", scope="once").known_by
    assert all(said.known_by != other.known_by for other in others)


GRANTED = Granted(turn_id="t1", call_id="c1", state="answered", verdict="approve", fingerprint=PRINT)
STARTED = e.ToolStarted(
    call_id="c1", name="terminal", arguments={"command": "git push"}, effect=Effect.UNSAFE, approval="q1", place="/work, no sandbox"
)


def test_an_approval_allows_the_call_that_was_shown() -> None:
    """P5"""
    approve.check(STARTED, turn_id="t1", granted=GRANTED)


@pytest.mark.parametrize(
    "wrong",
    [
        {"turn_id": "t0"},
        {"call_id": "c2"},
        *({"state": state} for state in ("open", "used", "expired", "cancelled", "ended")),
        {"verdict": "deny"},
        {"verdict": None},
        {"fingerprint": None},
        {"fingerprint": "another"},
    ],
)
def test_an_approval_that_is_not_for_this_call_or_is_used_up_allows_nothing(wrong: dict[str, Any]) -> None:
    """P5"""
    with pytest.raises(ApprovalVoid):
        approve.check(STARTED, turn_id="t1", granted=msgspec.structs.replace(GRANTED, **wrong))


@pytest.mark.parametrize("changed", [{"name": "other"}, {"arguments": {"command": "git push -f"}}, {"place": "/"}, {"place": None}])
def test_a_call_that_changed_since_it_was_approved_does_not_start(changed: dict[str, Any]) -> None:
    with pytest.raises(ApprovalVoid):
        approve.check(msgspec.structs.replace(STARTED, **changed), turn_id="t1", granted=GRANTED)
    with pytest.raises(ApprovalVoid):
        approve.check(STARTED, turn_id="t1", granted=None)


def test_what_was_allowed_in_a_conversation_is_over_when_a_new_one_begins() -> None:
    """A20"""
    fresh = msgspec.structs.replace(FRESH, rules=("r1", "r2"))
    gone = [write for write in leave.beginning(session(), fresh, reason=None) if isinstance(write.event, e.RuleRemoved)]
    assert [(write.session_id, write.event.rule_id) for write in gone if isinstance(write.event, e.RuleRemoved)] == [
        ("s1", "r1"),
        ("s1", "r2"),
    ]


def test_the_same_words_are_known_again_and_others_are_not() -> None:
    assert Answer(by="ann", content="yes").known_by == Answer(by="bob", content="yes", reason="r").known_by
    assert Answer(by="ann", content="yes").known_by != Answer(by="ann", content="no").known_by
    assert Answer(by="ann").known_by == Answer(by="ann", content="").known_by


@pytest.mark.parametrize("operator", [False, True])
def test_anybody_in_a_chat_may_answer_a_question(operator: bool) -> None:
    """Only an approval is for the one who asked for the work."""
    assert answer.plan(found(form="question"), Answer(by="bob", content="yes", operator=operator), at=AT).writes
    assert answer.plan(found(), Answer(by="bob", verdict="approve", scope="once"), at=AT).writes  # Who is not said to be less may.


def test_an_approval_for_operators_is_not_given_by_the_one_who_asked_for_the_work() -> None:
    said = Answer(by="ann", verdict="approve", scope="once", operator=False)
    with pytest.raises(NotYours, match="can be answered only by an administrator"):
        answer.plan(found(for_operators=True), said, at=AT)
    assert answer.plan(found(for_operators=True), msgspec.structs.replace(said, operator=True), at=AT).writes
    assert answer.plan(found(), said, at=AT).writes


def test_a_limit_that_concerns_others_is_lifted_only_by_an_operator() -> None:
    asked = {"form": "question", "call_id": "t1.limit.day_cost.5"}
    assert answer.plan(found(**asked), Answer(by="bob", content="Continue"), at=AT).writes
    with pytest.raises(NotYours, match="can be answered only by an administrator"):
        answer.plan(found(**asked), Answer(by="ann", content="Continue", operator=False), at=AT)
    own = {"form": "question", "call_id": "t1.limit.turn_cost.5"}
    assert answer.plan(found(**own), Answer(by="ann", content="Continue", operator=False), at=AT).writes


@pytest.mark.parametrize(("verdict", "scope"), [("approve", "once"), ("deny", "once"), ("deny", "session")])
def test_where_no_rule_may_be_added_every_other_verdict_counts(verdict: str, scope: str) -> None:
    planned = answer.plan(found(pattern=None), Answer(by="ann", verdict=verdict, scope=scope), at=AT)
    assert [type(write.event) for write in planned.writes] == [e.QuestionAnswered]


@pytest.mark.parametrize(
    ("facts", "said", "told"),
    [
        ({"form": "question"}, {"verdict": "approve"}, "'q1' is a question and asks for no approval. Answer it with a text."),
        ({}, {"content": "yes"}, "'q1' asks for an approval. Approve or deny it."),
        (
            {"pattern": None},
            {"verdict": "approve", "scope": "session"},
            "No rule can allow this call from now on, because one in the configuration asks each time. Approve it once.",
        ),
    ],
)
def test_who_answers_in_the_wrong_way_is_told_the_right_one(facts: dict[str, Any], said: dict[str, Any], told: str) -> None:
    with pytest.raises(BadInput) as refused:
        answer.plan(found(**facts), Answer(by="ann", **said), at=AT)
    assert str(refused.value) == told


@pytest.mark.parametrize("approval", ["q1", None])
def test_a_refusal_names_the_approval_that_is_void(approval: str | None) -> None:
    with pytest.raises(ApprovalVoid) as refused:
        approve.check(msgspec.structs.replace(STARTED, approval=approval), turn_id="t1", granted=None)
    assert str(refused.value) == str(ApprovalVoid(approval or ""))


def test_a_call_without_a_place_is_approved_like_any_other() -> None:
    """P5"""
    made = approvals.fingerprint("terminal", {"command": "git push"}, "")
    granted = msgspec.structs.replace(GRANTED, fingerprint=made)
    approve.check(msgspec.structs.replace(STARTED, place=None), turn_id="t1", granted=granted)


@pytest.mark.parametrize("offer", [None, Pattern("terminal", "git push *")])
def test_a_chat_with_buttons_has_one_for_each_verdict_that_is_possible(offer: Pattern | None) -> None:
    owed, asked = ask.approval("q1", "c1", CALL, place="", offer=offer, session_key=CHAT, anchor=None, at=AT)
    assert isinstance(owed, e.MessageWritten) and isinstance(asked, e.QuestionAsked)
    always = [e.Button("Always here", "q1 always")] if offer else []
    assert list(owed.buttons) == [e.Button("Approve", "q1 approve"), *always, e.Button("Deny", "q1 deny")]
    assert (asked.for_operators, asked.theirs) == (False, False)


def test_an_approval_for_operators_and_one_that_an_agent_asks_for_itself_say_so() -> None:
    *_, asked = ask.approval("q1", "c1", CALL, place="", offer=None, for_operators=True, theirs=True, session_key=PAGE, anchor=None, at=AT)
    plain = ask.approval("q1", "c1", CALL, place="", offer=None, session_key=PAGE, anchor=None, at=AT)[-1]
    assert isinstance(asked, e.QuestionAsked) and isinstance(plain, e.QuestionAsked) and (asked.for_operators, asked.theirs) == (True, True)
    assert asked.text != plain.text and "only an administrator" in asked.text


def test_what_an_agent_is_allowed_for_itself_becomes_no_rule_of_ours() -> None:
    """It keeps that for itself, and Holdfast never runs the call."""
    planned = answer.plan(found(theirs=True), Answer(by="ann", verdict="approve", scope="session"), at=AT)
    assert [write.event.kind for write in planned.writes] == ["question.answered"]


def test_what_was_allowed_for_good_is_taken_back_where_it_was_allowed() -> None:
    """DESIGN 9: by its name, and with who took it back; what is given back says what it was."""
    rule = approvals.Rule(rule_id="q1.rule", session_id="s1", pattern="terminal(git push *)", by="alice", at=AT)
    assert approve.take_back(rule, by="bob") == Plan((Write("s1", e.RuleRemoved(rule_id="q1.rule", by="bob")),), rule)
