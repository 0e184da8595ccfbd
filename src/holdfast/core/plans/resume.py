"""Resuming a session: it becomes its key's current one, its suspension is lifted, and its interrupted work continues or is put again."""

import msgspec

from holdfast.core import resume
from holdfast.core.events import CauseRecorded, Event, MessageAccepted, SessionChanged, SessionResumed
from holdfast.core.plans import Plan, to_session
from holdfast.core.plans.leave import RESUMED_FIRST, Moved, Underway, leaving
from holdfast.core.plans.repeats import CONTINUES, NOTHING, RESUME, Known, noted
from holdfast.core.sessions import Session
from holdfast.core.turns import TurnState


class Request(msgspec.Struct, frozen=True):
    """The message, or other cause, that the newest turn of a session answers, and what interrupted that turn last."""

    accepted: MessageAccepted | CauseRecorded
    reason: str


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """`other`: the key's current session, if that is not this one. `request`: the one to put again, if `resume.asks_again` says so and it
    can be read.
    """

    session: Session
    other: Underway | None = None
    request: Request | None = None


def plan(found: Snapshot, *, by: str, dedup_key: str | None = None) -> Plan[Moved]:
    session = found.session
    if session.current and not session.suspended and not continues_here(session):
        return Plan(noted(session.session_id, RESUME, dedup_key), Moved(session.session_id, changed=False))
    left = leaving(found.other, by, RESUMED_FIRST) if found.other is not None else []
    asked = _put_again(session, found.request) if found.request is not None and resume.asks_again(session) else []
    continues = bool(asked) or session.turn_state in (TurnState.INTERRUPTED, TurnState.ANSWERED)
    events: list[Event] = [SessionResumed(by=by, goes_on=continues, dedup_key=dedup_key), *asked]
    return Plan((*left, *to_session(session.session_id, events)), Moved(session.session_id, changed=True, continues=continues))


def again(known: Known) -> Moved:
    return Moved(known.session_id, changed=known.ref != NOTHING, continues=known.ref == CONTINUES)


def continues_here(session: Session) -> bool:
    """Whether there is interrupted work in it, to continue or to put again."""
    return session.turn_state is TurnState.INTERRUPTED or resume.asks_again(session)


def looks_back(session: Session) -> bool:
    """Whether a resume that names nothing means the conversation before this one: nothing is to be resumed here, and nothing runs."""
    return not session.suspended and not continues_here(session) and not session.open_turn


def wanted(session: Session, *, previous: str | None) -> str | None:
    """The session that a resume which names nothing means. `previous`: the conversation before this one, where it `looks_back`."""
    if looks_back(session):
        return previous
    return session.session_id if session.suspended or continues_here(session) else None


def _put_again(session: Session, request: Request) -> list[Event]:
    """As a message of the same sender, in reply to the same one, with the mark of what interrupted it, so that its agent is told (B1).
    Of another cause no message is invented (E8).
    """
    asked = request.accepted
    # It may be refused before its turn starts, and put once more: that is another message.
    again_id = f"{session.turn_id}.again.{session.seq}"
    again: Event
    if isinstance(asked, CauseRecorded):
        again = msgspec.structs.replace(asked, cause_id=again_id, generation=None, during=False, dedup_key=None)
    else:
        again = MessageAccepted(
            message_id=again_id, content=asked.content, sender=asked.sender, anchor=asked.anchor, sender_name=asked.sender_name
        )
    return [SessionChanged(resume_pending=True, resume_reason=request.reason), again]
