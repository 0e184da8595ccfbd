"""Opening the database file: where it may lie, how it is set up, which schema it has."""

import contextlib
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw

from holdfast.core.errors import Refused

SCHEMA_VERSION = 9
# The oldest schema whose programs can still write while one of this version does.
OLDEST_PREDECESSOR = 5
# Since this version the catalog is derived as it is now.
CATALOG_SINCE = 2
# Since this version what is removed is overwritten on the spot.
OVERWRITTEN_SINCE = 4
_SQL = Path(__file__).parent


def upgrade(version: int) -> str:
    """The step that leads to a version from the one before it."""
    return _SQL.joinpath(f"upgrade_{version}.sql").read_text()


# SQLite's WAL needs memory shared between processes and locks that are true; these file systems do not have both.
UNFIT = {
    "9p", "afs", "beegfs", "ceph", "cifs", "fakeowner", "fuse.glusterfs", "fuse.grpcfuse", "fuse.osxfs", "fuse.rclone", "fuse.s3fs",
    "fuse.sshfs", "glusterfs", "lustre", "nfs", "nfs4", "prl_fs", "smb3", "smbfs", "vboxsf", "virtiofs",
}  # fmt: skip

# A message touches ten pages or so, and each is written whole: a quarter of SQLite's usual size writes half as much. Smaller ones would
# hold no message. Counts for new files.
PAGE_BYTES = 1024

# How many uses of other statements a compiled one outlives: the most that there may be. A stream of pieces uses up one for each.
KEPT_STATEMENTS = 512

BUSY_SLEEP_S = 0.0005
BUSY_TRIES = 20_000
# For a writer that tells others when a database stays locked: about a second.
BUSY_TRIES_AT_ONCE = 1_800


class UnfitPlace(Refused):
    code = "unfit_place"


def file_system(path: Path, mounts: str = "/proc/self/mounts") -> str | None:
    """The type of the file system that holds a path, where the system tells."""
    try:
        lines = Path(mounts).read_text().splitlines()
    except OSError:
        return None
    wanted = os.path.realpath(path)
    best, kind = "", None
    for line in lines:
        _, point, name, *_ = [*line.split(" "), "", "", ""]
        point = re.sub(r"\\([0-7]{3})", lambda escaped: chr(int(escaped[1], 8)), point)
        inside = wanted == point or wanted.startswith(point.rstrip("/") + "/")
        if point and inside and len(point) >= len(best):
            best, kind = point, name
    return kind


def check_place(path: Path, mounts: str = "/proc/self/mounts") -> None:
    kind = file_system(path, mounts)
    if kind in UNFIT:
        raise UnfitPlace(
            f"{path} lies on a {kind} file system, which cannot hold the database safely (shared WAL). "
            "Choose a folder on a local disk with --home or HOLDFAST_HOME."
        )


def wait_for_the_other(tries: int) -> bool:
    time.sleep(BUSY_SLEEP_S)
    return tries < BUSY_TRIES


def wait_a_while(tries: int) -> bool:
    time.sleep(BUSY_SLEEP_S)
    return tries < BUSY_TRIES_AT_ONCE


def connect(path: Path, *, vfs: str | None = None, exclusive: bool = False, create: bool = True) -> apsw.Connection:
    """A connection that is durable at each commit and waits for another process's commit in small steps."""
    flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if create else 0)
    return set_up(apsw.Connection(str(path), flags=flags, vfs=vfs, statementcachesize=KEPT_STATEMENTS), exclusive=exclusive)


def set_up(db: apsw.Connection, *, exclusive: bool = False) -> apsw.Connection:
    # SQLite's own back-off sleeps up to 100 ms at a time; two busy writers would stall each other.
    db.set_busy_handler(wait_for_the_other)
    # No plan depends on a value. Otherwise each statement in which one might decide about a partial index is compiled for every use.
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    if exclusive:
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
    db.execute(f"PRAGMA page_size = {PAGE_BYTES}")
    mode = fetch(db, "PRAGMA journal_mode = WAL")[0][0]
    if mode not in ("wal", "memory"):
        raise UnfitPlace(f"{db.filename} cannot have a write-ahead log (SQLite offers {mode!r}). Choose a folder on a local disk.")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("PRAGMA fullfsync = 1")
    db.execute("PRAGMA foreign_keys = OFF")
    db.execute("PRAGMA secure_delete = ON")  # What was removed is overwritten: deleted means gone.
    return db


def fetch(db: apsw.Connection, sql: str, bindings: tuple[Any, ...] = ()) -> list[Any]:
    """All rows, at once: no cursor stays open and holds up the checkpoints."""
    return db.execute(sql, bindings).fetchall()


def migrate(db: apsw.Connection, rebuild: Callable[[apsw.Connection], None] = lambda db: None) -> None:
    """Brings the schema to this version, or refuses one that is newer than this program. A catalog that an older program derived is
    rebuilt from the log.
    """
    found = _version(db)
    if found == SCHEMA_VERSION:
        return
    if 0 < found < OVERWRITTEN_SINCE:
        _leave_no_traces(db)
    db.execute("BEGIN IMMEDIATE")
    try:
        found = _version(db)  # Read again: another process may have been faster.
        if found == 0:
            db.execute(_SQL.joinpath("schema.sql").read_text())
        else:
            for version in range(found + 1, SCHEMA_VERSION + 1):
                db.execute(upgrade(version))
            if found < CATALOG_SINCE:
                rebuild(db)
        db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def _leave_no_traces(db: apsw.Connection) -> None:
    """Earlier versions left what they removed readable in the file. Where there is no room for a new one, it stays as it is."""
    with contextlib.suppress(apsw.FullError):
        db.execute("VACUUM")


def check_predecessor(version: int) -> None:
    """Refuses to take over from a program that could not work with the database once this one has changed it."""
    if version < OLDEST_PREDECESSOR:
        raise Refused(
            f"This version changes the database (schema {version} to {SCHEMA_VERSION}) in a way the running version cannot work with. "
            "Stop the gateway and start it again: `holdfast stop`, then `holdfast serve`."
        )


def reader(path: Path) -> Callable[[], apsw.Connection]:
    def open_reader() -> apsw.Connection:
        db = connect(path, create=False)
        db.execute("PRAGMA query_only = 1")
        return db

    return open_reader


def _version(db: apsw.Connection) -> int:
    found = int(db.pragma("user_version"))
    if found > SCHEMA_VERSION:
        raise Refused(f"The database has schema {found}; this Holdfast knows up to {SCHEMA_VERSION}. Use the newer Holdfast that wrote it.")
    return found
