"""What changed since a cursor. In SQLite commits have an order, and the number of a row of the log is its place in it: that is the
cursor.
"""

from collections.abc import Mapping
from typing import Any

from holdfast.core.events import PAGE_BYTES, Page
from holdfast.ports.log import Changes, Cursor, Make
from holdfast.store import queries as q
from holdfast.store.log import Finding, body_size, made, read, salvage
from holdfast.store.sqlite.tx import SqliteTx

MAX_ROWS = 1000


def changes(
    tx: SqliteTx, cursor: Cursor | None, behind: Mapping[str, int], names: dict[int, str], make: Make | None
) -> tuple[Changes, list[Finding]]:
    if cursor is None:
        return Changes(cursor=_cursor(last_id(tx))), []
    return _events(tx, int(cursor), behind, names, make) if behind else (_newest(tx, int(cursor)), [])


def last_id(tx: SqliteTx) -> int:
    return int(tx.query("SELECT coalesce(max(id), 0) FROM event")[0][0])


def _cursor(id_: int) -> Cursor:
    return Cursor(str(id_))


def _newest(tx: SqliteTx, after: int) -> Changes:
    """No event is read for this, only its place."""
    touched = tx.sessions_since(after, MAX_ROWS)
    found = {}
    for session in touched.sessions:
        for name, seq in tx.query("SELECT s.session_id, h.seq FROM session s JOIN head h ON h.session = s.id WHERE s.id = ?", session):
            found[name] = seq
    return Changes(cursor=_cursor(touched.mark), newest=found, more=touched.more)


def _events(tx: SqliteTx, after: int, behind: Mapping[str, int], names: dict[int, str], make: Make | None) -> tuple[Changes, list[Finding]]:
    """One statement for the events of all sessions: most of those that change are read."""
    rows = _page(tx, after)
    found: list[Finding] = []
    logged = read(tx, rows, names, found)
    newest = {item.session_id: item.seq for item in logged if item.session_id}
    page = Page(item for item in logged if item.seq > behind.get(item.session_id, item.seq))
    page.more = len(rows) >= MAX_ROWS or sum(body_size(row) for row in rows) >= PAGE_BYTES
    last = rows[-1][0] if rows else after
    return Changes(cursor=_cursor(last), newest=newest, page=made(page, make), more=page.more), found


def _page(tx: SqliteTx, after: int) -> list[tuple[Any, ...]]:
    try:
        return tx.page(q.LOG_IN_ORDER, after, MAX_ROWS)
    except tx.unreadable:
        newest = last_id(tx)
        rows: list[tuple[Any, ...]] = []
        while not rows and after < newest:
            rows = salvage(tx, [(id_, 0, 0) for id_ in range(after + 1, min(newest, after + MAX_ROWS) + 1)])
            after += MAX_ROWS
        return rows
