"""Finding messages by what their clients recited with them."""

from collections.abc import Sequence
from typing import Any

from holdfast.core.errors import Deleted
from holdfast.core.events import TurnStarted
from holdfast.core.recitals import Recital, Recited
from holdfast.store import queries as q
from holdfast.store.tx import Tx


def recited(tx: Tx, message_id: str) -> Recited | None:
    return _first(tx, tx.query(q.RECITED, message_id))


def recited_under(tx: Tx, dedup_key: str) -> Recited | None:
    known = tx.known(dedup_key)
    if known is None:
        return None
    if known.digest is None:
        raise Deleted(known.session_id, undoable=False)
    return recited(tx, known.ref)


def reciting(tx: Tx, digests: Sequence[str], limit: int) -> list[Recited]:
    rows = [row for digest in digests for row in tx.query(q.RECITING, digest, limit)]
    return sorted((_recited(tx, row) for row in rows), key=lambda each: each.at, reverse=True)[:limit]


def last_recited(tx: Tx, session_id: str) -> Recited | None:
    return _first(tx, tx.query(q.RECITED_LAST, session_id))


def _first(tx: Tx, rows: list[Any]) -> Recited | None:
    return _recited(tx, rows[0]) if rows else None


def _recited(tx: Tx, row: tuple[Any, ...]) -> Recited:
    """A damaged record has lost its time."""
    session, session_id, message_id, seq, at, digest, instructions, newest = row
    turns = tx.query(q.TURN_BEFORE, session, seq)
    return Recited(
        session_id=session_id,
        message_id=message_id,
        seq=seq,
        turn_seq=turns[0][0] if turns and turns[0][1] == TurnStarted.kind else 0,
        at=at or 0,
        recital=Recital(digest=digest, instructions=instructions),
        newest=seq == newest,
    )
