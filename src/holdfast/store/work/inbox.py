"""Writes that need no lease: what people say, and other causes; stops, commands and answers; what is owed to chats."""

from holdfast.core import events as e
from holdfast.core.content import Content
from holdfast.core.plans import Plan, accept, causes, command, edit, owe, resume, stop, wait, withdraw
from holdfast.core.plans.accept import Accepted
from holdfast.core.plans.causes import Recorded
from holdfast.core.plans.command import Action, Aside, Choose, Forget, Judge, Remind, Reset, Resume, Say, Stop
from holdfast.core.plans.edit import Edit, Edited
from holdfast.core.plans.repeats import REFUSED, STOP
from holdfast.core.plans.stop import Stopped
from holdfast.core.sessions import Session
from holdfast.ports.inbox import Terms
from holdfast.store import queries as q
from holdfast.store import reads
from holdfast.store.log import number
from holdfast.store.tx import Tx
from holdfast.store.work import run, schedules, snapshots
from holdfast.store.work.repeats import known

EXPIRED_AT_ONCE = 100


def accept_message(tx: Tx, session_id: str, message: e.MessageAccepted, terms: Terms, at: int) -> Accepted:
    repeated = known(tx, message.dedup_key, message.content)
    if repeated is not None:
        return accept.again(repeated, snapshots.question_answered_by(tx, repeated.ref))
    named, session = snapshots.addressed(tx, session_id)
    reason = accept.leaves(session, terms.resets)
    questions = snapshots.questions(tx, session) if reason is None else ()
    found = accept.Snapshot(
        session=session,
        fresh=None if reason is None else snapshots.fresh(tx, session, terms.fresh),
        questions=questions,
        unfinished=snapshots.unattended(tx, session) if accept.may_end(message, questions, at=at) and reason is None else None,
    )
    plan = accept.plan(
        found,
        message,
        reason=reason,
        answers=terms.answers,
        on_page=terms.on_page,
        max_waiting=terms.max_waiting,
        at=at,
        reply_to=terms.reply_to,
        operator=terms.operator,
    )
    return run(tx, plan, at, None if named is None else {session.session_id: tx.head(named)})


def edit_message(tx: Tx, session_id: str, wanted: Edit, at: int) -> Edited:
    repeated = known(tx, wanted.dedup_key, wanted.text)
    if repeated is not None:
        return edit.again(repeated, wanted.message_id)
    return run(tx, edit.plan(snapshots.editing(tx, reads.living(tx, session_id), wanted), wanted), at)


def said_under(tx: Tx, dedup_key: str) -> tuple[str, str] | None:
    found = reads.known(tx, dedup_key)
    return (found.session_id, found.ref.removeprefix(REFUSED)) if found is not None and found.digest is not None else None


def withdraw_message(tx: Tx, session_id: str, message_id: str, at: int) -> bool:
    session = reads.living(tx, session_id)
    waits = bool(tx.query(q.WAITS, number(tx, session_id), message_id))
    return run(tx, withdraw.plan(session, message_id, waits=waits), at)


def record_cause(tx: Tx, session_id: str, cause: e.CauseRecorded, at: int) -> Recorded:
    repeated = known(tx, cause.dedup_key, cause.content)
    if repeated is not None:
        return Recorded(repeated.ref, repeated.session_id, duplicate=True)
    return run(tx, causes.record(reads.living(tx, session_id), cause), at)


def carry_out(tx: Tx, session_id: str, aside: Aside, action: Action, at: int) -> Accepted:
    repeated = known(tx, aside.dedup_key, aside.content)
    if repeated is not None:
        return accept.again(repeated, None)
    return run(tx, _command(tx, snapshots.current(tx, session_id), aside, action, at), at)


def _command(tx: Tx, session: Session, aside: Aside, action: Action, at: int) -> Plan[Accepted]:
    match action:
        case Say():
            return command.say(session, aside, action)
        case Choose():
            return command.choose(session, aside, action)
        case Remind():
            return command.remind(session, aside, action, here=schedules.here(tx, session.session_key))
        case Forget():
            return command.forget(session, schedules.listed(tx, session.session_key), aside, action)
        case Judge():
            return command.judge(session, snapshots.approvals_of(tx, session), aside, action, at=at)
        case Stop():
            return command.stop(snapshots.stopping(tx, session), aside, action, at=at)
        case Reset():
            return command.reset(snapshots.underway(tx, session), snapshots.fresh(tx, session, action.fresh), aside, action)
        case Resume():
            wanted = action.session_id
            if wanted is None:
                wanted = resume.wanted(session, previous=snapshots.previous(tx, session) if resume.looks_back(session) else None)
            if wanted is None:
                return command.nothing_to_resume(session, aside)
            return command.resumed(snapshots.resuming(tx, wanted), session, aside, action)


def tell_once(tx: Tx, session_id: str, notice_id: str, content: Content, anchor: str | None, at: int) -> bool:
    if known(tx, owe.notice_key(session_id, notice_id), content) is not None:
        return False
    return run(tx, owe.notice(reads.living(tx, session_id), notice_id, content, anchor=anchor), at)


def request_stop(tx: Tx, session_id: str, by: str, turn_id: str | None, saw: str | None, dedup_key: str | None, at: int) -> Stopped:
    repeated = known(tx, dedup_key, STOP)
    session = reads.living(tx, session_id)
    if repeated is not None:
        return stop.again(repeated, session)
    found = snapshots.stopping(tx, session)
    return run(tx, stop.plan(found, by=by, turn_id=turn_id, saw=saw, dedup_key=dedup_key, at=at), at)


def expire_questions(tx: Tx, now: int) -> list[str]:
    rows = tx.query(q.QUESTIONS_EXPIRED, now, EXPIRED_AT_ONCE)
    return [name for (name,) in rows if run(tx, wait.expire(name, snapshots.unattended(tx, tx.session(name))), now)]
