"""What is owed to chats, and how far it got (P4)."""

import pytest

from holdfast.core import events as e
from holdfast.core.delivery import DUE, IN_FLIGHT, DeliveryState
from holdfast.core.errors import NotFound
from holdfast.ports.outbox import Delivery
from holdfast.ports.store import Store
from tests.conformance.backends import Backend
from tests.conformance.steps import ENDED, NOW, append, bodies, new_owner, running

pytestmark = pytest.mark.anyio


async def owe(store: Store, number: int = 1) -> None:
    turn = await running(store, f"s{number}", f"t{number}", owner=await new_owner(store))
    written = e.MessageWritten(message_id=f"a{number}", role="assistant", content=f"answer {number}", delivery_id=f"d{number}")
    await append(store, turn, written, ENDED)


async def move(store: Store, expect: DeliveryState, state: DeliveryState, number: int = 1, **more: object) -> bool:
    change = e.DeliveryChanged(delivery_id=f"d{number}", state=state, **more)  # type: ignore[arg-type]
    return await store.record_delivery(f"s{number}", change, expect=expect, at=NOW)


async def due(store: Store, now: int = NOW, limit: int = 100) -> list[str]:
    return [owed.delivery_id for owed in await store.deliveries(states=DUE, now=now, limit=limit)]


async def test_an_answer_for_a_chat_is_owed_from_the_moment_its_turn_ended(backend: Backend, store: Store) -> None:
    await owe(store)
    written = next(item for item in await store.events("s1", after=0, limit=10) if getattr(item.event, "delivery_id", None))
    async with backend.opened() as again:
        assert await again.deliveries(states=DUE, now=NOW, limit=10) == [
            Delivery(
                delivery_id="d1",
                session_id="s1",
                session_key="agent:main:web:page:s1",
                state=DeliveryState.PENDING,
                content="answer 1",
                tries=0,
                retry_at=0,
                written_at=NOW,
                turn_id="t1",
                role="assistant",
                seq=written.seq,
            )
        ]


async def test_a_delivery_moves_only_from_the_state_it_is_in(store: Store) -> None:
    """Two senders: one of them sends."""
    await owe(store)
    before = len(await bodies(store))
    assert not await move(store, DeliveryState.SENDING, DeliveryState.SENT)
    assert len(await bodies(store)) == before
    assert await move(store, DeliveryState.PENDING, DeliveryState.SENDING, tries=1)
    assert not await move(store, DeliveryState.PENDING, DeliveryState.SENDING, tries=1)
    assert await move(store, DeliveryState.SENDING, DeliveryState.SENT, tries=1, receipt="4711")
    assert await due(store) == []
    assert (await bodies(store))[-1] == e.DeliveryChanged(delivery_id="d1", state="sent", tries=1, receipt="4711")


async def test_a_delivery_of_another_session_or_of_none_is_not_moved(store: Store) -> None:
    await owe(store, 1)
    await owe(store, 2)
    change = e.DeliveryChanged(delivery_id="d1", state="sending")
    assert not await store.record_delivery("s2", change, expect=DeliveryState.PENDING, at=NOW)
    unknown = e.DeliveryChanged(delivery_id="d9", state="sending")
    assert not await store.record_delivery("s1", unknown, expect=DeliveryState.PENDING, at=NOW)
    with pytest.raises(NotFound):
        await store.record_delivery("nowhere", change, expect=DeliveryState.PENDING, at=NOW)
    assert await due(store) == ["d1", "d2"]


async def test_what_failed_is_due_again_at_its_time(store: Store) -> None:
    await owe(store)
    await move(store, DeliveryState.PENDING, DeliveryState.SENDING, tries=1)
    assert [owed.delivery_id for owed in await store.deliveries(states=IN_FLIGHT, now=2**62, limit=10**6)] == ["d1"]
    await move(store, DeliveryState.SENDING, DeliveryState.PENDING, tries=1, retry_at=NOW + 1000, error="flood")
    assert await due(store, NOW + 999) == []
    assert await due(store, NOW + 1000) == ["d1"]
    [owed] = await store.deliveries(states=DUE, now=2**80, limit=5)
    assert (owed.tries, owed.retry_at) == (1, NOW + 1000)


async def test_what_is_owed_comes_oldest_first_and_what_is_over_never(store: Store) -> None:
    for number in range(1, 8):
        await owe(store, number)
    for number, state in ((1, DeliveryState.SENT), (2, DeliveryState.DEAD), (3, DeliveryState.UNKNOWN)):
        await move(store, DeliveryState.PENDING, state, number)
    assert await due(store) == ["d3", "d4", "d5", "d6", "d7"]
    assert await due(store, limit=2) == ["d3", "d4"]
    assert await store.deliveries(states=[], now=NOW, limit=5) == []
    assert await store.deliveries(states=[DeliveryState.SENT, DeliveryState.DEAD], now=NOW, limit=5) == []


async def test_who_sends_a_reply_is_known_for_as_long_as_it_is_being_sent(backend: Backend, store: Store) -> None:
    await owe(store)
    await move(store, DeliveryState.PENDING, DeliveryState.SENDING, tries=1, owner=7)
    assert [owed.owner for owed in await store.deliveries(states=IN_FLIGHT, now=NOW, limit=9)] == [7]
    before = backend.catalog()
    backend.rebuild()
    assert backend.catalog() == before
    await move(store, DeliveryState.SENDING, DeliveryState.UNKNOWN, tries=1)
    assert [owed.owner for owed in await store.deliveries(states=DUE, now=NOW, limit=9)] == [None]


async def test_replies_of_one_session_keep_their_order_when_the_clock_is_set_back(store: Store) -> None:
    """A17: between sessions the older goes first; within one, no clock changes the order."""
    for number, times in ((1, (NOW + 50, NOW - 50, NOW + 70)), (2, (NOW + 60,))):
        turn = await running(store, f"s{number}", f"t{number}", owner=await new_owner(store))
        for at in times:
            name = f"{number}.{at - NOW}"
            written = e.MessageWritten(message_id=name, role="assistant", content="x", delivery_id=name)
            turn = await append(store, turn, written, at=at)
    assert await due(store) == ["1.50", "1.-50", "2.60", "1.70"]


async def test_an_answer_that_was_damaged_on_disk_is_still_owed_and_says_so(backend: Backend, store: Store) -> None:
    await owe(store)
    written = next(item for item in await store.events("s1", after=0, limit=10) if getattr(item.event, "delivery_id", None))
    backend.change_byte("s1", written.seq, "body")
    [owed] = await store.deliveries(states=DUE, now=NOW, limit=10)
    assert "damaged" in owed.text
