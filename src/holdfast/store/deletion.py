"""Deleting a session: out of sight at once, back by an undo, and after that gone from the file itself, in small steps.

The purge begins with a record that says all that stays known (`session.purged`). From then on nothing of the session can be read, and the
events before that record are removed from the newest to the oldest: what is left of them is at any moment the beginning of a log, so that
the catalog made from it again is the same.
"""

from typing import Any

from holdfast.core import events as e
from holdfast.core.content import digest
from holdfast.core.plans import delete
from holdfast.core.plans.delete import Deleted
from holdfast.ports.upkeep import Usage
from holdfast.store import blobs, reads, spending
from holdfast.store import queries as q
from holdfast.store.heads import Head
from holdfast.store.log import read
from holdfast.store.tx import Tx
from holdfast.store.work import run
from holdfast.store.work.sessions import delete_session

PAGE_ROWS = 500
PAGE_BYTES = 1024 * 1024
# Something was purged: traces of it may still lie about.
TO_SCRUB = 1


def remove_oldest(tx: Tx, before: int, limit: int, why: str, until: int, at: int) -> list[str]:
    found: list[tuple[int, str]] = []
    for archived in (0, 1):  # Each is a walk along the index; together they would be sorted.
        found += tx.query(q.OLDEST_AT_REST, archived, before, limit)
    removed = [session_id for _, session_id in sorted(found)[:limit]]
    for session_id in removed:
        delete_session(tx, session_id, delete.RETENTION, until, at, why)
    return removed


def usage(tx: Tx) -> Usage:
    used = tx.size() + blobs.held_bytes(tx)
    sessions, removing = tx.query(q.SIZES)[0]
    return Usage(used, sessions, removing)


def due(tx: Tx, now: int, limit: int) -> list[int]:
    """Sessions whose content may be removed, or is being removed."""
    return [row[0] for row in tx.query(q.PURGE_DUE, now, limit)]


def purge_step(tx: Tx, session: int, now: int) -> bool:
    """One step of a purge; whether another one is to follow at once."""
    rows = tx.query(q.PURGE_STATE, session)
    if not rows or rows[0][0] is None or rows[0][0] > now:
        return False  # It was brought back, or another process was faster.
    head = tx.head(session)
    if rows[0][1]:
        more = _remove_page(tx, head, now)
    else:
        more = _begin(tx, head, now - rows[0][0], now)
    return more


def _begin(tx: Tx, head: Head, waited_ms: int, at: int) -> bool:
    deleted = tx.event_at(head.session, head.deleted)
    by, lane = tx.query(q.DELETED_BY, head.session)[0]
    untold = tx.query(q.UNTOLD, head.session, head.deleted)
    found = Deleted(
        session=tx.session(reads.name(tx, head.session)),
        by=by,
        why=deleted.why if isinstance(deleted, e.SessionDeleted) else None,
        untold=bool(untold),
        pointed_at=lane == head.session,
        spent=spending.of_session(tx, head.session),
    )
    plan = delete.purge(found, waited_ms=waited_ms, at=at)
    if plan.reply:
        blobs.leave(tx, head.session)
    return run(tx, plan, at, {found.session.session_id: head})


def _remove_page(tx: Tx, head: Head, at: int) -> bool:
    """The newest events that are left, and what the catalog and the search index have of them. Their dedup keys stay, as digests."""
    rows = _page(tx, head)
    keys = []
    for item in read(tx, rows, {head.session: ""}, []):
        match event := item.event:
            case e.MessageWritten(delivery_id=str(delivery_id)) | e.DeliveryOpened(delivery_id=delivery_id):
                tx.execute(q.OUTBOX_FORGET, delivery_id)
            case e.QuestionAsked(question_id=question_id):
                tx.execute(q.QUESTION_FORGET, question_id)
        key = getattr(event, "dedup_key", None)
        if key is not None:
            tx.execute(q.DEDUP_FORGET, key)
            keys.append(digest(key).hex())
    last = len(rows) == 0
    if rows:
        tx.unindex(head.session, rows[-1][2], head.deleted - 1)
        tx.execute(q.EVENTS_REMOVE, head.session, rows[-1][2], head.deleted)
    else:
        tx.execute(q.EVENTS_REMOVE_BEHIND, head.session, head.seq)  # Moved there by damage.
        tx.execute(q.QUARANTINE_CLEAR, head.session)
        tx.execute(q.DESK_CLEAR, head.session)
        tx.execute(q.SCRUB_STAGE, TO_SCRUB)
    if keys or last:
        tx.append(head, e.SessionForgotten(keys=tuple(keys), done=last), at, in_turn=False)
    return not last


def _page(tx: Tx, head: Head) -> list[tuple[Any, ...]]:
    """At least one row, if there are any, and no more than a transaction should carry."""
    sizes = tx.query(q.EVENT_SIZES, head.session, head.deleted, PAGE_ROWS)
    first, carried = head.deleted, 0
    for seq, size in sizes:
        if carried and carried + size > PAGE_BYTES:
            break
        first, carried = seq, carried + size
    return tx.query(q.EVENTS_BACKWARDS, head.session, first, head.deleted)
