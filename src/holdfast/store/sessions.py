"""The writes to a session as a whole, and what people say to it. Operations as in `operations`: check first, write after."""

from collections.abc import Callable, Sequence

import msgspec

from holdfast.core import events as e
from holdfast.core import notices, replies, stops
from holdfast.core.busy import Asked, Route, route
from holdfast.core.content import digest
from holdfast.core.delivery import DeliveryState
from holdfast.core.errors import DuplicateOtherContent, LaneFull, NotFound, QuestionClosed
from holdfast.core.resets import Boundary, due
from holdfast.core.resume import asks_again
from holdfast.core.sessions import Session, numbered_title
from holdfast.core.turns import Outcome, TurnState
from holdfast.ports.inbox import Accepted, Action, Aside, Reset, Resume, Say, Stop, Stopped
from holdfast.ports.sessions import Moved
from holdfast.store import reads
from holdfast.store.catalog import GOES_ON, NOTHING, RESET, RESUME, STOP
from holdfast.store.heads import Head
from holdfast.store.log import number
from holdfast.store.tx import Tx
from holdfast.store.unattended import (
    STOPPED_WAITING,
    SUSPENDED_FIRST,
    ask_again,
    end_unattended,
    last_request,
    open_question,
    question_told,
    refuse_waiting,
)

EXPIRED_AT_ONCE = 100


def create_session(tx: Tx, event: e.SessionCreated, at: int) -> Session:
    head = Head(tx.query("SELECT coalesce(max(id), 0) + 1 FROM session")[0][0])
    tx.append(head, event, at, in_turn=False)
    return tx.session(event.session_id)


def change_session(tx: Tx, session_id: str, change: e.SessionChanged, at: int) -> Session:
    reads.living(tx, session_id)
    head = tx.head(number(tx, session_id))
    tx.append(head, change, at, in_turn=False)
    if change.suspended is True:
        refuse_waiting(tx, head, SUSPENDED_FIRST, at)
    return tx.session(session_id)


def mark_pending(tx: Tx, session_key: str, reason: str, at: int) -> bool:
    session = reads.current_session(tx, session_key)
    if session is None or session.suspended:
        return False
    append_free(tx, number(tx, session.session_id), [e.SessionChanged(resume_pending=True, resume_reason=reason)], at)
    return True


def settle_mark(tx: Tx, session_id: str, turn_id: str | None, rule: str, at: int) -> bool:
    session = reads.living(tx, session_id)
    if session.open_turn or session.turn_id != turn_id or session.queued or not session.resume_pending:
        return False
    append_free(tx, number(tx, session_id), [e.SessionChanged(resume_pending=False, rule=rule)], at)
    return True


def clear_pending(tx: Tx, session_key: str, at: int) -> bool:
    session = reads.current_session(tx, session_key)
    if session is None or not session.resume_pending:
        return False
    append_free(tx, number(tx, session.session_id), [e.SessionChanged(resume_pending=False)], at)
    return True


def suspend_active(tx: Tx, window_ms: int, at: int) -> int:
    rows = tx.query(
        "SELECT s.session_id FROM head h JOIN session s ON s.id = h.session WHERE h.deleted = 0 AND h.archived IN (0, 1)"
        " AND h.updated_at >= (SELECT max(updated_at) FROM head WHERE deleted = 0) - ? AND s.suspended = 0 AND s.resume_pending = 0"
        " AND (h.state <> 'none' OR EXISTS (SELECT 1 FROM inbox i WHERE i.session = h.session))",
        window_ms,
    )
    for (session_id,) in rows:
        change_session(tx, session_id, e.SessionChanged(suspended=True), at)
    return len(rows)


def append_free(tx: Tx, session: int, events: Sequence[e.Event], at: int) -> None:
    """What anyone may add at any time, without a lease; no turn's position moves."""
    head = tx.head(session)
    for event in events:
        tx.append(head, event, at, in_turn=False)


