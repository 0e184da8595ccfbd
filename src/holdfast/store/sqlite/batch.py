"""Group commit: many operations, one transaction, an honest answer for each. Knows neither threads nor where the database lies."""

import contextlib
import errno
import secrets

import apsw

from holdfast.core.errors import Bug, HoldfastError, NotStorable, StoreAway, StoreFull, Unavailable
from holdfast.core.redaction import NO_SECRETS, Secrets
from holdfast.store.lines import Operation, Result
from holdfast.store.log import NOT_STORABLE
from holdfast.store.sqlite.connection import fetch
from holdfast.store.sqlite.tx import SqliteTx

SIGNED = -1  # In the place of an event's id: the mark is a token of its own.


class CommitLost(Exception):
    """COMMIT itself failed: whether `lost` is on disk must be read back. `done` is settled, `rest` was not tried."""

    def __init__(self, lost: list[Result], mark: tuple[int, int]) -> None:
        self.lost, self.mark = lost, mark
        self.done: list[Result] = []
        self.rest: list[Operation] = []
        self.error: HoldfastError = Unavailable("The store failed at a commit.")


def commit(db: apsw.Connection, batch: list[Operation], secrets: Secrets = NO_SECRETS) -> list[Result]:
    """Runs a batch as one transaction, each operation as if in a savepoint of its own. Nothing is answered before COMMIT returned.

    An operation may run twice. Raises `CommitLost` when nobody can know yet what is stored, `StoreAway` when another program holds the
    database and nothing is."""
    try:
        db.execute("BEGIN IMMEDIATE")
    except apsw.BusyError as error:
        raise StoreAway from error
    except apsw.Error as error:  # It cannot be read: true for all of them.
        return [Result(operation.future, None, translated(db, error)) for operation in batch]
    try:
        results = _run(db, batch, secrets, savepoints=False)
        if results is None:  # An operation failed after it had written something.
            db.execute("BEGIN IMMEDIATE")
            results = _run(db, batch, secrets, savepoints=True)
        assert results is not None
        return results
    except apsw.Error as error:
        failure = translated(db, error)
        if db.in_transaction:
            db.execute("ROLLBACK")
        return [Result(batch[0].future, None, failure)] if len(batch) == 1 else _one_by_one(db, batch, secrets)


def _one_by_one(db: apsw.Connection, batch: list[Operation], secrets: Secrets) -> list[Result]:
    """SQLite gave up the whole transaction: alone, each operation shows whether it was the culprit."""
    results: list[Result] = []
    for index, operation in enumerate(batch):
        try:
            results += commit(db, [operation], secrets)
        except CommitLost as lost:
            lost.done, lost.rest = results, batch[index + 1 :]
            raise
        except StoreAway as away:
            return results + [Result(left.future, None, away) for left in batch[index:]]
    return results


def _run(db: apsw.Connection, batch: list[Operation], secrets: Secrets, *, savepoints: bool) -> list[Result] | None:
    """The batch inside a transaction that has begun, and its COMMIT. None: it was undone and must run again with savepoints."""
    at_first, tx = db.total_changes(), SqliteTx(db, secrets)
    results: list[Result] = []
    for operation in batch:
        if savepoints:
            db.execute("SAVEPOINT operation")
        before = db.total_changes()
        try:
            value = operation.run(tx, *operation.arguments)
            tx.flush()
            results.append(Result(operation.future, value, None))
        except Exception as error:  # The boundary: an operation's failure belongs to its caller.
            tx.forget()
            if not db.in_transaction:
                raise  # SQLite undid the whole transaction, not only this operation.
            if savepoints:
                db.execute("ROLLBACK TO operation")
            elif db.total_changes() != before:
                db.execute("ROLLBACK")
                return None
            results.append(Result(operation.future, None, answerable(db, error)))
        if savepoints:
            db.execute("RELEASE operation")
    mark = _newest(db)
    if mark[0] < tx.first_event and db.total_changes() != at_first:
        mark = _sign(db)  # It changed something and left no event of its own by which to know it again.
    try:
        db.execute("COMMIT")
    except apsw.Error as error:
        lost = CommitLost(results, mark)
        lost.error = translated(db, error)
        raise lost from error
    return results


def read_back(db: apsw.Connection, lost: CommitLost) -> list[Result]:
    """What a new connection knows of a lost commit. Raises `apsw.Error` while even that cannot be known."""
    if _is_there(db, lost.mark):
        # Its sync may be what failed, and no second sync of the same bytes can be trusted. In the database file they are safe, once
        # the WAL has started over and its older frames cannot be read over them.
        db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)
        _settle(db)
        return lost.lost
    # Its frames may lie in the WAL and come to life at the next start. A commit in their place prevents that. Where there is no room for
    # one, there was none for them.
    with contextlib.suppress(apsw.FullError):
        _settle(db)
    return [Result(result.future, None, result.error or lost.error) for result in lost.lost]


def _settle(db: apsw.Connection) -> None:
    """A commit of nothing much, which also shows that commits work again."""
    db.execute("BEGIN IMMEDIATE")
    try:
        db.execute("UPDATE meta SET value = value + 1 WHERE name = 'settled'")
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def _newest(db: apsw.Connection) -> tuple[int, int]:
    """The newest event: what to look for when COMMIT fails."""
    rows = fetch(db, "SELECT id, checksum FROM event ORDER BY id DESC LIMIT 1")
    return rows[0] if rows else (0, 0)


def _sign(db: apsw.Connection) -> tuple[int, int]:
    token = secrets.randbits(62)
    db.execute("UPDATE meta SET value = ? WHERE name = 'commit_mark'", (token,))
    return SIGNED, token


def _is_there(db: apsw.Connection, mark: tuple[int, int]) -> bool:
    if mark[0] == SIGNED:
        return bool(fetch(db, "SELECT 1 FROM meta WHERE name = 'commit_mark' AND value = ?", mark[1:]))
    return bool(fetch(db, "SELECT 1 FROM event WHERE id = ? AND checksum = ?", mark))


def answerable(db: apsw.Connection | None, error: Exception) -> Exception:
    """An exception as its caller should see it."""
    if isinstance(error, apsw.Error):
        return translated(db, error)
    if isinstance(error, UnicodeDecodeError):
        return translated(db, apsw.CorruptError(f"a text is no text any more: {error}"))
    if isinstance(error, NOT_STORABLE):
        refusal = NotStorable(error)
        refusal.__cause__ = error
        return refusal
    return error


def translated(db: apsw.Connection | None, error: apsw.Error) -> HoldfastError:
    failure: HoldfastError
    no_room = isinstance(error, apsw.IOError) and db is not None and db.system_errno in (errno.ENOSPC, errno.EDQUOT)
    if no_room or isinstance(error, apsw.FullError):
        failure = StoreFull()
    elif isinstance(error, apsw.BusyError):
        failure = StoreAway()
    elif isinstance(error, apsw.ConstraintError | apsw.MismatchError | apsw.RangeError | apsw.SQLError):
        failure = Bug(f"The store refused what it should never be asked: {error}")
    else:
        failure = Unavailable(f"The store failed: {error}")
    failure.__cause__ = error
    return failure
