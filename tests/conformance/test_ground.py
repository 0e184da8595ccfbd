"""The database vanishes from under a store that has it open: nothing is acknowledged or shown until the very same files are back (P1)."""

import asyncio
import os
import shutil
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import anyio
import apsw
import pytest

from holdfast.core.errors import StoreGone, Unavailable
from holdfast.core.shutdowns import RESTARTED, STOPPED, Shutdown
from holdfast.ports.owners import Owner
from holdfast.store import open_store, record_stop, tell_owners
from holdfast.store.sqlite import threads
from holdfast.store.sqlite.connection import connect, fetch, reader, set_up
from holdfast.store.sqlite.ground import Ground, StrangeDatabase
from holdfast.store.sqlite.store import SqliteStore
from tests.conformance.backends import CommitFaults, FailingConnection, SqliteBackend, quick_place
from tests.conformance.steps import NOW, new_session, say, well_again

pytestmark = pytest.mark.anyio
Blow = Callable[[Path], None]

WORDS = (
    "The database {path} is no longer the file that Holdfast opened: it was removed, replaced or moved away. "
    "Nothing is stored or shown until the same file is back. Put it back, or stop Holdfast and start it again with what is there now."
)


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "LOOK_S", 0.02)


@pytest.fixture
async def home() -> AsyncIterator[Path]:
    with quick_place() as place:
        yield place / "home"


async def opened(home: Path) -> SqliteStore:
    os.makedirs(home, exist_ok=True)
    store = await open_store(home, now=lambda: NOW, reserve_bytes=4096)
    await new_session(store)
    await say(store, text="kept", key="k0")
    return store


def another_database(home: Path, name: str) -> None:
    """A whole database of Holdfast, with nothing in it."""
    with quick_place() as elsewhere:
        shutil.copyfile(SqliteBackend(elsewhere).path, home / name)


def unlinked(home: Path) -> None:
    (home / "holdfast.db").unlink()


def wal_unlinked(home: Path) -> None:
    (home / "holdfast.db-wal").unlink()


def index_unlinked(home: Path) -> None:
    (home / "holdfast.db-shm").unlink()


def replaced(home: Path) -> None:
    another_database(home, "other")
    os.replace(home / "other", home / "holdfast.db")


def replaced_by_its_copy(home: Path) -> None:
    shutil.copyfile(home / "holdfast.db", home / "other")
    os.replace(home / "other", home / "holdfast.db")


def wal_replaced(home: Path) -> None:
    shutil.copyfile(home / "holdfast.db-wal", home / "other")
    os.replace(home / "other", home / "holdfast.db-wal")


def renamed(home: Path) -> None:
    os.rename(home, home.with_name("away"))


def renamed_and_begun_again(home: Path) -> None:
    renamed(home)
    home.mkdir()
    another_database(home, "holdfast.db")


BLOWS = (unlinked, wal_unlinked, index_unlinked, replaced, replaced_by_its_copy, wal_replaced, renamed, renamed_and_begun_again)
every_blow = pytest.mark.parametrize("blow", BLOWS, ids=lambda blow: blow.__name__)


async def until_degraded(store: SqliteStore) -> None:
    with anyio.fail_after(60):
        while store.degraded is None:  # noqa: ASYNC110 - the store has no event for it
            await anyio.sleep(0.005)


@every_blow
async def test_a_database_that_vanished_is_noticed_while_nobody_writes_and_then_nobody_reads_from_it(home: Path, blow: Blow) -> None:
    """P1: noticed by a look at the files, and the words say what to do."""
    store = await opened(home)
    blow(home)
    await until_degraded(store)
    assert store.degraded == WORDS.format(path=home / "holdfast.db")
    for work in (store.session("s1"), store.counts(), say(store, text="later"), store.backup(str(home) + ".copy")):
        with pytest.raises(StoreGone) as refused:
            await work
        assert (refused.value.code, refused.value.retry_after_s) == ("store_gone", 5.0)
    await store.aclose()


