"""The course of turns: interruptions and what was decided about them, stops, ends."""

from holdfast.core import events as e
from holdfast.core import notices
from holdfast.core.journals import State
from holdfast.core.messages import Awaited, Message
from holdfast.core.transcript import journals
from holdfast.core.transcript.fold import Fold, Free, InTurn, Work
from holdfast.core.turns import Outcome

_DECIDED = {Outcome.CANCELLED: "cancelled", Outcome.SET_ASIDE: "set aside"}


def _interrupt(fold: Fold, work: Work, item: e.Logged, event: e.TurnInterrupted) -> None:
    work.turn.reason, work.turn.asked, work.turn.died = event.reason, False, event.died
    if event.written > 0:
        fold.open(work, item)  # Also where its pieces are not read: it stands above the row that tells of its interruption.
    written, worked = event.written > 0, bool(work.steps.calls)
    work.row = Message(
        id=f"{work.turn.id}.cut.{item.attempt}",
        role="interruption",
        content=notices.interrupted(event.reason, written=written, worked=worked, holes=fold.holes),
        turn_id=work.turn.id,
        created_at=item.at,
        state=State.RECOVERED if written or worked else State.NEUTRAL,
        reason=event.reason,
        written=event.written or None,
        step=work.turn.steps,
        offset=None if work.turn.steps else event.written,
        cause=None if work.turn.cause == "message" else work.turn.cause,
    )
    if event.stream_id is not None:
        work.late[event.stream_id] = work.row
        journals.show(work.row, State.RECOVERING, Awaited(event.stream_id, 0, item.at))
    work.cuts.append(work.row)
    fold.rows.append(work.row)


def _resume(fold: Fold, work: Work, item: e.Logged, event: e.TurnResumed) -> None:
    turn = work.turn
    turn.attempt, turn.attempt_started_at, turn.asked, turn.spoke = event.attempt, item.at, False, False
    work.signs.attempt = work.at
    _decide(work, event.rule, event.why, "resumed", event.attempt)
    work.row = None
    work.steps.stop_thinking()
    fold.rows.move_down(work.answer)


def _leave(fold: Fold, work: Work, item: e.Logged, event: e.TurnLeft) -> None:
    _decide(work, event.rule, event.why, "left")


def _end(fold: Fold, work: Work, item: e.Logged, event: e.TurnEnded) -> None:
    turn = work.turn
    if fold.questions:
        fold.questions = {asked: question for asked, question in fold.questions.items() if question.turn_id != turn.id}
    turn.outcome, turn.error, turn.ended_at = event.outcome, event.error, item.at
    turn.unread_results = event.unread_results
    if event.rule:
        _decide(work, event.rule, event.why, _DECIDED.get(event.outcome, "ended"))
    work.row, work.answer.status = None, "complete"
    work.steps.stop_thinking()


def _decide(work: Work, rule: str, why: str | None, decision: str, attempt: int | None = None) -> None:
    """On the turn, and on the row that tells of its interruption. A turn that was left is decided again."""
    work.turn.rule = rule
    if work.row is not None:
        told = notices.decision(rule, why) if why else f"rule {rule}"
        work.row.rule, work.row.decision, work.row.attempt = rule, f"{decision}: {told}", attempt


def _wish(fold: Fold, item: e.Logged, event: e.SessionResumed) -> None:
    if fold.turns:
        fold.turns[-1].asked = True


def _stop(fold: Fold, item: e.Logged, event: e.StopRequested) -> None:
    if work := fold.works.get(event.turn_id):
        work.turn.stop_requested = True
        work.turn.stopped_because = work.turn.stopped_because or event.why


def _await_trial(fold: Fold, item: e.Logged, event: e.TrialAwaited) -> None:
    """Waiting for a trial does not age a turn."""
    if work := fold.works.get(event.turn_id):
        work.turn.signed_at = item.at - event.aged_ms


IN_TURN: InTurn = {
    e.TurnInterrupted: _interrupt,
    e.TurnResumed: _resume,
    e.TurnLeft: _leave,
    e.TurnEnded: _end,
}
FREE: Free = {
    e.SessionResumed: _wish,
    e.StopRequested: _stop,
    e.TrialAwaited: _await_trial,
}
