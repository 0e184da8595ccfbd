"""Questions to people, and their answers."""

from holdfast.core import approvals, elicitation
from holdfast.core import events as e
from holdfast.core.effects import ToolOutcome
from holdfast.core.messages import Answered, Message, Question
from holdfast.core.steps import LAST, Key
from holdfast.core.transcript.fold import Fold, Free, InTurn, Work
from holdfast.core.turns import TurnState


def _ask(fold: Fold, work: Work, item: e.Logged, event: e.QuestionAsked) -> None:
    fold.questions[event.question_id] = Question(
        question_id=event.question_id,
        turn_id=work.turn.id,
        call_id=event.call_id,
        content=event.content,
        asked_at=item.at,
        expires_at=event.expires_at,
        form=event.form,
        choices=event.choices,
        call=event.call or work.steps.call(event.call_id) or work.steps.proposed(event.call_id),
        fingerprint=event.fingerprint,
        pattern=event.pattern,
        live=event.elicited is not None and event.elicited.live,
    )
    if event.elicited is not None:
        work.steps.rest(event.call_id, event.elicited)
    work.approvals.pop(event.call_id, None)  # What is asked once more is not answered yet.


def _answer(fold: Fold, work: Work, item: e.Logged, event: e.QuestionAnswered) -> None:
    _hear(fold, work, item, event, work.at, item.attempt)


def _answer_held(fold: Fold, item: e.Logged, event: e.QuestionAnswered) -> None:
    """An answer that came while a process held the turn: the places in the turn are that process's, and nothing undoes the answer."""
    question = fold.questions.get(event.question_id)
    if question is not None and (work := fold.works.get(question.turn_id)):
        work.signs.note(work.turn, event, work.at, item.at)
        _hear(fold, work, item, event, LAST, work.turn.attempt)
    elif not fold.whole:
        fold.pass_over(event)


def _hear(fold: Fold, work: Work, item: e.Logged, event: e.QuestionAnswered, at: Key, attempt: int) -> None:
    question = fold.questions.pop(event.question_id, None)
    if event.verdict is None:  # The answer is the call's result.
        work.steps.finish(at, attempt, event.call_id, ToolOutcome.DONE, event.content, item.at)
    elif event.verdict == elicitation.GIVEN:
        work.steps.hear(event.call_id, event.content)
    else:
        work.approvals[event.call_id] = approvals.given(event, None if question is None else question.fingerprint)
    work.turn.asked = work.turn.asked or work.turn.state is TurnState.INTERRUPTED  # Who answers wants it to continue.
    said = fold.queued.pop(event.message_id, None) if event.message_id else None
    message = Message(
        id=event.message_id or f"{event.question_id}.answer",
        role="user",
        content=event.content,
        turn_id=work.turn.id,
        created_at=said.created_at if said else item.at,
        seq=item.seq,
        answers=None if question is None else _about(question, event),
    )
    if work.turn.state is TurnState.RUNNING:
        fold.rows.insert_above(work.answer, message)
    else:
        fold.rows.append(message)


def _about(question: Question, event: e.QuestionAnswered) -> Answered:
    call = question.call
    return Answered(
        question_id=question.question_id,
        form=question.form,
        text=question.text,
        name=None if call is None else call.name,
        arguments={} if call is None else call.arguments,
        by=event.by,
        verdict=event.verdict,
    )


def _close(fold: Fold, work: Work, item: e.Logged, event: e.QuestionClosed) -> None:
    fold.questions.pop(event.question_id, None)


IN_TURN: InTurn = {e.QuestionAsked: _ask, e.QuestionAnswered: _answer, e.QuestionClosed: _close}
FREE: Free = {e.QuestionAnswered: _answer_held}
