"""Causes other than messages: in the inbox once, taken by one turn at most, or dropped on record (P6, E3, E6)."""

import asyncio
from pathlib import Path

import pytest

from holdfast.core import events as e
from holdfast.core.errors import Deleted, DuplicateOtherContent, NotFound
from holdfast.core.plans import causes
from holdfast.core.plans.answer import Answer
from holdfast.core.plans.causes import Recorded
from holdfast.core.plans.edit import Edit
from holdfast.core.redaction import Secrets
from holdfast.core.turns import TurnState
from holdfast.ports.store import Store
from holdfast.store import open_store
from tests.conformance.backends import Backend
from tests.conformance.steps import (
    CHAT,
    ENDED,
    NOW,
    append,
    bodies,
    left,
    new_owner,
    new_session,
    notices,
    owed,
    question,
    rested,
    running,
    say,
    start,
    whole_log,
)

pytestmark = pytest.mark.anyio


async def record(
    store: Store,
    session_id: str = "s1",
    cause_id: str = "p1",
    *,
    key: str | None = None,
    content: str = "The build ended.",
    generation: int | None = None,
) -> Recorded:
    return await store.record_cause(
        session_id, cause_id=cause_id, what="timer", content=content, dedup_key=key, at=NOW, generation=generation, anchor="a7"
    )


async def dropped(store: Store, session_id: str = "s1") -> dict[str, str]:
    return {event.cause_id: event.reason for event in await bodies(store, session_id) if isinstance(event, e.CauseDropped)}


async def test_a_turn_starts_from_a_cause_that_is_no_message_and_names_its_kind(store: Store) -> None:
    """P6"""
    await new_session(store, key=CHAT)
    assert await record(store) == Recorded("p1", "s1")
    assert (await store.session("s1")).queued == 1
    owner = await new_owner(store)
    turn = await start(store, "s1", "t1", owner=owner)
    assert (await bodies(store))[-1] == e.TurnStarted(generation=1, attempt=1, cause="timer", causes=("p1",), owner=owner, epoch=1)
    transcript = await store.transcript(await store.session("s1"))
    assert [(message.id, message.role, message.text) for message in transcript.messages] == [("p1", "cause", "The build ended.")]
    assert (transcript.turns[-1].cause, transcript.anchor) == ("timer", "a7")  # Its answer goes where the cause came from.
    await append(store, turn, ENDED)
    assert await store.start_turn("s1", owner=owner, turn_id="t2", at=NOW) is None


async def test_causes_and_messages_are_taken_in_the_order_in_which_they_came(store: Store) -> None:
    """P6: a message that no turn took while it ran is the next turn, also if it was meant to steer."""
    await new_session(store)
    owner = await new_owner(store)
    await say(store, message_id="m1")
    turn = await start(store, "s1", "t1", owner=owner)
    await say(store, message_id="m2", mode="steer")
    await record(store, cause_id="p1")
    await say(store, message_id="m3")
    for number in (2, 3, 4):
        await append(store, turn, ENDED)
        turn = await start(store, "s1", f"t{number}", owner=owner)
    started = [(event.cause, *event.causes) for event in await bodies(store) if isinstance(event, e.TurnStarted)]
    assert started == [("message", "m1"), ("message", "m2"), ("timer", "p1"), ("message", "m3")]


async def test_a_cause_is_recorded_once_however_often_it_is_told(backend: Backend, store: Store) -> None:
    """P6, E6"""
    await new_session(store)
    async with backend.opened() as other:
        told = await asyncio.gather(*(record(by, cause_id=f"p{n}", key="end|17") for n, by in enumerate((store, other) * 3)))
    first = next(item for item in told if not item.duplicate)
    assert {item.cause_id for item in told} == {first.cause_id} and sum(item.duplicate for item in told) == 5
    assert (await store.session("s1")).queued == 1
    with pytest.raises(DuplicateOtherContent):
        await record(store, cause_id="p9", key="end|17", content="Something else.")


