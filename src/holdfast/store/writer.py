"""Where SQL runs: one writer thread with group commit, a few reader threads. Callers await; nothing blocks the event loop."""

import asyncio
import contextlib
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import apsw

from holdfast.core.errors import HoldfastError, StoreClosed, StoreFull, StoreGone
from holdfast.store.batch import CommitLost, Operation, Result, answerable, commit, read_back
from holdfast.store.connection import PAGE_BYTES, wait_for_the_other
from holdfast.store.ground import Ground, leave
from holdfast.store.reserve import Reserve

__all__ = ["Lines", "Operation", "Result", "Threads", "commit"]

T = TypeVar("T")
RESERVE_RETRY_S = 1.0
LOOK_S = 1.0  # How long a database that is gone may stay unnoticed while nothing is written.
REOPEN_TRIES = 10
REOPEN_WAIT_S = 0.3

# The writer copies the WAL back when it is this long. Readers that follow each other closely keep it from being used
# again from its start; when it has grown to the second length, the writer waits a moment until none of them is in it.
CHECKPOINT_PAGES = 2000
RESTART_PAGES = 6000
FULL_PAGES = 100
RESTART_WAIT_S = 0.1  # As long as a read may take.


class Lines(Protocol):
    """The two ways to the database. A simulation brings its own, which run inline."""

    async def write(self, run: Callable[..., T], *arguments: Any, when_full: bool = False) -> T: ...

    async def read(self, run: Callable[..., T], *arguments: Any) -> T: ...

    def subscribe(self, heard: Callable[[], None]) -> Callable[[], None]: ...

    @property
    def degraded(self) -> str | None: ...

    async def aclose(self) -> None: ...


