"""The write-ahead log is copied back while others commit: nobody who waits for a commit waits for that, and the log stays short."""

import asyncio
import contextlib
import os
import shutil
from pathlib import Path

import apsw
import pytest

from holdfast.store.sqlite import wal
from holdfast.store.sqlite.connection import connect, fetch, migrate, set_up
from holdfast.store.sqlite.store import DATABASE, SqliteStore, open_store
from holdfast.store.sqlite.threads import Threads
from tests.conformance.backends import quick_place
from tests.conformance.steps import NOW, new_session, say

pytestmark = pytest.mark.anyio

MESSAGES = 300
A_BATCH = 100  # Pages of one commit, at most.


@pytest.fixture(autouse=True)
def short_wal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wal, "CHECKPOINT_PAGES", 300)
    monkeypatch.setattr(wal, "REST_PAGES", 100)
    monkeypatch.setattr(wal, "RESTART_PAGES", 1500)


class Copying(apsw.Connection):
    """Notes how far each copying came, and who did it."""

    def noted_by(self, who: str, notes: list[tuple[str, int]]) -> "Copying":
        self._who, self._notes = who, notes
        return self

    def wal_checkpoint(self, dbname: str | None = None, mode: int = apsw.SQLITE_CHECKPOINT_PASSIVE) -> tuple[int, int]:
        found = super().wal_checkpoint(dbname, mode)
        self._notes.append((self._who, found[1]))
        return found


def lines(path: Path, notes: list[tuple[str, int]], *, readers: int) -> Threads:
    def opened(who: str) -> apsw.Connection:
        return set_up(Copying(str(path)).noted_by(who, notes))

    def opened_to_read() -> apsw.Connection:
        db = opened("reader")
        db.execute("PRAGMA query_only = 1")
        return db

    return Threads(open_writer=lambda: opened("writer"), open_reader=opened_to_read, reserve=None, readers=readers)


