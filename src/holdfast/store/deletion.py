"""Deleting a session: out of sight at once, back by an undo, and after that gone from the file itself, in small steps.

The purge begins with a record that says all that stays known (`session.purged`). From then on nothing of the session can be read, and the
events before that record are removed from the newest to the oldest: what is left of them is at any moment the beginning of a log, so that
the catalog made from it again is the same.
"""

from pathlib import Path
from typing import Any

import apsw

from holdfast.core import events as e
from holdfast.core import notices, replies
from holdfast.core.turns import TurnState
from holdfast.ports.sessions import Deletion
from holdfast.ports.upkeep import Usage
from holdfast.store import reads
from holdfast.store.catalog import append, digest
from holdfast.store.connection import connect, fetch
from holdfast.store.log import COLUMNS, Head, load_head, number, read, save_head
from holdfast.store.sessions import stop_turn
from holdfast.store.unattended import refuse_waiting
from holdfast.store.writer import checkpoint

PAGE_ROWS = 500
PAGE_BYTES = 1024 * 1024
MERGED_PAGES = 16
# A turn that was told to stop has this long to end before its session is purged from under it.
LAST_WORDS_MS = 60_000
RETENTION = "retention"
# The stages of the scrub: whatever was purged since is still in the search index, or still in the write-ahead log.
CLEAN, TO_MERGE, MERGING, TO_TRUNCATE = range(4)


def delete_session(db: apsw.Connection, session_id: str, by: str, until: int, at: int, why: str | None = None) -> Deletion:
    session = reads.session(db, session_id)
    if session.deleted:
        return Deletion(session_id, session.deleted_at or at, session.undo_until or at)
    head = load_head(db, number(db, session_id))
    append(db, head, e.SessionDeleted(by=by, purge_at=until, why=why), at, in_turn=False)
    if session.open_turn:
        stop_turn(db, head, session.turn_id, by, at)
    refuse_waiting(db, head, "the conversation was deleted first", at)
    save_head(db, head)
    return Deletion(session_id, at, until)


def undelete_session(db: apsw.Connection, session_id: str, by: str, at: int) -> bool:
    if not reads.session(db, session_id).deleted:
        return False
    head = load_head(db, number(db, session_id))
    append(db, head, e.SessionUndeleted(by=by), at, in_turn=False)
    save_head(db, head)
    return True


def remove_oldest(db: apsw.Connection, before: int, limit: int, why: str, until: int, at: int) -> list[str]:
    found: list[tuple[int, str]] = []
    for archived in (0, 1):  # Each is a walk along the index; together they would be sorted.
        found += fetch(
            db,
            "SELECT h.updated_at, s.session_id FROM head h JOIN session s ON s.id = h.session"
            " WHERE h.deleted = 0 AND h.archived = ? AND h.updated_at < ? AND h.state IN ('none', 'ended') AND s.pinned = 0"
            " AND s.resume_pending = 0 AND NOT EXISTS (SELECT 1 FROM inbox i WHERE i.session = h.session)"
            " AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.state NOT IN ('sent', 'dead') AND o.session = h.session)"
            " ORDER BY h.updated_at LIMIT ?",
            (archived, before, limit),
        )
    removed = [session_id for _, session_id in sorted(found)[:limit]]
    for session_id in removed:
        delete_session(db, session_id, RETENTION, until, at, why)
    return removed


def usage(db: apsw.Connection) -> Usage:
    used = (db.pragma("page_count") - db.pragma("freelist_count")) * db.pragma("page_size")
    sessions, removing = fetch(
        db, "SELECT (SELECT count(*) FROM head WHERE deleted = 0), (SELECT count(*) FROM session WHERE purge_at IS NOT NULL)"
    )[0]
    return Usage(used, sessions, removing)


def due(db: apsw.Connection, now: int, limit: int) -> list[int]:
    """Sessions whose content may be removed, or is being removed."""
    return [row[0] for row in fetch(db, "SELECT id FROM session WHERE purge_at <= ? ORDER BY purge_at, id LIMIT ?", (now, limit))]


def purge_step(db: apsw.Connection, session: int, now: int) -> bool:
    """One step of a purge; whether another one is to follow at once."""
    rows = fetch(db, "SELECT purge_at, purged FROM session WHERE id = ?", (session,))
    if not rows or rows[0][0] is None or rows[0][0] > now:
        return False  # It was brought back, or another process was faster.
    head = load_head(db, session)
    if rows[0][1]:
        more = _remove_page(db, head, now)
    else:
        more = _begin(db, head, now - rows[0][0], now)
    save_head(db, head)
    return more