def accept(
    tx: Tx,
    session_id: str,
    message: e.MessageAccepted,
    fresh: tuple[str, str],
    max_waiting: int,
    answers: bool,
    on_page: bool,
    resets: tuple[Boundary, ...],
    at: int,
) -> Accepted:
    known = _known(tx, message.dedup_key, digest(message.content))
    if known is not None:
        return Accepted(known[1], known[0], duplicate=True)
    session = _addressed(tx, session_id)
    told = _question_told(tx, session) if not on_page else Asked.SEEN
    answers = answers and told is Asked.SEEN
    where = route(session, max_waiting=max_waiting, answers=answers)
    if session.current:
        reason = "suspended" if where is Route.NEW_SESSION else due(session, resets)
    else:
        reason = "deleted"
    if reason is not None:
        session = _begin(tx, session, fresh, at, auto_reset_reason=reason)
        where = route(session, max_waiting=max_waiting, answers=answers)
    head = tx.head(number(tx, session.session_id))
    late = where is Route.ANSWER and open_question(tx, head.session)[2] <= at
    if late:  # Too late to be the answer: it is the next message.
        where = route(session, max_waiting=max_waiting, answers=False)
    if where is Route.LANE_FULL:
        raise LaneFull(session.queued)
    if late:
        end_unattended(tx, head, Outcome.FAILED, notices.expired(), at)
    if told is Asked.LOST and reason is None:  # Its user is there to be asked again.
        ask_again(tx, head, at)
    tx.append(head, message, at, in_turn=False)
    if where is Route.ANSWER:
        question_id, call_id, _ = open_question(tx, head.session)
        answered = e.QuestionAnswered(question_id=question_id, call_id=call_id, content=message.text, message_id=message.message_id)
        tx.append(head, answered, at, in_turn=True)
    return Accepted(message.message_id, session.session_id)


def _question_told(tx: Tx, session: Session) -> Asked:
    """Whether the people of the chat can have seen what the session asks them, if it asks."""
    return question_told(tx, number(tx, session.session_id)) if session.turn_state is TurnState.WAITING else Asked.SEEN


def _addressed(tx: Tx, session_id: str) -> Session:
    """The session that a message to this one is for: its key's current one. Where that is deleted, this one, which is not current."""
    session = reads.any_session(tx, session_id)
    return session if session.current else reads.current_session(tx, session.session_key) or session


def _current(tx: Tx, session_id: str) -> Session:
    """As `_addressed`, for what no deleted session can be asked."""
    session = _addressed(tx, session_id)
    return session if session.current else reads.living(tx, session_id)


def _begin(
    tx: Tx,
    before: Session,
    fresh: tuple[str, str],
    at: int,
    *,
    auto_reset_reason: str | None = None,
    dedup_key: str | None = None,
    told: bool = True,
) -> Session:
    """A new session of the same key. Its first words say why, and how to get back."""
    left = reads.conversation_number(tx, number(tx, before.session_id))
    why = notices.begun(auto_reset_reason or "asked", left)
    created = e.SessionCreated(
        session_id=fresh[0],
        session_key=before.session_key,
        log=fresh[1],
        # The same work, in another conversation: people must be able to tell them apart.
        title=numbered_title(before.title, reads.conversations_of(tx, before.session_key) + 1)
        if auto_reset_reason == "suspended"
        else None,
        auto_reset_reason=auto_reset_reason,
        dedup_key=dedup_key,
    )
    session = create_session(tx, created, at)
    if told and auto_reset_reason != "deleted":  # There is nothing to get back to.
        append_free(tx, number(tx, fresh[0]), [replies.written(before.session_key, "notice", f"{fresh[0]}.begun", why)], at)
    return session


def _leave(tx: Tx, session: Session, by: str, why: str, at: int) -> None:
    """What is under way in a session that its key will no longer point at: the turn is stopped, what waits is refused (A20, A22)."""
    head = tx.head(number(tx, session.session_id))
    if session.open_turn:
        stop_turn(tx, head, session.turn_id, by, at)
    refuse_waiting(tx, head, why, at)


def reset(tx: Tx, session_id: str, fresh: tuple[str, str], by: str, dedup_key: str | None, at: int) -> Moved:
    known = _known(tx, dedup_key, RESET)
    if known is not None:
        return Moved(known[0], changed=known[1] != NOTHING)
    session = _current(tx, session_id)
    if _unused(session):
        _note(tx, session.session_id, RESET, dedup_key, at)
        return Moved(session.session_id, changed=False)
    return _reset(tx, session, fresh, by, dedup_key, told=True, at=at)


def _note(tx: Tx, session_id: str, what: bytes, dedup_key: str | None, at: int) -> None:
    """A request that found nothing to do is done, too: asked again later, it must not find something (A22)."""
    if dedup_key is not None:
        append_free(tx, number(tx, session_id), [e.RequestNoted(what=what.decode(), dedup_key=dedup_key)], at)


def _unused(session: Session) -> bool:
    return session.turn_state is TurnState.NONE and not session.queued and not session.suspended