async def messages(path: Path, *, readers: int) -> tuple[list[tuple[str, int]], int]:
    """Who copied back how much while messages came one after the other, and how long the log became, in pages."""
    db = connect(path)
    migrate(db)
    page_bytes = int(db.pragma("page_size"))
    db.close()
    notes: list[tuple[str, int]] = []
    longest, store = 0, SqliteStore(lines(path, notes, readers=readers), now=lambda: NOW)
    await new_session(store)
    for _ in range(MESSAGES):
        await say(store, max_waiting=10**6)
        longest = max(longest, os.stat(f"{path}-wal").st_size // page_bytes)
        await asyncio.sleep(0)
    await store.aclose()
    return notes, longest


async def test_a_commit_waits_for_no_more_than_a_few_pages_to_be_copied_back() -> None:
    """P8: what is much is copied by a reader."""
    with quick_place() as home:
        notes, longest = await messages(home / "holdfast.db", readers=2)
        assert longest < wal.RESTART_PAGES
    assert [who for who, _ in notes].count("reader") >= 2
    copied = 0
    for who, pages in notes:
        if who == "writer":
            assert pages - copied <= wal.REST_PAGES + A_BATCH
        copied = pages if who == "reader" else 0  # What the writer copied last lets the log start over.


async def test_the_log_starts_over_whichever_thread_copies_it_back() -> None:
    for readers in (2, 0):
        with quick_place() as home:
            _, longest = await messages(home / "holdfast.db", readers=readers)
        assert longest < 5 * wal.CHECKPOINT_PAGES


async def test_everything_is_in_the_database_once_the_store_is_closed() -> None:
    with quick_place() as home:
        await messages(home / "holdfast.db", readers=2)
        assert not (home / "holdfast.db-wal").exists()
        db = connect(home / "holdfast.db")
        assert fetch(db, "SELECT count(*) FROM inbox")[0][0] == MESSAGES
        assert db.pragma("integrity_check") == "ok"
        db.close()


async def test_a_full_disk_keeps_the_room_that_is_left_for_the_ends_of_what_runs() -> None:
    with quick_place() as home:
        db = connect(home / "holdfast.db")
        length = wal.WalLength()
        length.watch(db)
        db.execute("CREATE TABLE t (a)")
        notes: list[tuple[str, int]] = []
        other = Copying(str(home / "holdfast.db")).noted_by("reader", notes)
        length.copy_most(other, may=lambda: False)
        assert not notes
        length.copy_most(other, may=lambda: True)
        assert notes
        other.close()
        db.close()


def test_what_another_thread_copied_is_on_disk_before_the_writer_copies_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite syncs the database only once everything is copied: the writer, who comes last, would wait for all of it."""
    path = tmp_path / "holdfast.db"
    writer = connect(path)
    length = wal.WalLength()
    length.watch(writer)
    writer.execute("CREATE TABLE t (a)")
    other = connect(path)
    synced: list[os.stat_result] = []
    monkeypatch.setattr(os, "fdatasync", lambda descriptor: synced.append(os.fstat(descriptor)))
    written: list[tuple[int, int]] = []
    monkeypatch.setattr(wal, "PORTION", 4096)
    monkeypatch.setattr(wal, "_sync_file_range", lambda: lambda descriptor, place, size, how: written.append((place, size)))
    writer.execute("INSERT INTO t VALUES (zeroblob(20000))")
    length.copy_most(other, may=lambda: True)
    assert synced and all(os.path.samestat(each, path.stat()) for each in synced)
    portions = [(place, 4096) for place in range(0, path.stat().st_size, 4096)]
    assert len(portions) > 4 and written == portions * len(synced)
    other.close()
    writer.close()
    length.close()


def test_what_is_synced_is_synced_by_a_descriptor_that_sqlite_does_not_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an error of the disk each descriptor hears once, and SQLite must hear of it. Ours is closed when it closes nobody's locks."""
    path = tmp_path / "holdfast.db"
    writer, other = connect(path), connect(path)
    length = wal.WalLength()
    length.watch(writer)
    writer.execute("CREATE TABLE t (a)")
    of_sqlite, used = opened(path), set[int]()
    monkeypatch.setattr(os, "fdatasync", used.add)
    for _ in range(2):
        writer.execute("INSERT INTO t VALUES (1)")
        length.copy_most(other, may=lambda: True)
    assert len(of_sqlite) == 2 and len(used) == 1 and used == opened(path) - of_sqlite
    other.close()
    writer.close()
    length.close()
    assert opened(path) == set()


def opened(path: Path) -> set[int]:
    """The descriptors that this process has of a file."""
    found = set()
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if os.path.samestat(os.stat(int(name)), path.stat()):
                found.add(int(name))
    return found


async def test_a_home_is_opened_without_copying_the_log_of_a_dead_process_back() -> None:
    """Whoever starts after a kill need not wait for megabytes: what is in the log counts, and is copied back in its time."""
    with quick_place() as home, quick_place() as killed:
        store = await open_store(home, now=lambda: NOW, reserve_bytes=4096)
        await new_session(store)
        for number in range(50):
            await say(store, text=f"{number} " + "x" * 2000)
        shutil.copytree(home, killed, dirs_exist_ok=True)
        await store.aclose()
        left = (killed / f"{DATABASE}-wal").stat()
        store = await open_store(killed, now=lambda: NOW, reserve_bytes=4096)
        try:
            found = (killed / f"{DATABASE}-wal").stat()
            assert (found.st_ino, found.st_size) == (left.st_ino, left.st_size) and left.st_size > 100_000
            assert (await store.session("s1")).queued == 50
            await say(store, text="one more")
        finally:
            await store.aclose()
        db = connect(killed / DATABASE)
        assert fetch(db, "SELECT count(*) FROM inbox") == [(51,)] and db.pragma("integrity_check") == "ok"
        db.close()
