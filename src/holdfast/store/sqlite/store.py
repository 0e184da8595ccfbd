"""The store on SQLite: what only this engine does, and how the store of a home folder is opened."""

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import apsw

from holdfast import files
from holdfast.core.blobs import FOLDER
from holdfast.core.errors import Refused, StoreFull, StoreGone, Unavailable
from holdfast.core.redaction import NO_SECRETS, Secrets
from holdfast.core.shutdowns import Shutdown
from holdfast.ports.log import NOTHING, Changes, Cursor, Make
from holdfast.ports.upkeep import Copied
from holdfast.store import upkeep
from holdfast.store.lines import Lines
from holdfast.store.port import TxStore
from holdfast.store.sqlite import changes, packing, reserve, scrub, spooled
from holdfast.store.sqlite.connection import check_place, connect, migrate, reader
from holdfast.store.sqlite.ground import Ground, Identity, token_of
from holdfast.store.sqlite.threads import Threads
from holdfast.store.sqlite.tx import SqliteTx, in_tx, rebuild

DATABASE = "holdfast.db"
RESTORING = ".restoring.db"  # A restored database, until it takes the place of the other.
RESERVE = "reserve"
# What was purged between the copy of the database and that of its blobs is missing from the copy; the next one knows it.
COPIES = 2


class SqliteStore(TxStore):
    """`ground`: knows which database is open, where that is a file of its own."""

    def __init__(self, lines: Lines, *, now: Callable[[], int], ground: Ground | None = None) -> None:
        super().__init__(lines, now=now)
        self._ground = ground
        self._names: dict[int, str] = {}  # A session's number never names another one.

    async def changes(self, cursor: Cursor | None, *, behind: Mapping[str, int] = NOTHING, make: Make | None = None) -> Changes:
        return await self._checked(*await self._lines.read(changes.changes, cursor, behind, self._names, make))

    async def backup(self, path: str) -> Copied:
        return await self._lines.read(_copy, path)

    @property
    def identity(self) -> Identity | None:
        """By which a successor knows that it opened the same database."""
        return self._ground.identity if self._ground else None

    async def _scrub(self, steps: int) -> int:
        stage = await self._lines.read(scrub.scrub_stage)
        while stage in (scrub.TO_MERGE, scrub.MERGING) and steps:
            steps -= 1
            stage = await self._lines.write(scrub.scrub_step)
        if stage == scrub.TO_TRUNCATE and await self._lines.read(scrub.truncate_log):
            await self._lines.write(scrub.scrubbed)
        return steps


def _copy(tx: SqliteTx, path: str) -> Copied:
    """`VACUUM INTO` reads one consistent state; a copy that was cut short never stands under the final name."""
    partial = f"{path}.partial"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(partial)
    os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    copier = connect(Path(tx.db.filename), create=False)  # A reader's own connection may write nothing, not even another file.
    try:
        if token_of(copier) != token_of(tx.db):
            raise StoreGone(tx.db.filename)
        lost: set[str] = set()
        spools, missed = spooled.gather(Path(tx.db.filename).parent)
        for _ in range(COPIES):
            os.truncate(partial, 0)
            copier.execute("VACUUM INTO ?", (partial,))
            lost = packing.pack(Path(partial), Path(tx.db.filename).parent / FOLDER)
            if not lost:
                break
        spooled.pack(Path(partial), spools)
        _give_identity(partial)
        files.put_in_place(Path(partial), Path(path).absolute())
        return Copied(lost=len(lost), missed=missed)
    finally:
        copier.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(partial)


def _give_identity(path: str) -> None:
    """A copy is a database of its own: put in the place of the one it was made from, it is not taken for that one."""
    copy = apsw.Connection(path)
    try:
        copy.execute("UPDATE meta SET value = random() WHERE name = 'identity'")
    finally:
        copy.close()


async def open_store(
    home: Path,
    *,
    now: Callable[[], int],
    reserve_bytes: int = reserve.BYTES,
    expected: Identity | None = None,
    secrets: Secrets = NO_SECRETS,
) -> SqliteStore:
    """The store of a home folder, its schema brought up to date. Raises `Refused`, with what to do, where place or schema will not do, and
    where the database is not the `expected` one. `secrets` are replaced in everything that is recorded.
    """
    check_place(home)
    path = home / DATABASE
    ground = Ground(path, expected)
    if expected is None:
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
    try:
        first = connect(path, create=False)
        try:
            migrate(first, rebuild)
            ground.learn(first)
        except BaseException:
            first.close()
            raise
    except (apsw.NotADBError, apsw.CorruptError) as error:
        raise Refused(
            f"{path} is damaged or not a database of Holdfast ({error}). `holdfast restore PATH` puts a backup in its place."
        ) from error
    except apsw.FullError as error:
        raise StoreFull from error
    open_reader = reader(path)
    opened = [first]  # For the writer. Closing the only connection would copy the write-ahead log back, however long it is.
    lines = Threads(
        open_writer=lambda: ground.hold(opened.pop() if opened else connect(path, create=False)),
        open_reader=lambda: ground.join(open_reader()),
        reserve=reserve.Reserve(home / RESERVE, reserve_bytes),
        ground=ground,
        secrets=secrets,
    )
    return SqliteStore(lines, now=now, ground=ground)


def tell_owners(home: Path, stop: Shutdown) -> None:
    """For a process that has closed its store: passes a stop on to all owners of a home. Raises `Unavailable`."""
    _write_once(home, upkeep.tell_owners, stop, None)


def record_stop(home: Path, owners: Sequence[int], *, reason: str) -> None:
    """For a command that killed these owners because an operator wants them stopped: their ends are no crashes. Raises `Unavailable`."""
    _write_once(home, upkeep.record_stop, owners, reason)


def _write_once(home: Path, work: Callable[..., None], *arguments: Any) -> None:
    try:
        db = connect(home / DATABASE, create=False)
        try:
            db.execute("BEGIN IMMEDIATE")  # What reads first and writes then must wait for others at its beginning, or is refused.
            in_tx(db, work, *arguments)
            db.execute("COMMIT")
        finally:
            db.close()
    except apsw.Error as error:
        raise Unavailable(f"The store cannot be written: {error}.") from error
