"""Turns that were cut: found from their record, decided by the table of rules, the decision recorded with its label."""

import structlog

from holdfast.core import events as e
from holdfast.core import recovery, replies, resume
from holdfast.core.errors import Bug
from holdfast.core.resume import Decision, Facts
from holdfast.core.sessions import Session
from holdfast.core.transcript import Transcript, answer_id
from holdfast.core.turns import Outcome, TurnState
from holdfast.ports import Clock, StartedTurn, Store

PAGE = 1000
log = structlog.get_logger()


async def read_transcript(store: Store, session: Session) -> Transcript:
    """The conversation: records of all turns, and the stream events of the open one."""
    transcript = Transcript()
    after = 0
    until = session.turn_seq - 1 if session.open_turn else session.seq
    while after < until:
        page = await store.records(session.session_id, after=after, limit=PAGE)
        transcript.extend(item for item in page if item.seq <= until)
        if not page or page[-1].seq > until or len(page) < PAGE:
            break
        after = page[-1].seq
    after = until
    while session.open_turn:
        page = await store.events(session.session_id, after=after, limit=PAGE)
        transcript.extend(page)
        if len(page) < PAGE:
            break
        after = page[-1].seq
    return transcript


async def mark_cut(store: Store, clock: Clock, owner: int, session: Session, reason: str) -> StartedTurn:
    """Takes a turn from an owner that is gone. One that was still running is recorded as cut, and counted, in the same transaction."""
    events: list[e.Event] = []
    if session.turn_state is TurnState.RUNNING:
        transcript = await read_transcript(store, session)
        turn = transcript.turns[-1]
        restarts = recovery.restarts_after_cut(
            session.interrupted_restarts,
            own_results=recovery.own_results(transcript.calls, turn.attempt),
            ran_ms=transcript.last_at - turn.attempt_started_at,  # By the log's own times, not by when it was found.
        )
        events.append(e.TurnInterrupted(reason=reason, restarts=restarts, written=len(transcript.answer_text)))
    return await store.take_turn(
        session.session_id,
        owner=owner,
        turn_id=_turn_of(session),
        epoch=session.epoch,
        events=events,
        at=clock.now(),
    )


def decide(session: Session) -> resume.Rule:
    return resume.decide(
        Facts(
            turn=session.turn_state,
            stop_requested=session.stop_requested,
            restarts=session.interrupted_restarts,
        )
    )


async def carry_out(store: Store, clock: Clock, taken: StartedTurn, session: Session, rule: resume.Rule) -> StartedTurn | None:
    """Records the decision. What is given back is the attempt that now has to run."""
    transcript = await read_transcript(store, session)
    log.info("recovery", session=session.session_id, turn=taken.turn_id, rule=rule.label, name=rule.name)
    match rule.decision:
        case Decision.RESUME:
            attempt = taken.attempt + 1
            events: list[e.Event] = [
                *recovery.close_open_calls(transcript.calls),
                e.TurnResumed(attempt=attempt, rule=rule.label, reason=session.resume_reason or "crash"),
            ]
            position = await _append(store, clock, taken, events)
            return StartedTurn(taken.lease, taken.turn_id, attempt, position)
        case Decision.CANCEL:
            await _append(store, clock, taken, _ending(taken, session, transcript, Outcome.CANCELLED, rule.label))
        case Decision.SUSPEND:
            await _append(store, clock, taken, _ending(taken, session, transcript, Outcome.SET_ASIDE, rule.label))
        case _:
            raise Bug(f"Rule {rule.label} decided {rule.decision} for a turn that is {session.turn_state}.")
    return None


def _ending(taken: StartedTurn, session: Session, transcript: Transcript, outcome: Outcome, rule: str) -> list[e.Event]:
    events: list[e.Event] = list(recovery.close_every_call(transcript.calls, stopped=outcome is Outcome.CANCELLED))
    if text := transcript.answer_text:
        events.append(replies.written(session.session_key, "assistant", answer_id(taken.turn_id), text))
    if outcome is Outcome.SET_ASIDE:
        aside = "This conversation was cut by three restarts in a row and is suspended. Your next message starts a new one."
        events.append(replies.written(session.session_key, "notice", f"{taken.turn_id}.aside", aside))
        events.append(e.SessionChanged(suspended=True))
    events.append(e.TurnEnded(outcome=outcome, rule=rule))
    return events


async def _append(store: Store, clock: Clock, taken: StartedTurn, events: list[e.Event]) -> int:
    return await store.append_turn(
        taken.lease,
        turn_id=taken.turn_id,
        attempt=taken.attempt,
        position=taken.position,
        events=events,
        at=clock.now(),
    )


def _turn_of(session: Session) -> str:
    if session.turn_id is None:
        raise Bug(f"Session {session.session_id} has an open turn without an id.")
    return session.turn_id
