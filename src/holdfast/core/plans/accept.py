"""Where an accepted message goes: to the question it answers, to the inbox, to a new session, or back with a refusal (P1)."""

import msgspec

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
TEXT_QUESTION = "question"


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


def again(known: Known) -> Accepted:
    return Accepted(known.ref, known.session_id, duplicate=True)


def leaves(session: Session, resets: tuple[Boundary, ...]) -> str | None:
    """Why a message for this session begins a new one, or None. One that is not its key's current one is given only if that is deleted."""
    if not session.current:
        return DELETED
    return SUSPENDED if session.suspended else due(session, resets)


def plan(
    found: Snapshot, message: MessageAccepted, *, reason: str | None, answers: bool, on_page: bool, max_waiting: int, at: int
) -> Plan[Accepted]:
    """`reason`: what `leaves` says. `answers`: its sender did not say that it is for later. `on_page`: written where everything that is
    stored can be seen.
    """
    session = found.session
    if found.fresh is not None:
        if max_waiting < 1:
            raise LaneFull(0)
        begun = beginning(session, found.fresh, reason=reason)
        session_id = found.fresh.session_id
        return Plan((*begun, Write(session_id, message)), Accepted(message.message_id, session_id))
    session_id, writes = session.session_id, []
    question = _answered(found.questions, on_page=on_page) if answers and message.mode != STEER else None
    if question is not None and any(asked.expires_at <= at for asked in found.questions):
        question = None  # Too late to be the answer: it is the next message.
        if found.unfinished is not None:
            writes = [Write(session_id, event, in_turn=True) for event in ending.expired(found.unfinished)]
    elif not on_page:  # Its user is there to be asked again.
        for lost in found.questions:
            writes += [Write(session_id, told, in_turn=session.owner is None) for told in question_again(lost, at=at)]
    if question is None and session.queued >= max_waiting:
        raise LaneFull(session.queued)
    writes.append(Write(session_id, message))
    if question is not None:
        writes.append(_answer(session, question, message, last=len(found.questions) == 1))
    return Plan(tuple(writes), Accepted(message.message_id, session_id, answered=question.question_id if question else None))


def _answered(questions: tuple[Question, ...], *, on_page: bool) -> Question | None:
    """The oldest one that its user can have seen (A27). A plain message approves nothing."""
    for question in questions:
        if question.form == TEXT_QUESTION and (on_page or asked(question.deliveries) is Asked.SEEN):
            return question
    return None


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
