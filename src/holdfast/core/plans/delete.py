"""Deleting a session, bringing it back, and what stays known of it once its content goes."""

import msgspec

from holdfast.core import notices, replies
from holdfast.core.events import Event, ProcessConsumed, SessionDeleted, SessionPurged, SessionUndeleted
from holdfast.core.plans import Plan, Write, to_session
from holdfast.core.plans.leave import Underway, leaving
from holdfast.core.processes import DELETED
from holdfast.core.sessions import Session
from holdfast.core.usage import DaySpent

DELETED_FIRST = "the conversation was deleted first"
# A turn that was told to stop has this long to end before its session is purged from under it.
LAST_WORDS_MS = 60_000
# Who deletes a session that has become too old, or for which the store has become too large.
RETENTION = "retention"


class Deletion(msgspec.Struct, frozen=True):
    """`undo_until`: the last moment at which it can be brought back."""

    session_id: str
    deleted_at: int
    undo_until: int


class Deleted(msgspec.Struct, frozen=True, kw_only=True):
    """A deleted session whose time is over. `untold`: somebody whose message was refused for it has not been told yet. `pointed_at`: by
    its key. `spent`: what its models used, day by day.
    """

    session: Session
    by: str
    why: str | None
    untold: bool
    pointed_at: bool
    spent: tuple[DaySpent, ...] = ()


def delete(found: Underway, *, by: str, until: int, why: str | None = None, at: int) -> Plan[Deletion]:
    """Out of every list, search and lane; its processes are to be killed, and nothing of them is told. One that is deleted stays as it
    is.
    """
    session = found.session
    if session.deleted:
        return Plan((), Deletion(session.session_id, session.deleted_at or at, session.undo_until or at))
    deleted = Write(session.session_id, SessionDeleted(by=by, purge_at=until, why=why))
    consumed = to_session(session.session_id, [ProcessConsumed(process_id=each, how=DELETED) for each in found.processes])
    return Plan((deleted, *consumed, *leaving(found, by, DELETED_FIRST, tells=False)), Deletion(session.session_id, at, until))


def undelete(session: Session, *, by: str) -> Plan[bool]:
    if not session.deleted:
        return Plan((), False)
    return Plan((Write(session.session_id, SessionUndeleted(by=by)),), True)


def purge(found: Deleted, *, waited_ms: int, at: int) -> Plan[bool]:
    """The tombstone, from which on nothing of it can be read; not yet while its turn may still say its last words. People who were to be
    told that their message was refused are told so without the words.
    """
    session = found.session
    if session.open_turn and waited_ms < LAST_WORDS_MS:
        return Plan((), False)
    events: list[Event] = [
        SessionPurged(
            session_id=session.session_id,
            session_key=session.session_key,
            created_at=session.created_at,
            generation=session.generation,
            current=found.pointed_at,
            deleted_at=session.deleted_at or at,
            by=found.by,
            why=found.why,
            spent=found.spent,
        )
    ]
    if found.untold:
        told = notices.deleted_unanswered()
        events.append(replies.written(session.session_key, "notice", f"{session.session_id}.deleted", told))
    return Plan(tuple(to_session(session.session_id, events)), True)
