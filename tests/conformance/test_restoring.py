"""A backup in the place of a database: checked before, another store after, and never half of anything."""
# ruff: noqa: ASYNC221, ASYNC240 - nothing else runs beside these tests.

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast import files
from holdfast.core import events as e
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.errors import Refused
from holdfast.core.resume import FRESH_FOR_S
from holdfast.core.spools import Header, Spooled, frames
from holdfast.core.turns import TurnState
from holdfast.ports.owners import Pause
from holdfast.store.sqlite.connection import connect
from holdfast.store.sqlite.restoring import Restored, restore
from holdfast.store.sqlite.store import DATABASE, SqliteStore
from holdfast.store.sqlite.tx import rebuild
from tests.conformance.backends import ROOT, SqliteBackend
from tests.conformance.steps import CHAT, NOW, append, kinds, new_owner, owed, question, rested, running, say, text, whole_log

pytestmark = pytest.mark.anyio

LATER = NOW + 60_000


async def make(home: Path, backup: Path, *sessions: str) -> None:
    home.mkdir(exist_ok=True)
    async with SqliteBackend(home).opened() as store:
        for session_id in sessions:
            await rested(store, session_id)
        await store.backup(str(backup))


def put_back(home: Path, backup: Path, *, now: int = LATER, damage: bool = False) -> Restored:
    home.mkdir(exist_ok=True)
    names = iter(f"new{number}" for number in range(1000))
    return restore(home, backup, now=now, new_log=lambda: next(names), stamp="then", damage=damage)


async def sessions_of(home: Path) -> set[str]:
    async with SqliteBackend(home).opened() as store:
        return {session.session_id for session in (await store.sessions(limit=100)).sessions}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    return tmp_path / "backup.db"


async def test_a_restored_store_has_every_conversation_of_the_backup_and_what_was_there_is_kept_whole(home: Path, backup: Path) -> None:
    async with _store(home) as store:
        for session_id in ("s1", "s2"):
            await rested(store, session_id)
        before = {session_id: await whole_log(store, session_id) for session_id in ("s1", "s2")}
        await store.backup(str(backup))
        await rested(store, "since")
    restored = put_back(home, backup)
    assert (restored.sessions, restored.interrupted, restored.damaged, restored.aside) == (2, 0, 0, home / "replaced-then")
    async with _store(home) as store:
        for session_id, log in before.items():
            assert (await whole_log(store, session_id))[:-1] == log
            assert kinds(await whole_log(store, session_id))[-1:] == ["session.restored"]
    assert await sessions_of(home) == {"s1", "s2"}
    assert await sessions_of(home / "replaced-then") == {"s1", "s2", "since"}
    assert put_back(home, backup).aside == home / "replaced-then-2"
    shutil.rmtree(home / "replaced-then-2")
    assert sorted(path.name for path in home.iterdir()) == ["holdfast.db", "replaced-then", "reserve"]
    assert oct((home / DATABASE).stat().st_mode)[-3:] == "600"


@contextlib.asynccontextmanager
async def _store(home: Path) -> AsyncIterator[SqliteStore]:
    home.mkdir(exist_ok=True)
    async with SqliteBackend(home).opened() as store:
        assert isinstance(store, SqliteStore)
        yield store


async def test_a_backup_is_restored_into_a_home_that_has_no_database(home: Path, backup: Path) -> None:
    await make(home, backup, "s1")
    other = home.with_name("other")
    assert put_back(other, backup).aside is None
    assert await sessions_of(other) == {"s1"}


async def test_logs_have_other_names_so_that_old_cursors_lead_nowhere_also_after_a_rebuild(home: Path, backup: Path) -> None:
    """P7"""
    await make(home, backup, "s1", "s2")
    put_back(home, backup)
    db = connect(home / DATABASE)
    with db:
        rebuild(db)
    db.close()
    async with _store(home) as store:
        assert {(await store.session(session_id)).log for session_id in ("s1", "s2")} == {"new0", "new1"}


async def test_a_restored_database_is_not_taken_for_the_one_it_is_a_copy_of(home: Path, backup: Path) -> None:
    async def token() -> int:
        async with _store(home) as store:
            assert store.identity
            return store.identity.token

    first = await token()
    await make(home, backup, "s1")
    assert await token() == first
    put_back(home, backup)
    second = await token()
    put_back(home, backup)
    assert len({first, second, await token()}) == 3


