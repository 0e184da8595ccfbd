"""A database that another program holds: who has another place for what he writes hears of it soon, the others wait for it."""

import asyncio
from pathlib import Path

import pytest

from holdfast.core import events as e
from holdfast.core.errors import StoreAway
from holdfast.ports.turns import StreamItem
from holdfast.store import open_store
from holdfast.store.sqlite import threads
from tests.conformance.steps import NOW, append, bodies, running, say, text
from tests.fakes.locker import Locker

pytestmark = pytest.mark.anyio


async def test_a_turn_hears_that_the_store_is_away_and_messages_wait_until_it_is_back(tmp_path: Path) -> None:
    """P1: what cannot be stored is not acknowledged; what waits for long enough is stored once."""
    store = await open_store(tmp_path, now=lambda: NOW, reserve_bytes=4096)
    try:
        turn = await append(store, await running(store), text("one"))
        await store.writable()
        with Locker(tmp_path / "holdfast.db") as locker:
            accepting = asyncio.create_task(say(store, text="while it is locked"))
            item = StreamItem(turn.lease, "t1", 1, turn.position, (text(" two", 3),))
            for write in (
                lambda: append(store, turn, text(" two", 3)),
                lambda: store.append_streams([item], at=NOW),
                lambda: store.take_causes(turn.lease, turn_id="t1", attempt=1, position=turn.position, step=0, offset=0, at=NOW),
                lambda: store.wait_turn(turn.lease, turn_id="t1", attempt=1, position=turn.position, asking=(), at=NOW),
            ):
                with pytest.raises(StoreAway, match="Another program has locked the database"):
                    await write()
            assert store.degraded == "another program has locked the database"
            assert not accepting.done()
            assert (await store.session("s1")).position == turn.position  # It can still be read.
            back = asyncio.create_task(store.writable())
            await asyncio.sleep(0.1)
            assert not back.done()
            await asyncio.to_thread(locker.release)
        await back
        await accepting
        assert store.degraded is None
        await append(store, turn, text(" two", 3))
        said = [event.text for event in await bodies(store) if isinstance(event, e.Text | e.MessageAccepted)]
        assert said.count("while it is locked") == 1 and said[-1] == " two" and said.count(" two") == 1
    finally:
        await store.aclose()


async def test_nobody_waits_for_ever_and_the_store_is_back_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits hears after a while that nothing was stored. Nobody has to write anything for the store to notice that it is back."""
    monkeypatch.setattr(threads, "HOLD_S", 0.5)
    store = await open_store(tmp_path, now=lambda: NOW, reserve_bytes=4096)
    try:
        await running(store)
        with Locker(tmp_path / "holdfast.db"):
            with pytest.raises(StoreAway):
                await say(store, text="lost")
        async with asyncio.timeout(60):
            await store.writable()
        assert store.degraded is None
        await say(store, text="kept")
        said = [event.text for event in await bodies(store) if isinstance(event, e.MessageAccepted)]
        assert "lost" not in said and said[-1] == "kept"
    finally:
        await store.aclose()


async def test_a_store_that_is_away_can_be_closed(tmp_path: Path) -> None:
    store = await open_store(tmp_path, now=lambda: NOW, reserve_bytes=4096)
    turn = await running(store)
    with Locker(tmp_path / "holdfast.db"):
        with pytest.raises(StoreAway):
            await append(store, turn, text("one"))
        async with asyncio.timeout(60):
            await store.aclose()
