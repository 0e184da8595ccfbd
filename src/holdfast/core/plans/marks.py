"""The marks of a session: that recovery is due, that its turn is on trial or waits for one, and that it stays left."""

from holdfast.core.events import SessionChanged, TrialAwaited, TrialPassed, TurnLeft
from holdfast.core.plans import Plan, Write
from holdfast.core.plans.owe import Question, question_again
from holdfast.core.sessions import Lease, Session
from holdfast.core.turns import TurnState

Marked = Plan[bool]
UNCHANGED: Marked = Plan((), False)


def pending(session: Session | None, reason: str) -> Marked:
    """Suspended wins: such a session is never marked."""
    if session is None or session.suspended:
        return UNCHANGED
    return _changed(session, SessionChanged(resume_pending=True, resume_reason=reason))


def cleared(session: Session | None) -> Marked:
    if session is None or not session.resume_pending:
        return UNCHANGED
    return _changed(session, SessionChanged(resume_pending=False))


def cleared_by_rule(session: Session, *, turn_id: str | None, rule: str) -> Marked:
    """If the session still is as it was when the rule was asked: no open turn, no newer one, and nothing waits."""
    if session.open_turn or session.turn_id != turn_id or session.queued or not session.resume_pending:
        return UNCHANGED
    return _changed(session, SessionChanged(resume_pending=False, rule=rule))


def left(session: Session, turn_id: str, why: TurnLeft, *, questions: tuple[Question, ...], at: int) -> Marked:
    """A turn that no process holds stays as it is. A question of it that never arrived is asked again."""
    if session.turn_id != turn_id or session.owner is not None or session.turn_state not in (TurnState.WAITING, TurnState.INTERRUPTED):
        return UNCHANGED
    writes = [Write(session.session_id, why, in_turn=True)]
    if session.turn_state is TurnState.WAITING:
        for question in questions:
            writes += [Write(session.session_id, told, in_turn=True) for told in question_again(question, at=at)]
    return Plan(tuple(writes), True)


def trial_passed(session: Session, lease: Lease, turn_id: str) -> Marked:
    held = (session.epoch, session.owner, session.turn_id, session.turn_state)
    if held != (lease.epoch, lease.owner, turn_id, TurnState.RUNNING) or not session.on_trial:
        return UNCHANGED
    return _changed(session, TrialPassed(turn_id=turn_id))


def trial_awaited(session: Session, turn_id: str, *, aged_ms: int) -> Marked:
    if (session.turn_id, session.turn_state) != (turn_id, TurnState.INTERRUPTED):
        return UNCHANGED
    return _changed(session, TrialAwaited(turn_id=turn_id, aged_ms=aged_ms))


def _changed(session: Session, event: SessionChanged | TrialPassed | TrialAwaited) -> Marked:
    return Plan((Write(session.session_id, event),), True)
