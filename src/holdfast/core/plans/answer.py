"""An answer that names its question. The turn continues after the last one that it waits for."""

import msgspec

from holdfast.core import approvals, content, elicitation, limits
from holdfast.core.approvals import SESSION
from holdfast.core.content import Content
from holdfast.core.errors import BadInput, NotYours, QuestionClosed, UnknownChoice
from holdfast.core.events import QuestionAnswered, RuleAdded
from holdfast.core.plans import Plan, Write
from holdfast.core.sessions import Session

OPEN, USED = "open", "used"


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """`chosen`: the content must be one of the question's choices; `number`: it is the one of this number, from 0. `verdict`, `scope` and
    `reason`: of an approval. `operator`: the one who answers may answer for everybody.
    """

    content: Content = ""
    by: str
    chosen: bool = False
    number: int | None = None
    verdict: str | None = None
    scope: str | None = None
    reason: str = ""
    operator: bool = True
    dedup_key: str | None = None

    @property
    def known_by(self) -> bytes:
        """By which the same answer is known again."""
        return approvals.known_by(self.reason if self.verdict else self.content, self.verdict, self.scope)


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A question. `state`: open, answered, used (an approval, by the call that it was for), expired, cancelled (by a stop) or ended (with
    its turn). `others`: how many other questions of its turn are open. `choices`: what can be chosen. Of an approval:
    `pattern`, what may be allowed from now on, `theirs`: by the agent itself, so that no rule of ours does; `asked_by`, whose message the
    work is for, `for_operators`: they may not approve it themselves, and `seen`: its people can have read it.
    """

    session: Session
    question_id: str
    call_id: str
    state: str
    expires_at: int
    others: int
    form: str = "question"
    choices: tuple[str, ...] = ()
    pattern: str | None = None
    theirs: bool = False
    asked_by: str | None = None
    for_operators: bool = False
    seen: bool = True


def chosen(found: Snapshot, answer: Answer) -> Answer:
    """The answer with the words of the choice that it is the number of."""
    if answer.number is None or answer.number >= len(found.choices):
        return answer
    return msgspec.structs.replace(answer, content=found.choices[answer.number], chosen=True)


def plan(found: Snapshot, answer: Answer, *, at: int) -> Plan[str]:
    """Replies with the session's id."""
    return Plan(tuple(answering(found, answer, at=at)), found.session.session_id)


def answering(found: Snapshot, answer: Answer, *, at: int) -> list[Write]:
    """Where a process holds the turn, its positions are that process's own."""
    session, approves = found.session, found.form == approvals.FORM
    _check(found, answer, at=at)
    always = approves and answer.verdict == approvals.APPROVE and answer.scope == SESSION
    rule = found.pattern if always else None
    answered = QuestionAnswered(
        question_id=found.question_id,
        call_id=found.call_id,
        content=approvals.answered(answer.verdict, pattern=rule, reason=answer.reason) if answer.verdict else answer.content,
        by=answer.by,
        verdict=elicitation.GIVEN if found.form == elicitation.FORM else answer.verdict,
        scope=answer.scope,
        reason=answer.reason or None,
        last=found.others == 0,
        dedup_key=answer.dedup_key,
    )
    writes = [Write(session.session_id, answered, in_turn=session.owner is None)]
    if rule is not None and not found.theirs:
        writes.insert(0, Write(session.session_id, RuleAdded(rule_id=f"{found.question_id}.rule", pattern=rule, by=answer.by)))
    return writes


def _check(found: Snapshot, answer: Answer, *, at: int) -> None:
    session, approves = found.session, found.form == approvals.FORM
    if approves != (answer.verdict is not None):
        raise BadInput(
            f"{found.question_id!r} asks for an approval. Approve or deny it."
            if approves
            else f"{found.question_id!r} is a question and asks for no approval. Answer it with a text."
        )
    for_operators = found.for_operators or limits.for_operators(found.call_id)
    if not answer.operator and (for_operators or (approves and answer.by != found.asked_by)):
        raise NotYours(found.question_id, by_asker=not for_operators)
    if found.state != OPEN or found.expires_at <= at:
        raise QuestionClosed(found.question_id, {OPEN: "expired", USED: "answered"}.get(found.state, found.state))
    if session.stop_requested:  # Its turn is about to end as cancelled (A21).
        raise QuestionClosed(found.question_id, "cancelled")
    if session.suspended:
        raise QuestionClosed(found.question_id, "suspended")
    if (answer.chosen or answer.number is not None) and answer.content not in found.choices:
        raise UnknownChoice(found.question_id, content.text(answer.content), found.choices)
    if answer.scope == SESSION and answer.verdict == approvals.APPROVE and found.pattern is None:
        raise BadInput("No rule can allow this call from now on, because one in the configuration asks each time. Approve it once.")
