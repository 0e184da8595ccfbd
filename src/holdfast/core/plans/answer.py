"""An answer that names its question. The turn continues after the last one that it waits for."""

import msgspec

from holdfast.core.content import Content
from holdfast.core.errors import QuestionClosed
from holdfast.core.events import QuestionAnswered
from holdfast.core.plans import Plan, Write
from holdfast.core.sessions import Session

OPEN = "open"


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """`verdict` and `scope`: of an approval."""

    content: Content
    by: str
    verdict: str | None = None
    scope: str | None = None
    dedup_key: str | None = None


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A question. `state`: open, answered, expired or cancelled. `others`: how many other questions of its turn are open."""

    session: Session
    question_id: str
    call_id: str
    state: str
    expires_at: int
    others: int = 0


def plan(found: Snapshot, answer: Answer, *, at: int) -> Plan[str]:
    """Replies with the session's id. Where a process holds the turn, its positions are that process's own."""
    session = found.session
    if found.state != OPEN or found.expires_at <= at:
        raise QuestionClosed(found.question_id, "expired" if found.state == OPEN else found.state)
    if session.stop_requested:  # Its turn is about to end as cancelled (A21).
        raise QuestionClosed(found.question_id, "cancelled")
    if session.suspended:
        raise QuestionClosed(found.question_id, "suspended")
    answered = QuestionAnswered(
        question_id=found.question_id,
        call_id=found.call_id,
        content=answer.content,
        by=answer.by,
        verdict=answer.verdict,
        scope=answer.scope,
        last=found.others == 0,
        dedup_key=answer.dedup_key,
    )
    return Plan((Write(session.session_id, answered, in_turn=session.owner is None),), session.session_id)
