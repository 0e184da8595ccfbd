"""Live readers that come and go while the log is read."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.events import Logged
from holdfast.gateway.feed import Feed
from holdfast.ports.log import Changes, Cursor
from holdfast.store import SqliteStore, open_store
from tests.conformance.steps import NOW, new_session, say

pytestmark = pytest.mark.anyio


class SlowStore:
    """A store whose look at what changed takes as long as a test wants. `asked`: one has begun."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self.asked, self.may = asyncio.Event(), asyncio.Event()

    async def changes(self, cursor: Cursor | None, *, behind: Mapping[str, int], make: Any) -> Changes:
        self.asked.set()
        await self.may.wait()
        return await self._store.changes(cursor, behind=behind, make=make)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def encode(item: Logged) -> bytes:
    return b"%d" % item.seq


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = await open_store(tmp_path, now=lambda: NOW, reserve_bytes=4096)
    yield store
    await store.aclose()


async def test_a_reader_that_comes_while_the_log_is_read_misses_nothing(store: SqliteStore) -> None:
    """P7: what is stored after its watch began is handed to it, also by a look that had begun before."""
    for name in ("first", "second"):
        await new_session(store, name)
    slow: Any = SlowStore(store)
    feed = Feed(slow, encode)
    slow.changes = store.changes
    await feed.watch("first", after=1)
    del slow.changes
    following = asyncio.ensure_future(feed.run())
    try:
        await say(store, "first", "a")
        await asyncio.wait_for(slow.asked.wait(), 20)
        watcher = await feed.watch("second", after=1)
        await say(store, "second", "b")
        slow.may.set()
        assert [frame.seq for frame in await watcher.next(20.0)] == [2]
    finally:
        following.cancel()
        feed.close()


async def test_those_who_are_there_get_what_was_found_while_others_come_one_after_the_other(store: SqliteStore) -> None:
    """P7, C24: as after a hand-over. Each of them is told of everything once, too."""
    names = [f"s{number}" for number in range(6)]
    for name in names:
        await new_session(store, name)
    others, reads = [], 0
    coming: Any = SlowStore(store)
    coming.may.set()
    feed = Feed(coming, encode)

    async def changes(cursor: Cursor | None, *, behind: Mapping[str, int] = {}, make: Any = None) -> Changes:
        nonlocal reads
        found = await store.changes(cursor, behind=behind, make=make)
        if behind and (reads := reads + 1) < len(names):
            others.append(await feed.watch(names[reads], after=1))  # While this was read, in a session that has changed, too.
        return found

    coming.changes = changes
    first = await feed.watch(names[0], after=1)
    for name in names:
        await say(store, name, "a")
    following = asyncio.ensure_future(feed.run())
    try:
        assert [frame.seq for frame in await first.next(20.0)] == [2] and reads == 1
        assert [[frame.seq for frame in await other.next(20.0)] for other in others] == [[2]] * 5  # They come while this waits.
    finally:
        following.cancel()
        feed.close()


async def test_readers_are_sent_to_a_successor_one_after_the_other_and_those_who_come_meanwhile_too(store: SqliteStore) -> None:
    """All at once, they would wait for each other where they go."""
    await new_session(store, "first")
    feed = Feed(store, encode)
    try:
        readers = [await feed.watch("first", after=1) for _ in range(3)]
        listing = await feed.watch_list()
        sending = asyncio.ensure_future(feed.send_away("handover"))
        await asyncio.sleep(0)
        late = await feed.watch("first", after=1)
        assert [reader.ended for reader in readers] == ["handover", None, None]
        assert late.ended == "handover"
        await sending
        assert [*(reader.ended for reader in readers), listing.ended] == ["handover"] * 4
    finally:
        feed.close()