def _reset(tx: Tx, session: Session, fresh: tuple[str, str], by: str, dedup_key: str | None, *, told: bool, at: int) -> Moved:
    _leave(tx, session, by, "a new conversation was started first", at)
    return Moved(_begin(tx, session, fresh, at, dedup_key=dedup_key, told=told).session_id, changed=True)


def resume_session(tx: Tx, session_id: str, by: str, dedup_key: str | None, at: int) -> Moved:
    known = _known(tx, dedup_key, RESUME)
    session = reads.living(tx, session_id)
    if known is not None:
        return Moved(known[0], changed=known[1] != NOTHING, goes_on=known[1] == GOES_ON)
    cut, again = session.turn_state is TurnState.INTERRUPTED, asks_again(session)
    if session.current and not session.suspended and not cut and not again:
        _note(tx, session_id, RESUME, dedup_key, at)
        return Moved(session_id, changed=False)
    other = None if session.current else reads.current_session(tx, session.session_key)
    if other is not None:
        _leave(tx, other, by, "another conversation was resumed first", at)
    request = last_request(tx, tx.head(number(tx, session_id))) if again else []
    goes_on = cut or bool(request) or session.turn_state is TurnState.ANSWERED
    append_free(tx, number(tx, session_id), [e.SessionResumed(by=by, goes_on=goes_on, dedup_key=dedup_key), *request], at)
    return Moved(session_id, changed=True, goes_on=goes_on)


def command(tx: Tx, session_id: str, aside: Aside, action: Action, at: int) -> Accepted:
    known = _known(tx, aside.dedup_key, digest(aside.text))
    if known is not None:
        return Accepted(known[1], known[0], duplicate=True)
    target, reply = _act(tx, _current(tx, session_id), aside, action, at)
    said = e.MessageWritten(message_id=aside.message_id, role="user", content=aside.text, dedup_key=aside.dedup_key)
    answered = replies.written(target.session_key, "notice", _reply_id(aside), reply, anchor=aside.anchor)
    append_free(tx, number(tx, target.session_id), [said, answered], at)
    return Accepted(aside.message_id, target.session_id)


def _reply_id(aside: Aside) -> str:
    return f"{aside.message_id}.reply"


def tell_once(tx: Tx, session_id: str, notice_id: str, text: str, anchor: str | None, at: int) -> bool:
    key = f"notice|{session_id}|{notice_id}"
    if _known(tx, key, digest(text)) is not None:
        return False
    session = reads.living(tx, session_id)
    notice = replies.written(session.session_key, "notice", f"{session_id}.{notice_id}", text, anchor=anchor)
    append_free(tx, number(tx, session_id), [msgspec.structs.replace(notice, dedup_key=key)], at)
    return True


def _act(tx: Tx, session: Session, aside: Aside, action: Action, at: int) -> tuple[Session, str]:
    """Does what was asked for; where it is answered, and how."""
    match action:
        case Say():
            return session, action.reply
        case Stop():
            return session, _stop_by_command(tx, session, aside, action, at)
        case Reset():
            if _unused(session):
                return session, notices.already_new()
            moved = _reset(tx, session, action.fresh, action.by, None, told=False, at=at)
            left = reads.conversation_number(tx, number(tx, session.session_id))
            return tx.session(moved.session_id), notices.begun("asked", left)
        case Resume():
            return _resume(tx, session, action, at)


def _stop_by_command(tx: Tx, session: Session, aside: Aside, action: Stop, at: int) -> str:
    head = tx.head(number(tx, session.session_id))
    turn_id = stops.named(session, turn_id=None, saw=action.saw, last=_last_stop(tx, head), now=at)
    if turn_id is None:
        return notices.nothing_to_stop()
    stop_turn(tx, head, turn_id, action.by, at, reply=_reply_id(aside) if replies.owed(session.session_key) else None)
    return notices.stopped(session.queued) if stops.stops(session, turn_id) else notices.already_ended(another=session.open_turn)


def _last_stop(tx: Tx, head: Head) -> stops.LastStop | None:
    turn_id, seq, stopped_at, reply = tx.query(
        "SELECT s.stop_turn, s.stop_seq, (SELECT e.at FROM event e WHERE e.session = s.id AND e.seq = s.stop_seq),"
        " (SELECT o.state FROM outbox o WHERE o.delivery_id = s.stop_reply) FROM session s WHERE s.id = ?",
        head.session,
    )[0]
    if not turn_id or stopped_at is None:
        return None
    return stops.LastStop(turn_id, stopped_at, waited=head.asked_seq < seq, reply=DeliveryState(reply) if reply else None)