class Threads:
    """The real lines: a writer thread that drains what is queued into one transaction, and reader threads with connections of their own."""

    def __init__(
        self,
        *,
        open_writer: Callable[[], apsw.Connection],
        open_reader: Callable[[], apsw.Connection],
        reserve: Reserve | None,
        ground: Ground | None = None,
        readers: int = 2,
        max_batch: int = 2000,
    ) -> None:
        self._open_writer, self._open_reader = open_writer, open_reader
        self._reserve, self._ground = reserve, ground
        self._max_batch = max_batch
        self._loop = asyncio.get_running_loop()
        self._queue: deque[Operation] = deque()
        self._wake = threading.Lock()  # Held while the writer has nothing to do; releasing it wakes the writer.
        self._sleeping = False
        self._closing = False
        self._broken: str | None = None
        self._full = False
        self._gone: StoreGone | None = None
        self._looked = 0.0
        self._reserve_tried = 0.0
        self._heard: list[Callable[[], None]] = []
        self._reads: queue.SimpleQueue[tuple[asyncio.Future[Any], Callable[..., Any], tuple[Any, ...]] | None] = queue.SimpleQueue()
        self._wal = WalLength()
        self._wake.acquire()
        self._threads = [threading.Thread(target=self._write_loop, name="holdfast-writer", daemon=True)]
        self._threads += [threading.Thread(target=self._read_loop, name=f"holdfast-reader-{n}", daemon=True) for n in range(readers)]
        for thread in self._threads:
            thread.start()

    # on the event loop

    async def write(self, run: Callable[..., T], *arguments: Any, when_full: bool = False) -> T:
        self._check_usable()
        if self._full and not when_full:
            raise StoreFull
        future: asyncio.Future[T] = self._loop.create_future()
        self._queue.append(Operation(future, run, arguments, when_full))
        if self._sleeping:
            self._rouse()
        if self._broken:  # The writer may have died since the look above, and have emptied the queue before the append.
            future.cancel()
            raise StoreClosed(self._broken)
        return await future

    async def read(self, run: Callable[..., T], *arguments: Any) -> T:
        self._check_usable()
        future: asyncio.Future[T] = self._loop.create_future()
        self._reads.put((future, run, arguments))
        return await future

    def subscribe(self, heard: Callable[[], None]) -> Callable[[], None]:
        self._heard.append(heard)

        def unsubscribe() -> None:
            if heard in self._heard:
                self._heard.remove(heard)

        return unsubscribe

    @property
    def degraded(self) -> str | None:
        if self._broken:
            return self._broken
        if self._gone:
            return str(self._gone)
        return "the disk is full" if self._full else None

    async def aclose(self) -> None:
        if not self._closing:
            self._closing = True
            self._rouse()
            for _ in self._threads[1:]:
                self._reads.put(None)
        await asyncio.to_thread(self._join)

    def _join(self) -> None:
        for thread in self._threads:
            thread.join()

    def _check_usable(self) -> None:
        if self._closing:
            raise StoreClosed
        if self._broken:
            raise StoreClosed(self._broken)
        if self._gone:
            raise self._gone

    def _rouse(self) -> None:
        """Wakes the writer. It says that it sleeps before it looks at the queue for the last time, and we look whether it sleeps after we
        put something there: one of the two sees the other. A wake-up too many is harmless."""
        self._sleeping = False
        try:
            self._wake.release()
        except RuntimeError:
            pass  # It is already awake, or about to be.

    def _resolve(self, results: list[Result]) -> None:
        for future, value, error in results:
            if not future.done():  # Its caller may have been cancelled.
                if error is None:
                    future.set_result(value)
                else:
                    future.set_exception(error)
        for heard in tuple(self._heard):
            heard()

    # in the threads

    def _answer(self, results: list[Result]) -> None:
        try:
            self._loop.call_soon_threadsafe(self._resolve, results)
        except RuntimeError:
            pass  # The loop is closed: nobody waits any more.

    def _write_loop(self) -> None:
        batch: list[Operation] = []
        try:
            self._try_reserve()
            db = self._open()
            while batch := self._next_batch(db):
                db, results = self._perform(db, batch)
                self._answer(results)
                batch = []
                if self._gone:
                    pass
                elif self._full:
                    self._save_room(db)
                else:
                    self._wal.keep_short(db)
            self._close(db)
        except Exception as error:  # The thread's boundary: everyone who waits must hear of it.
            self._broken = f"its writer stopped: {error}"
            waiting = batch + [self._queue.popleft() for _ in range(len(self._queue))]
            self._answer([Result(operation.future, None, StoreClosed(self._broken)) for operation in waiting])

    def _close(self, db: apsw.Connection) -> None:
        if self._gone:
            leave(db)
        else:
            db.close(True)

    def _open(self) -> apsw.Connection:
        db = self._open_writer()
        self._wal.watch(db)
        return db

    def _next_batch(self, db: apsw.Connection) -> list[Operation]:
        """What is queued, at most a batch; waits for the first. Empty when closing and nothing is left."""
        while True:
            if time.monotonic() - self._looked >= LOOK_S:
                self._look(db)
            if self._full and time.monotonic() - self._reserve_tried >= RESERVE_RETRY_S:
                self._try_reserve()
            if self._queue:
                break
            if self._closing:
                return []
            self._sleeping = True
            if not self._queue and not self._closing:
                self._wake.acquire(timeout=self._patience_s())
            self._sleeping = False
        return [self._queue.popleft() for _ in range(min(len(self._queue), self._max_batch))]

    def _patience_s(self) -> float:
        """How long the writer may sleep with nothing to write; negative: until it is woken."""
        if self._full:
            return RESERVE_RETRY_S
        return LOOK_S if self._ground is not None else -1

    def _look(self, db: apsw.Connection | None) -> None:
        """Whether the database is still there: what is written into a file that nobody will find again must not be acknowledged. `db`: the
        writer's connection, if it has one.
        """
        self._looked = time.monotonic()
        if self._ground is None or self._ground.stands():
            self._gone = None
        elif self._gone is None:
            self._gone = self._ground.gone()
            if db is not None:
                checkpoint(db, apsw.SQLITE_CHECKPOINT_PASSIVE)  # If only the WAL is lost, what was in it is safe now.

    def _perform(self, db: apsw.Connection, batch: list[Operation]) -> tuple[apsw.Connection, list[Result]]:
        """An answer for every operation of the batch, whatever happens to the disk. Nothing is acknowledged before the database has been
        seen in its place after the commit.
        """
        if self._gone is None:
            db, results = self._commit(db, batch)
            self._look(db)
            if self._gone is None:
                return db, results
        return db, [Result(operation.future, None, self._gone) for operation in batch]

    def _commit(self, db: apsw.Connection, batch: list[Operation]) -> tuple[apsw.Connection, list[Result]]:
        results: list[Result] = []
        while batch:
            if self._full:
                # They were queued before anybody knew. The reserve is not for them.
                results += [Result(operation.future, None, StoreFull()) for operation in batch if not operation.when_full]
                batch = [operation for operation in batch if operation.when_full]
                if not batch:
                    break
            try:
                done, again = commit(db, batch), []
            except CommitLost as lost:
                db, settled = self._reopen(db, lost)
                done, again = lost.done + settled, lost.rest
            full = {id(result.future) for result in done if isinstance(result.error, StoreFull)}
            if full and self._give_up_reserve():
                # There is room again, for what ends something.
                self._save_room(db)
                again = [operation for operation in batch if operation.when_full and id(operation.future) in full] + again
            trying = {id(operation.future) for operation in again}
            results += [result for result in done if id(result.future) not in trying]
            batch = again
        return db, results

    def _reopen(self, db: apsw.Connection, lost: CommitLost) -> tuple[apsw.Connection, list[Result]]:
        """After a failed COMMIT nothing is believed: a new connection says whether the batch is there."""
        self._look(db)
        self._close(db)
        tries = 0
        while True:
            opened: apsw.Connection | None = None
            try:
                opened = self._open()
                return opened, read_back(opened, lost)
            except (apsw.Error, StoreGone) as error:
                self._look(opened)
                if opened is not None:
                    self._close(opened)
                tries += 1
                # Descriptors that ran out, and a database that was moved away, may come back. For the latter nobody has to wait.
                lasting = self._gone is None and not isinstance(error, apsw.CantOpenError)
                if self._gone is not None:
                    self._answer([Result(result.future, None, self._gone) for result in lost.lost])
                if tries >= REOPEN_TRIES and (lasting or self._closing):
                    raise
                time.sleep(REOPEN_WAIT_S)

    def _give_up_reserve(self) -> bool:
        """Room for the ends of what is running. False when it was given up before."""
        first, self._full = not self._full, True
        if self._reserve is not None:
            self._reserve.free()
        self._reserve_tried = time.monotonic()
        return first

    def _save_room(self, db: apsw.Connection) -> None:
        """The WAL's own room counts now, where what is in it can be copied back as a whole."""
        if self._reserve is not None and self._wal.pages >= FULL_PAGES and self._wal.pages * PAGE_BYTES <= self._reserve.room():
            self._wal.give_back(db)

    def _try_reserve(self) -> None:
        """While the reserve cannot be laid down again the store stays full."""
        self._full = self._reserve is not None and not self._reserve.lay()
        self._reserve_tried = time.monotonic()

    def _read_loop(self) -> None:
        db: apsw.Connection | None = None
        with contextlib.suppress(apsw.Error, HoldfastError):  # At once: later there may be no descriptors left for it.
            db = self._open_reader()
        while (task := self._reads.get()) is not None:
            future, run, arguments = task
            try:
                if db is None:
                    db = self._open_reader()
                result = Result(future, run(db, *arguments), None)
            except Exception as error:  # The boundary: a read's failure belongs to its caller.
                result = Result(future, None, answerable(db, error))
            try:
                self._loop.call_soon_threadsafe(_settle, result)
            except RuntimeError:
                break
        if db is not None:
            self._close(db)