async def test_a_turn_that_ran_when_the_backup_was_made_is_interrupted_and_nobody_is_blamed(home: Path, backup: Path) -> None:
    """A17, R6, P3"""
    async with _store(home) as store:
        owner = await new_owner(store)
        await store.record_start(owner, at=NOW)
        await append(store, await running(store, "runs", "t1", owner=owner), text("half"))
        await append(store, await running(store, "waits", "t2", owner=owner), question("q1", NOW + 10**9))
        await store.backup(str(backup))
    assert put_back(home, backup).interrupted == 1
    async with _store(home) as store:
        session = await store.session("runs")
        assert (session.turn_state, session.interrupted_restarts, session.resume_reason) == (TurnState.INTERRUPTED, 0, "restored")
        cut = next(item.event for item in await whole_log(store, "runs") if isinstance(item.event, e.TurnInterrupted))
        assert cut == e.TurnInterrupted(reason="restored", restarts=0, written=4)
        assert [found.session_id for found in await store.open_turns(apart_from=0)] == ["runs"]
        assert (await store.session("waits")).turn_state is TurnState.WAITING
        assert await store.record_start(await new_owner(store, "next"), at=LATER) == 0 and await store.last_end(apart_from=owner + 2)


@pytest.mark.parametrize(("age_ms", "states"), [(60_000, {"unknown"}), (int(FRESH_FOR_S * 1000) + 60_000, set[str]())])
async def test_replies_that_may_have_been_sent_since_are_in_doubt_and_old_ones_are_not_sent(
    home: Path, backup: Path, age_ms: int, states: set[str]
) -> None:
    """P4: nothing is sent twice without a word, and nothing speaks that nobody expects any more."""
    async with _store(home) as store:
        turn = await running(store, "s1", key=CHAT)
        written = e.MessageWritten(message_id="a", role="assistant", content="done", delivery_id="d")
        await append(store, turn, written, e.TurnEnded(outcome="completed"))  # type: ignore[arg-type]
        await store.backup(str(backup))
    restored = put_back(home, backup, now=NOW + age_ms)
    assert (restored.unsure, restored.dropped) == ((1, 0) if states else (0, 1))
    async with _store(home) as store:
        assert {delivery.state for delivery in await owed(store)} == states


async def test_what_waited_is_still_there_and_a_pause_of_then_is_over(home: Path, backup: Path) -> None:
    """P1"""
    async with _store(home) as store:
        await rested(store, "s1")
        await say(store, "s1", "still waits", key="k")
        await store.set_pause(Pause("ann", NOW, LATER * 2))
        await store.backup(str(backup))
    put_back(home, backup)
    async with _store(home) as store:
        assert (await store.session("s1")).queued == 1 and await store.pause(now=LATER) is None
        assert (await say(store, "s1", "still waits", key="k")).duplicate