async def test_a_cause_that_came_again_after_a_restart_starts_nothing_more(backend: Backend) -> None:
    """E6"""
    async with backend.opened() as store:
        await new_session(store)
        await record(store, key="end|17")
        turn = await start(store, "s1", "t1", owner=await new_owner(store))
        await append(store, turn, ENDED)
    async with backend.opened() as store:
        assert (await record(store, cause_id="p2", key="end|17")).duplicate
        assert await store.start_turn("s1", owner=await new_owner(store, "next"), turn_id="t2", at=NOW) is None


async def test_two_processes_start_one_turn_from_a_cause(backend: Backend, store: Store) -> None:
    """P2, P6"""
    await new_session(store)
    await record(store)
    owners = await new_owner(store, "one"), await new_owner(store, "two")
    async with backend.opened() as other:
        both = zip((store, other), owners, strict=True)
        started = await asyncio.gather(*(by.start_turn("s1", owner=owner, turn_id=f"t{owner}", at=NOW) for by, owner in both))
    assert sum(turn is not None for turn in started) == 1


@pytest.mark.parametrize("generation", [None, 0, 1, 2])
async def test_a_cause_of_another_turn_than_the_newest_is_dropped_when_it_is_recorded(store: Store, generation: int | None) -> None:
    """E3"""
    await rested(store)
    recorded = await record(store, generation=generation)
    stays = generation in (None, 1)
    assert recorded.dropped == (None if stays else causes.OUTDATED)
    assert await dropped(store) == ({} if stays else {"p1": causes.OUTDATED})
    assert (await store.session("s1")).queued == stays


async def test_a_cause_whose_turn_was_overtaken_while_it_waited_is_dropped_and_the_next_one_taken(store: Store) -> None:
    """P6, E3"""
    turn = await running(store)
    await say(store, message_id="m2")
    await record(store, cause_id="p1", generation=1)
    await record(store, cause_id="p2")
    for number in (2, 3):
        await append(store, turn, ENDED)
        turn = await start(store, "s1", f"t{number}", owner=turn.lease.owner)
    started = [event.causes for event in await bodies(store) if isinstance(event, e.TurnStarted)]
    assert started[1:] == [("m2",), ("p2",)]
    assert await dropped(store) == {"p1": causes.OUTDATED}
    assert await notices(store) == []  # Nobody said it, so nobody is told.


async def test_where_only_outdated_causes_wait_no_turn_starts_and_nothing_waits_any_more(store: Store) -> None:
    """P6"""
    turn = await running(store)
    await say(store)
    await record(store, generation=1)
    await append(store, turn, ENDED)
    await append(store, await start(store, "s1", "t2", owner=turn.lease.owner), ENDED)
    assert await store.start_turn("s1", owner=turn.lease.owner, turn_id="t3", at=NOW) is None
    session = await store.session("s1")
    assert (session.queued, session.turn_state) == (0, TurnState.ENDED)
    assert await store.waiting_lanes(limit=10) == []


@pytest.mark.parametrize("how", ["reset", "suspended", "deleted"])
async def test_in_a_session_that_is_left_messages_are_refused_and_other_causes_dropped(store: Store, how: str) -> None:
    """A20, P6: a cause of a session that was reset starts no turn."""
    await rested(store, key=CHAT)
    await say(store, message_id="m2", text="hello")
    await record(store)
    match how:
        case "reset":
            await store.reset("s1", fresh=("s2", "l2"), by="ann", dedup_key=None, at=NOW)
        case "suspended":
            await store.change_session("s1", e.SessionChanged(suspended=True), at=NOW)
        case _:
            await store.delete_session("s1", by="ann", until=NOW + 1, at=NOW)
    assert list(await dropped(store)) == ["p1"]
    told = [notice.text for notice in await notices(store)]
    assert len(told) == 1 and told[0].endswith("> hello")
    assert (await store.session("s1")).queued == 0


