"""What is owed to chats, and how far it got (P4)."""

import pytest

from holdfast.core import events as e
from holdfast.core.delivery import DUE, IN_FLIGHT, DeliveryState
from holdfast.core.errors import NotFound
from holdfast.core.plans.start import StartedTurn
from holdfast.ports.outbox import Delivery
from holdfast.ports.store import Store
from tests.conformance.backends import Backend
from tests.conformance.steps import CHAT, ENDED, NOW, append, bodies, new_owner, running, text

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


async def in_one_chat(store: Store) -> list[StartedTurn]:
    """Two conversations of one chat, each with a turn that runs."""
    owner = await new_owner(store)
    return [await running(store, f"s{number}", f"t{number}", key=CHAT, owner=owner) for number in (1, 2)]


async def write(store: Store, turn: StartedTurn, name: str, at: int = NOW) -> StartedTurn:
    return await append(store, turn, e.MessageWritten(message_id=name, role="assistant", content="x", delivery_id=name), at=at)


async def show(store: Store, turn: StartedTurn, name: str, at: int = NOW) -> bool:
    """Opens a message that shows the answer of a turn, and it arrives."""
    session_id = turn.lease.session_id
    if not await store.open_delivery(session_id, e.DeliveryOpened(delivery_id=name, turn_id=turn.turn_id, owner=1), at=at):
        return False
    arrived = e.DeliveryChanged(delivery_id=name, state=DeliveryState.LIVE, tries=1, receipt=name)
    return await store.record_delivery(session_id, arrived, expect=DeliveryState.SENDING, at=at)


async def test_a_chat_is_answered_in_the_order_of_the_log_whatever_the_clock_says(store: Store) -> None:
    """P4: two of its conversations write in turn, and the clock is set back and forth in between."""
    one, two = await in_one_chat(store)
    for number, by_ms in enumerate((50, -50, 70, -90, 0, 0)):
        if number % 2:
            two = await write(store, two, f"d{number}", NOW + by_ms)
        else:
            one = await write(store, one, f"d{number}", NOW + by_ms)
    assert await due(store) == ["d0", "d1", "d2", "d3", "d4", "d5"]
    assert await due(store, limit=2) == ["d0", "d1"]


async def test_a_reply_whose_record_was_lost_keeps_its_place_in_its_conversation(backend: Backend, store: Store) -> None:
    """P4"""
    one, two = await in_one_chat(store)
    for name in ("d1", "d2"):
        one = await write(store, one, name)
    two = await write(store, two, "d3")
    await write(store, one, "d4")
    backend.lose("s1", (await store.delivery("d2"))[0].seq)
    assert await due(store) == ["d1", "d2", "d3", "d4"]


async def test_an_answer_is_not_shown_before_what_another_conversation_of_its_chat_still_owes(store: Store) -> None:
    """P4, B11"""
    one, two = await in_one_chat(store)
    await write(store, one, "d1")
    assert not await show(store, two, "live")
    for state in (DeliveryState.SENDING, DeliveryState.SENT):
        expect = DeliveryState.PENDING if state is DeliveryState.SENDING else DeliveryState.SENDING
        await store.record_delivery("s1", e.DeliveryChanged(delivery_id="d1", state=state, tries=1), expect=expect, at=NOW)
    assert await show(store, two, "live")


async def test_what_a_deleted_conversation_owes_holds_up_no_other_of_its_chat(store: Store) -> None:
    """B11: nobody is sent that any more."""
    one, two = await in_one_chat(store)
    await append(store, await write(store, one, "d1"), ENDED)
    await store.delete_session("s1", by="owner", until=NOW + 1000, at=NOW)
    assert await show(store, two, "live")


async def test_what_another_conversation_of_the_chat_wrote_since_stands_below_an_answer_that_is_shown(store: Store) -> None:
    """B11: nobody has to look for the answer above; but what is written after the answer does not count."""
    one, two = await in_one_chat(store)
    assert await show(store, one, "live", NOW + 90)
    one = await append(store, one, text("so far"))
    before = (await store.session("s1")).seq
    two = await write(store, two, "notice", NOW + 50)
    assert [live.followed for live in await store.live_messages("s1", "t1", before=before)] == [False]
    assert [live.followed for live in await store.live_messages("s1", "t1")] == [True]
    await write(store, one, "answer", NOW)
    answer = (await store.delivery("answer"))[0].seq
    assert [live.followed for live in await store.live_messages("s1", "t1", before=answer)] == [True]


async def test_an_answer_that_was_damaged_on_disk_is_still_owed_and_says_so(backend: Backend, store: Store) -> None:
    await owe(store)
    written = next(item for item in await store.events("s1", after=0, limit=10) if getattr(item.event, "delivery_id", None))
    backend.change_byte("s1", written.seq, "body")
    [owed] = await store.deliveries(states=DUE, now=NOW, limit=10)
    assert "damaged" in owed.text


async def test_only_what_is_owed_to_chats_of_the_platforms_that_are_asked_for_is_read(store: Store) -> None:
    """P8: what is owed to a platform that is away costs those that are there nothing."""
    owner = await new_owner(store)
    keys = ["agent:main:telegram:dm:1", "agent:main:slack:dm:1", "agent:telegram:slack:group:telegram:slack:7", "agent:main:tele:dm:1"]
    for number, key in enumerate(keys):
        await write(store, await running(store, f"s{number}", f"t{number}", key=key, owner=owner), f"d{number}")

    async def owed(*platforms: str, limit: int = 9) -> list[str]:
        found = await store.deliveries(states=DUE, now=NOW, limit=limit, platforms=platforms)
        return [one.delivery_id for one in found]

    assert await owed("telegram") == ["d0"]
    assert await owed("slack") == ["d1", "d2"] and await owed("slack", limit=1) == ["d1"]
    assert await owed("slack", "telegram") == ["d0", "d1", "d2"]
    assert await owed() == await owed("matrix") == []
