"""Where an accepted message goes: to the question it answers, to the inbox, to a new session, or back with a refusal (P1)."""

import msgspec

from holdfast.core import notices, replies
from holdfast.core.errors import LaneFull
from holdfast.core.events import MessageAccepted, QuestionAnswered
from holdfast.core.plans import Plan, Write, ending
from holdfast.core.plans.causes import STEER
from holdfast.core.plans.ending import Unfinished
from holdfast.core.plans.leave import DELETED, SUSPENDED, Fresh, beginning
from holdfast.core.plans.owe import Asked, Question, asked, question_again
from holdfast.core.plans.repeats import Known
from holdfast.core.resets import Boundary, due
from holdfast.core.sessions import Session

MAX_WAITING = 100
TEXT_QUESTION, APPROVAL = "question", "approval"


class Accepted(msgspec.Struct, frozen=True):
    """`duplicate`: this was stored before, under the same key; ids are those of the first time. `answered`: the question it answers."""

    message_id: str
    session_id: str
    duplicate: bool = False
    answered: str | None = None


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """`fresh`: a session to begin, where `leaves` gives a reason to. `questions`: the open ones of an open turn, oldest first.
    `unfinished`: that turn, if one of them is past its time and it waits.
    """

    session: Session
    fresh: Fresh | None = None
    questions: tuple[Question, ...] = ()
    unfinished: Unfinished | None = None


def again(known: Known, answered: str | None) -> Accepted:
    """`answered`: the question that the message answered when it first came."""
    return Accepted(known.ref, known.session_id, duplicate=True, answered=answered)


def leaves(session: Session, resets: tuple[Boundary, ...]) -> str | None:
    """Why a message for this session begins a new one, or None. One that is not its key's current one is given only if that is deleted."""
    if not session.current:
        return DELETED
    return SUSPENDED if session.suspended else due(session, resets)


def plan(
    found: Snapshot,
    message: MessageAccepted,
    *,
    reason: str | None,
    answers: bool,
    on_page: bool,
    max_waiting: int,
    at: int,
    reply_to: str | None = None,
) -> Plan[Accepted]:
    """`reason`: what `leaves` says. `answers`: its sender did not say that it is for later. `on_page`: written where everything that is
    stored can be seen. `reply_to`: the platform's message that it replies to, where it replies to one.
    """
    session = found.session
    if found.fresh is not None:
        if max_waiting < 1:
            raise LaneFull(0)
        begun = beginning(session, found.fresh, reason=reason)
        session_id = found.fresh.session_id
        return Plan((*begun, Write(session_id, message)), Accepted(message.message_id, session_id))
    session_id, writes = session.session_id, []
    questions = () if session.stop_requested else found.questions  # Nobody waits for an answer to a turn that is being stopped (A21).
    question = _answered(questions, on_page=on_page, reply_to=reply_to) if answers and message.mode != STEER else None
    if question is not None and any(asked.expires_at <= at for asked in questions):
        question = None  # Too late to be the answer: it is the next message.
        if found.unfinished is not None:
            writes = [Write(session_id, event, in_turn=True) for event in ending.expired(found.unfinished)]
    elif not on_page:  # Its user is there to be asked again.
        for lost in questions:
            writes += [Write(session_id, told, in_turn=session.owner is None) for told in question_again(lost, at=at)]
    if question is None and session.queued >= max_waiting:
        raise LaneFull(session.queued)
    writes.append(Write(session_id, message))
    if question is None and answers and _only_approvals(questions):
        waits = replies.written(
            session.session_key, "notice", f"{message.message_id}.waits", notices.waits_for_approval(), anchor=message.anchor
        )
        writes.append(Write(session_id, waits))
    if question is not None:
        writes.append(_answer(session, question, message, last=len(questions) == 1))
    return Plan(tuple(writes), Accepted(message.message_id, session_id, answered=question.question_id if question else None))


def _answered(questions: tuple[Question, ...], *, on_page: bool, reply_to: str | None) -> Question | None:
    """The one it replies to, else the oldest one that its user can have seen (A27). A plain message approves nothing."""
    texts = [question for question in questions if question.form == TEXT_QUESTION]
    if reply_to is not None:
        for question in texts:
            if reply_to in question.receipts:
                return question
    return next((question for question in texts if on_page or asked(question.deliveries) is Asked.SEEN), None)


def _only_approvals(questions: tuple[Question, ...]) -> bool:
    return bool(questions) and all(question.form == APPROVAL for question in questions)


def _answer(session: Session, question: Question, message: MessageAccepted, *, last: bool) -> Write:
    """Where a process holds the turn, its positions are that process's own."""
    answered = QuestionAnswered(
        question_id=question.question_id,
        call_id=question.call_id,
        content=message.content,
        message_id=message.message_id,
        by=message.sender,
        last=last,
    )
    return Write(session.session_id, answered, in_turn=session.owner is None)
