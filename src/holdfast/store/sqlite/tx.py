"""A transaction on a SQLite connection. Events and rows are written at once, heads when the operation is over."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import apsw

from holdfast.core.events import PAGE_BYTES, Event
from holdfast.core.plans.repeats import Known
from holdfast.core.redaction import NO_SECRETS, Secrets
from holdfast.core.sessions import Session
from holdfast.store import heads, log, queries, reads
from holdfast.store import rebuild as replay
from holdfast.store.heads import Head
from holdfast.store.log import body_size
from holdfast.store.rows import Change
from holdfast.store.sqlite import search
from holdfast.store.tx import Touched

T = TypeVar("T")


# Greater than the id of any event.
NONE_WRITTEN = 2**63


class SqliteTx:
    """See `store.tx.Tx`. The transaction itself is begun and ended by those who made this.

    `first_event`: an event with this id or a greater one was written by this transaction.
    """

    unreadable = apsw.CorruptError

    def __init__(self, db: apsw.Connection, secrets: Secrets = NO_SECRETS) -> None:
        self.db, self.secrets = db, secrets
        # One cursor for all of them: making one takes longer than what most statements do with it.
        self._execute = db.cursor().execute
        self._heads: dict[int, Head] = {}
        self.first_event = NONE_WRITTEN

    def query(self, sql: str, *values: Any) -> list[Any]:
        if self._heads:
            self.flush()
        return self._execute(sql, values).fetchall()

    def execute(self, sql: str, *values: Any) -> int:
        if self._heads:
            self.flush()
        self._execute(sql, values)
        return self.db.changes()

    def write(self, sql: str, *values: Any) -> list[Any]:
        return self._execute(sql, values).fetchall()

    def write_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        self.db.executemany(sql, rows)

    def page(self, sql: str, *values: Any) -> list[Any]:
        if self._heads:
            self.flush()
        cursor, rows, size = self.db.execute(sql, values), [], 0
        for row in cursor:
            rows.append(row)
            size += body_size(row)
            if size >= PAGE_BYTES:
                break
        cursor.close()
        return rows

    def insert(self, rows: Sequence[tuple[Any, ...]]) -> int:
        if len(rows) != 1:  # Most come alone.
            return self._insert_many(rows)
        try:
            self._execute(queries.INSERT, rows[0])
        except apsw.ConstraintError:
            return 0
        self._wrote_event()
        return 1

    def _insert_many(self, rows: Sequence[tuple[Any, ...]]) -> int:
        before = self.db.total_changes()
        try:
            self.db.executemany(queries.INSERT, rows)
        except apsw.ConstraintError:
            return self.db.total_changes() - before
        if rows:
            self._wrote_event()
        return len(rows)

    def _wrote_event(self) -> None:
        if self.first_event == NONE_WRITTEN:
            self.first_event = self.db.last_insert_rowid()

    def session(self, session_id: str) -> Session:
        return reads.session(self, session_id)

    def known(self, dedup_key: str) -> Known | None:
        return reads.known(self, dedup_key)

    def head(self, session: int) -> Head:
        return self._heads.get(session) or heads.of(self._execute(queries.HEAD, (session,)).fetchall()[0])

    def new_session(self) -> int:
        return int(self.query("SELECT coalesce(max(id), 0) + 1 FROM session")[0][0])

    def event_at(self, session: int, seq: int) -> Event:
        return reads.event_at(self, session, seq)

    def append(self, head: Head, event: Event, at: int, *, in_turn: bool) -> None:
        log.append(self, head, event, at, in_turn=in_turn)

    def apply(self, head: Head, changes: Iterable[Change]) -> None:
        execute = self._execute
        for form, values in changes:
            if form.into is None:
                execute(form.sql, values)
            elif rows := execute(form.sql, values).fetchall():
                setattr(head, form.into, rows[0][0])
        self._heads[head.session] = head

    def flush(self) -> None:
        """Writes the heads that changed."""
        if not self._heads:
            return
        changed, self._heads = self._heads, {}
        for head in changed.values():
            for sql, values in heads.changes(head):
                self._execute(sql, values)

    def forget(self) -> None:
        """The operation failed: what it did to heads is not to be written."""
        self._heads = {}

    def sessions_since(self, mark: int, limit: int, *, records: bool = False) -> Touched:
        page = "SELECT max(id), count(*) FROM (SELECT id FROM event WHERE id > ? ORDER BY id LIMIT ?)"
        last, events = self.query(page, mark, max(0, limit))[0]
        if last is None:
            return Touched(mark, [], more=False)
        kinds = f" AND {queries.RECORDS}" if records else ""
        found = self.query(f"SELECT DISTINCT session FROM event WHERE id > ? AND id <= ?{kinds}", mark, last)
        return Touched(last, [row[0] for row in found], more=events >= limit)

    def index(self, session: int, seq: int, text: str) -> None:
        search.index(self.db, session, seq, text)

    def search(self, query: str) -> list[int]:
        return search.find(self.db, query)

    def finds(self, query: str, session: int | None = None) -> Iterator[tuple[int, int]]:
        return search.finds(self.db, query, session)

    def unindex(self, session: int, first: int, last: int) -> None:
        search.forget(self.db, session, first, last)

    def size(self) -> int:
        pragma = self.db.pragma
        return int((pragma("page_count") - pragma("freelist_count")) * pragma("page_size"))


def in_tx(db: apsw.Connection, operation: Callable[..., T], *arguments: Any) -> T:
    """Runs one operation inside the caller's transaction."""
    tx = SqliteTx(db)
    value = operation(tx, *arguments)
    tx.flush()
    return value


def rebuild(db: apsw.Connection) -> None:
    """Rebuilds the catalog from the log alone. Runs inside the caller's transaction."""
    in_tx(db, replay.rebuild)
