"""The power goes at any write, sync or deletion: what was acknowledged is there, the database is whole, no sequence has a hole (P1).

The controls show that the disk bites: with anything less than synchronous=FULL it takes acknowledged writes away.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from holdfast.core import events as e
from holdfast.core.errors import HoldfastError
from holdfast.ports.store import Store
from holdfast.store import reads
from holdfast.store.sqlite import threads, wal
from holdfast.store.sqlite.connection import connect, fetch, migrate
from holdfast.store.sqlite.store import SqliteStore
from holdfast.store.sqlite.threads import Threads
from holdfast.store.sqlite.tx import SqliteTx
from tests.conformance.steps import ENDED, NOW, append, new_owner, new_session, say, start, text
from tests.fakes.power import MODES, Disk, Mode

DATABASE = Path("holdfast.db")
CUTS = 100
Acknowledged = dict[str, list[str]]


@pytest.fixture(scope="module")
def empty() -> dict[str, bytes]:
    disk = Disk()
    with disk.mounted() as vfs:
        db = connect(DATABASE, vfs=vfs, exclusive=True)
        migrate(db)
        db.close()
    return disk.survivors("all").durable


@pytest.fixture(autouse=True)
def short_wal(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the scenario sees checkpoints, and the WAL used again from its start."""
    monkeypatch.setattr(wal, "CHECKPOINT_PAGES", 25)
    monkeypatch.setattr(threads, "REOPEN_WAIT_S", 0.0)


async def live(store: Store, acknowledged: Acknowledged) -> None:
    """Two conversations with turns, alone and in batches. Notes what was acknowledged, the moment it was."""
    owner = await new_owner(store)

    async def talk(session_id: str) -> None:
        seen = acknowledged.setdefault(session_id, [])
        await new_session(store, session_id)
        seen.append("created")
        for number in range(4):
            accepted = await say(store, session_id, "x" * 300, message_id=f"{session_id}.m{number}")
            seen.append(accepted.message_id)
            turn = await start(store, session_id, f"{session_id}.t{number}", owner=owner)
            seen.append(turn.turn_id)
            for piece in range(5):
                turn = await append(store, turn, text(f"{turn.turn_id}.{piece}", piece * 9))
                seen.append(f"{turn.turn_id}.{piece}")
            await append(store, turn, e.MessageWritten(message_id=f"{turn.turn_id}.a", role="assistant", content="y" * 5000), ENDED)
            seen.append(f"{turn.turn_id}.a")

    await asyncio.gather(talk("s1"), talk("s2"), talk("s3"))


def run(disk: Disk, synchronous: str, use: Callable[[Store, Acknowledged], object] = live) -> Acknowledged:
    acknowledged: Acknowledged = {}

    def open_writer() -> apsw.Connection:
        db = connect(DATABASE, vfs=vfs, exclusive=True)
        db.execute(f"PRAGMA synchronous = {synchronous}")
        return db

    async def session() -> None:
        lines = Threads(open_writer=open_writer, open_reader=open_writer, reserve=None, readers=0)
        try:
            await use(SqliteStore(lines, now=lambda: NOW), acknowledged)  # type: ignore[misc]
        except HoldfastError:
            pass
        finally:
            await lines.aclose()

    with disk.mounted() as vfs:
        asyncio.run(session())
    return acknowledged


def what_is_left(disk: Disk) -> Acknowledged:
    """Everything a session's log holds, by the names the scenario uses. Raises where the database or a log is not whole."""
    left: Acknowledged = {}
    with disk.mounted() as vfs:
        db = connect(DATABASE, vfs=vfs, exclusive=True)
        try:
            if (check := db.pragma("integrity_check")) != "ok":
                raise AssertionError(check)
            for (session_id,) in fetch(db, "SELECT session_id FROM session"):
                log, damage = reads.events(SqliteTx(db), session_id, 0, 1000, False)
                assert not damage
                assert [item.seq for item in log] == list(range(1, reads.session(SqliteTx(db), session_id).seq + 1))
                for item in log:
                    match event := item.event:
                        case e.SessionCreated():
                            left[session_id] = ["created"]
                        case e.TurnStarted():
                            left[session_id].append(item.turn_id or "")
                        case e.Text():
                            left[session_id].append(event.text)
                        case e.MessageAccepted() | e.MessageWritten(role="assistant"):
                            left[session_id].append(event.message_id)
        finally:
            db.close()
    return left


