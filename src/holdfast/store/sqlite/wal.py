"""The length of SQLite's write-ahead log: when it is copied back into the database, and by whom."""

import contextlib
import os
import time
from collections.abc import Callable
from functools import cache

import apsw

from holdfast.store.sqlite.connection import PAGE_BYTES, wait_a_while, wait_for_the_other

# At this length, in pages of 1 KB, the WAL is copied back. A page that changed often is copied once, so a long WAL writes less. Copying
# takes several milliseconds: another thread does it while the writer commits, until so few pages are left that the writer copies them
# itself between two commits. Only then can the WAL be used from its start again.
CHECKPOINT_PAGES = 6000
REST_PAGES = 200
PASSES = 3
# Readers that follow each other closely keep it from starting over. At this length the writer waits a moment until none of them is in it.
RESTART_PAGES = 12000  # Less than the reserve for a full disk holds.
RESTART_WAIT_S = 0.1  # As long as a read may take.
# At most so many bytes are written out at once, so that a commit that comes meanwhile waits for no more.
PORTION = 1024 * 1024
WRITE_AND_WAIT = 7  # SYNC_FILE_RANGE_WAIT_BEFORE, _WRITE and _WAIT_AFTER.


class WalLength:
    """Keeps the write-ahead log from growing. Nobody who waits for a commit waits for more than a few pages to be copied.

    `elsewhere` has `copy_most` run in another thread, on a connection of that thread. Without it the writer does everything.
    """

    def __init__(self, elsewhere: Callable[[], None] | None = None) -> None:
        self.pages = 0
        self._page_bytes = PAGE_BYTES
        self._elsewhere = elsewhere
        self._next = CHECKPOINT_PAGES
        self._asked = False  # Another thread copies most of it, or is about to.
        self._rest = False  # Another thread has copied all but a few pages of it.
        self._database: int | None = None  # A descriptor of our own.

    def watch(self, db: apsw.Connection) -> None:
        """Takes the place of SQLite's own automatic checkpoint."""
        db.set_wal_hook(self._committed)
        db.set_busy_handler(wait_a_while)
        self._page_bytes = int(db.pragma("page_size"))

    @property
    def size(self) -> int:
        """In bytes. How large a page is was decided when the database was made."""
        return self.pages * self._page_bytes

    def _in_pages(self, limit: int) -> int:
        """A home that was made with larger pages has fewer of them."""
        return limit * PAGE_BYTES // self._page_bytes

    def _committed(self, db: apsw.Connection, name: str, pages: int) -> int:
        self.pages = pages
        return apsw.SQLITE_OK

    def keep_short(self, db: apsw.Connection) -> None:
        """In the writer's own time, after the answers."""
        length = self._in_pages(CHECKPOINT_PAGES)
        if self._rest:
            self._rest = False
            if length <= self.pages:
                copied_back(db)
        elif self.pages < length:
            self._next = length  # It has started over.
        elif self.pages >= max(self._next, self._in_pages(RESTART_PAGES)):
            self._asked = False  # The other thread had its time.
            checkpoint(db, apsw.SQLITE_CHECKPOINT_RESTART, after=wait_a_while)
            self._next = self.pages + length
        elif self.pages >= self._next and not self._asked:
            self._next = self.pages + length
            if self._elsewhere is None:
                copied_back(db)
            else:
                self._asked = True
                self._elsewhere()

    def copy_most(self, db: apsw.Connection, *, may: Callable[[], bool]) -> None:
        """In another thread. What was committed during one pass is left for the next. `may`: no longer where the disk is full, because the
        room that is left is for the ends of what runs.
        """
        left = 0
        for _ in range(PASSES):
            if not may():
                break
            copied = copied_back(db)
            if copied is not None:
                self._flush(db)
            left = 0 if copied is None else self.pages - copied
            if left <= REST_PAGES:
                break
        self._asked, self._rest = False, 0 < left <= REST_PAGES

    def _flush(self, db: apsw.Connection) -> None:
        """Has the disk take what was copied into the database. SQLite does that only when it has copied everything, and so leaves it to the
        writer, who comes last. By a descriptor of our own: an error is told once to each, and SQLite has to hear of it, too.
        """
        with contextlib.suppress(OSError):
            if self._database is None:
                self._database = os.open(db.filename, os.O_RDONLY | os.O_CLOEXEC)
            _write_out(self._database)
            (os.fdatasync if hasattr(os, "fdatasync") else os.fsync)(self._database)

    def close(self) -> None:
        """Once all connections are closed: closing any descriptor of the database gives up the locks that SQLite has on it."""
        if self._database is not None:
            os.close(self._database)
            self._database = None

    def give_back(self, db: apsw.Connection) -> None:
        if checkpoint(db, apsw.SQLITE_CHECKPOINT_TRUNCATE, after=wait_a_while):
            self.pages = 0


def _write_out(descriptor: int) -> None:
    """In portions, where the system can: a sync of all of it at once would keep the disk from every commit for its whole time. It promises
    nothing; the sync after it does, and has little left to do.
    """
    if (sync := _sync_file_range()) is not None:
        for place in range(0, os.fstat(descriptor).st_size, PORTION):
            sync(descriptor, place, PORTION, WRITE_AND_WAIT)


@cache
def _sync_file_range() -> Callable[[int, int, int, int], object] | None:
    import ctypes  # When the log is first long enough, not at every start.

    found = getattr(ctypes.CDLL(None), "sync_file_range", None)
    if found is not None:
        found.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
    return found


def copied_back(db: apsw.Connection) -> int | None:
    """Copies what no reader holds up, without waiting for anybody. Gives how many pages of the WAL are in the database now; None when
    another one copies it, or there is no room. What was committed is safe where it is.
    """
    try:
        return db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)[1]
    except apsw.Error:
        return None


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