@pytest.mark.parametrize("how", ["left", "suspended"])
async def test_a_cause_for_a_session_that_starts_no_turn_is_dropped_at_once(store: Store, how: str) -> None:
    """P6, E3"""
    await rested(store, key=CHAT)
    if how == "left":
        await store.reset("s1", fresh=("s2", "l2"), by="ann", dedup_key=None, at=NOW)
    else:
        await store.change_session("s1", e.SessionChanged(suspended=True), at=NOW)
    before = len(await owed(store))
    recorded = await record(store, key="end|17")
    assert recorded.dropped == (causes.LEFT_FIRST if how == "left" else causes.SUSPENDED_FIRST)
    assert (await store.session("s1")).queued == 0 and len(await owed(store)) == before
    assert (await record(store, key="end|17")).duplicate


async def test_a_cause_needs_a_session(store: Store) -> None:
    with pytest.raises(NotFound):
        await record(store)
    await rested(store)
    await store.delete_session("s1", by="ann", until=NOW + 1, at=NOW)
    with pytest.raises(Deleted):
        await record(store)


async def test_only_a_person_continues_from_a_turn_that_was_left_and_other_causes_wait(store: Store) -> None:
    """A13, A23, R7: somebody was told how to continue it, and nothing that nobody said may take that away."""
    turn = await left(store)
    await record(store)
    assert await store.start_turn("s1", owner=turn.lease.owner, turn_id="t2", at=NOW) is None
    await say(store, message_id="m2")
    second = await start(store, "s1", "t2", owner=turn.lease.owner)
    ended = [event for event in await bodies(store) if isinstance(event, e.TurnEnded)]
    assert [(event.outcome, event.still_pending) for event in ended] == [("set_aside", True)]
    await append(store, second, ENDED)
    await start(store, "s1", "t3", owner=turn.lease.owner)
    started = [event.causes for event in await bodies(store) if isinstance(event, e.TurnStarted)]
    assert started[1:] == [("m2",), ("p1",)]


async def test_in_safe_mode_only_what_a_person_said_starts_a_turn(store: Store) -> None:
    """B14, P6: other causes wait where they are, in their order."""
    await rested(store)
    owner = await new_owner(store)
    await record(store, cause_id="p1")
    assert await store.waiting_lanes(limit=10, safe=True) == []
    assert await store.start_turn("s1", owner=owner, turn_id="t2", at=NOW, safe=True) is None
    await say(store, message_id="m2")
    assert await store.waiting_lanes(limit=10, safe=True) == ["s1"]
    turn = await store.start_turn("s1", owner=owner, turn_id="t2", at=NOW, safe=True)
    assert turn is not None
    await append(store, turn, ENDED)
    assert await store.start_turn("s1", owner=owner, turn_id="t3", at=NOW, safe=True) is None
    await start(store, "s1", "t3", owner=owner)
    started = [event.causes for event in await bodies(store) if isinstance(event, e.TurnStarted)]
    assert started[1:] == [("m2",), ("p1",)]


async def test_a_message_with_a_known_secret_is_known_again_when_it_is_sent_again(tmp_path: Path) -> None:
    """P1: it is compared as it was recorded; so are an edit and an answer."""
    store = await open_store(tmp_path, now=lambda: NOW, reserve_bytes=4096, secrets=Secrets({"KEY": "s3cret-value"}))
    try:
        await new_session(store)
        first = await say(store, text="my key is s3cret-value", key="k1", message_id="m1")
        again = await say(store, text="my key is s3cret-value", key="k1")
        assert (again.message_id, again.duplicate) == (first.message_id, True)
        edit = Edit(message_id="m1", text="it is not s3cret-value", by="owner", seq=2, waits=True, dedup_key="k2")
        edited = await store.edit("s1", edit, at=NOW)
        assert await store.edit("s1", edit, at=NOW) == edited
        await append(store, await start(store, "s1", "t1", owner=await new_owner(store)), question("q1", call_id="c1"))
        answer = Answer(content="yes, s3cret-value", by="owner", dedup_key="k3")
        assert [await store.answer("q1", answer, at=NOW) for _ in range(2)] == ["s1", "s1"]
        assert not any(b"s3cret-value" in item.body for item in await whole_log(store))
    finally:
        await store.aclose()
