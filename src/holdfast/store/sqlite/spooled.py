"""Spools inside a backup, so that a backup is one file: what running turns had recorded while the database was locked.

They are read before the database is copied: what was stored in between is in both, and shipping it again changes nothing. A restore ships
them into the copy before anything in it counts as interrupted; only what cannot be read becomes a file again.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import apsw

from holdfast.core import journals
from holdfast.core.errors import NotFound
from holdfast.core.journals import Fate, Limits
from holdfast.core.spools import Gone, Unreadable, is_place, read_file
from holdfast.ports.journals import Journal
from holdfast.spool import FolderSpool
from holdfast.store.sqlite.connection import fetch
from holdfast.store.sqlite.tx import SqliteTx
from holdfast.store.work.journals import ship

TABLE = "CREATE TABLE spool_bytes (owner TEXT NOT NULL, name TEXT NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY (owner, name))"


class Spool(NamedTuple):
    owner: str
    name: str
    data: bytes


class Gathered(NamedTuple):
    """`missed`: how many spools, and folders of spools, cannot be read."""

    spools: list[Spool]
    missed: int


def gather(home: Path) -> Gathered:
    """Every spool as it is in this moment. One that cannot be read is empty, so that its turn waits for it after a restore."""
    folder = FolderSpool(home)
    files, hidden = folder.look()
    found, missed = [], len(hidden)
    for file in files:
        try:
            found.append(Spool(file.owner, file.name, folder.bytes_now(file)))
        except Gone:
            continue  # Its events are stored.
        except Unreadable:
            found.append(Spool(file.owner, file.name, b""))
            missed += 1
    return Gathered(found, missed)


def pack(copy: Path, spools: list[Spool]) -> None:
    if not spools:
        return
    db = apsw.Connection(str(copy))
    try:
        with db:
            db.execute(TABLE)
            db.executemany("INSERT INTO spool_bytes VALUES (?, ?, ?)", spools)
    finally:
        db.close()


def packed(db: apsw.Connection) -> list[Spool]:
    if not fetch(db, "SELECT 1 FROM sqlite_schema WHERE name = 'spool_bytes'"):
        return []
    spools = [Spool(*row) for row in fetch(db, "SELECT owner, name, bytes FROM spool_bytes")]
    return [spool for spool in spools if is_place(spool.owner, spool.name)]


def ship_all(tx: SqliteTx, spools: list[Spool], at: int) -> list[Spool]:
    """Inside the transaction of a restore. Gives those of which something cannot be read."""
    return [spool for spool in spools if _ship(tx, spool, at) is Fate.DAMAGED]


def _ship(tx: SqliteTx, spool: Spool, at: int) -> Fate:
    try:
        contents = read_file(spool.data, owner=spool.owner, name=spool.name)
    except Unreadable:
        return Fate.DAMAGED
    header, sight, refusal = contents.header, journals.sight(contents, size=len(spool.data), settled=True), None
    try:
        # A restore must not fail for a wrong setting, so it reads none: the usual limits hold for this one look.
        ship(tx, Journal(header.session_id, header.turn_id, header.epoch), contents.events, sight, Limits(), at)
        tx.flush()
    except NotFound as error:
        refusal = error
    return journals.fate(sight.found, refusal)


@contextlib.contextmanager
def put_back(home: Path, spools: list[Spool]) -> Iterator[None]:
    """Files again, durable, for a process that may still read them: before the database is in place that waits for them. If it does not
    get there, they are gone again.
    """
    folder = FolderSpool(home)
    try:
        for spool in spools:
            folder.put_now(spool.owner, spool.name, spool.data)
        yield
    except BaseException:
        for spool in spools:
            folder.remove_now(spool.owner, spool.name)
        raise


def drop(db: apsw.Connection) -> None:
    db.execute("DROP TABLE IF EXISTS spool_bytes")
