"""The length of SQLite's write-ahead log: when it is copied back into the database."""

import time
from collections.abc import Callable

import apsw

from holdfast.store.sqlite.connection import wait_a_while, wait_for_the_other

# The writer copies the WAL back when it is this long. Readers that follow each other closely keep it from being used
# again from its start; when it has grown to the second length, the writer waits a moment until none of them is in it.
CHECKPOINT_PAGES = 2000
RESTART_PAGES = 6000
RESTART_WAIT_S = 0.1  # As long as a read may take.


class WalLength:
    """Keeps the write-ahead log from growing. Copying it back happens after the answers, in the writer's own time."""

    def __init__(self) -> None:
        self.pages = 0
        self._next = CHECKPOINT_PAGES

    def watch(self, db: apsw.Connection) -> None:
        """Takes the place of SQLite's own automatic checkpoint."""
        db.set_wal_hook(self._committed)
        db.set_busy_handler(wait_a_while)

    def _committed(self, db: apsw.Connection, name: str, pages: int) -> int:
        self.pages = pages
        return apsw.SQLITE_OK

    def keep_short(self, db: apsw.Connection) -> None:
        if self.pages < self._next:
            if self.pages < CHECKPOINT_PAGES:
                self._next = CHECKPOINT_PAGES  # It has started over.
            return
        if self.pages >= RESTART_PAGES:
            checkpoint(db, apsw.SQLITE_CHECKPOINT_RESTART, after=wait_a_while)
        else:
            checkpoint(db, apsw.SQLITE_CHECKPOINT_PASSIVE, after=wait_a_while)
        self._next = self.pages + CHECKPOINT_PAGES

    def give_back(self, db: apsw.Connection) -> None:
        if checkpoint(db, apsw.SQLITE_CHECKPOINT_TRUNCATE, after=wait_a_while):
            self.pages = 0


def checkpoint(db: apsw.Connection, mode: int, *, after: Callable[[int], bool] = wait_for_the_other) -> bool:
    """False when a reader or another process was in the way, or there is no room. What was committed is safe where it is. `after`: how the
    connection waits for others from then on.
    """
    until = time.monotonic() + RESTART_WAIT_S
    db.set_busy_handler(lambda tries: time.monotonic() < until and wait_for_the_other(tries))
    try:
        db.wal_checkpoint(mode=mode)
    except apsw.Error:
        return False
    finally:
        db.set_busy_handler(after)
    return True