@every_blow
async def test_a_message_committed_after_the_database_vanished_is_not_acknowledged(
    home: Path, blow: Blow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P1: the look comes between the commit and its answer, so it need not wait for the next second."""
    monkeypatch.setattr(threads, "LOOK_S", 3600.0)
    store = await opened(home)
    blow(home)
    with pytest.raises(StoreGone):
        await say(store, text="into a file that nobody will find", key="k1")
    assert store.degraded
    await store.aclose()


async def test_everyone_who_waits_for_the_same_commit_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """P1"""
    monkeypatch.setattr(threads, "LOOK_S", 3600.0)
    store = await opened(home)
    unlinked(home)
    results = await asyncio.gather(*(say(store, text=str(n), message_id=f"m{n}") for n in range(50)), return_exceptions=True)
    assert {type(result) for result in results} == {StoreGone}
    await store.aclose()


@pytest.mark.parametrize("blow", [renamed, renamed_and_begun_again], ids=lambda blow: blow.__name__)
async def test_it_continues_by_itself_when_the_very_same_files_are_back(home: Path, blow: Blow) -> None:
    """P1: what was committed before is there, and a message refused in between can be sent again without becoming two."""
    store = await opened(home)
    blow(home)
    with pytest.raises(StoreGone):
        await say(store, text="again", key="k1", message_id="m1")
    await until_degraded(store)
    shutil.rmtree(home, ignore_errors=True)
    os.rename(home.with_name("away"), home)
    await well_again(store)
    await say(store, text="again", key="k1", message_id="m1")
    assert (await store.session("s1")).queued == 2
    await store.aclose()


@pytest.mark.parametrize("blow", [renamed, renamed_and_begun_again], ids=lambda blow: blow.__name__)
async def test_a_commit_that_fails_while_the_database_is_away_is_refused_and_it_continues_once_the_same_files_are_back(
    home: Path, blow: Blow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P1: the connection it failed on is closed by then, and none can be opened before the files are back."""
    monkeypatch.setattr(threads, "LOOK_S", 3600.0)
    monkeypatch.setattr(threads, "REOPEN_WAIT_S", 0.02)
    await (await opened(home)).aclose()
    path, faults = home / "holdfast.db", CommitFaults()
    ground = Ground(path)
    first = connect(path)
    ground.learn(first)
    first.close()
    open_reader = reader(path)
    lines = threads.Threads(
        open_writer=lambda: ground.hold(set_up(FailingConnection(faults, str(path), flags=apsw.SQLITE_OPEN_READWRITE))),
        open_reader=lambda: ground.join(open_reader()),
        reserve=None,
        ground=ground,
    )
    store = SqliteStore(lines, now=lambda: NOW, ground=ground)
    await say(store, text="the writer has its connection", key="k1", message_id="m1")
    faults.next = ["lost"]
    blow(home)
    with pytest.raises(StoreGone):
        await say(store, text="again", key="k2", message_id="m2")
    assert store.degraded == WORDS.format(path=path)
    shutil.rmtree(home, ignore_errors=True)
    os.rename(home.with_name("away"), home)
    await well_again(store)
    await say(store, text="again", key="k2", message_id="m2")
    assert (await store.session("s1")).queued == 3
    await store.aclose()


async def test_a_stop_that_is_passed_on_without_a_database_is_refused_and_leaves_none_behind(home: Path) -> None:
    """C28: whoever passes it on has to signal instead."""
    os.makedirs(home)
    with pytest.raises(Unavailable):
        tell_owners(home, Shutdown(why="a test", planned=True))
    assert os.listdir(home) == []


async def test_a_stop_is_passed_on_while_another_process_writes(home: Path) -> None:
    """C28: it reads before it writes, and a commit in between must not refuse it."""
    store = await opened(home)
    owner = await store.register_owner(Owner(name="o_1", pid=1, started_at=NOW, boot_id="b"))
    over = threading.Event()

    def write_all_the_time() -> None:
        db = connect(home / "holdfast.db")
        while not over.is_set():
            db.execute("UPDATE owner SET draining = draining")
        db.close()

    writing = threading.Thread(target=write_all_the_time)
    writing.start()
    try:
        for number in range(50):
            await asyncio.to_thread(tell_owners, home, Shutdown(why=f"test {number}", planned=True))
    finally:
        over.set()
        writing.join()
    assert [each.told is not None for each in await store.owners() if each.id == owner] == [True]
    await store.aclose()


async def test_a_stop_that_had_to_be_forced_is_on_record_for_the_owners_that_it_killed(home: Path) -> None:
    """C27, C29, B14: their deaths are no crashes. One that was stopping already keeps its reason."""
    store = await opened(home)
    first, second, third = [
        await store.register_owner(Owner(name=f"o_{number}", pid=number, started_at=NOW, boot_id="b")) for number in range(3)
    ]
    for owner in (first, second, third):
        await store.record_start(owner, at=NOW)
    await store.record_drain(second, reason=RESTARTED)
    record_stop(home, [first, second], reason=STOPPED)
    assert [owner.draining for owner in await store.owners()] == [STOPPED, RESTARTED, None]
    assert await store.deaths(before=third, since=NOW) == 0
    await store.aclose()


@pytest.mark.parametrize("blow", [unlinked, replaced, replaced_by_its_copy, wal_replaced], ids=lambda blow: blow.__name__)
async def test_another_file_at_the_same_path_never_counts_as_the_database(home: Path, blow: Blow) -> None:
    """P1: a copy neither, even one that holds the same conversations."""
    store = await opened(home)
    copy = home.with_name("copy.db")
    shutil.copyfile(home / "holdfast.db", copy)
    blow(home)
    await until_degraded(store)
    shutil.copyfile(copy, home / "holdfast.db")
    await anyio.sleep(10 * threads.LOOK_S)
    assert store.degraded
    await store.aclose()


async def test_what_lies_at_the_path_now_is_left_alone_when_the_store_closes(home: Path) -> None:
    """A database that somebody put there, with a log that is not ours to copy back or remove."""
    store = await opened(home)
    renamed_and_begun_again(home)
    other = connect(home / "holdfast.db")
    other.execute("UPDATE meta SET value = 7 WHERE name = 'settled'")
    await until_degraded(store)
    before = os.stat(home / "holdfast.db-wal")
    await store.aclose()
    after = os.stat(home / "holdfast.db-wal")
    assert (after.st_ino, after.st_size, after.st_mtime_ns) == (before.st_ino, before.st_size, before.st_mtime_ns) and after.st_size
    assert fetch(other, "SELECT value FROM meta WHERE name = 'settled'") == [(7,)]
    other.close()


async def test_what_was_committed_survives_the_loss_of_the_write_ahead_log(home: Path) -> None:
    """P1: it is copied into the database as soon as the loss is noticed."""
    store = await opened(home)
    wal_unlinked(home)
    await until_degraded(store)
    await store.aclose()
    store = await open_store(home, now=lambda: NOW, reserve_bytes=4096)
    assert (await store.session("s1")).queued == 1
    await store.aclose()


@every_blow
async def test_a_successor_refuses_a_database_that_is_not_its_predecessors(home: Path, blow: Blow) -> None:
    """P1, C25: and makes none where there is none."""
    store = await opened(home)
    identity = store.identity
    blow(home)
    os.makedirs(home, exist_ok=True)
    before = os.listdir(home)
    with pytest.raises(StrangeDatabase, match="not the database that the serving process has open"):
        await open_store(home, now=lambda: NOW, expected=identity)
    assert os.listdir(home) == before
    await store.aclose()


async def test_a_successor_opens_the_database_that_its_predecessor_has_open(home: Path) -> None:
    """C24"""
    store = await opened(home)
    heir = await open_store(home, now=lambda: NOW, reserve_bytes=4096, expected=store.identity)
    await say(heir, text="from the heir", message_id="m1")
    assert (await store.session("s1")).queued == 2
    await store.aclose()
    await say(heir, text="and alone", message_id="m2")
    assert heir.degraded is None
    await heir.aclose()


async def test_a_copy_is_another_database(home: Path) -> None:
    store = await opened(home)
    await store.backup(str(home.with_name("copy.db")))
    copy = apsw.Connection(str(home.with_name("copy.db")))
    [(token,)] = fetch(copy, "SELECT value FROM meta WHERE name = 'identity'")
    copy.close()
    assert store.identity is not None and token != store.identity.token
    await store.aclose()
