"""Words to the gateway itself, in a conversation: recorded, carried out and answered in one transaction. They start no turn."""

from collections.abc import Sequence

import msgspec

from holdfast.core import approvals, model_choice, notices, reminders, replies, stops
from holdfast.core.content import Content
from holdfast.core.errors import Refused
from holdfast.core.events import MessageWritten, ScheduleAdded, SessionChanged
from holdfast.core.plans import Plan, Write, leave, resume, schedules, to_session
from holdfast.core.plans import answer as answers
from holdfast.core.plans.accept import Accepted
from holdfast.core.plans.answer import Answer
from holdfast.core.plans.leave import Fresh, Underway
from holdfast.core.plans.stop import Snapshot, stopping
from holdfast.core.recitals import Recital
from holdfast.core.schedules import Schedule
from holdfast.core.sessions import Session
from holdfast.core.turns import TurnState


class Aside(msgspec.Struct, frozen=True, kw_only=True):
    """The words."""

    message_id: str
    content: Content
    sender: str
    dedup_key: str | None
    anchor: str | None = None
    recital: Recital | None = None


class Say(msgspec.Struct, frozen=True):
    reply: str


class Stop(msgspec.Struct, frozen=True):
    """`saw`: the turn that was open when it was accepted, if one was. Another one that runs by now is not stopped."""

    by: str
    saw: str | None = None


class Reset(msgspec.Struct, frozen=True):
    """`fresh`: id and log name of the session that is begun."""

    fresh: tuple[str, str]
    by: str


class Resume(msgspec.Struct, frozen=True):
    """`session_id`: None for what was interrupted here or, where nothing is under way, the conversation before this one. `waits`:
    interrupted work that is to continue now has to wait for that of another conversation.
    """

    session_id: str | None
    by: str
    waits: bool = False


class Choose(msgspec.Struct, frozen=True):
    """A model for the conversation."""

    model: str


class Remind(msgspec.Struct, frozen=True):
    """Adds a schedule to the key, which may have `limit` of them. `reply`: what is said to it."""

    added: ScheduleAdded
    limit: int
    reply: str


class Forget(msgspec.Struct, frozen=True):
    """Removes a schedule of the key, by the beginning of its id. `operator`: also one that somebody else made."""

    which: str
    by: str
    operator: bool


class Judge(msgspec.Struct, frozen=True, kw_only=True):
    """Approves or denies calls. `which`: the beginning of a question's id, ALL, or nothing where only one is open."""

    answer: Answer
    which: str = ""


ALL = "all"
Action = Say | Stop | Reset | Resume | Choose | Remind | Forget | Judge


def say(session: Session, aside: Aside, action: Say) -> Plan[Accepted]:
    return _replied(session, aside, action.reply)


def choose(session: Session, aside: Aside, action: Choose) -> Plan[Accepted]:
    change = to_session(session.session_id, [SessionChanged(model=action.model)])
    return _replied(session, aside, model_choice.chose(action.model), list(change))


def remind(session: Session, aside: Aside, action: Remind, *, here: int) -> Plan[Accepted]:
    """`here`: how many schedules the key has already."""
    try:
        added = schedules.add(session, action.added, here=here, limit=action.limit)
    except Refused as refusal:
        return _replied(session, aside, str(refusal))
    return _replied(session, aside, action.reply, list(added.writes))


def forget(session: Session, found: Sequence[Schedule], aside: Aside, action: Forget) -> Plan[Accepted]:
    """`found`: the schedules of the key."""
    meant = [each for each in found if action.which and each.schedule_id.startswith(action.which)]
    if len(meant) != 1:
        return _replied(session, aside, reminders.no_such(action.which, len(meant)))
    [schedule] = meant
    if not action.operator and schedule.sender != action.by:
        return _replied(session, aside, reminders.not_yours(schedule.schedule_id))
    return _replied(session, aside, reminders.removed(schedule), list(schedules.remove(schedule, by=action.by).writes))


def stop(found: Snapshot, aside: Aside, action: Stop, *, at: int) -> Plan[Accepted]:
    session = found.session
    turn_id = stops.named(session, turn_id=None, saw=action.saw, last=found.last, now=at)
    if turn_id is None:
        return _replied(session, aside, notices.nothing_to_stop())
    delivery = _reply_id(aside) if replies.owed(session.session_key) else None
    writes = stopping(session, found.unfinished, turn_id, action.by, reply=delivery)
    stopped = stops.stops(session, turn_id)
    told = notices.stopped(session.queued) if stopped else notices.already_ended(another=session.open_turn)
    return _replied(session, aside, told, writes)


def reset(found: Underway, fresh: Fresh, aside: Aside, action: Reset) -> Plan[Accepted]:
    moved = leave.reset(found, fresh, by=action.by, told=False)
    if not moved.reply.changed:
        return _replied(found.session, aside, notices.already_new())
    told = notices.begun("asked", fresh.left)
    return _replied(found.session, aside, told, list(moved.writes), where=fresh.session_id)


def judge(session: Session, found: Sequence[answers.Snapshot], aside: Aside, action: Judge, *, at: int) -> Plan[Accepted]:
    """`found`: the open approvals, oldest first. What is refused for one of them is done for none. One that is not named is meant only if
    its question has arrived: nobody approves a call that they cannot have read.
    """
    which, said = action.which, action.answer
    chosen = [each for each in found if (each.question_id.startswith(which) if which not in ("", ALL) else each.seen)]
    if not chosen:
        return _replied(session, aside, notices.nothing_to_approve(which if found and which != ALL else ""))
    if len(chosen) > 1 and which != ALL:
        return _replied(session, aside, notices.approve_which([each.question_id for each in chosen]))
    writes: list[Write] = []
    try:
        for done, each in enumerate(chosen):
            writes += answers.answering(msgspec.structs.replace(each, others=each.others - done), said, at=at)
    except Refused as refusal:
        return _replied(session, aside, str(refusal))
    return _replied(session, aside, notices.judged(len(chosen), approved=said.verdict == approvals.APPROVE), writes)


def nothing_to_resume(session: Session, aside: Aside) -> Plan[Accepted]:
    return _replied(session, aside, notices.already_going_on(session) if session.open_turn else notices.nothing_to_resume())


def resumed(found: resume.Snapshot, current: Session, aside: Aside, action: Resume) -> Plan[Accepted]:
    """`current`: the session in which it was said."""
    session, moved = found.session, resume.plan(found, by=action.by)
    if moved.reply.changed:
        stopped = current.open_turn and current.session_id != session.session_id
        waits = action.waits and session.turn_state is TurnState.INTERRUPTED
        told = notices.resumed(session, continues=moved.reply.continues, stopped=stopped, waits=waits)
    elif session.open_turn:
        told = notices.already_going_on(session)
    else:
        told = notices.already_here() if action.session_id else notices.nothing_to_resume()
    return _replied(session, aside, told, list(moved.writes))


def _reply_id(aside: Aside) -> str:
    return f"{aside.message_id}.reply"


def _replied(session: Session, aside: Aside, reply: str, done: list[Write] | None = None, *, where: str | None = None) -> Plan[Accepted]:
    """What was done, then the words and the reply: in the session that is its key's current one afterwards."""
    session_id = where or session.session_id
    said = MessageWritten(message_id=aside.message_id, role="user", content=aside.content, dedup_key=aside.dedup_key, recital=aside.recital)
    told = replies.written(session.session_key, "notice", _reply_id(aside), reply, anchor=aside.anchor)
    return Plan((*(done or ()), *to_session(session_id, [said, told])), Accepted(aside.message_id, session_id))