def _resume(tx: Tx, session: Session, action: Resume, at: int) -> tuple[Session, str]:
    wanted = action.session_id or _worth_resuming(tx, session)
    if wanted is None:
        return session, notices.already_going_on(session) if session.open_turn else notices.nothing_to_resume()
    moved = resume_session(tx, wanted, action.by, None, at)
    resumed = tx.session(wanted)
    if moved.changed:
        stopped = session.open_turn and wanted != session.session_id
        return resumed, notices.resumed(resumed, continues=moved.goes_on, stopped=stopped)
    if resumed.open_turn:
        return resumed, notices.already_going_on(resumed)
    return resumed, notices.already_here() if action.session_id else notices.nothing_to_resume()


def _worth_resuming(tx: Tx, session: Session) -> str | None:
    """What was interrupted, set aside or suspended here; else, where nothing runs, the previous conversation."""
    if session.suspended or session.turn_state is TurnState.INTERRUPTED or asks_again(session):
        return session.session_id
    if session.open_turn:
        return None
    rows = tx.query(
        "SELECT session_id FROM session WHERE session_key = ? AND session_id <> ? AND deleted_at IS NULL ORDER BY id DESC LIMIT 1",
        session.session_key,
        session.session_id,
    )
    return str(rows[0][0]) if rows else None


def _known(tx: Tx, dedup_key: str | None, content: bytes) -> tuple[str, str] | None:
    """(session id, ref) of what was stored under this key before."""
    if dedup_key is None:
        return None
    known = tx.known(dedup_key)
    if known is None:
        return None
    if known.digest != content:
        raise DuplicateOtherContent(dedup_key.rpartition("|")[2])
    return known.session_id, known.ref


def request_stop(tx: Tx, session_id: str, by: str, turn_id: str | None, saw: str | None, dedup_key: str | None, at: int) -> Stopped:
    known = _known(tx, dedup_key, STOP)
    session = reads.living(tx, session_id)
    if known is not None:
        still = session.turn_id == known[1] and session.open_turn
        return Stopped(known[1] if known[1] != NOTHING else None, session.queued, ended=not still)
    head = tx.head(number(tx, session_id))
    turn_id = stops.named(session, turn_id=turn_id, saw=saw, last=_last_stop(tx, head), now=at)
    if not stops.stops(session, turn_id):
        _note(tx, session_id, STOP, dedup_key, at)
        return Stopped(None, session.queued, ended=True)
    ended = stop_turn(tx, head, turn_id, by, at, dedup_key=dedup_key)
    return Stopped(turn_id, session.queued, ended)


def stop_turn(tx: Tx, head: Head, turn_id: str | None, by: str, at: int, *, dedup_key: str | None = None, reply: str | None = None) -> bool:
    """The record names the turn, also one that has ended since. A waiting or answered turn belongs to no process, so it ends here; an
    interrupted one is ended by whichever process decides about it (R0).
    """
    tx.append(head, e.StopRequested(turn_id=turn_id or "", by=by, reply=reply, dedup_key=dedup_key), at, in_turn=False)
    ended = head.turn == turn_id and head.state in (TurnState.WAITING, TurnState.ANSWERED)
    if ended:
        end_unattended(tx, head, Outcome.CANCELLED, STOPPED_WAITING, at)
    return ended


def answer(tx: Tx, question_id: str, make: Callable[[str, str], e.QuestionAnswered], at: int) -> str:
    rows = tx.query("SELECT session, call_id, state, expires_at FROM question WHERE question_id = ?", question_id)
    if not rows:
        raise NotFound("question", question_id)
    session, call_id, state, expires_at = rows[0]
    if state != "open" or expires_at <= at:
        raise QuestionClosed(question_id, "expired" if state == "open" else state)
    if tx.session(reads.name(tx, session)).suspended:
        raise QuestionClosed(question_id, "suspended")
    head = tx.head(session)
    tx.append(head, make(question_id, call_id), at, in_turn=True)
    return reads.name(tx, session)


def expire_questions(tx: Tx, now: int) -> list[str]:
    rows = tx.query(
        "SELECT session FROM question WHERE state = 'open' AND expires_at <= ? ORDER BY expires_at LIMIT ?", now, EXPIRED_AT_ONCE
    )
    expired = []
    for (session,) in rows:
        head = tx.head(session)
        end_unattended(tx, head, Outcome.FAILED, notices.expired(), now)
        expired.append(reads.name(tx, session))
    return expired
