"""The rows of sessions and of the keys that lead to them."""

import msgspec
from msgspec import UNSET

from holdfast.core import events as e
from holdfast.core import turns
from holdfast.core.plans.repeats import CONTINUES, RESET, RESUME
from holdfast.store.heads import Head
from holdfast.store.projection import titles
from holdfast.store.projection.common import KEY_OF, THIS, Rows, remember
from holdfast.store.projection.journals import JOURNALS_GONE
from holdfast.store.projection.messages import INBOX_GONE, RECITALS_GONE
from holdfast.store.projection.processes import PROCESSES_GONE
from holdfast.store.projection.questions import QUESTIONS_GONE, RULES_GONE
from holdfast.store.projection.schedules import SCHEDULES_GONE
from holdfast.store.projection.spending import SPENT, SPENT_GONE
from holdfast.store.rows import Change, Delete, Insert, Update

EMPTY_HEAD = ("session", "seq", "state", "epoch", "attempt", "position", "turn_seq", "stop")
HEAD_NEW = Insert("head", *EMPTY_HEAD)
HEAD_SURE = Insert("head", *EMPTY_HEAD, conflict="DO NOTHING")
SESSION_NEW = Insert("session", "id", "session_id", "session_key", "log", "title", "created_at", "auto_reset_reason", "folder")
SESSION_GONE = Delete("session", where=THIS)
SESSION_BURIED = Insert(
    "session", *("id", "session_id", "session_key", "log", "created_at", "generation", "deleted_at", "deleted_by", "purge_at", "purged")
)
RELEASED = Update("session", "suspended = 0", "interrupted_restarts = 0", where=THIS)
RELOGGED = Update("session", "log", where=THIS)
DELETED = Update("session", "deleted_at", "deleted_by", "purge_at", where=THIS)
UNDELETED = Update("session", "deleted_at = NULL", "deleted_by = NULL", "purge_at = NULL", where=THIS)
PURGED = Update("session", "purge_at = NULL", where=THIS)
CHANGED = {
    field: Update("session", field, where=THIS)
    for field in ("title", "pinned", "suspended", "resume_pending", "resume_reason", "last_resume_marked_at", "rule", "model")
}
LANE_SESSION = Update("lane", "session", where=KEY_OF)
LANE_NEW = Insert("lane", "session_key", "session", "generation", conflict="(session_key) DO UPDATE SET session = excluded.session")
_NEWEST = "generation = CASE WHEN lane.generation < excluded.generation THEN excluded.generation ELSE lane.generation END"
LANE_BURIED = Insert("lane", "session_key", "session", "generation", conflict=f"(session_key) DO UPDATE SET {_NEWEST}")
LANE_BURIED_CURRENT = Insert(
    *("lane", "session_key", "session", "generation"), conflict=f"(session_key) DO UPDATE SET {_NEWEST}, session = excluded.session"
)
FORGOTTEN = Insert("forgotten", "key", "session", conflict="DO NOTHING")
UNUSED = Delete("blob_use", where="session = ?")


def _session_created(head: Head, event: e.SessionCreated, at: int, in_turn: bool) -> list[Change]:
    row = (head.session, event.session_id, event.session_key, event.log, event.title, at, event.auto_reset_reason, event.folder)
    return [
        (HEAD_NEW, (head.session, 0, "", 0, 0, 0, 0, 0)),
        (SESSION_NEW, row),
        (LANE_NEW, (event.session_key, head.session, 0)),
        *titles.named(head, event.title, at),
        *remember(event.dedup_key, RESET, head, event.session_id),
    ]


def _session_resumed(head: Head, event: e.SessionResumed, at: int, in_turn: bool) -> list[Change]:
    head.left = 0
    return [
        (RELEASED, (head.session,)),
        (LANE_SESSION, (head.session, head.session)),
        *remember(event.dedup_key, RESUME, head, CONTINUES if event.goes_on else ""),
    ]


def _session_changed(head: Head, event: e.SessionChanged, at: int, in_turn: bool) -> list[Change]:
    changes = {field: value for field in CHANGED if (value := getattr(event, field, UNSET)) is not UNSET}
    if event.resume_pending is True:  # A mark has a reason and a time; both go with it.
        changes = {"resume_reason": "restart_timeout", "last_resume_marked_at": at} | changes
    elif event.resume_pending is False:
        changes |= {"resume_reason": None, "last_resume_marked_at": None}
    if event.archived is not UNSET:
        head.archived = int(event.archived)
    return [
        *((CHANGED[field], (int(value) if isinstance(value, bool) else value, head.session)) for field, value in changes.items()),
        *([] if event.title is UNSET else titles.named(head, event.title, at)),
    ]


def _session_restored(head: Head, event: e.SessionRestored, at: int, in_turn: bool) -> list[Change]:
    return [(RELOGGED, (event.log, head.session))]


def _session_deleted(head: Head, event: e.SessionDeleted, at: int, in_turn: bool) -> list[Change]:
    head.deleted = head.seq
    return [(DELETED, (at, event.by, event.purge_at, head.session))]


def _session_undeleted(head: Head, event: e.SessionUndeleted, at: int, in_turn: bool) -> list[Change]:
    head.deleted = 0
    return [(UNDELETED, (head.session,))]


def _session_purged(head: Head, event: e.SessionPurged, at: int, in_turn: bool) -> list[Change]:
    """Only what the record itself says is left, whatever stood before it and however much of that can still be read."""
    head.state, head.epoch, head.owner, head.turn, head.attempt, head.position = turns.TurnState.NONE, 0, None, None, 0, 0
    head.turn_seq = head.stop = head.archived = head.left = head.asked_seq = 0
    head.deleted, head.updated_at = head.seq, at
    known = (head.session, event.session_id, event.session_key, "", event.created_at, event.generation, event.deleted_at, event.by, 0, 1)
    return [
        (UNUSED, (head.session,)),
        (INBOX_GONE, (head.session,)),
        (QUESTIONS_GONE, (head.session,)),
        (RULES_GONE, (head.session,)),
        (RECITALS_GONE, (head.session,)),
        (PROCESSES_GONE, (head.session,)),
        (SCHEDULES_GONE, (head.session,)),
        (SPENT_GONE, (head.session,)),
        (JOURNALS_GONE, (head.session,)),
        (titles.TITLING_GONE, (head.session,)),
        *((SPENT, (head.session, "", each.day, "", "", *msgspec.structs.astuple(each.spent))) for each in event.spent),
        (SESSION_GONE, (head.session,)),
        (SESSION_BURIED, known),
        (LANE_BURIED_CURRENT if event.current else LANE_BURIED, (event.session_key, head.session, event.generation)),
        (HEAD_SURE, (head.session, 0, "", 0, 0, 0, 0, 0)),
    ]


def _session_forgotten(head: Head, event: e.SessionForgotten, at: int, in_turn: bool) -> list[Change]:
    changes: list[Change] = [(FORGOTTEN, (bytes.fromhex(key), head.session)) for key in event.keys]
    return [*changes, (PURGED, (head.session,))] if event.done else changes


ROWS: Rows = {
    e.SessionCreated: _session_created,
    e.SessionResumed: _session_resumed,
    e.SessionChanged: _session_changed,
    e.SessionRestored: _session_restored,
    e.SessionDeleted: _session_deleted,
    e.SessionUndeleted: _session_undeleted,
    e.SessionPurged: _session_purged,
    e.SessionForgotten: _session_forgotten,
}
