"""The lines to SQLite: one writer thread with group commit, a few reader threads, each with a connection of its own."""

import contextlib
import time
from collections.abc import Callable

import apsw

from holdfast.core.errors import HoldfastError, StoreAway, StoreFull, StoreGone
from holdfast.core.redaction import NO_SECRETS, Secrets
from holdfast.ports.upkeep import Commits
from holdfast.store.lines import Operation, Queues, Result
from holdfast.store.sqlite.batch import CommitLost, answerable, commit, read_back
from holdfast.store.sqlite.ground import Ground, leave
from holdfast.store.sqlite.reserve import Reserve
from holdfast.store.sqlite.tx import SqliteTx
from holdfast.store.sqlite.wal import WalLength, copied_back

RESERVE_RETRY_S = 1.0
LOOK_S = 1.0  # How long a database that is gone may stay unnoticed while nothing is written.
HOLD_S = 10.0  # How long those wait who can do nothing else while another program holds the database.
PROBE_S = 0.02  # How soon it is tried again when nobody waits.
REOPEN_TRIES = 10
REOPEN_WAIT_S = 0.3
FULL_BYTES = 200 * 1024


class Threads(Queues):
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
        secrets: Secrets = NO_SECRETS,
    ) -> None:
        super().__init__(readers=readers, max_batch=max_batch)
        self._open_writer, self._open_reader = open_writer, open_reader
        self._reserve, self._ground, self._secrets = reserve, ground, secrets
        self._full = False
        self._gone: StoreGone | None = None
        self._away_since: float | None = None
        self._looked = 0.0
        self._reserve_tried = 0.0
        self._wal = WalLength(self._copy_elsewhere if readers else None)
        self._start()

    # on the event loop

    @property
    def degraded(self) -> str | None:
        if self._broken:
            return self._broken
        if self._gone:
            return str(self._gone)
        if self._away_since is not None:
            return "another program has locked the database"
        return "the disk is full" if self._full else None

    def _check_usable(self, when_full: bool, waits: bool) -> None:
        if self._gone:
            raise self._gone
        if self._away_since is not None and not waits:
            raise StoreAway
        if self._full and not when_full:
            raise StoreFull

    def _have_copied(self) -> None:
        self._reads.put((self._loop.create_future(), lambda tx: self._wal.copy_most(tx.db, may=self._has_room), ()))

    def _join(self) -> None:
        super()._join()
        self._wal.close()

    # in the threads

    def _has_room(self) -> bool:
        return not self._full and self._gone is None

    def _copy_elsewhere(self) -> None:
        """A reader copies the write-ahead log back, so that no commit waits for it."""
        self._on_loop(self._have_copied)

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
            self._break(f"its writer stopped: {error}", batch)

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
            if batch := self._take():
                return batch
            if self._away_since is not None:
                self._probe(db)
            if not self._wait(self._patience_s()):
                return []

    def _patience_s(self) -> float:
        """How long the writer may sleep with nothing to write; negative: until it is woken."""
        if self._away_since is not None:
            return PROBE_S
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
                # If only the WAL is lost, what was in it is safe now.
                copied_back(db)

    def _perform(self, db: apsw.Connection, batch: list[Operation]) -> tuple[apsw.Connection, list[Result]]:
        """An answer for every operation of the batch, whatever happens to the disk. Nothing is acknowledged before the database has been
        seen in its place after the commit.
        """
        if self._gone is None:
            began, before = time.monotonic(), self.commits
            db, results = self._commit(db, batch)
            self.commits = Commits(before.count + 1, before.seconds + time.monotonic() - began)
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
                done, again = commit(db, batch, self._secrets), []
            except CommitLost as lost:
                db, settled = self._reopen(db, lost)
                done, again = lost.done + settled, lost.rest
            except StoreAway as away:
                batch = self._hold(batch, away)
                continue
            if self._away_since is not None:
                self._come_back()
            full = {id(result.future) for result in done if isinstance(result.error, StoreFull)}
            if full and self._give_up_reserve():
                # There is room again, for what ends something.
                self._save_room(db)
                again = [operation for operation in batch if operation.when_full and id(operation.future) in full] + again
            trying = {id(operation.future) for operation in again}
            results += [result for result in done if id(result.future) not in trying]
            batch = again
        return db, results

    def _hold(self, batch: list[Operation], away: StoreAway) -> list[Operation]:
        """Another program holds the database. Those who do not wait hear of it now, the others after a while. Gives who still waits."""
        now = time.monotonic()
        if self._away_since is None:
            self._away_since = now
            self._on_loop(self._back.clear)
        over = now - self._away_since >= HOLD_S
        self._answer([Result(operation.future, None, away) for operation in batch if over or not operation.waits])
        return [] if over else [operation for operation in batch if operation.waits]

    def _probe(self, db: apsw.Connection) -> None:
        """Whether the database can be written again, though nobody has anything to write."""
        try:
            db.execute("BEGIN IMMEDIATE")
            db.execute("ROLLBACK")
        except apsw.Error:
            return
        self._come_back()

    def _come_back(self) -> None:
        self._away_since = None
        self._on_loop(self._back.set)

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
                lasting = self._gone is None and not isinstance(error, apsw.CantOpenError | apsw.BusyError)
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
        if self._reserve is not None and FULL_BYTES <= self._wal.size <= self._reserve.room():
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
                result = Result(future, run(SqliteTx(db, self._secrets), *arguments), None)
            except Exception as error:  # The boundary: a read's failure belongs to its caller.
                result = Result(future, None, answerable(db, error))
            if not self._answer_read(result):
                break
        if db is not None:
            self._close(db)
