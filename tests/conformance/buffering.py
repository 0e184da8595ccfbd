"""An engine that gathers its writes, as one far away must: a batch reads what was there when it began, and writes at its end.

It stands on SQLite's files, so that what it leaves there can be compared with what SQLite's own engine leaves.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any, TypeVar

import apsw

from holdfast.core.errors import HoldfastError
from holdfast.core.events import PAGE_BYTES
from holdfast.ports.store import Store
from holdfast.ports.upkeep import Commits
from holdfast.store import heads
from holdfast.store import queries as q
from holdfast.store.heads import Head
from holdfast.store.lines import Operation, Result
from holdfast.store.log import NOT_STORABLE, body_size
from holdfast.store.rows import Change
from holdfast.store.sqlite.batch import answerable
from holdfast.store.sqlite.connection import connect, fetch
from holdfast.store.sqlite.store import SqliteStore
from holdfast.store.sqlite.tx import SqliteTx
from holdfast.store.targets import Targets, batches
from tests.conformance.backends import NOW, SqliteBackend

T = TypeVar("T")
REFUSALS = (HoldfastError, *NOT_STORABLE)


class BufferingTx(SqliteTx):
    """A batch. An operation that has written nothing yet reads from `before`, the database as it was; one that reads after it has written
    has everything that is gathered written first, as a rare operation may.
    """

    def __init__(self, db: apsw.Connection, before: apsw.Connection) -> None:
        super().__init__(db)
        self._before = before
        self._gathered: list[tuple[str, Sequence[Any]]] = []
        self._began = 0
        self._wrote = False
        self._changes: int | None = None  # Before this operation was the first to write at once.
        self._numbers = 0

    def run(self, operation: Operation) -> Any:
        self._began, self._wrote, self._changes = len(self._gathered), False, None
        try:
            value = operation.run(self, *operation.arguments)
            self.flush()
            return value
        except REFUSALS:  # Refused, and nothing of it may be written.
            assert self._changes in (None, self.db.total_changes()), "it was refused after it had written"
            del self._gathered[self._began :]
            self.forget()
            raise

    def write_out(self) -> None:
        for sql, values in self._gathered:
            self.db.execute(sql, values)
        self._gathered, self._began = [], 0

    def flush(self) -> None:
        changed, self._heads = self._heads, {}
        for head in changed.values():
            self._gathered += heads.changes(head)

    def _ask(self, sql: str, values: Sequence[Any], *, writes: bool = False) -> apsw.Cursor:
        if not self._wrote and not writes:
            return self._before.execute(sql, values)
        self._wrote = True
        self.flush()
        if self._changes is None:
            own = self._gathered[self._began :]
            del self._gathered[self._began :]
            self.write_out()
            self._gathered, self._changes = own, self.db.total_changes()
        self.write_out()
        return self.db.execute(sql, values)

    def _later(self, sql: str, values: Sequence[Any]) -> None:
        self._wrote = True
        self._gathered.append((sql, values))

    def query(self, sql: str, *values: Any) -> list[Any]:
        return self._ask(sql, values, writes=not sql.lstrip().startswith("SELECT")).fetchall()

    def execute(self, sql: str, *values: Any) -> int:
        self._ask(sql, values, writes=True)
        return self.db.changes()

    def write(self, sql: str, *values: Any) -> list[Any]:
        return self._ask(sql, values, writes=True).fetchall()

    def write_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        for row in rows:
            self._later(sql, row)

    def page(self, sql: str, *values: Any) -> list[Any]:
        rows, size = [], 0
        for row in self._ask(sql, values).fetchall():
            rows.append(row)
            size += body_size(row)
            if size >= PAGE_BYTES:
                break
        return rows

    def insert(self, rows: Sequence[tuple[Any, ...]]) -> int:
        self.write_many(q.INSERT, rows)
        return len(rows)

    def head(self, session: int) -> Head:
        return self._heads.get(session) or heads.of(self._ask(q.HEAD, (session,)).fetchall()[0])

    def new_session(self) -> int:
        self._numbers += 1
        return int(fetch(self._before, "SELECT coalesce(max(id), 0) FROM session")[0][0]) + self._numbers

    def apply(self, head: Head, changes: Iterable[Change]) -> None:
        self._heads[head.session] = head
        for form, values in changes:
            if form.into is None:
                self._later(form.sql, values)
            elif rows := self._ask(form.sql, values, writes=True).fetchall():
                setattr(head, form.into, rows[0][0])


class BufferingLines:
    """Whatever is asked for at the same time is one queue. `shared`: its operations share one batch, whatever lanes they are in."""

    degraded: str | None = None

    def __init__(self, connect: Callable[[], apsw.Connection], *, shared: bool = False) -> None:
        self._db, self._before, self._shared = connect(), connect(), shared
        self._queue: list[Operation] = []
        self._heard: list[Callable[[], None]] = []
        self.sizes: list[int] = []

    async def write(self, run: Callable[..., T], *arguments: Any, when_full: bool = False, waits: bool = True) -> T:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        if not self._queue:
            loop.call_soon(self._work)
        self._queue.append(Operation(future, run, arguments, when_full))
        return await future

    async def read(self, run: Callable[..., T], *arguments: Any) -> T:
        return run(SqliteTx(self._db), *arguments)

    def subscribe(self, heard: Callable[[], None]) -> Callable[[], None]:
        self._heard.append(heard)

        def unsubscribe() -> None:
            if heard in self._heard:
                self._heard.remove(heard)

        return unsubscribe

    @property
    def commits(self) -> Commits:
        return Commits(len(self.sizes))

    async def writable(self) -> None: ...

    async def aclose(self) -> None:
        self._before.close()
        self._db.close()

    def _work(self) -> None:
        waiting, self._queue = self._queue, []
        for batch in [waiting] if self._shared else batches(waiting, self._lanes):
            self.sizes.append(len(batch))
            self._commit(batch)

    def _lanes(self, targets: Targets) -> list[str]:
        """A session that does not exist, or not yet, is a lane of its own; an operation that creates it names its key."""
        found = [*targets.keys, *targets.sessions]
        for name in targets.sessions:
            found += [key for (key,) in fetch(self._db, "SELECT session_key FROM session WHERE session_id = ?", (name,))]
        for name in targets.questions:
            asked = "SELECT session_key FROM session s JOIN question q ON q.session = s.id WHERE question_id = ?"
            found += [key for (key,) in fetch(self._db, asked, (name,))]
        return found

    def _commit(self, batch: list[Operation]) -> None:
        """Nothing is answered before COMMIT. One that is refused leaves the others alone."""
        self._db.execute("BEGIN IMMEDIATE")
        self._before.execute("BEGIN")
        self._before.execute("SELECT 1 FROM session").fetchall()  # The snapshot is of this moment.
        tx = BufferingTx(self._db, self._before)
        answers: list[Result] = []
        try:
            for operation in batch:
                try:
                    answers.append(Result(operation.future, tx.run(operation), None))
                except REFUSALS as refusal:
                    answers.append(Result(operation.future, None, answerable(self._db, refusal)))
            tx.write_out()
            self._db.execute("COMMIT")
        except Exception as error:  # The boundary: everyone who waits must hear of it.
            self._db.execute("ROLLBACK")
            answers = [Result(operation.future, None, error) for operation in batch]
        finally:
            self._before.execute("COMMIT")
        for answer in answers:
            future, value, failure = answer.future, answer.value, answer.error
            if failure is None:
                future.set_result(value)
            else:
                future.set_exception(failure)
        for heard in tuple(self._heard):
            heard()


class GatheringBackend(SqliteBackend):
    """For the tests of what operations do. Ways to harm it, and other processes, are SQLite's own."""

    @contextlib.asynccontextmanager
    async def opened(self, *, now: int = NOW) -> AsyncIterator[Store]:
        lines = BufferingLines(lambda: connect(self.path))
        try:
            yield SqliteStore(lines, now=lambda: now)
        finally:
            await lines.aclose()
