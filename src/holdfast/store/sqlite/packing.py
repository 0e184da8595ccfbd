"""The bytes of blobs inside a backup, so that a backup is one file: a table that only copies have."""

import contextlib
import errno
import hashlib
import os
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path

import apsw

from holdfast import files
from holdfast.core.errors import StoreFull
from holdfast.store.sqlite.connection import fetch

PIECE = 1024 * 1024
TABLE = "CREATE TABLE blob_bytes (digest TEXT NOT NULL, piece INTEGER NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY (digest, piece))"
# Until a copy has its name nobody counts on it: neither a journal nor a sync makes it safer, and the whole file is synchronised at the end.
UNSAFE = "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA secure_delete = OFF"


def pack(copy: Path, folder: Path) -> set[str]:
    """Puts the bytes of all blobs that a copy has rows of into it. Gives the digests of those that conversations name and that are not
    whole on disk.
    """
    db = apsw.Connection(str(copy))
    lost = set()
    try:
        rows = fetch(db, "SELECT digest, file, EXISTS (SELECT 1 FROM blob_use u WHERE u.digest = b.digest) FROM blob b")
        if rows:
            db.execute(UNSAFE)
            db.execute(TABLE)
        for digest, file, used in rows:
            with db:
                if not _put(db, digest, folder / file):
                    db.execute("DELETE FROM blob_bytes WHERE digest = ?", (digest,))
                    lost |= {digest} if used else set()
    finally:
        db.close()
    return lost


def _put(db: apsw.Connection, digest: str, path: Path) -> bool:
    """Whether the file has the bytes that the digest is of."""
    found = hashlib.sha256()
    try:
        with path.open("rb") as file:
            for piece, data in enumerate(iter(lambda: file.read(PIECE), b"")):
                found.update(data)
                db.execute("INSERT INTO blob_bytes VALUES (?, ?, ?)", (digest, piece, data))
    except OSError:
        return False
    return found.hexdigest() == digest


class Unpacking:
    """The blobs of a backup on their way into the folder of a home. Files have names that nothing there has."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: list[Path] = []

    def unpack(self, db: apsw.Connection, folder: Path) -> int:
        """Makes a file of each blob that the database has a row of: from its own table or, where it has none, from `folder`. Rows without
        their bytes are removed. Gives how many of those are named by conversations. Raises `StoreFull`.
        """
        packed = bool(fetch(db, "SELECT 1 FROM sqlite_schema WHERE name = 'blob_bytes'"))
        lost = 0
        for digest, file, used in fetch(db, "SELECT digest, file, EXISTS (SELECT 1 FROM blob_use u WHERE u.digest = b.digest) FROM blob b"):
            made = self._make(digest, _packed(db, digest) if packed else _pieces(folder / file))
            if made is None:
                lost += used
                db.execute("DELETE FROM blob WHERE digest = ?", (digest,))
                db.execute("DELETE FROM upload WHERE digest = ?", (digest,))
            else:
                db.execute("UPDATE blob SET file = ? WHERE digest = ?", (made, digest))
        if self._made:
            files.sync(self._folder)
        return lost

    def _make(self, digest: str, pieces: Iterable[bytes]) -> str | None:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        path = self._folder / f"{digest}-{secrets.token_hex(8)}"
        found = hashlib.sha256()
        try:
            with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
                self._made.append(path)
                for data in pieces:
                    found.update(data)
                    file.write(data)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise StoreFull from error
            raise
        if found.hexdigest() == digest:
            return path.name
        path.unlink()
        return None

    def undo(self) -> None:
        """The restore did not come about."""
        for path in self._made:
            path.unlink(missing_ok=True)


def drop(db: apsw.Connection) -> None:
    """The bytes are files now: the database is made small again. It must be closed cleanly, and in use by nobody."""
    if fetch(db, "SELECT 1 FROM sqlite_schema WHERE name = 'blob_bytes'"):
        db.execute(UNSAFE)
        db.execute("DROP TABLE blob_bytes")
        db.execute("VACUUM")


def _packed(db: apsw.Connection, digest: str) -> Iterator[bytes]:
    piece = 0
    while rows := fetch(db, "SELECT bytes FROM blob_bytes WHERE digest = ? AND piece = ?", (digest, piece)):
        yield rows[0][0]
        piece += 1


def _pieces(path: Path) -> Iterator[bytes]:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), path.open("rb") as file:
        yield from iter(lambda: file.read(PIECE), b"")