class WalLength:
    """Keeps the write-ahead log from growing. Copying it back happens after the answers, in the writer's own time."""

    def __init__(self) -> None:
        self.pages = 0
        self._next = CHECKPOINT_PAGES

    def watch(self, db: apsw.Connection) -> None:
        """Takes the place of SQLite's own automatic checkpoint."""
        db.set_wal_hook(self._committed)

    def _committed(self, db: apsw.Connection, name: str, pages: int) -> int:
        self.pages = pages
        return apsw.SQLITE_OK

    def keep_short(self, db: apsw.Connection) -> None:
        if self.pages < self._next:
            if self.pages < CHECKPOINT_PAGES:
                self._next = CHECKPOINT_PAGES  # It has started over.
            return
        if self.pages >= RESTART_PAGES:
            checkpoint(db, apsw.SQLITE_CHECKPOINT_RESTART)
        else:
            checkpoint(db, apsw.SQLITE_CHECKPOINT_PASSIVE)
        self._next = self.pages + CHECKPOINT_PAGES

    def give_back(self, db: apsw.Connection) -> None:
        if checkpoint(db, apsw.SQLITE_CHECKPOINT_TRUNCATE):
            self.pages = 0


def checkpoint(db: apsw.Connection, mode: int) -> bool:
    """False when a reader or another process was in the way, or there is no room. What was committed is safe where it is."""
    until = time.monotonic() + RESTART_WAIT_S
    db.set_busy_handler(lambda tries: time.monotonic() < until and wait_for_the_other(tries))
    try:
        db.wal_checkpoint(mode=mode)
    except apsw.Error:
        return False
    finally:
        db.set_busy_handler(wait_for_the_other)
    return True


def _settle(result: Result) -> None:
    if not result.future.done():
        if result.error is None:
            result.future.set_result(result.value)
        else:
            result.future.set_exception(result.error)