def losses(empty: dict[str, bytes], synchronous: str, cuts: int) -> tuple[int, int]:
    """Of so many cuts, spread over the whole scenario and all ways to lose what was pending: how many lost an acknowledged write, and
    how many left a database that is not whole."""
    whole = Disk(empty)
    expected = run(whole, synchronous)
    assert all(len(seen) == 1 + 4 * 8 for seen in expected.values()) and len(expected) == 3
    lost = broken = 0
    for number in range(cuts):
        disk = Disk(empty, seed=number, cut_at=1 + number * whole.operations // cuts)
        acknowledged = run(disk, synchronous)
        mode: Mode = MODES[number % len(MODES)]
        try:
            left = what_is_left(disk.survivors(mode))
        except (AssertionError, apsw.Error):
            broken += 1
            continue
        for session_id, seen in acknowledged.items():
            if left.get(session_id, [])[: len(seen)] != seen:
                lost += 1
                break
    return lost, broken


def test_nothing_acknowledged_is_lost_at_a_hundred_cuts(empty: dict[str, bytes]) -> None:
    assert losses(empty, "FULL", CUTS) == (0, 0)


def test_the_disk_takes_acknowledged_writes_away_where_commits_are_not_synchronised(empty: dict[str, bytes]) -> None:
    lost, _ = losses(empty, "NORMAL", 30)
    assert lost


def test_the_disk_breaks_a_database_that_never_synchronises(empty: dict[str, bytes]) -> None:
    lost, broken = losses(empty, "OFF", 30)
    assert lost + broken and broken


class WeakDisk(Disk):
    """The syncs of these numbers fail, and what they were to keep is not tried again."""

    def __init__(self, files: dict[str, bytes], *, fails: set[int], seed: int) -> None:
        super().__init__(files, seed=seed)
        self._fails, self._syncs = fails, 0
        self.failed = 0

    def sync(self, name: str) -> None:
        self._syncs += 1
        if self._syncs in self._fails:
            self.failed += 1
            self.forget(name)
            raise apsw.IOError("fsync failed")
        super().sync(name)


@pytest.mark.parametrize("mode", MODES)
def test_a_sync_that_failed_never_makes_an_answer_untrue(empty: dict[str, bytes], mode: Mode) -> None:
    """Acknowledged: there if the power goes in the next moment. Refused: not there, then or at any later start."""
    answers = {"kept": 0, "refused": 0}

    async def one_by_one(store: Store, acknowledged: Acknowledged) -> None:
        seen = acknowledged.setdefault("s1", [])
        refused: list[str] = []
        while not seen:
            try:
                await new_session(store)
                seen.append("created")
            except HoldfastError:
                pass
        for number in range(12):
            failed = disk.failed
            try:
                seen.append((await say(store, message_id=f"m{number}")).message_id)
            except HoldfastError:
                refused.append(f"m{number}")
            if disk.failed > failed:
                answers["kept" if seen[-1] == f"m{number}" else "refused"] += 1
                assert what_is_left(disk.survivors(mode)) == acknowledged

    for first in range(1, 16):
        for fails in ({first}, {first, first + 1}, {first, first + 1, first + 2}, {first, first + 3}):
            disk = WeakDisk(empty, fails=fails, seed=first)
            acknowledged = run(disk, "FULL", one_by_one)
            disk.cut()
            assert what_is_left(disk.survivors(mode)) == acknowledged
    assert answers["kept"] and answers["refused"]