async def test_what_is_no_sound_backup_is_refused_and_nothing_is_changed(home: Path, backup: Path, tmp_path: Path) -> None:
    await make(home, backup, "s1")
    before = {path.name: path.read_bytes() for path in home.iterdir() if path.name != "reserve"}
    whole = backup.read_bytes()
    foreign, newer, beside = tmp_path / "foreign.db", tmp_path / "newer.db", tmp_path / "beside.db"
    connect(foreign).execute("CREATE TABLE t (x)")
    newer.write_bytes(whole)
    connect(newer).pragma("user_version", 99)
    beside.write_bytes(whole)
    Path(f"{beside}-wal").write_bytes(b"x")
    torn = {
        "empty": b"",
        "text": b"not a database" * 1000,
        "half": whole[: len(whole) // 2],
        "a page overwritten": whole[: 1024 * 10] + b"\xff" * 2048 + whole[1024 * 12 :],
    }
    files = [foreign, newer, beside]
    for name, content in torn.items():
        files.append(tmp_path / f"{name}.db")
        files[-1].write_bytes(content)
    for file in files:
        with pytest.raises(Refused, match=r"cannot be restored: .*Nothing was changed\."):
            put_back(home, file)
    assert {path.name: path.read_bytes() for path in home.iterdir() if path.name != "reserve"} == before


async def test_a_backup_with_a_damaged_event_is_restored_only_when_told_to(home: Path, backup: Path) -> None:
    await make(home, backup, "s1")
    db = connect(backup)
    db.execute("UPDATE event SET at = at + 1 WHERE seq = 3")
    db.execute("PRAGMA journal_mode = DELETE").fetchall()
    db.close()
    with pytest.raises(Refused, match=r"1 of its events are damaged\. With --damaged it is restored as it is"):
        put_back(home, backup)
    assert put_back(home, backup, damage=True).damaged == 1
    async with _store(home) as store:
        assert "damaged" in kinds(await whole_log(store))


async def test_a_database_that_cannot_be_read_is_kept_with_what_lies_beside_it(home: Path, backup: Path) -> None:
    await make(home, backup, "s1")
    (home / DATABASE).write_bytes(b"no database any more" * 500)
    (home / f"{DATABASE}-wal").write_bytes(b"its log")
    put_back(home, backup)
    aside = home / "replaced-then"
    assert (aside / DATABASE).read_bytes().startswith(b"no database") and (aside / f"{DATABASE}-wal").read_bytes() == b"its log"
    assert await sessions_of(home) == {"s1"}


# Run in a process of its own, which dies before the N-th thing that it does to a file of the home folder.
DIES = """
import os, signal, sys
from pathlib import Path
from holdfast.store.sqlite.restoring import restore

home, backup, left = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
done = 0

def hook(event, arguments):
    global done
    touches = event in ("open", "os.rename", "os.remove", "os.link", "os.mkdir", "shutil.copyfile")
    if touches and any(str(home) in str(one) for one in arguments):
        done += 1
        if done == left:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(hook)
restore(home, backup, now=1, new_log=lambda: "new", stamp="then", damage=False)
"""


async def test_a_kill_at_any_moment_of_a_restore_leaves_the_old_store_or_the_new_one_whole(
    home: Path, backup: Path, tmp_path: Path
) -> None:
    """P1"""
    await make(tmp_path / "other", backup, "new")
    home.mkdir()
    with SqliteBackend(home).process("append_for_ever", name="old", turns=1) as writer:  # Killed, so that its write-ahead log stays.
        writer.ready()
        writer.go()
        writer.line()
    assert (home / f"{DATABASE}-wal").stat().st_size
    found = []
    for left in range(1, 100):
        here = tmp_path / f"home-{left}"
        shutil.copytree(home, here)
        died = subprocess.run(
            [sys.executable, "-c", DIES, str(here), str(backup), str(left)], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT / "src")}
        )
        assert died.returncode in (0, -signal.SIGKILL)
        [session_id] = await sessions_of(here)
        found.append(session_id)
        if session_id == "new":
            assert await sessions_of(here / "replaced-then") == {"old0"}
        if died.returncode == 0:
            break
    assert found[0] == "old0" and found[-1] == "new" and found == sorted(found, reverse=True) and len(found) > 8


# what was spooled


def _spool(home: Path, position: int, *, owner: str = "o1") -> tuple[Path, bytes]:
    """A spool of the turn t1, with the events behind this position."""
    events = (text(" two", 3), e.ToolFinished(call_id="c1", outcome=ToolOutcome.DONE, content="did it"))
    items = [Spooled(position + number, 1, NOW, event.kind, e.encode(event)) for number, event in enumerate(events)]
    data = frames((Header(session_id="s1", turn_id="t1", epoch=1, owner=owner), *items))
    path = home / "spool" / owner / "t1.1"
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    return path, data


async def _spooling(home: Path) -> tuple[Path, bytes]:
    async with _store(home) as store:
        started = e.ToolStarted(call_id="c1", name="n", arguments={}, effect=Effect.UNSAFE)
        turn = await append(store, await running(store), text("one"), started)
    return _spool(home, turn.position)


async def _told(home: Path) -> tuple[str, list[ToolOutcome | None], str | None]:
    async with _store(home) as store:
        transcript = await store.transcript(await store.session("s1"))
        row = next(message for message in transcript.messages if message.role == "interruption")
        return transcript.answer_text, [call.outcome for call in transcript.calls], row.state


async def test_a_backup_carries_what_is_spooled_and_a_restore_stores_it_before_the_turn_counts_as_interrupted(
    home: Path, backup: Path, tmp_path: Path
) -> None:
    """P5, P7"""
    path, data = await _spooling(home)
    async with _store(home) as store:
        await store.backup(str(backup))
    assert path.read_bytes() == data
    other = tmp_path / "other"
    restored = put_back(other, backup)
    assert (restored.interrupted, restored.late) == (1, 0)
    assert await _told(other) == ("one two", [ToolOutcome.DONE], "recovered")
    assert not (other / "spool").exists()
    db = connect(other / DATABASE)
    assert not db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'spool_bytes'").fetchall()
    rebuild(db)
    db.close()


