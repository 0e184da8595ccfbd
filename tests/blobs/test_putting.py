"""Putting bytes: what is synchronised before what, and what a failure leaves."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.blobs import FOLDER, Blobs, Folder
from holdfast.core.errors import StoreClosed, StoreFull, Unavailable
from holdfast.ports.blobs import Blob
from holdfast.process.system import RandomIds
from tests.blobs.killing import Hands, inline, pieces
from tests.conformance.backends import SqliteBackend, quick_place

pytestmark = pytest.mark.anyio


class Watched:
    """The rows of a store, which notes when a blob is named and may fail then, before or after it happened."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.seen: list[str] = []
        self.before: Exception | None = None
        self.after: Exception | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def put_blob(self, blob: Blob, **named: Any) -> Blob:
        self.seen.append("row")
        if self.before is not None:
            raise self.before
        kept: Blob = await self._store.put_blob(blob, **named)
        if self.after is not None:
            raise self.after
        return kept


@pytest.fixture
def home() -> Iterator[Path]:
    with quick_place() as place:
        yield place


@pytest.fixture
async def rows(home: Path) -> AsyncIterator[Watched]:
    async with SqliteBackend(home).opened() as store:
        yield Watched(store)


@pytest.fixture
def blobs(home: Path, rows: Watched) -> Blobs:
    return Blobs(folder=Folder(home / FOLDER, leave_free=0), rows=rows, clock=Hands(), ids=RandomIds(), elsewhere=inline)


def names(home: Path) -> list[str]:
    return os.listdir(home / FOLDER)


async def test_a_loss_of_power_cannot_take_what_a_row_names(blobs: Blobs, rows: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """P1: the bytes are on disk, then their name, then the row."""
    fsync, rename = os.fsync, os.rename

    def synced(descriptor: int) -> None:
        rows.seen.append("names" if os.path.isdir(f"/dev/fd/{descriptor}") else "bytes")
        fsync(descriptor)

    def renamed(old: Any, new: Any) -> None:
        rows.seen.append("rename")
        rename(old, new)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "rename", renamed)
    await blobs.put(pieces(bytes(700_000)), media_type="text/plain")
    assert rows.seen == ["bytes", "rename", "names", "row"]


async def test_a_row_that_finds_no_room_leaves_no_file(home: Path, blobs: Blobs, rows: Watched) -> None:
    rows.before = StoreFull()
    with pytest.raises(StoreFull):
        await blobs.put(pieces(b"x"), media_type="text/plain")
    assert names(home) == []


async def test_a_row_that_may_have_been_written_keeps_its_file(home: Path, blobs: Blobs, rows: Watched) -> None:
    """P1: what a row names is there, whatever its writer was told."""
    rows.after = StoreClosed()
    with pytest.raises(StoreClosed):
        await blobs.put(pieces(b"x"), media_type="text/plain")
    assert await blobs.sweep() == 0
    assert len(names(home)) == 1


async def test_a_row_that_was_not_written_leaves_a_file_for_the_sweep(home: Path, blobs: Blobs, rows: Watched) -> None:
    rows.before = StoreClosed()
    with pytest.raises(StoreClosed):
        await blobs.put(pieces(b"x"), media_type="text/plain")
    assert await blobs.sweep() == 1
    assert names(home) == []


async def test_an_upload_that_is_cancelled_leaves_nothing(home: Path, rows: Watched) -> None:
    blobs = Blobs(folder=Folder(home / FOLDER, leave_free=0), rows=rows, clock=Hands(), ids=RandomIds())
    begun = asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        yield bytes(300_000)
        begun.set()
        await asyncio.Event().wait()

    task = asyncio.ensure_future(blobs.put(endless(), media_type="text/plain"))
    await begun.wait()
    assert len(names(home)) == 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert names(home) == []


async def test_a_sweep_leaves_alone_what_is_being_put(home: Path, blobs: Blobs, rows: Watched) -> None:
    """Also while its row is being written: there is no row yet, and no longer an unfinished name."""
    named, go = asyncio.Event(), asyncio.Event()
    inner = rows.put_blob

    async def slow(blob: Blob, **more: Any) -> Blob:
        named.set()
        await go.wait()
        return await inner(blob, **more)

    rows.put_blob = slow  # type: ignore[method-assign]
    task = asyncio.ensure_future(blobs.put(pieces(b"x"), media_type="text/plain"))
    await named.wait()
    assert await blobs.sweep() == 0
    go.set()
    kept = await task
    assert names(home) == [kept.file]
    assert await blobs.sweep() == 0


async def test_only_so_many_are_written_and_read_at_once(home: Path, rows: Watched) -> None:
    blobs = Blobs(folder=Folder(home / FOLDER, leave_free=0), rows=rows, clock=Hands(), ids=RandomIds(), most_open=1)
    begun, go = asyncio.Event(), asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield b"x"
        begun.set()
        await go.wait()

    task = asyncio.ensure_future(blobs.put(slow(), media_type="text/plain"))
    await begun.wait()
    with pytest.raises(Unavailable, match="Try again"):
        await blobs.put(pieces(b"y"), media_type="text/plain")
    go.set()
    await task
    for _ in range(3):  # Whatever became of one, the next finds room.
        await blobs.put(pieces(b"y"), media_type="text/plain")
        rows.before = StoreFull()
        with pytest.raises(StoreFull):
            await blobs.put(pieces(b"z"), media_type="text/plain")
        rows.before = None
