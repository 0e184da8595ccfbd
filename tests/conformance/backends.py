"""What the suite needs of a store beyond the port: a place to open it on, a second process, and ways to harm it.

Tests speak to `ports.Store` and to `Backend`. A second database joins by one more class here and one more name in `BACKENDS`.
"""

import contextlib
import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, Protocol
from unittest import SkipTest  # Other processes import this module too, and pytest is slow to import.

import apsw

from holdfast.ports.log import Cursor
from holdfast.ports.store import Store
from holdfast.store.projection import DERIVED
from holdfast.store.sqlite.connection import connect, fetch, migrate, reader, set_up
from holdfast.store.sqlite.reserve import Reserve
from holdfast.store.sqlite.store import DATABASE, SqliteStore, open_store
from holdfast.store.sqlite.threads import Threads
from holdfast.store.sqlite.tx import rebuild

NOW = 1_700_000_000_000
# The cursor before everything.
BEGINNING = Cursor("0")
# Everything that is stored of an event.
COLUMNS = ("id", "session", "seq", "turn", "epoch", "attempt", "position", "kind", "stream", "at", "body", "checksum")
# The ways to run out of room.
ROOMS = ("pages", "disk")
ROOT = Path(__file__).resolve().parents[2]


class Backend(Protocol):
    """A place for one store. Everything that opens is closed when the test is over."""

    address: str

    def opened(self, *, now: int = NOW) -> contextlib.AbstractAsyncContextManager[Store]:
        """A store on the place. May be open more than once at a time, as two processes would have it."""

    def process(self, job: str, **arguments: Any) -> "Process":
        """Another process that opens the same place and does a job of `tests/conformance/worker.py`."""

    def failing(self) -> contextlib.AbstractAsyncContextManager[tuple[Store, "CommitFaults"]]:
        """A store whose commits can be made to fail."""

    def limited(self, room: str) -> contextlib.AbstractAsyncContextManager[tuple[Store, "Room"]]:
        """A store that can be made to run out of room, in one of the ways of `ROOMS`."""

    def change_byte(self, session_id: str, seq: int, column: str) -> None:
        """Changes one byte of one column of a stored event, behind the store's back."""

    def move(self, session_id: str, seq: int, to: int) -> None:
        """Changes the sequence of a stored event, and nothing else."""

    def lose(self, session_id: str, seq: int) -> None:
        """An event is gone, without a trace."""

    def quarantine(self) -> list[tuple[str, int]]:
        """(session id, sequence) of all that was put into quarantine."""

    def spoil_time(self, session_id: str) -> None:
        """Puts nonsense into the stored time of the resume mark."""

    def log(self) -> list[tuple[str, bytes]]:
        """(kind, body) of everything that is in the log, also of what nobody can read any more, in the order in which it was written."""

    def catalog(self) -> dict[str, list[Any]]:
        """Everything that is derived from the log, for comparing."""

    def rebuild(self) -> None:
        """Makes the catalog anew from the log."""


class CommitFaults:
    """What the next commits do: "lost" fails and nothing is stored, "stored" fails although everything is."""

    def __init__(self) -> None:
        self.next: list[str] = []
        self.failed = 0


class Room:
    """`fill` takes what room there is, `free` gives it back. `keeps_reserve`: the store's reserve is real room."""

    def __init__(self, fill: Callable[[], Awaitable[None]], free: Callable[[], Awaitable[None]], *, keeps_reserve: bool) -> None:
        self.fill, self.free, self.keeps_reserve = fill, free, keeps_reserve


