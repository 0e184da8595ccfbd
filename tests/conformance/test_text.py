"""Every text that is text comes back as it was (F8)."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.core import events as e
from holdfast.core.effects import Effect
from holdfast.core.errors import BadInput
from holdfast.ports.store import Store
from tests.conformance.backends import Backend
from tests.conformance.steps import ENDED, NOW, append, bodies, new_owner, new_session, running, say, so_far, start, text, whole_log

pytestmark = pytest.mark.anyio

ODD = [
    "",
    " ",
    "\0",
    "a\0b",
    "line\nline\r\nline\rline",
    "\u2028\u2029\u0085\x0b\x0c\x1c",
    "😀👩‍👩‍👧‍👦🏳️‍🌈",
    "שלום مرحبا \u202eabc\u202c",
    "e\u0301 é \ufeff \ufffd \uffff",
    "\U0010ffff\x7f\x01",
    '"\\/{}[]\u2022</script>',
    "'; DROP TABLE event; --",
]


@pytest.mark.parametrize("odd", ODD, ids=[ascii(odd)[:24] for odd in ODD])
async def test_odd_text_comes_back_unchanged_from_every_place_it_can_stand(backend: Backend, odd: str) -> None:
    async with backend.opened() as store:
        owner = await new_owner(store)
        await store.create_session(session_id="s1", session_key=f"agent:{odd}", log="l1", at=NOW, title=odd)
        await say(store, text=odd, key=f"key {odd}")
        assert (await say(store, text=odd, key=f"key {odd}")).duplicate
        turn = await start(store, "s1", f"t{odd}", owner=owner)
        call = e.ToolStarted(call_id=odd, name=odd, arguments={odd: [odd, {odd: odd}]}, effect=Effect.UNSAFE)
        finished = e.ToolFinished(call_id=odd, outcome="done", content=odd)  # type: ignore[arg-type]
        written = e.MessageWritten(message_id=f"a{odd}", role="assistant", content=odd, delivery_id=f"d{odd}")
        events = [text(odd), e.Reasoning(text=odd), call, e.ToolOutput(call_id=odd, text=odd), finished, written, ENDED]
        await append(store, turn, *events)
        await store.index_search(limit=100)
        await store.sessions(limit=10, query=odd)
    async with backend.opened() as store:
        session = await store.session("s1")
        assert (session.title, session.session_key, session.turn_id) == (odd, f"agent:{odd}", f"t{odd}")
        log = await whole_log(store)
        assert isinstance(log[1].event, e.MessageAccepted) and log[1].event.text == odd
        assert [item.event for item in log][-7:] == events
        assert {item.turn_id for item in log[2:]} == {f"t{odd}"}
        [owed] = await store.deliveries(states=["pending"], now=NOW, limit=5)  # type: ignore[list-item]
        assert (owed.text, owed.delivery_id) == (odd, f"d{odd}")
        assert await store.current_session(f"agent:{odd}") == session


@settings(max_examples=50, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))
@given(pieces=st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=8))
async def test_any_pieces_come_back_as_they_were(store: Store, pieces: list[str]) -> None:
    session_id = f"s{await so_far(store)}"
    turn = await running(store, session_id, f"t{session_id}")
    await append(store, turn, *(text(piece) for piece in pieces))
    assert [event.text for event in await bodies(store, session_id) if isinstance(event, e.Text)] == pieces


async def test_a_message_of_five_megabytes_is_stored_whole(backend: Backend) -> None:
    large = "0123456789abcdef\u00e9\u2028" * 290_000
    assert len(large.encode()) > 5_000_000
    async with backend.opened() as store:
        await new_session(store)
        await say(store, text=large, key="k")
    async with backend.opened() as store:
        turn = await start(store, "s1", "t1", owner=await new_owner(store))
        await append(store, turn, e.MessageWritten(message_id="a", role="assistant", content=large), ENDED)
        texts = [event.text for event in await bodies(store) if isinstance(event, e.MessageAccepted | e.MessageWritten)]
        assert texts == [large] * 3
        while await store.index_search(limit=10):
            pass
        assert (await say(store, text=large, key="k")).duplicate


async def test_half_characters_are_refused_wherever_they_stand_and_the_turn_goes_on(store: Store) -> None:
    turn = await running(store)
    call = e.ToolStarted(call_id="c", name="n", arguments={"a": ["\udc00"]}, effect=Effect.PURE)
    deep: list[object] = []
    for _ in range(20_000):
        deep = [deep]
    nested = e.ToolStarted(call_id="c", name="n", arguments={"a": deep}, effect=Effect.PURE)
    for broken in (text("\ud83d"), e.ToolOutput(call_id="c", text="\udc00"), call, nested):
        with pytest.raises(BadInput):
            await append(store, turn, text("good"), broken)
    with pytest.raises(BadInput):
        await store.change_session("s1", e.SessionChanged(title="\ud83d"), at=NOW)
    with pytest.raises(BadInput):
        await new_session(store, "\ud83d")
    with pytest.raises(BadInput):
        await store.session("\ud83d")
    with pytest.raises(BadInput):
        await store.start_turn("\ud83d", owner=1, turn_id="t", at=NOW)
    await append(store, turn, text("still here"))


@pytest.mark.parametrize("at", [2**63, -(2**64), 10**30])
async def test_a_time_no_database_can_hold_is_refused_and_nothing_is_changed(store: Store, at: int) -> None:
    turn = await running(store)
    before = await whole_log(store)
    with pytest.raises(BadInput):
        await say(store, at=at)
    with pytest.raises(BadInput):
        await append(store, turn, text("x"), ENDED, at=at)
    with pytest.raises(BadInput):
        await store.change_session("s1", e.SessionChanged(title="x"), at=at)
    with pytest.raises(BadInput):
        await new_session(store, "s2", at=at)
    assert await whole_log(store) == before
    await append(store, turn, text("x"), ENDED)


async def test_the_smallest_and_the_largest_time_that_can_be_held_are_held(store: Store) -> None:
    for number, at in enumerate((0, -1, 2**62, -(2**62))):
        session = await new_session(store, f"s{number}", at=at)
        assert session.created_at == at
        assert (await whole_log(store, f"s{number}"))[0].at == at
    assert len((await store.sessions(limit=10)).sessions) == 4