def _begin(db: apsw.Connection, head: Head, waited_ms: int, at: int) -> bool:
    if head.state not in (TurnState.NONE, TurnState.ENDED) and waited_ms < LAST_WORDS_MS:
        return False
    session = reads.session(db, reads.name(db, head.session))
    deleted = reads.event_at(db, head.session, head.deleted)
    by, lane = fetch(db, "SELECT s.deleted_by, l.session FROM session s JOIN lane l USING (session_key) WHERE s.id = ?", (head.session,))[0]
    # Whoever was to be told that their message was refused, and has not been, is told so without the words.
    untold = fetch(
        db,
        "SELECT 1 FROM outbox WHERE state NOT IN ('sent', 'dead') AND state <> 'sending' AND session = ? AND seq > ? LIMIT 1",
        (head.session, head.deleted),
    )
    purged = e.SessionPurged(
        session_id=session.session_id,
        session_key=session.session_key,
        created_at=session.created_at,
        generation=session.generation,
        current=lane == head.session,
        deleted_at=session.deleted_at or at,
        by=by,
        why=deleted.why if isinstance(deleted, e.SessionDeleted) else None,
    )
    append(db, head, purged, at, in_turn=False)
    if untold:
        told = replies.written(session.session_key, "notice", f"{session.session_id}.deleted", notices.deleted_unanswered())
        append(db, head, told, at, in_turn=False)
    return True


def _remove_page(db: apsw.Connection, head: Head, at: int) -> bool:
    """The newest events that are left, and what the catalog and the search index have of them. Their dedup keys stay, as digests."""
    rows = _page(db, head)
    keys = []
    for item in read(db, rows, {head.session: ""}, []):
        db.execute("DELETE FROM search WHERE rowid = ?", (item.id,))
        match event := item.event:
            case e.MessageWritten(delivery_id=str(delivery_id)):
                db.execute("DELETE FROM outbox WHERE delivery_id = ?", (delivery_id,))
            case e.QuestionAsked(question_id=question_id):
                db.execute("DELETE FROM question WHERE question_id = ?", (question_id,))
        key = getattr(event, "dedup_key", None)
        if key is not None:
            db.execute("DELETE FROM dedup WHERE dedup_key = ?", (key,))
            keys.append(digest(key).hex())
    last = len(rows) == 0
    if rows:
        db.execute("DELETE FROM event WHERE session = ? AND seq >= ? AND seq < ?", (head.session, rows[-1][2], head.deleted))
    else:
        db.execute("DELETE FROM event WHERE session = ? AND seq > ?", (head.session, head.seq))  # Moved there by damage.
        db.execute("DELETE FROM quarantine WHERE session = ?", (head.session,))
        db.execute("UPDATE meta SET value = ? WHERE name = 'scrub'", (TO_MERGE,))
    if keys or last:
        append(db, head, e.SessionForgotten(keys=tuple(keys), done=last), at, in_turn=False)
    return not last


def _page(db: apsw.Connection, head: Head) -> list[tuple[Any, ...]]:
    """At least one row, if there are any, and no more than a transaction should carry."""
    sizes = fetch(
        db,
        "SELECT seq, length(body) FROM event WHERE session = ? AND seq < ? ORDER BY seq DESC LIMIT ?",
        (head.session, head.deleted, PAGE_ROWS),
    )
    first, carried = head.deleted, 0
    for seq, size in sizes:
        if carried and carried + size > PAGE_BYTES:
            break
        first, carried = seq, carried + size
    return fetch(
        db, f"SELECT {COLUMNS} FROM event WHERE session = ? AND seq >= ? AND seq < ? ORDER BY seq DESC", (head.session, first, head.deleted)
    )


def scrub_step(db: apsw.Connection) -> int:
    """Rewrites the search index, a few pages at a time: until then it still holds the words of what was removed from it."""
    stage = scrub_stage(db)
    if stage in (TO_MERGE, MERGING):
        before = db.total_changes()
        db.execute("INSERT INTO search (search, rank) VALUES ('merge', ?)", (-MERGED_PAGES if stage == TO_MERGE else MERGED_PAGES,))
        stage = TO_TRUNCATE if stage == MERGING and db.total_changes() - before < 2 else MERGING
        db.execute("UPDATE meta SET value = ? WHERE name = 'scrub'", (stage,))
    return stage


def scrub_stage(db: apsw.Connection) -> int:
    return int(fetch(db, "SELECT value FROM meta WHERE name = 'scrub'")[0][0])


def truncate_log(db: apsw.Connection) -> bool:
    """Empties the write-ahead log. False when somebody reads in it; on a connection of its own, because a reader's may write nothing."""
    truncating = connect(Path(db.filename), create=False)
    try:
        return checkpoint(truncating, apsw.SQLITE_CHECKPOINT_TRUNCATE)
    finally:
        truncating.close()


def scrubbed(db: apsw.Connection) -> None:
    """Unless something was purged in the meantime."""
    db.execute("UPDATE meta SET value = ? WHERE name = 'scrub' AND value = ?", (CLEAN, TO_TRUNCATE))
