"""What is true of the SQLite store alone: where it lies, how its file is set up, what its queries cost, what its threads survive."""

import asyncio
import contextlib
import errno
import itertools
import os
import random
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import apsw
import msgspec
import pytest

from holdfast.core import events as e
from holdfast.core.delivery import DUE, DeliveryState
from holdfast.core.errors import BadInput, HoldfastError, Refused, StoreAway, StoreClosed, Unavailable
from holdfast.core.plans.start import StartedTurn
from holdfast.core.sessions import Lease
from holdfast.ports.inbox import Terms
from holdfast.ports.log import Cursor
from holdfast.ports.turns import StreamItem
from holdfast.store import open_store, overview, reads, upkeep
from holdfast.store.queries import RECORDS
from holdfast.store.sqlite import changes
from holdfast.store.sqlite import threads as writer
from holdfast.store.sqlite.connection import (
    PAGE_BYTES,
    SCHEMA_VERSION,
    UNFIT,
    UnfitPlace,
    check_place,
    connect,
    fetch,
    file_system,
    migrate,
    reader,
    set_up,
)
from holdfast.store.sqlite.reserve import BYTES, Reserve
from holdfast.store.sqlite.store import SqliteStore
from holdfast.store.sqlite.threads import Threads
from holdfast.store.sqlite.tx import SqliteTx, in_tx
from holdfast.store.work import inbox, outbox, processes, streams, turns
from holdfast.store.work import sessions as writes
from tests.conformance.backends import BEGINNING, CommitFaults, FailingConnection, SqliteBackend, quick_place
from tests.conformance.steps import (
    ANSWER,
    CUT,
    ENDED,
    LEFT,
    NOW,
    append,
    bodies,
    new_owner,
    new_session,
    question,
    running,
    say,
    start,
    text,
    well_again,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


# --- the place and the file


def names(folder: Path) -> set[str]:
    return set(os.listdir(folder))


def mounts(tmp_path: Path, *lines: str) -> str:
    path = tmp_path / "mounts"
    path.write_text("\n".join(["/dev/vda / ext4 rw 0 0", *lines, "broken", ""]))
    return str(path)


@pytest.mark.parametrize("kind", sorted(UNFIT))
def test_a_file_system_without_shared_memory_or_true_locks_is_refused_with_what_to_do(tmp_path: Path, kind: str) -> None:
    with pytest.raises(UnfitPlace, match=rf"{kind}.*--home"):
        check_place(Path("/data/holdfast"), mounts(tmp_path, f"host:/x /data {kind} rw 0 0"))


def test_the_innermost_mount_counts_and_of_two_on_one_place_the_later(tmp_path: Path) -> None:
    listed = mounts(
        tmp_path,
        "host:/x /data nfs rw 0 0",
        "/dev/vdb /data/local ext4 rw 0 0",
        "tmpfs /twice tmpfs rw 0 0",
        "host:/y /twice nfs4 rw 0 0",
        "host:/z /with\\040space\\134x 9p rw 0 0",
    )
    for path, kind in {
        "/data/local/home": "ext4",
        "/data/localhome": "nfs",
        "/database": "ext4",
        "/twice/home": "nfs4",
        "/with space\\x/home": "9p",
        "/home/x": "ext4",
    }.items():
        assert file_system(Path(path), listed) == kind
    check_place(Path("/data/local/home"), listed)
    assert file_system(Path("/"), str(tmp_path / "not there")) is None


async def test_an_unfit_place_is_refused_before_anything_is_made(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.store.sqlite.connection.UNFIT", {file_system(home)})
    with pytest.raises(UnfitPlace):
        await open_store(home, now=lambda: NOW)
    assert names(home) == set()


async def test_a_schema_newer_than_the_program_is_refused_and_left_alone(home: Path) -> None:
    store = await open_store(home, now=lambda: NOW)
    await store.aclose()
    db = connect(home / "holdfast.db")
    db.pragma("user_version", SCHEMA_VERSION + 1)
    db.close()
    with pytest.raises(Refused, match="newer"):
        await open_store(home, now=lambda: NOW)
    db = connect(home / "holdfast.db")
    assert db.pragma("user_version") == SCHEMA_VERSION + 1
    db.close()


async def test_an_empty_file_is_an_old_schema_and_is_brought_up_to_date(home: Path) -> None:
    (home / "holdfast.db").touch()
    store = await open_store(home, now=lambda: NOW)
    await new_session(store)
    await store.aclose()
    db = connect(home / "holdfast.db")
    assert db.pragma("user_version") == SCHEMA_VERSION
    migrate(db)  # A second time changes nothing.
    assert len(fetch(db, "SELECT * FROM session")) == 1
    db.close()


def test_two_processes_that_make_the_schema_at_once_make_it_once(home: Path) -> None:
    errors: list[BaseException] = []

    def make() -> None:
        try:
            db = connect(home / "holdfast.db")
            migrate(db)
            db.close()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


@pytest.mark.parametrize("content", [b"not a database at all" * 100, b"SQLite format 3\0" + b"\xff" * 5000], ids=["text", "damaged header"])
async def test_a_file_that_is_no_database_is_refused_with_what_to_do(home: Path, content: bytes) -> None:
    (home / "holdfast.db").write_bytes(content)
    with pytest.raises(Refused, match="backup"):
        await open_store(home, now=lambda: NOW)
    assert (home / "holdfast.db").read_bytes() == content


async def test_nobody_else_can_read_the_files(home: Path) -> None:
    before = os.umask(0)
    try:
        store = await open_store(home, now=lambda: NOW)
        await new_session(store)
        await store.session("s1")
        await store.backup(str(home / "copy"))
        assert names(home) == {"holdfast.db", "holdfast.db-wal", "holdfast.db-shm", "reserve", "copy"}
        assert {stat.S_IMODE(os.stat(home / name).st_mode) for name in names(home)} == {0o600}
        await store.aclose()
    finally:
        os.umask(before)


async def test_commits_are_synchronised(home: Path) -> None:
    db = connect(home / "x.db")
    assert (db.pragma("journal_mode"), db.pragma("synchronous"), db.pragma("fullfsync")) == ("wal", 2, 1)
    db.close()


async def test_a_backup_that_fails_leaves_nothing_and_the_old_copy_stands(home: Path) -> None:
    store = await open_store(home, now=lambda: NOW)
    copy = home / "copies" / "copy"
    with pytest.raises(FileNotFoundError):
        await store.backup(str(copy))
    copy.parent.mkdir()
    copy.write_text("the old one")
    (copy.parent / "copy.partial").write_text("of one that was cut short")
    await store.backup(str(copy))
    assert copy.read_bytes().startswith(b"SQLite format 3")
    assert names(copy.parent) == {"copy"}
    await store.aclose()


# --- the reserve


def test_the_reserve_takes_up_real_room_and_is_laid_once(tmp_path: Path) -> None:
    reserve = Reserve(tmp_path / "reserve")
    assert reserve.lay()
    assert (tmp_path / "reserve").stat().st_blocks * 512 >= BYTES
    made = (tmp_path / "reserve").stat().st_ino
    assert reserve.lay()
    assert (tmp_path / "reserve").stat().st_ino == made
    reserve.free()
    reserve.free()
    assert not (tmp_path / "reserve").exists()


@pytest.mark.parametrize("why", ["missing", "unsupported"])
def test_where_the_system_cannot_allocate_the_reserve_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    """macOS has no posix_fallocate; some file systems do not support it."""

    def unsupported(*_: int) -> None:
        raise OSError(errno.EOPNOTSUPP, "not supported")

    if why == "missing":
        monkeypatch.delattr(os, "posix_fallocate")
    else:
        monkeypatch.setattr(os, "posix_fallocate", unsupported)
    assert Reserve(tmp_path / "reserve", 3_000_000).lay()
    assert (tmp_path / "reserve").stat().st_blocks * 512 >= 3_000_000


def test_a_reserve_that_does_not_fit_is_not_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(os, "posix_fallocate", full)
    assert not Reserve(tmp_path / "reserve").lay()
    assert not (tmp_path / "reserve").exists()
    assert Reserve(tmp_path / "no such folder" / "reserve").lay()  # Any other trouble: it is done without.


async def test_a_store_that_starts_on_a_full_disk_says_so_and_still_records_ends(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await open_store(home, now=lambda: NOW)
    turn = await running(store)
    await store.aclose()
    allocate = os.posix_fallocate
    (home / "reserve").unlink()
    monkeypatch.setattr(os, "posix_fallocate", _no_space)
    monkeypatch.setattr(writer, "RESERVE_RETRY_S", 0.01)
    store = await open_store(home, now=lambda: NOW)
    await store.append_turn(turn.lease, turn_id="t1", attempt=1, position=turn.position, events=[ENDED], at=NOW)
    assert store.degraded == "the disk is full"
    with pytest.raises(Unavailable) as full:
        await say(store)
    assert full.value.code == "store_full"
    monkeypatch.setattr(os, "posix_fallocate", allocate)
    await well_again(store)
    await say(store)
    await store.aclose()


def _no_space(*_: int) -> None:
    raise OSError(errno.ENOSPC, "no space")


# --- the threads


def threads(path: Path, open_writer: Callable[[], apsw.Connection], **more: Any) -> Threads:
    return Threads(open_writer=open_writer, open_reader=reader(path), reserve=None, **more)


async def test_a_writer_that_cannot_open_the_database_leaves_nobody_waiting(home: Path) -> None:
    def broken() -> apsw.Connection:
        raise apsw.CantOpenError("gone")

    lines = threads(home / "x.db", broken)
    with anyio.fail_after(60):
        results = await asyncio.gather(*(lines.write(lambda tx: 1) for _ in range(100)), return_exceptions=True)
        assert all(isinstance(result, StoreClosed) for result in results)
        assert lines.degraded and "gone" in lines.degraded
        with pytest.raises(StoreClosed):
            await lines.read(lambda tx: 1)
        await lines.aclose()


async def test_a_writer_that_dies_at_work_leaves_nobody_waiting(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """COMMIT failed and the database cannot be opened any more: whoever waits, or comes in that moment, hears of it."""
    monkeypatch.setattr(writer, "REOPEN_WAIT_S", 0.001)
    path = home / "holdfast.db"
    db = connect(path)
    migrate(db)
    db.close()
    faults = CommitFaults()
    opened = 0

    def open_writer() -> apsw.Connection:
        nonlocal opened
        opened += 1
        if opened > 1:
            raise apsw.IOError("the disk is gone")
        return set_up(FailingConnection(faults, str(path)))

    lines = threads(path, open_writer)
    store = SqliteStore(lines, now=lambda: NOW)
    await new_session(store)
    faults.next = ["lost"]
    results: list[Any] = []

    async def write() -> None:
        while True:
            try:
                await say(store, max_waiting=10**6)
            except StoreClosed as error:
                results.append(error)
                return

    with anyio.fail_after(60):
        await asyncio.gather(*(write() for _ in range(50)))
        assert len(results) == 50 and opened == 1 + writer.REOPEN_TRIES
        with pytest.raises(StoreClosed):
            await store.session("s1")
        await lines.aclose()


async def test_what_an_operation_raises_is_its_callers_alone(home: Path) -> None:
    path = home / "holdfast.db"
    async with SqliteBackend(home).opened():
        lines = threads(path, lambda: connect(path))

        def fails(tx: SqliteTx, write_first: bool) -> None:
            if write_first:
                tx.execute("UPDATE meta SET value = 99 WHERE name = 'searchable_id'")
            raise KeyError("mine")

        results = await asyncio.gather(
            *(lines.write(fails, number % 2 == 0) if number % 5 == 0 else lines.write(lambda tx, n: n, number) for number in range(40)),
            lines.write(lambda tx: tx.execute("SELECT nonsense")),
            lines.write(lambda tx: "\ud800".encode()),
            lines.read(lambda tx: 1 / 0),
            lines.read(lambda tx: tx.execute("INSERT INTO meta VALUES ('x', 1)")),
            return_exceptions=True,
        )
        assert [type(result) if number % 5 == 0 else result for number, result in enumerate(results[:40])] == [
            KeyError if number % 5 == 0 else number for number in range(40)
        ]
        assert [type(result).__name__ for result in results[40:]] == ["Bug", "NotStorable", "ZeroDivisionError", "Unavailable"]
        assert await lines.read(lambda tx: tx.query("SELECT value FROM meta WHERE name = 'searchable_id'")) == [(0,)]
        await lines.aclose()


async def test_a_commit_that_failed_does_not_come_to_life_at_a_later_start(home: Path) -> None:
    """Its frames may lie in the WAL, whole and with a good checksum, where nobody looks until the next start reads the WAL anew."""
    backend = SqliteBackend(home)
    async with backend.failing() as (store, faults):
        await new_session(store)
        await say(store, message_id="kept")
        assert (await store.session("s1")).queued == 1  # A reader is there: the WAL outlives the writer's connection.
        _lay_frames_of_a_lost_commit(home, "ghost")
        assert await after_a_restart(home) == ["kept", "ghost"]
        faults.next = ["lost"]
        with pytest.raises(Unavailable):
            await say(store, message_id="ghost")
        assert await after_a_restart(home) == ["kept"]


async def after_a_restart(home: Path) -> list[str]:
    """The messages another process finds in the files as they are now."""
    with quick_place() as later:
        _copy(home, later)
        async with SqliteBackend(later).opened() as store:
            return [event.message_id for event in await bodies(store) if isinstance(event, e.MessageAccepted)]


def _copy(home: Path, to: Path) -> None:
    for name in ("holdfast.db", "holdfast.db-wal"):
        (to / name).write_bytes((home / name).read_bytes())


def _lay_frames_of_a_lost_commit(home: Path, message_id: str) -> None:
    """Puts behind the end of the WAL what a commit would have put there, without telling anyone."""
    with quick_place() as other:
        _copy(home, other)
        before = (other / "holdfast.db-wal").stat().st_size
        db = connect(other / "holdfast.db")
        with db:
            in_tx(
                db,
                inbox.accept_message,
                "s1",
                e.MessageAccepted(message_id=message_id, content="x"),
                Terms(fresh=("", ""), max_waiting=100),
                NOW,
            )
        written = (other / "holdfast.db-wal").read_bytes()
        db.close()
    assert len(written) > before
    with open(home / "holdfast.db-wal", "r+b") as wal:
        wal.seek(before)
        wal.write(written[before:])


async def test_a_journal_that_is_half_pruned_is_found_again(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process may die between two pieces."""
    monkeypatch.setattr(upkeep, "PRUNED_AT_ONCE", 10)
    async with SqliteBackend(home).opened() as store:
        turn = await running(store)
        await append(store, turn, *(text("x", n) for n in range(25)), ENDED)
    db = connect(home / "holdfast.db")
    found = []
    while reads.prunable(SqliteTx(db), NOW + 1, 10):
        with db:
            found.append(in_tx(db, upkeep.prune_session, "s1", NOW))
    assert found == [(10, True), (10, True), (5, False)]
    db.close()


async def test_a_database_held_by_another_is_waited_for_and_then_the_whole_batch_is_told(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not one operation after the other, each with a wait of its own."""
    monkeypatch.setattr("holdfast.store.sqlite.connection.BUSY_TRIES_AT_ONCE", 20)
    monkeypatch.setattr(writer, "HOLD_S", 0.2)
    backend = SqliteBackend(home)
    async with backend.opened() as store:
        await new_session(store)
        with backend.raw() as other:
            other.execute("BEGIN IMMEDIATE")
            with anyio.fail_after(20):
                results = await asyncio.gather(*(say(store, max_waiting=10**6) for _ in range(200)), return_exceptions=True)
            assert {type(result) for result in results} == {StoreAway}
            other.execute("ROLLBACK")
        await say(store)
        assert (await store.session("s1")).queued == 1


async def test_the_wal_stays_short_under_writes_with_readers_that_never_pause(home: Path) -> None:
    """Readers that follow each other closely would keep it from ever being used again from its start."""
    async with SqliteBackend(home).opened() as store:
        owner = await new_owner(store)
        turns = [await running(store, f"s{n}", f"t{n}", owner=owner) for n in range(20)]
        done = False
        largest = 0

        async def read() -> None:
            while not done:
                await store.changes(BEGINNING, behind={f"s{n}": 0 for n in range(20)})

        async def write(turn: StartedTurn) -> None:
            nonlocal largest
            for _ in range(60):
                turn = await append(store, turn, *(text("x" * 3000, n) for n in range(10)))
                largest = max(largest, (home / "holdfast.db-wal").stat().st_size)

        readers = [asyncio.ensure_future(read()) for _ in range(4)]
        await asyncio.gather(*map(write, turns))
        done = True
        await asyncio.gather(*readers)
        written = (home / "holdfast.db").stat().st_size
        assert written > 30_000_000
        assert largest < 26_000_000


# --- the file itself


async def test_a_flipped_bit_anywhere_in_the_file_is_damage_and_nothing_worse() -> None:
    """Any bit of any page: what cannot be read says so, nothing hangs, and most of it reads. Not only where our own checksums are."""
    with quick_place() as home:
        await fill(home, 30)
        whole = (home / "holdfast.db").read_bytes()
        expected = await all_that_can_be_read(home)
    assert len(expected) == 30 + 6
    chance = random.Random(20)
    untouched = 0
    for _ in range(80):
        flipped = bytearray(whole)
        flipped[chance.randrange(100, len(flipped))] ^= 1 << chance.randrange(8)
        with quick_place() as home:
            (home / "holdfast.db").write_bytes(flipped)
            with anyio.fail_after(60):
                found = await all_that_can_be_read(home)
            untouched += found == expected
    assert untouched >= 60


async def all_that_can_be_read(home: Path) -> list[str]:
    """The names of the reads that gave an answer."""
    done: list[str] = []
    try:
        async with SqliteBackend(home).opened() as store:
            looks: dict[str, Any] = {f"s{n}": store.events(f"s{n}", after=0, limit=100) for n in range(30)}
            looks |= {
                "changes": store.changes(BEGINNING, behind={"s1": 0}),
                "list": store.sessions(limit=100),
                "open": store.open_turns(apart_from=0),
                "lanes": store.waiting_lanes(limit=100),
                "owed": store.deliveries(states=DUE, now=NOW, limit=100),
                "counts": store.counts(),
            }
            for name, look in looks.items():
                with contextlib.suppress(HoldfastError):
                    await look
                    done.append(name)
    except Refused:
        pass
    return done


# --- what things cost


class Costs:
    """Counts the virtual machine's steps: a measure that no busy machine changes."""

    def __init__(self, path: Path) -> None:
        self.db = connect(path)
        self.steps = 0
        self.statements: list[tuple[str, Any]] = []
        self.db.set_progress_handler(self._step, 1)
        self.db.exec_trace = self._executed

    def _step(self) -> bool:
        self.steps += 1
        return False

    def _executed(self, cursor: apsw.Cursor, sql: str, bindings: Any) -> bool:
        self.statements.append((sql, bindings))
        return True

    def of(self, run: Callable[..., Any], *arguments: Any) -> int:
        self.steps = 0
        self.statements = []
        with self.db:
            in_tx(self.db, run, *arguments)
        return self.steps

    def plan(self) -> str:
        self.db.exec_trace = None
        lines = [
            row[3]
            for sql, bindings in self.statements
            if sql.lstrip().upper().startswith(("SELECT", "UPDATE", "DELETE", "INSERT"))
            for row in self.db.execute(f"EXPLAIN QUERY PLAN {sql}", bindings)
        ]
        self.db.exec_trace = self._executed
        return "\n".join(lines)


def stream_item(number: int, position: int) -> StreamItem:
    return StreamItem(Lease(f"s{number}", 1, 1), f"t{number}", 1, position, (text("x" * 200),))


# What happens all the time: name, operation, arguments.
def lately(tx: SqliteTx, behind: dict[str, int]) -> Any:
    """The last ten events."""
    return changes.changes(tx, Cursor(str(changes.last_id(tx) - 10)), behind, {}, None)


HOT: list[tuple[str, Callable[..., Any], tuple[Any, ...]]] = [
    ("where a summary was given", reads.recall, ("s3",)),
    ("a piece of a turn", turns.append_turn, (Lease("s3", 1, 1), "t3", 1, 2, (text("x" * 200),), NOW)),
    ("pieces of many turns", streams.append_streams, (tuple(stream_item(n, 2) for n in range(4, 8)), NOW)),
    ("a record of a turn", turns.append_turn, (Lease("s3", 1, 1), "t3", 1, 3, (e.ToolOutput(call_id="c", text="x"), ENDED), NOW)),
    (
        "a message",
        inbox.accept_message,
        ("s3", e.MessageAccepted(message_id="new", content="x", dedup_key="new"), Terms(fresh=("", ""), max_waiting=100), NOW),
    ),
    ("a start", turns.start_turn, ("s3", 1, "new", NOW)),
    ("a stop", inbox.request_stop, ("s4", "owner", None, None, None, NOW)),
    ("a change", writes.change_session, ("s3", e.SessionChanged(title="x"), NOW)),
    ("questions that expire", inbox.expire_questions, (NOW,)),
    ("processes that run", processes.running_processes, ()),
    ("the processes of a session", processes.processes, ("s1",)),
    ("an owner that is forgotten", upkeep.forget_owner, (1,)),
    ("a session", reads.session, ("s3",)),
    ("a key's session", reads.current_session, ("agent:main:web:page:s3",)),
    ("the newest sessions", reads.sessions, (20, None, "", False, None)),
    ("the next page of sessions", reads.sessions, (20, f"{NOW - 1}.5", "", False, None)),
    ("a session's newest events", reads.events, ("s3", 3, 1000, False)),
    ("a session's records", reads.events, ("s3", 0, 1000, True)),
    ("what changed, and its events", lately, ({"s3": 0},)),
    ("what changed", lately, ({},)),
    ("the newest cursor", changes.changes, (None, {}, {}, None)),
    ("open turns", reads.open_turns, (1,)),
    ("what is undecided", reads.undecided, ()),
    ("suspended sessions", reads.sessions, (20, None, "", False, "suspended")),
    ("pending sessions", reads.sessions, (20, None, "", False, "pending")),
    ("running sessions", reads.sessions, (20, None, "", False, "running")),
    ("waiting sessions", reads.sessions, (20, None, "", False, "waiting")),
    ("pinned sessions", reads.sessions, (20, None, "", False, "pinned")),
    ("a key's conversations", reads.conversations, ("agent:main:web:page:s3", 20)),
    ("lanes that wait", reads.waiting_lanes, (100,)),
    ("deliveries that are due", outbox.deliveries, (DUE, NOW, 100)),
    ("journals to prune", reads.prunable, (NOW - 10**6, 50)),
    ("how turns went lately", overview.marks, (NOW - 10**6, 20)),
]


async def fill(home: Path, sessions: int) -> None:
    """Sessions at rest with a past; five with a running turn, one that is suspended, one that asks, one that was cut and left, one with a
    message that waits, one that owes."""
    async with SqliteBackend(home).opened() as store:
        owner = await new_owner(store)
        turns = [await running(store, f"s{n}", f"t{n}", owner=owner) for n in range(10)]
        await append(store, turns[0], question())
        await append(store, turns[1], CUT, LEFT)
        await store.change_session("s2", e.SessionChanged(suspended=True), at=NOW)
        await say(store, "s9")
        await append(store, turns[9], ENDED)
        await append(store, turns[8], e.MessageWritten(message_id="a", role="assistant", content="x", delivery_id="d8"), ENDED)

        async def rest(number: int) -> None:
            turn = await running(store, f"s{number}", f"t{number}", owner=owner)
            written = e.MessageWritten(message_id=f"a{number}", role="assistant", content="x", delivery_id=f"d{number}")
            await append(store, turn, text("x"), text("y"), written, ENDED, at=NOW - number)
            change = e.DeliveryChanged(delivery_id=f"d{number}", state="sent")
            await store.record_delivery(f"s{number}", change, expect=DeliveryState.PENDING, at=NOW)

        for first in range(10, sessions, 500):
            await asyncio.gather(*map(rest, range(first, min(first + 500, sessions))))
        while await store.index_search(limit=1000):
            pass


async def test_what_happens_all_the_time_costs_the_same_with_a_few_and_with_a_thousand_sessions() -> None:
    """Cost does not grow with what did not change. Counted in steps of SQLite's machine, so a busy machine changes nothing."""
    measured: dict[str, list[int]] = {}
    for sessions in (30, 1000):
        with quick_place() as home:
            await fill(home, sessions)
            costs = Costs(home / "holdfast.db")
            for name, run, arguments in HOT:
                measured.setdefault(name, []).append(costs.of(run, *arguments))
            costs.db.close()
    grown = {name: steps for name, steps in measured.items() if steps[1] > 1.15 * steps[0] + 5}
    assert grown == {}


async def test_what_happens_all_the_time_is_compiled_once() -> None:
    """Compiling a statement takes longer than running it."""
    compiled: list[str] = []

    def asked(action: int, first: str | None, *others: str | None) -> int:
        if action not in (apsw.SQLITE_TRANSACTION, apsw.SQLITE_SAVEPOINT):
            compiled.append(f"{action} {first}")
        return apsw.SQLITE_OK

    with quick_place() as home:
        await fill(home, 30)
        costs = Costs(home / "holdfast.db")
        costs.db.authorizer = asked  # SQLite asks whenever it compiles.
        for _ in range(3):  # The second time most are refused, with statements of their own.
            compiled.clear()
            for _, run, arguments in HOT:
                with contextlib.suppress(HoldfastError):
                    costs.of(run, *arguments)
            for _ in range(200):  # As many pieces of an answer.
                costs.db.execute("SELECT 1")
        costs.db.close()
    assert compiled == []


async def test_a_turns_writes_do_not_depend_on_the_length_of_the_history() -> None:
    with quick_place() as home:
        async with SqliteBackend(home).opened() as store:
            short, long = [await running(store, f"s{n}", f"t{n}") for n in (1, 2)]
            for _ in range(10):
                long = await append(store, long, *(text("x", n) for n in range(1000)), e.Reasoning(text="x"))
        costs = Costs(home / "holdfast.db")
        for events in ((text("x"),), (text("x"), ENDED)):
            one = costs.of(turns.append_turn, short.lease, "t1", 1, short.position, events, NOW)
            two = costs.of(turns.append_turn, long.lease, "t2", 1, long.position, events, NOW)
            assert two <= one + 5
            short, long = (StartedTurn(turn.lease, turn.turn_id, 1, turn.position + 1) for turn in (short, long))
        assert costs.of(reads.events, "s2", 9_990, 1000, False) < 50 * costs.of(reads.events, "s2", 10_010, 1000, False)
        costs.db.close()


# Few rows, found by an index of their own and sorted after.
SORTED = {
    *("lanes that wait", "deliveries that are due", "open turns", "what is undecided"),
    *("suspended sessions", "pending sessions", "running sessions", "waiting sessions", "pinned sessions"),
}


async def test_the_hot_queries_use_their_indexes() -> None:
    """By SQLite's own word. `head_open` and the others are partial: a word changed in a query would quietly stop using them."""
    expected = {
        "a session's records": ["INDEX event_record"],
        "a session's newest events": ["sqlite_autoindex_event_1"],
        "open turns": ["INDEX head_open"],
        "suspended sessions": ["INDEX session_suspended"],
        "pending sessions": ["INDEX session_pending"],
        "pinned sessions": ["INDEX session_pinned"],
        "running sessions": ["INDEX head_open"],
        "waiting sessions": ["question_session"],
        "what is undecided": ["INDEX head_open", "question_session", "INDEX session_pending"],
        "lanes that wait": ["sqlite_autoindex_event_1"],
        "deliveries that are due": ["INDEX outbox_due"],
        "the newest sessions": ["INDEX head_newest"],
        "the next page of sessions": ["INDEX head_newest"],
        "journals to prune": ["INDEX session_journal"],
        "where a summary was given": ["INDEX event_compacted"],
        "how turns went lately": ["INDEX event_mark", "INDEX event_branched"],
        "questions that expire": ["INDEX question_open"],
        "processes that run": ["INDEX process_running"],
        "the processes of a session": ["INDEX process_session"],
        "an owner that is forgotten": ["INDEX head_open"],
    }
    with quick_place() as home:
        await fill(home, 30)
        costs = Costs(home / "holdfast.db")
        for name, run, arguments in HOT:
            costs.of(run, *arguments)
            plan = costs.plan()
            for index in expected.get(name, ()):
                assert index in plan, (name, plan)
            few = (
                "inbox",
                " i",
                "(subquery",
                "INDEX question_session",
                "INDEX session_pending",
                "INDEX session_pinned",
                "INDEX session_suspended",
                "INDEX process_running",
            )  # Only what is under way.
            scans = [line for line in plan.splitlines() if line.startswith("SCAN") and not any(name in line for name in few)]
            assert not scans, (name, plan)
            if name not in SORTED:
                assert "TEMP B-TREE FOR ORDER BY" not in plan, (name, plan)
        costs.db.close()


def test_the_index_of_records_leaves_out_exactly_the_stream_events() -> None:
    with quick_place() as home:
        db = connect(home / "holdfast.db")
        migrate(db)
        [(sql,)] = fetch(db, "SELECT sql FROM sqlite_schema WHERE name = 'event_record'")
        db.close()
    assert sql.endswith(f"WHERE {RECORDS}")


async def test_no_read_leaves_a_transaction_open() -> None:
    """An open read stops the checkpoints, and the WAL grows without bound."""
    with quick_place() as home:
        await fill(home, 30)
        db = reader(home / "holdfast.db")()
        for name, run, arguments in HOT:
            if run.__module__ in (reads.__name__, changes.__name__, __name__):
                run(SqliteTx(db), *arguments)
                assert not db.in_transaction and not db.txn_state(), name
        with pytest.raises(BadInput):
            reads.sessions(SqliteTx(db), 5, "nonsense", "", False, None)
        assert not db.txn_state()
        db.close()


async def test_pages_written_per_message_do_not_depend_on_the_history() -> None:
    """Counted in the WAL: the log and its two indexes, the head and its list, inbox and key."""
    with quick_place() as home:
        async with SqliteBackend(home).opened() as store:
            await new_session(store)
            for _ in range(1000):
                await say(store, max_waiting=10**6)
        costs = Costs(home / "holdfast.db")
        lengths: list[int] = []

        def committed(db: apsw.Connection, name: str, pages: int) -> int:
            lengths.append(pages)
            return apsw.SQLITE_OK

        costs.db.set_wal_hook(committed)
        for number in range(30):
            message = e.MessageAccepted(message_id=f"new{number}", content="x" * 300, dedup_key=f"new{number}")
            costs.of(inbox.accept_message, "s1", message, Terms(fresh=("", ""), max_waiting=10**6, on_page=True), NOW + number)
        costs.db.close()
        written = sorted(after - before for before, after in itertools.pairwise(lengths))
        assert written[len(written) // 2] <= 9
        assert written[-1] <= 24


async def test_a_summary_whose_page_cannot_be_read_takes_no_conversation_down() -> None:
    """P8: what reads of it is read as a whole."""
    mark = "a summary that is easy to find " * 20
    with quick_place() as home:
        async with SqliteBackend(home).opened() as store:
            owner = await new_owner(store)
            await append(store, await running(store, "s1", "t1", owner=owner), text("one"), ANSWER, ENDED)
            await say(store, text="second")
            turn = await start(store, "s1", "t2", owner=owner)
            compacted = e.ContextCompacted(through=1, summary=mark)
            recall = (await store.transcript(await store.session("s1"))).recall(compacted)
            turn = await append(store, turn, msgspec.structs.replace(compacted, recall=recall))
            await append(store, turn, e.MessageWritten(message_id="t2.answer", role="assistant", content="x" * 900), ENDED)
            assert (await store.transcript(await store.session("s1"), whole=False)).behind == recall > 0
        path = home / "holdfast.db"
        data = bytearray(path.read_bytes())
        page = data.find(mark[:60].encode()) // PAGE_BYTES * PAGE_BYTES
        data[page : page + 8] = b"\xff" * 8
        path.write_bytes(data)
        async with SqliteBackend(home).opened() as store:
            short = await store.transcript(await store.session("s1"), whole=False)
            assert [turn.id for turn in short.turns] == ["t1", "t2"] and short.behind == 0
