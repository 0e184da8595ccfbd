"""The store's lines in simulated time: writes are gathered and committed after a while, reads see what is committed by then."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

import apsw

from holdfast.core.errors import StoreAway, StoreClosed
from holdfast.ports.upkeep import Commits
from holdfast.store.lines import Operation, Result
from holdfast.store.sqlite.batch import commit
from holdfast.store.sqlite.tx import SqliteTx

T = TypeVar("T")
# How long those wait for another program who can do nothing else, and how long the others.
HOLD_S, NOTICE_S = 10.0, 1.0
# Longer than the clock's resolution, so that it moves.
MOMENT_S = 1e-4


class SimLines:
    """`delay` gives the next wait in seconds; `fails` why the next operation (one that may be done when the disk is full, or
    not) is not done, if so; `committing` is called before each commit, and `committed` after it, before anyone hears of it. `away`: for
    how many seconds another program will still have the database.
    """

    def __init__(
        self,
        db: apsw.Connection,
        *,
        loop: asyncio.AbstractEventLoop,
        delay: Callable[[], float],
        fails: Callable[[bool], Exception | None],
        committed: Callable[[], None],
        committing: Callable[[], None] = lambda: None,
        away: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._db, self._loop, self._delay, self._fails = db, loop, delay, fails
        self._committing, self._committed, self._away = committing, committed, away
        self._queue: list[Operation] = []
        self._heard: list[Callable[[], None]] = []
        self._told_until = 0.0
        self._busy = False
        self._away_since: float | None = None  # As far as anybody has noticed.
        self._closed = False
        self._written: asyncio.Future[None] | None = None

    async def write(self, run: Callable[..., T], *arguments: Any, when_full: bool = False, waits: bool = True) -> T:
        if self._closed:
            raise StoreClosed
        await self._held(waits)
        if (problem := self._fails(when_full)) is not None:
            await asyncio.sleep(self._delay())
            raise problem
        future: asyncio.Future[T] = self._loop.create_future()
        self._queue.append(Operation(future, run, arguments, when_full, waits))
        if not self._busy:
            self._busy = True
            self._loop.call_later(self._delay(), self._flush)
        return await future

    async def _held(self, waits: bool) -> None:
        """While another program has the database: some wait for it, though not for ever, and some do not."""
        away_s, now = self._away(), self._loop.time()
        if away_s <= 0:
            self._away_since = None
            return
        since, self._away_since = self._away_since, self._away_since or now
        patience_s = max(NOTICE_S, HOLD_S - (now - self._away_since)) if waits else NOTICE_S if since is None else 0.0
        await asyncio.sleep(min(away_s, patience_s))
        if away_s > patience_s:
            raise StoreAway

    @property
    def commits(self) -> Commits:
        return Commits()

    async def writable(self) -> None:
        while (away_s := self._away()) > 0:  # noqa: ASYNC110 - how long it stays is known.
            await asyncio.sleep(away_s + MOMENT_S)

    def _flush(self) -> None:
        batch, self._queue = self._queue, []
        if self._away() > 0:  # It went away while they waited for their turn.
            self._away_since = self._away_since or self._loop.time()
            self._tell([Result(operation.future, None, StoreAway()) for operation in batch if not operation.waits])
            self._queue = [operation for operation in batch if operation.waits]
            return self._go_on(self._away() + MOMENT_S)
        self._committing()
        results = commit(self._db, batch)
        self._committed()
        # A commit is visible to readers before its callers hear of it; they hear in the order of the commits.
        self._told_until = max(self._told_until, self._loop.time() + self._delay())
        self._loop.call_at(self._told_until, self._tell, results)
        self._go_on(self._delay())

    def _go_on(self, delay: float) -> None:
        if self._queue:
            self._loop.call_later(delay, self._flush)
        else:
            self._busy = False
            if self._written is not None:
                self._written.set_result(None)

    def _tell(self, results: list[Result]) -> None:
        for result in results:
            _settle(result)
        for heard in tuple(self._heard):
            heard()

    async def read(self, run: Callable[..., T], *arguments: Any) -> T:
        if self._closed:
            raise StoreClosed
        if (problem := self._fails(True)) is not None:
            await asyncio.sleep(self._delay())
            raise problem
        future: asyncio.Future[T] = self._loop.create_future()
        self._loop.call_later(self._delay(), self._read, future, run, arguments)
        return await future

    def _read(self, future: "asyncio.Future[Any]", run: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        try:
            result = Result(future, run(SqliteTx(self._db), *arguments), None)
        except Exception as error:  # The boundary: a read's failure belongs to its caller.
            result = Result(future, None, error)
        self._loop.call_later(self._delay(), _settle, result)

    def subscribe(self, heard: Callable[[], None]) -> Callable[[], None]:
        self._heard.append(heard)
        return lambda: self._heard.remove(heard)

    @property
    def degraded(self) -> str | None:
        return None

    async def aclose(self) -> None:
        self._closed = True
        if self._busy:
            self._written = self._loop.create_future()
            await self._written


def _settle(result: Result) -> None:
    if not result.future.done():
        if result.error is None:
            result.future.set_result(result.value)
        else:
            result.future.set_exception(result.error)
