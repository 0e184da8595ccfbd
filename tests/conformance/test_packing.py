"""Blobs in backups: in one file with the conversations, checked, and back as files of the home that is restored (P1, P7)."""
# ruff: noqa: ASYNC240 - nothing else runs during these tests.

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.blobs import FOLDER, Blobs, Folder
from holdfast.core import content
from holdfast.core.errors import BlobMissing, NotFound
from holdfast.ports.store import Store
from holdfast.process.system import RandomIds, SystemClock
from holdfast.store.sqlite.restoring import Restored
from holdfast.store.sqlite.store import DATABASE
from tests.conformance.backends import SqliteBackend
from tests.conformance.steps import NOW, new_session, say
from tests.conformance.test_restoring import put_back

pytestmark = pytest.mark.anyio
SMALL, LARGE = b"small", bytes(range(256)) * 10_000


def blobs_of(home: Path, store: Store) -> Blobs:
    return Blobs(folder=Folder(home / FOLDER, leave_free=0), rows=store, clock=SystemClock(), ids=RandomIds())


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


async def attach(home: Path, session_id: str, *contents: bytes) -> None:
    home.mkdir(exist_ok=True)
    async with SqliteBackend(home).opened() as store:
        await new_session(store, session_id)
        for data in contents:

            async def chunks(data: bytes = data) -> AsyncIterator[bytes]:
                yield data

            upload, _ = await blobs_of(home, store).upload(chunks(), name="x", media_type="text/plain", client_id=digest(data))
            await say(store, session_id, (upload.part,))


async def back_up(home: Path, backup: Path) -> int:
    async with SqliteBackend(home).opened() as store:
        return (await store.backup(str(backup))).lost


async def read(home: Path, data: bytes) -> bytes:
    async with SqliteBackend(home).opened() as store:
        reading = await blobs_of(home, store).open(digest(data))
        try:
            return await reading.read(0, len(data) + 1)
        finally:
            reading.close()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    return tmp_path / "backups" / "one.db"


@pytest.fixture(autouse=True)
def folder(backup: Path) -> None:
    backup.parent.mkdir()


async def test_a_backup_is_one_file_with_every_attachment_in_it(home: Path, backup: Path, tmp_path: Path) -> None:
    """P1"""
    await attach(home, "s1", SMALL, LARGE)
    assert await back_up(home, backup) == 0
    assert [path.name for path in backup.parent.iterdir()] == [backup.name]
    elsewhere = tmp_path / "elsewhere"
    done = put_back(elsewhere, backup)
    assert (done.sessions, done.lost, done.aside) == (1, 0, None)
    for data in (SMALL, LARGE):
        assert await read(elsewhere, data) == data
    async with SqliteBackend(elsewhere).opened() as store:
        assert await blobs_of(elsewhere, store).sweep() == 0
    assert (elsewhere / DATABASE).stat().st_size < len(LARGE), "the bytes are files again, and nowhere else"


async def test_what_a_restore_replaces_keeps_its_attachments_and_can_be_restored_itself(home: Path, backup: Path) -> None:
    """P1"""
    await attach(home, "old", SMALL)
    await back_up(home, backup)
    await attach(home, "new", LARGE)
    done = put_back(home, backup)
    assert done.aside is not None
    async with SqliteBackend(home).opened() as store:
        with pytest.raises(NotFound):
            await store.blob(digest(LARGE))
        assert await blobs_of(home, store).sweep() == 2, "only what the backup names is left"
    assert await read(home, SMALL) == SMALL
    again = put_back(home, done.aside / DATABASE)
    assert (again.sessions, again.lost) == (2, 0)
    assert await read(home, LARGE) == LARGE


async def test_an_attachment_that_is_damaged_is_not_copied_and_said_to_be_lost(home: Path, backup: Path) -> None:
    """P7"""
    await attach(home, "s1", SMALL, LARGE)
    [damaged] = [path for path in (home / FOLDER).iterdir() if path.name.startswith(digest(SMALL))]
    damaged.write_bytes(b"smell")
    assert await back_up(home, backup) == 1
    assert put_back(home, backup).lost == 1
    with pytest.raises(NotFound):
        await read(home, SMALL)
    assert await read(home, LARGE) == LARGE
    await attach(home, "s2", SMALL)
    assert await read(home, SMALL) == SMALL, "sent again, it is there again"


async def test_a_message_whose_attachment_is_lost_still_gets_its_turn(home: Path, backup: Path) -> None:
    """P1: what its session names already is not refused when it is named again."""
    await attach(home, "s1", SMALL)
    [damaged] = (home / FOLDER).iterdir()
    damaged.unlink()
    await back_up(home, backup)
    assert put_back(home, backup).lost == 1
    async with SqliteBackend(home).opened() as store:
        assert await store.start_turn("s1", owner=1, turn_id="t1", at=NOW) is not None
        transcript = await store.transcript(await store.session("s1"))
        assert [part.blob for part in content.attached(transcript.messages[-1].content)] == [digest(SMALL)]
        await new_session(store, "s2")
        with pytest.raises(BlobMissing):
            await say(store, "s2", transcript.messages[-1].content)


async def test_a_restore_that_fails_leaves_no_files(home: Path, backup: Path) -> None:
    await attach(home, "s1", SMALL)
    await back_up(home, backup)
    before = sorted((home / FOLDER).iterdir())
    (home / DATABASE).unlink()
    (home / DATABASE).mkdir()
    with pytest.raises(OSError):
        put_back(home, backup)
    assert sorted((home / FOLDER).iterdir()) == before


async def test_a_database_without_blobs_is_restored_as_ever(home: Path, backup: Path) -> None:
    await attach(home, "s1")
    await back_up(home, backup)
    done: Restored = put_back(home, backup)
    assert (done.sessions, done.lost) == (1, 0)
    assert not (home / FOLDER).exists()
