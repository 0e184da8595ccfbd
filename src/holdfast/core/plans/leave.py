"""Beginning a session, and leaving one, for another or as suspended: its turn stops, and what waits in it is turned away (A20, A22)."""

import msgspec

from holdfast.core import notices, replies
from holdfast.core.events import Event, RuleRemoved, SessionChanged, SessionCreated
from holdfast.core.plans import Plan, Write, to_session
from holdfast.core.plans.causes import SUSPENDED_FIRST, Cause, turned_away
from holdfast.core.plans.ending import Unfinished
from holdfast.core.plans.repeats import NOTHING, RESET, Known, noted
from holdfast.core.plans.stop import stopping
from holdfast.core.sessions import Session, numbered_title
from holdfast.core.turns import TurnState

RESET_FIRST = "a new conversation was started first"
RESUMED_FIRST = "another conversation was resumed first"
DELETED, SUSPENDED = "deleted", "suspended"
LEFT = "reset"


class Moved(msgspec.Struct, frozen=True):
    """Which session is its key's current one. `changed`: this request made it so. `continues`: its interrupted work continues."""

    session_id: str
    changed: bool
    continues: bool = False


class Underway(msgspec.Struct, frozen=True, kw_only=True):
    """A session and what is under way in it. `unfinished`: its open turn, if no process runs that one. `waiting`: oldest first.
    `processes`: those in the background of which something may still be told.
    """

    session: Session
    unfinished: Unfinished | None = None
    waiting: tuple[Cause, ...] = ()
    processes: tuple[str, ...] = ()


class Fresh(msgspec.Struct, frozen=True, kw_only=True):
    """A session to begin: its names, and how many of its key there are. `left`: the number of the one before it among those, and `rules`
    what was allowed in it.
    """

    session_id: str
    log: str
    left: int
    conversations: int
    rules: tuple[str, ...] = ()


def leaving(found: Underway, by: str, why: str, *, tells: bool = True) -> list[Write]:
    """`tells`: somebody is there to be told."""
    session, writes = found.session, []
    if session.open_turn and session.turn_id is not None:
        writes = stopping(session, found.unfinished, session.turn_id, by)
    return writes + to_session(session.session_id, turned_away(session.session_key, found.waiting, why, tells=tells))


def beginning(before: Session, fresh: Fresh, *, reason: str | None, dedup_key: str | None = None, told: bool = True) -> list[Write]:
    """A new session of the same key, in the same folder. Its first words say why, and how to get back. `reason`: why it was begun without
    being asked for.
    """
    # The same work, in another conversation: people must be able to tell them apart.
    title = numbered_title(before.title, fresh.conversations + 1) if reason == SUSPENDED else None
    events: list[Event] = [
        SessionCreated(
            session_id=fresh.session_id,
            session_key=before.session_key,
            log=fresh.log,
            title=title,
            auto_reset_reason=reason,
            folder=before.folder,
            dedup_key=dedup_key,
        )
    ]
    if told and reason != DELETED:  # There is nothing to get back to.
        why = notices.begun(reason or "asked", fresh.left)
        events.append(replies.written(before.session_key, "notice", f"{fresh.session_id}.begun", why))
    gone = [RuleRemoved(rule_id=rule_id, by=LEFT) for rule_id in fresh.rules]  # What was allowed there is over with it.
    return [*to_session(before.session_id, gone), *to_session(fresh.session_id, events)]


def begin(created: SessionCreated) -> Plan[None]:
    """The first session of a key, or another one that nothing is left for."""
    return Plan((Write(created.session_id, created),), None)


def unused(session: Session) -> bool:
    return session.turn_state is TurnState.NONE and not session.queued and not session.suspended


def reset(found: Underway, fresh: Fresh, *, by: str, dedup_key: str | None = None, told: bool = True) -> Plan[Moved]:
    """A new session in the place of this one, which is its key's current one. One that was never used stays."""
    session = found.session
    if unused(session):
        return Plan(noted(session.session_id, RESET, dedup_key), Moved(session.session_id, changed=False))
    writes = leaving(found, by, RESET_FIRST) + beginning(session, fresh, reason=None, dedup_key=dedup_key, told=told)
    return Plan(tuple(writes), Moved(fresh.session_id, changed=True))


def reset_again(known: Known) -> Moved:
    return Moved(known.session_id, changed=known.ref != NOTHING)


def change(found: Underway, changed: SessionChanged) -> Plan[None]:
    """Title, pin, archive and flags. In a session that becomes suspended nothing waits any longer."""
    session = found.session
    away = turned_away(session.session_key, found.waiting, SUSPENDED_FIRST) if suspends(changed) else []
    return Plan(tuple(to_session(session.session_id, [changed, *away])), None)


def suspends(event: Event) -> bool:
    return isinstance(event, SessionChanged) and event.suspended is True
