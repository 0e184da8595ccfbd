"""The database for those who only look at it: the command line, while a gateway runs or not. Nothing here changes what is stored."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import apsw

from holdfast.store.sqlite.connection import connect, fetch, reader
from holdfast.store.sqlite.threads import Threads
from holdfast.store.sqlite.tx import SqliteTx

T = TypeVar("T")
SOUND = "ok"
NO_CHECKPOINT_ON_CLOSE = 1006  # SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE


class ReadingLines(Threads):
    """The store's lines without a writing one. `strict` refuses every statement that would write."""

    def __init__(self, path: Path, *, strict: bool = True) -> None:
        def open_reader() -> apsw.Connection:
            db = reader(path)() if strict else connect(path)
            db.config(NO_CHECKPOINT_ON_CLOSE, 1)  # Reading leaves the files as they were, also when nobody else has them open.
            return db

        super().__init__(open_writer=lambda: connect(Path(":memory:")), open_reader=open_reader, reserve=None, readers=1)

    async def write(self, run: Callable[..., T], *arguments: Any, when_full: bool = False, waits: bool = True) -> T:
        """Reading puts damaged events into quarantine on its way. Here they are shown, and left to the gateway."""
        return None  # type: ignore[return-value]


def schema_version(tx: SqliteTx) -> int:
    return int(tx.db.pragma("user_version"))


def quick_check(tx: SqliteTx) -> str:
    """`ok`, or the first thing that SQLite finds wrong with the file."""
    return str(tx.query("PRAGMA quick_check(1)")[0][0])


def quarantined(tx: SqliteTx) -> int:
    """How many events could not be read and were set apart."""
    return int(tx.query("SELECT count(*) FROM quarantine")[0][0])


def newest_at(tx: SqliteTx) -> int:
    """The time of the record that was written last; 0 if there is none."""
    rows = tx.query("SELECT at FROM event ORDER BY id DESC LIMIT 1")
    return int(rows[0][0]) if rows else 0


def blob_files(tx: SqliteTx) -> list[tuple[str, str, int]]:
    """The digests of all blobs, their files, and how long those are."""
    return tx.query("SELECT digest, file, size FROM blob")


def check_copy(path: Path) -> str:
    """`ok`, or what is wrong with a copy that nobody else has open. It is left as one file, without a WAL."""

    def check(tx: SqliteTx) -> str:
        found = quick_check(tx)
        tx.query("PRAGMA journal_mode = DELETE")
        return found

    async def opened() -> str:
        lines = ReadingLines(path, strict=False)
        try:
            return await lines.read(check)
        finally:
            await lines.aclose()

    return asyncio.run(opened())


def sqlite_version() -> str:
    db = connect(Path(":memory:"))
    try:
        return str(fetch(db, "SELECT sqlite_version()")[0][0])
    finally:
        db.close()