async def test_what_was_spooled_here_is_set_aside_with_its_database_and_can_be_restored_from_there(home: Path, backup: Path) -> None:
    (home.parent / "before").mkdir()
    await make(home.parent / "before", backup, "s0")
    path, data = await _spooling(home)
    restored = put_back(home, backup)
    assert restored.aside is not None and not (home / "spool").exists()
    assert (restored.aside / path.relative_to(home)).read_bytes() == data
    put_back(home, restored.aside / DATABASE)
    assert await _told(home) == ("one two", [ToolOutcome.DONE], "recovered")


async def test_a_spool_in_a_backup_that_cannot_be_read_is_a_late_journal(home: Path, backup: Path, tmp_path: Path) -> None:
    """F1: it is a file again, for whoever may read it one day."""
    path, data = await _spooling(home)
    path.write_bytes(b"X" + data[1:])
    async with _store(home) as store:
        await store.backup(str(backup))
    other = tmp_path / "other"
    assert put_back(other, backup).late == 1
    assert await _told(other) == ("one", [None], "recovering")
    assert (other / path.relative_to(home)).read_bytes() == path.read_bytes()
    assert oct((other / path.relative_to(home)).stat().st_mode)[-3:] == "600"


async def test_a_spool_that_a_backup_cannot_read_is_counted_and_its_turn_says_after_a_restore_that_output_is_missing(
    home: Path, backup: Path, tmp_path: Path
) -> None:
    """F1: a folder that cannot be listed is counted as well, and what is next to both is copied."""
    path, _ = await _spooling(home)
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")
    (home / "spool" / "o_bad").symlink_to("o_bad")
    async with _store(home) as store:
        assert (await store.backup(str(backup))).missed == 2
    other = tmp_path / "other"
    assert put_back(other, backup).late == 1
    assert await _told(other) == ("one", [None], "recovering")


async def test_a_spool_in_a_backup_that_is_not_what_its_name_says_is_not_stored(home: Path, backup: Path, tmp_path: Path) -> None:
    """P5: it may be a copy of what another process still writes."""
    path, data = await _spooling(home)
    wrong = home / "spool" / "o2" / "t1.1"
    wrong.parent.mkdir()
    path.rename(wrong)
    async with _store(home) as store:
        await store.backup(str(backup))
    other = tmp_path / "other"
    assert put_back(other, backup).late == 1
    assert await _told(other) == ("one", [None], "recovering")
    assert (other / "spool" / "o2" / "t1.1").read_bytes() == data


async def test_a_late_spool_is_durable_before_the_database_that_waits_for_it_is_in_place(
    home: Path, backup: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F1: a kill or a power cut between the two leaves no row that waits for a file nobody has."""
    path, data = await _spooling(home)
    path.write_bytes(b"X" + data[1:])
    async with _store(home) as store:
        await store.backup(str(backup))
    other = tmp_path / "other"
    there = other / path.relative_to(home)
    before: list[str] = []
    found: list[bool] = []
    sync, put = files.sync, files.put_in_place

    def synced(place: Path) -> None:
        before.append(place.name)
        sync(place)

    def looks(made: Path, place: Path) -> None:
        found.append(there.exists())
        assert {"other", "spool", "o1"} <= set(before)
        put(made, place)

    monkeypatch.setattr(files, "sync", synced)
    monkeypatch.setattr(files, "put_in_place", looks)
    assert put_back(other, backup).late == 1
    assert found == [True] and there.read_bytes() == path.read_bytes()


async def test_a_spool_in_a_backup_that_names_a_place_outside_its_folder_is_left_out(home: Path, backup: Path, tmp_path: Path) -> None:
    path, data = await _spooling(home)
    path.write_bytes(b"X" + data[1:])
    async with _store(home) as store:
        await store.backup(str(backup))
    db = connect(backup)
    db.execute("UPDATE spool_bytes SET owner = '../../outside'")
    db.close()
    other = tmp_path / "other"
    assert put_back(other, backup).late == 0
    assert not (tmp_path / "outside").exists() and not (other / "spool").exists()


async def test_a_restore_that_does_not_come_about_leaves_spools_where_they_were(
    home: Path, backup: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, data = await _spooling(home)
    path.write_bytes(b"X" + data[1:])  # It would be a file again.
    async with _store(home) as store:
        await store.backup(str(backup))
    path.write_bytes(data)

    def fails(made: Path, place: Path) -> None:
        raise OSError("as it was told")

    monkeypatch.setattr("holdfast.files.put_in_place", fails)
    with pytest.raises(OSError, match="as it was told"):
        put_back(home, backup)
    assert path.read_bytes() == data
