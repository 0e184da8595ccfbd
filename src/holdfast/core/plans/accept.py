"""Where an accepted message goes: to the question it answers, to the inbox, to a new session, or back with a refusal (P1)."""

from collections.abc import Sequence

import msgspec

from holdfast.core import approvals, busy, content, elicitation, limits, notices, replies
from holdfast.core.busy import Mode
from holdfast.core.content import Content
from holdfast.core.errors import LaneFull
from holdfast.core.events import MessageAccepted, MessageRefused, QuestionAnswered
from holdfast.core.plans import Plan, Write, ending, to_session, to_turn
from holdfast.core.plans.ending import Unfinished
from holdfast.core.plans.leave import DELETED, SUSPENDED, Fresh, beginning
from holdfast.core.plans.owe import Asked, Question, asked, question_again
from holdfast.core.plans.repeats import REFUSED, Known
from holdfast.core.plans.stop import stopping
from holdfast.core.resets import Boundary, due
from holdfast.core.sessions import Session

MAX_WAITING = 100
INTERRUPTED = "interrupted by a new message"
BUSY = "the conversation was busy"


class Accepted(msgspec.Struct, frozen=True):
    """`duplicate`: this was stored before, under the same key; ids are those of the first time. `answered`: the question it answers.
    `refused`: the conversation is busy, and such a message is not to wait.
    """

    message_id: str
    session_id: str
    duplicate: bool = False
    answered: str | None = None
    refused: bool = False


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """`fresh`: a session to begin, where `leaves` gives a reason to. `questions`: the open ones of an open turn, oldest first.
    `unfinished`: that turn, if it belongs to no process and this message may end it: one of them is past its time, or it interrupts.
    """

    session: Session
    fresh: Fresh | None = None
    questions: tuple[Question, ...] = ()
    unfinished: Unfinished | None = None


def again(known: Known, answered: str | None) -> Accepted:
    """`answered`: the question that the message answered when it first came."""
    message_id = known.ref.removeprefix(REFUSED)
    return Accepted(message_id, known.session_id, duplicate=True, answered=answered, refused=message_id != known.ref)


def leaves(session: Session, resets: tuple[Boundary, ...]) -> str | None:
    """Why a message for this session begins a new one, or None. One that is not its key's current one is given only if that is deleted."""
    if not session.current:
        return DELETED
    return SUSPENDED if session.suspended else due(session, resets)


def may_end(message: MessageAccepted, questions: tuple[Question, ...], *, at: int) -> bool:
    """Whether a turn that belongs to no process may end with this message."""
    return message.mode == Mode.INTERRUPT or any(asked.expires_at <= at for asked in questions)


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
    operator: bool,
) -> Plan[Accepted]:
    """`reason`: what `leaves` says. `answers`: its sender did not say what else it is for. `on_page`: written where everything that is
    stored can be seen. `reply_to`: the platform's message that it replies to, where it replies to one. `operator`: its sender may decide
    what concerns others.
    """
    session, rejects = found.session, message.mode == Mode.REJECT
    if rejects:  # Unless it is refused, it is a message like any other.
        refused, message = message, msgspec.structs.replace(message, mode=Mode.QUEUE.value)
    if found.fresh is not None:
        if max_waiting < 1:
            raise LaneFull(0)
        begun = beginning(session, found.fresh, reason=reason)
        session_id = found.fresh.session_id
        return Plan((*begun, Write(session_id, message)), Accepted(message.message_id, session_id))
    session_id, writes = session.session_id, []
    questions = () if session.stop_requested else found.questions  # Nobody waits for an answer to a turn that is being stopped (A21).
    barred = () if operator else tuple(asked for asked in questions if limits.for_operators(asked.call_id))
    question = _answered([asked for asked in questions if asked not in barred], on_page=on_page, reply_to=reply_to) if answers else None
    late = question is not None and any(asked.expires_at <= at for asked in questions)
    ended = late and found.unfinished is not None
    if late:
        question = None  # Too late to be the answer: it is the next message.
        if found.unfinished is not None:
            writes = to_turn(session_id, ending.expired(found.unfinished))
    if question is None and rejects and (session.queued if ended else busy.is_busy(session)):
        return Plan((*writes, *_refused(session, refused)), Accepted(message.message_id, session_id, refused=True))
    if question is None and session.queued >= max_waiting:
        raise LaneFull(session.queued)
    if question is None and not ended and message.mode == Mode.INTERRUPT and busy.at_work(session):
        writes, questions = _interrupting(session, found.unfinished, message), ()
    elif not on_page and not late:  # Its user is there to be asked again.
        for lost in questions:
            writes += [Write(session_id, told, in_turn=session.owner is None) for told in question_again(lost, at=at)]
    writes.append(Write(session_id, message))
    if answers and (waits := _waits_for(questions, barred)):
        told = replies.written(session.session_key, "notice", f"{message.message_id}.waits", waits, anchor=message.anchor)
        writes.append(Write(session_id, told))
    if question is not None:
        writes.append(_answer(session, question, message, last=len(questions) == 1))
    return Plan(tuple(writes), Accepted(message.message_id, session_id, answered=question.question_id if question else None))


def _interrupting(session: Session, unfinished: Unfinished | None, message: MessageAccepted) -> list[Write]:
    """The stop stands before the message: a `/stop` that follows is for the turn of that message (A21)."""
    if session.stop_requested or session.turn_id is None:
        return []
    return stopping(session, unfinished, session.turn_id, message.sender, why=INTERRUPTED)


def _refused(session: Session, message: MessageAccepted) -> list[Write]:
    """On record with its words, and said to its sender, once (P1)."""
    told = replies.written(session.session_key, "notice", f"{message.message_id}.refused", notices.rejected(), anchor=message.anchor)
    return to_session(session.session_id, [message, MessageRefused(message_id=message.message_id, reason=BUSY), told])


def _answered(questions: Sequence[Question], *, on_page: bool, reply_to: str | None) -> Question | None:
    """The one it replies to, else the oldest one that its user can have seen (A27). A plain message approves nothing."""
    texts = [question for question in questions if question.form != approvals.FORM]
    if reply_to is not None:
        for question in texts:
            if reply_to in question.receipts:
                return question
    return next((question for question in texts if on_page or asked(question.deliveries) is Asked.SEEN), None)


def _waits_for(questions: tuple[Question, ...], barred: tuple[Question, ...]) -> str | None:
    """What its sender is told where no question can be answered by a message of theirs."""
    if not questions or any(question.form != approvals.FORM and question not in barred for question in questions):
        return None
    return notices.waits_for_operator() if barred else notices.waits_for_approval()


def chosen(choices: tuple[str, ...], said: Content) -> Content:
    """The choice that an answer names by its number, counted from 1, or by its words; else the answer as it is."""
    text = content.text(said).strip()
    if content.attached(said):
        return said
    if text.isdecimal() and 1 <= int(text) <= len(choices):
        return choices[int(text) - 1]
    return next((choice for choice in choices if choice.casefold() == text.casefold()), said)


def _answer(session: Session, question: Question, message: MessageAccepted, *, last: bool) -> Write:
    """Where a process holds the turn, its positions are that process's own."""
    answered = QuestionAnswered(
        question_id=question.question_id,
        call_id=question.call_id,
        content=chosen(question.choices, message.content),
        message_id=message.message_id,
        by=message.sender,
        verdict=elicitation.GIVEN if question.form == elicitation.FORM else None,
        last=last,
    )
    return Write(session.session_id, answered, in_turn=session.owner is None)
