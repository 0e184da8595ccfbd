"""Whether the database that is open here is still the one its path leads to. Looks and compares; what follows from it is the writer's."""

import os
from pathlib import Path

import apsw
import msgspec

from holdfast.core.errors import Refused, StoreGone
from holdfast.store.sqlite.connection import fetch

Place = tuple[int, int]
# What SQLite keeps open next to the database, and replaces only when nobody has it open.
COMPANIONS = ("-wal", "-shm")


class StrangeDatabase(Refused):
    code = "strange_database"

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} is not the database that the serving process has open: it was removed, replaced or moved away. "
            "Put the same file back, or stop Holdfast and start it again with what is there now."
        )


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """One database: the random token inside it, and device and inode of each of its files. A copy has a token of its own."""

    token: int
    files: dict[str, Place]


class Ground:
    """Knows which database this process opened. `expected`: it must be the one that another process has open.

    A look opens no file: closing a second descriptor of the database would take SQLite's locks away.
    """

    def __init__(self, path: Path, expected: Identity | None = None) -> None:
        self._path = path
        self._token = expected.token if expected else None
        self._files: dict[str, Place] = dict(expected.files) if expected else {}
        if expected is not None and not self.stands():
            raise StrangeDatabase(path)

    @property
    def identity(self) -> Identity:
        assert self._token is not None
        return Identity(token=self._token, files=self._files)

    def learn(self, db: apsw.Connection) -> None:
        """The first connection of this process: from now on its database is the one that counts."""
        found, token = _place(str(self._path)), token_of(db)
        if self._token not in (None, token) or self._files.get(str(self._path), found) != found:
            raise StrangeDatabase(self._path)
        self._token, self._files = token, {**self._files, str(self._path): found}

    def hold(self, db: apsw.Connection) -> apsw.Connection:
        """A new connection of the writer. If it was the only one, it made the files next to the database again."""
        database = str(self._path)
        if self._is_another(db) or _place(database) != self._files[database]:
            raise self._gone(db)
        self._files = {name: _place(name) for name in (database, *(database + end for end in COMPANIONS))}
        return db

    def join(self, db: apsw.Connection) -> apsw.Connection:
        """A new connection of a reader, opened by the path: it must have reached the same database."""
        if self._is_another(db) or not self.stands():
            raise self._gone(db)
        return db

    def stands(self) -> bool:
        try:
            for name, place in self._files.items():
                found = os.stat(name)
                if found.st_ino != place[1] or found.st_dev != place[0]:
                    return False
        except OSError:
            return False
        return True

    def gone(self) -> StoreGone:
        return StoreGone(str(self._path))

    def _is_another(self, db: apsw.Connection) -> bool:
        try:
            return token_of(db) != self._token
        except apsw.SQLError:  # It has no such table.
            return True

    def _gone(self, db: apsw.Connection) -> StoreGone:
        leave(db)
        return self.gone()


def token_of(db: apsw.Connection) -> int:
    return int(fetch(db, "SELECT value FROM meta WHERE name = 'identity'")[0][0])


def leave(db: apsw.Connection) -> None:
    """Closes a connection without touching what its path leads to now: that may be somebody else's."""
    db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    db.close(True)


def _place(name: str) -> Place:
    found = os.stat(name)
    return found.st_dev, found.st_ino