class Process:
    """One line of JSON per answer. `go` lets it start, so that two of them start together."""

    def __init__(self, arguments: list[str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.conformance.worker", *arguments],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.stdout.close()

    def ready(self) -> None:
        assert self.line() == "ready"

    def go(self) -> None:
        assert self._process.stdin
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def line(self) -> Any:
        """The next answer; None at the end."""
        assert self._process.stdout
        text = self._process.stdout.readline()
        return json.loads(text) if text.endswith("\n") else None

    def rest(self) -> list[Any]:
        """Everything else it answers until it ends."""
        answers = []
        while (answer := self.line()) is not None:
            answers.append(answer)
        return answers

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


class SqliteBackend:
    def __init__(self, home: Path) -> None:
        self.home = home
        self.address = str(home)
        self.path = home / DATABASE
        if not self.path.exists():  # Making the schema costs more than most tests.
            self.path.write_bytes(empty_database())

    @contextlib.asynccontextmanager
    async def opened(self, *, now: int = NOW) -> AsyncIterator[Store]:
        store = await open_store(self.home, now=lambda: now, reserve_bytes=4096)
        try:
            yield store
        finally:
            await store.aclose()

    def process(self, job: str, **arguments: Any) -> Process:
        return Process(["sqlite", self.address, job, json.dumps(arguments)])

    @contextlib.asynccontextmanager
    async def failing(self) -> AsyncIterator[tuple[Store, CommitFaults]]:
        faults = CommitFaults()

        def open_writer() -> apsw.Connection:
            return set_up(FailingConnection(faults, str(self.path)))

        async with self._on(open_writer) as lines:
            yield SqliteStore(lines, now=lambda: NOW), faults

    @contextlib.asynccontextmanager
    async def limited(self, room: str) -> AsyncIterator[tuple[Store, Room]]:
        async with self._limited_pages() if room == "pages" else self._small_disk() as limited:
            yield limited

    @contextlib.asynccontextmanager
    async def _limited_pages(self) -> AsyncIterator[tuple[Store, Room]]:
        """By a limit on the size of the database. The writer's own connection has to be told of it."""
        async with self._on(lambda: connect(self.path)) as lines:

            async def limit(pages: int) -> None:
                await lines.write(lambda tx: tx.db.pragma("max_page_count", pages), when_full=True)

            yield SqliteStore(lines, now=lambda: NOW), Room(lambda: limit(1), lambda: limit(2**30), keeps_reserve=False)

    @contextlib.asynccontextmanager
    async def _small_disk(self) -> AsyncIterator[tuple[Store, Room]]:
        small = self.home / "small"
        small.mkdir()
        if not _run("mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(small)):
            raise SkipTest("only root can mount a small disk")
        filler = small / "filler"

        async def fill() -> None:
            with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
                while True:
                    file.write(bytes(4096))

        async def free() -> None:
            filler.unlink()

        try:
            store = await open_store(small, now=lambda: NOW, reserve_bytes=4 * 1024 * 1024)
            try:
                yield store, Room(fill, free, keeps_reserve=True)
            finally:
                await store.aclose()
        finally:
            assert _run("umount", str(small))

    @contextlib.asynccontextmanager
    async def _on(self, open_writer: Callable[[], apsw.Connection]) -> AsyncIterator[Threads]:
        lines = Threads(open_writer=open_writer, open_reader=reader(self.path), reserve=Reserve(self.home / "reserve", 4096))
        try:
            yield lines
        finally:
            await lines.aclose()

    @contextlib.contextmanager
    def raw(self) -> Iterator[apsw.Connection]:
        db = connect(self.path)
        try:
            yield db
        finally:
            db.close()

    def change_byte(self, session_id: str, seq: int, column: str) -> None:
        with self.raw() as db:
            where = "session = (SELECT id FROM session WHERE session_id = ?1) AND seq = ?2"
            [(value, kind)] = fetch(
                db,
                f"SELECT CASE typeof({column}) WHEN 'text' THEN CAST({column} AS BLOB) ELSE {column} END, typeof({column})"
                f" FROM event WHERE {where}",
                (session_id, seq),
            )
            for bit in (0, 1, 7, 3, 9, 12, 20, 30):
                if kind == "integer":
                    changed: Any = value ^ (1 << bit)
                elif kind == "null":
                    changed = b"x"
                else:
                    changed = bytes([value[0] ^ (1 << (bit % 8)), *value[1:]])
                cast = "CAST(?3 AS TEXT)" if kind in ("text", "null") else "?3"
                try:
                    db.execute(f"UPDATE event SET {column} = {cast} WHERE {where}", (session_id, seq, changed))
                except apsw.ConstraintError:
                    continue  # Another event stands there.
                assert db.changes() == 1
                return
            raise AssertionError("no byte could be changed")

    def move(self, session_id: str, seq: int, to: int) -> None:
        with self.raw() as db:
            db.execute(
                "UPDATE event SET seq = ? WHERE session = (SELECT id FROM session WHERE session_id = ?) AND seq = ?", (to, session_id, seq)
            )
            assert db.changes() == 1

    def lose(self, session_id: str, seq: int) -> None:
        with self.raw() as db:
            db.execute("DELETE FROM event WHERE session = (SELECT id FROM session WHERE session_id = ?) AND seq = ?", (session_id, seq))
            assert db.changes() == 1

    def quarantine(self) -> list[tuple[str, int]]:
        with self.raw() as db:
            return fetch(
                db,
                "SELECT coalesce(s.session_id, '?' || q.session), q.seq FROM quarantine q LEFT JOIN session s ON s.id = q.session"
                " ORDER BY 1, 2",
            )

    def spoil_time(self, session_id: str) -> None:
        with self.raw() as db:
            db.execute("UPDATE session SET last_resume_marked_at = 'yesterday, at noon' WHERE session_id = ?", (session_id,))

    def log(self) -> list[tuple[str, bytes]]:
        with self.raw() as db:
            return fetch(db, "SELECT kind, body FROM event ORDER BY id")

    def catalog(self) -> dict[str, list[Any]]:
        with self.raw() as db:
            found = {table: sorted(db.execute(f"SELECT * FROM {table}").fetchall(), key=repr) for table in DERIVED}
            # Rows about what is being purged are read by nobody, and go with their events.
            being_purged = dict(fetch(db, "SELECT s.id, h.deleted FROM session s JOIN head h ON h.session = s.id WHERE s.purge_at = 0"))
            found["outbox"] = [row for row in found["outbox"] if row[2] > being_purged.get(row[1], 0)]
            found["question"] = [row for row in found["question"] if row[1] not in being_purged]
            return found

    def rebuild(self) -> None:
        with self.raw() as db, db:
            rebuild(db)


@contextlib.contextmanager
def quick_place() -> Iterator[Path]:
    """A folder that is gone afterwards, in memory where there is such a place: what survives a power cut is tested elsewhere."""
    memory = "/dev/shm"
    with tempfile.TemporaryDirectory(prefix="holdfast-", dir=memory if os.access(memory, os.W_OK) else None) as folder:
        yield Path(folder)


@functools.cache
def empty_database() -> bytes:
    """A file with the schema and nothing in it."""
    with tempfile.TemporaryDirectory() as folder:
        db = connect(Path(folder) / DATABASE)
        migrate(db)
        db.close()
        return (Path(folder) / DATABASE).read_bytes()


def _run(*command: str) -> bool:
    return subprocess.run(command, capture_output=True).returncode == 0


class FailingConnection(apsw.Connection):
    def __init__(self, faults: CommitFaults, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._faults = faults

    def execute(self, statements: str, *arguments: Any, **named: Any) -> apsw.Cursor:
        fault = self._faults.next.pop(0) if statements == "COMMIT" and self._faults.next else None
        if not fault:
            return super().execute(statements, *arguments, **named)
        self._faults.failed += 1
        super().execute("ROLLBACK" if fault == "lost" else "COMMIT")
        raise apsw.IOError("disk I/O error")


BACKENDS: dict[str, Callable[[Path], Backend]] = {"sqlite": SqliteBackend}
