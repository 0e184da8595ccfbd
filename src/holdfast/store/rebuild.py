"""The catalog from the log alone: every event is projected again, in the order of commits."""

from typing import Any

from holdfast.core import events as e
from holdfast.core import turns
from holdfast.store import queries as q
from holdfast.store.heads import Head
from holdfast.store.log import Finding, read
from holdfast.store.projection import DERIVED, project
from holdfast.store.tx import Tx

ROWS_AT_ONCE = 1000


def rebuild(tx: Tx) -> None:
    """Runs inside the caller's transaction; nobody else writes."""
    for table in DERIVED:
        tx.write(f"DELETE FROM {table}")
    after = 0
    while rows := tx.query(q.LOG_IN_ORDER, after, ROWS_AT_ONCE):
        for row in rows:
            _replay(tx, row)
        after = rows[-1][0]


def _replay(tx: Tx, row: tuple[Any, ...]) -> None:
    session = row[1]
    found: list[Finding] = []
    logged = read(tx, [row], {session: ""}, found)
    if found or isinstance(logged[0].event, e.Damaged):
        # Its place stays taken; nothing follows from it.
        tx.execute(q.HEAD_SKIP, row[2], session, row[2] - 1 if type(row[2]) is int else None)
        return
    item, event = logged[0], logged[0].event
    if isinstance(event, e.SessionCreated | e.SessionPurged):
        head = Head(session)
    elif tx.query(q.HEAD_THERE, session):
        head = tx.head(session)
    else:
        return  # The record that made the session is damaged.
    head.seq = item.seq
    in_turn = item.turn_id is not None and (item.epoch is None or item.epoch >= head.epoch)
    if in_turn:
        if head.turn != item.turn_id:
            head.turn, head.turn_seq = item.turn_id, item.seq
        head.position, head.attempt = item.position, item.attempt
        head.epoch = max(head.epoch, item.epoch or 0)  # The record of its lease may be damaged.
        head.state = turns.before(head.state, event)
    # What a lease wrote that was over by then moves nothing.
    tx.apply(head, project(head, event, item.at, in_turn=in_turn))
