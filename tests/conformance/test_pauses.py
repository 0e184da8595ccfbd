"""Work that somebody holds up for a while, and what those who write meanwhile are told (C21, C22)."""

import asyncio

import pytest

from holdfast.core import events as e
from holdfast.core.errors import NotFound
from holdfast.ports.owners import Pause
from holdfast.ports.store import Store
from holdfast.store.upkeep import PAUSES_KEPT
from tests.conformance.backends import Backend
from tests.conformance.steps import CHAT, NOW, append, bodies, new_session, notices, owed, pauses, running

pytestmark = pytest.mark.anyio

PAUSE = Pause("ada", since=NOW, until=NOW + 1000)


async def test_a_pause_is_seen_by_every_process_and_comes_back_as_it_was(backend: Backend, store: Store) -> None:
    """C21"""
    assert await store.pause(now=NOW) is None
    await store.set_pause(PAUSE)
    async with backend.opened() as other:
        assert await other.pause(now=NOW) == PAUSE == await store.pause(now=NOW)
        await other.set_pause(None)
    assert await store.pause(now=NOW) is None


async def test_a_pause_holds_until_its_end_and_not_at_it(store: Store) -> None:
    """C21"""
    await store.set_pause(PAUSE)
    found = [await store.pause(now=now) for now in (0, NOW - 1, PAUSE.until - 1, PAUSE.until, PAUSE.until + 1)]
    assert found == [PAUSE, PAUSE, PAUSE, None, None]


async def test_there_is_one_pause_and_the_last_one_counts(store: Store) -> None:
    """C21"""
    shorter = Pause("bea 🦀\u2028", since=NOW + 1, until=NOW + 10)
    await store.set_pause(PAUSE)
    await store.set_pause(shorter)
    assert await store.pause(now=NOW + 5) == shorter
    assert await store.pause(now=NOW + 20) is None  # The longer one before it does not come back.
    await store.set_pause(None)
    await store.set_pause(None)
    assert await store.pause(now=0) is None


async def test_every_pause_stays_on_record_with_who_began_it_and_when_it_ended(backend: Backend, store: Store) -> None:
    """C21, P8"""
    later = Pause("bea", since=NOW + 500, until=NOW + 600)
    await store.set_pause(PAUSE)
    assert await pauses(store) == [("ada", NOW, None, True)]
    async with backend.opened(now=NOW + 300) as other:
        await other.set_pause(None)
        assert await pauses(store, now=NOW + 300) == [("ada", NOW, NOW + 300, False)]
    async with backend.opened(now=NOW + 500) as other:
        await other.set_pause(later)
    # It ran out while nobody served.
    assert await pauses(store, now=NOW + 601) == [("ada", NOW, NOW + 300, False), ("bea", NOW + 500, NOW + 600, False)]
    assert await pauses(store, since=NOW + 300, now=NOW + 550) == [("bea", NOW + 500, None, True)]
    async with backend.opened(now=NOW + 10_000) as other:
        await other.set_pause(PAUSE)  # As before: the newer one is taken back.
    assert await pauses(store) == [("ada", NOW, None, True), ("bea", NOW + 500, NOW + 600, False)]


async def test_a_pause_never_ends_before_it_began_on_record_though_the_clock_steps_back(backend: Backend, store: Store) -> None:
    await store.set_pause(PAUSE)
    async with backend.opened(now=NOW - 10**9) as other:
        await other.set_pause(None)
    assert await pauses(store) == [("ada", NOW, NOW, False)]


async def test_the_record_of_pauses_keeps_the_newest_of_them(store: Store) -> None:
    for number in range(PAUSES_KEPT + 5):
        await store.set_pause(Pause("ada", since=NOW + number, until=NOW + 10**6))
    found = [begun for _, begun, _, _ in await pauses(store)]
    assert found == [NOW + number for number in range(5, PAUSES_KEPT + 5)]


async def test_a_notice_is_written_once_by_its_id(backend: Backend, store: Store) -> None:
    """C22"""
    await new_session(store)

    async def tell(other: Store, notice_id: str) -> bool:
        return await other.tell_once("s1", notice_id=notice_id, content="It is kept.", anchor=None, at=NOW)

    async with backend.opened() as other:
        told = await asyncio.gather(*(tell(one, "held.1") for one in (store, other) * 3))
        assert sorted(told) == [False] * 5 + [True]
        assert await tell(other, "held.2")
    assert not await tell(store, "held.2")
    assert [notice.text for notice in await notices(store)] == ["It is kept."] * 2
    assert len({notice.message_id for notice in await notices(store)}) == 2


async def test_each_session_is_told_on_its_own(store: Store) -> None:
    """C22"""
    for session_id in ("s1", "s2"):
        await new_session(store, session_id)
        assert await store.tell_once(session_id, notice_id="held.1", content="It is kept.", anchor=None, at=NOW)
        assert len(await notices(store, session_id)) == 1


async def test_a_chat_is_owed_the_notice_and_a_page_is_not(store: Store) -> None:
    """C22, P4"""
    await new_session(store, "page")
    await store.tell_once("page", notice_id="held.1", content="It is kept.", anchor=None, at=NOW)
    assert await owed(store) == []
    await new_session(store, "chat", key=CHAT)
    for _ in range(2):
        await store.tell_once("chat", notice_id="held.1", content="It is kept.", anchor="a7", at=NOW)
    (delivery,) = await owed(store)
    assert (delivery.session_id, delivery.text, delivery.anchor) == ("chat", "It is kept.", "a7")


async def test_a_notice_does_not_disturb_the_turn_that_runs(store: Store) -> None:
    """P2: anyone may add it at any time, without a lease."""
    turn = await running(store)
    assert await store.tell_once("s1", notice_id="held.1", content="It is kept.", anchor=None, at=NOW)
    turn = await append(store, turn, e.Text(offset=0, text="on it goes"))
    assert [type(event) for event in await bodies(store)][-2:] == [e.MessageWritten, e.Text]


async def test_a_notice_for_nobody_is_refused(store: Store) -> None:
    with pytest.raises(NotFound):
        await store.tell_once("none", notice_id="held.1", content="It is kept.", anchor=None, at=NOW)
