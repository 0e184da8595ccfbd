"""Lives of processes that served: which died, which were sound, and which ended on purpose (A16, B14)."""

import pytest

from holdfast.core import events as e
from holdfast.core.errors import ToldToStop
from holdfast.core.shutdowns import Shutdown
from holdfast.core.turns import Outcome
from holdfast.ports.owners import Owner
from holdfast.ports.store import Store
from tests.conformance.backends import Backend
from tests.conformance.steps import CUT, ENDED, NOW, append, new_owner, new_session, question, running, say, text

pytestmark = pytest.mark.anyio


async def life(store: Store, number: int) -> int:
    return await store.register_owner(Owner(name=f"life {number}", pid=number, started_at=NOW, boot_id="b"))


async def test_starts_that_died_without_an_end_are_counted_in_a_row(backend: Backend, store: Store) -> None:
    """B14"""
    owners = [await life(store, number) for number in range(6)]
    assert [await store.record_start(owner, at=NOW) for owner in owners[:4]] == [0, 1, 2, 3]
    async with backend.opened() as again:
        assert await again.record_start(owners[3], at=NOW + 99) == 3  # The same life again.
    await store.record_end(owners[3])
    assert [await store.record_start(owner, at=NOW) for owner in owners[4:]] == [0, 1]


async def test_a_start_that_was_sound_ends_the_row(store: Store) -> None:
    """B14: ten healthy minutes."""
    owners = [await life(store, number) for number in range(4)]
    for owner in owners[:3]:
        await store.record_start(owner, at=NOW)
    await store.record_sound(owners[1])
    assert await store.record_start(owners[3], at=NOW) == 1
    await store.record_sound(owners[2])
    assert await store.record_start(owners[3], at=NOW) == 0
    await store.record_sound(99)
    await store.record_end(99)  # Nobody.


@pytest.mark.parametrize("outcome", Outcome)
async def test_a_completed_turn_makes_its_owners_start_sound_and_no_other_end_does(store: Store, outcome: Outcome) -> None:
    """B14: in the transaction that ends the turn."""
    first, second, third = [await life(store, number) for number in range(3)]
    await store.record_start(first, at=NOW)
    await store.record_start(second, at=NOW)
    await append(store, await running(store, "s1", "t1", owner=second), e.TurnEnded(outcome=outcome))
    assert await store.record_start(third, at=NOW) == (0 if outcome is Outcome.COMPLETED else 2)


async def test_a_turn_that_was_taken_over_makes_the_start_sound_that_completed_it(store: Store) -> None:
    """B14"""
    first, second, third = [await life(store, number) for number in range(3)]
    for owner in (first, second):
        await store.record_start(owner, at=NOW)
    turn = await running(store, "s1", "t1", owner=first)
    resumed = [CUT, e.TurnResumed(attempt=2, rule="R9", reason="crash")]
    taken = await store.take_turn("s1", owner=second, turn_id="t1", epoch=turn.lease.epoch, events=resumed, at=NOW)
    assert await store.record_start(third, at=NOW) == 2
    await append(store, taken, ENDED)
    assert await store.record_start(third, at=NOW) == 0


async def test_the_start_before_this_one_ended_on_purpose_or_not(store: Store) -> None:
    """A16: after an unclean end alone the crash policy counts."""
    owners = [await life(store, number) for number in range(3)]
    assert await store.last_end(apart_from=owners[0])  # There was none.
    await store.record_start(owners[0], at=NOW)
    assert await store.last_end(apart_from=owners[0])
    assert not await store.last_end(apart_from=owners[1])
    await store.record_end(owners[0])
    await store.record_start(owners[1], at=NOW)
    assert await store.last_end(apart_from=owners[1])
    await store.record_sound(owners[1])
    await store.record_start(owners[2], at=NOW)
    assert not await store.last_end(apart_from=owners[2])  # Sound, and died all the same.


async def test_an_end_can_be_taken_back(backend: Backend, store: Store) -> None:
    """C25: whoever let go for a successor that failed has not ended."""
    owners = [await life(store, number) for number in range(4)]
    for owner in owners[:3]:
        await store.record_start(owner, at=NOW)
    await store.record_end(owners[2])
    await store.record_end(owners[2])
    assert await store.last_end(apart_from=owners[3])
    await store.record_end(owners[2], ended=False)
    async with backend.opened() as other:
        assert not await other.last_end(apart_from=owners[3])
        assert await other.record_start(owners[3], at=NOW) == 3
    await store.record_end(owners[2])
    assert await store.record_start(owners[3], at=NOW) == 0


async def test_a_hand_over_is_on_record_as_one_and_can_be_taken_back(backend: Backend, store: Store) -> None:
    """C25"""
    owners = [await life(store, number) for number in range(3)]
    for owner in owners:
        await store.record_start(owner, at=NOW, version="0.1.0")
    await store.record_end(owners[0], handed_over=True)
    await store.record_end(owners[1], handed_over=True)
    await store.record_end(owners[1], ended=False)
    handed, taken_back, serves = await store.lives()
    assert handed.ended and handed.handed_at is not None and handed.ended_at is None and handed.version == "0.1.0"
    assert (taken_back.ended, taken_back.handed_at) == (serves.ended, serves.handed_at) == (False, None)
    await store.record_end(owners[0])  # It has finished its turns.
    async with backend.opened() as other:
        [handed, *_] = await other.lives()
        assert handed.handed_at is not None and handed.ended_at is not None


async def test_deaths_are_counted_within_a_time_whether_or_not_a_turn_completed(store: Store) -> None:
    """C26: soundness ends safe mode's row, but a start that died has died."""
    owners = [await life(store, number) for number in range(6)]
    for number, owner in enumerate(owners[:5]):
        await store.record_start(owner, at=NOW + number)
    await store.record_sound(owners[1])
    await store.record_end(owners[2])

    async def deaths(since: int, before: int = owners[5]) -> int:
        return await store.deaths(before=before, since=since)

    assert [await deaths(NOW + since) for since in (0, 1, 2, 4, 5)] == [4, 3, 2, 1, 0]
    assert await deaths(NOW, before=owners[1]) == 1


async def test_a_stop_that_has_begun_is_on_its_own_row_with_its_reason(backend: Backend, store: Store) -> None:
    """C27"""
    first, second = await life(store, 1), await life(store, 2)
    assert [owner.draining for owner in await store.owners()] == [None, None]
    await store.record_drain(first, reason="restart_timeout")
    async with backend.opened() as other:
        assert {owner.id: owner.draining for owner in await other.owners()} == {first: "restart_timeout", second: None}
    await life(store, 1)  # The same life, registered again.
    await store.record_drain(99, reason="shutdown_timeout")  # Nobody.
    assert [owner.draining for owner in await store.owners()] == ["restart_timeout", None]


async def test_the_running_turns_of_each_owner_are_counted_and_no_other_turns(backend: Backend, store: Store) -> None:
    """C19, C24: what a status shows of those that retire."""
    first, second, third = [await life(store, number) for number in range(3)]
    assert await store.running_by_owner() == {}
    turns = [await running(store, f"s{number}", f"t{number}", owner=owner) for number, owner in enumerate((first, first, first, second))]
    assert await store.running_by_owner() == {first: 3, second: 1}
    await append(store, turns[0], ENDED)
    await append(store, turns[1], question())
    await append(store, turns[3], CUT)
    assert await store.running_by_owner() == {first: 1}
    resumed = [CUT, e.TurnResumed(attempt=2, rule="R9", reason="crash")]
    await store.take_turn("s2", owner=third, turn_id="t2", epoch=turns[2].lease.epoch, events=resumed, at=NOW)
    async with backend.opened() as other:
        assert await other.running_by_owner() == {third: 1}


async def test_the_row_of_starts_outlives_the_owners_that_are_forgotten(store: Store) -> None:
    """B14: a dead owner without a lease is forgotten; that it died is not."""
    owners = [await life(store, number) for number in range(3)]
    for owner in owners:
        await store.record_start(owner, at=NOW)
        await store.forget_owner(owner)
    assert await store.record_start(await life(store, 9), at=NOW) == 3


async def test_a_row_may_be_long_and_its_last_start_still_counts(store: Store) -> None:
    """Only the last few are kept."""
    owners = [await life(store, number) for number in range(31)]
    found = [await store.record_start(owner, at=NOW) for owner in owners[:30]]
    assert found[:5] == [0, 1, 2, 3, 4] and min(found[5:]) >= 5
    await store.record_end(owners[29])
    assert await store.record_start(owners[30], at=NOW) == 0


async def test_an_owner_that_was_told_to_stop_starts_and_takes_no_turn(store: Store) -> None:
    """C28, C30: from the transaction on that tells it; the one that told goes on, and so do turns that run."""
    told, telling = await new_owner(store, "told"), await new_owner(store, "telling")
    turn = await running(store, "runs", "t1", owner=told)
    await append(store, await running(store, "cut", "t2", owner=telling), CUT)
    held = await append(store, await running(store, "held", "t4", owner=told), CUT)
    await new_session(store, "waits")
    await say(store, "waits", "hello", key="k1", message_id="m1")
    stop = Shutdown(why="SIGTERM", planned=False)
    await store.tell_owners(stop, by=telling)
    assert [(owner.id, owner.told) for owner in await store.owners()] == [(told, stop), (telling, None)]
    assert await store.start_turn("waits", owner=told, turn_id="t3", at=NOW) is None
    with pytest.raises(ToldToStop):
        await store.take_turn("cut", owner=told, turn_id="t2", epoch=1, events=[], at=NOW)
    await append(store, turn, text("still its own"), ENDED)
    with pytest.raises(ToldToStop):
        await append(store, held, e.TurnResumed(attempt=2, rule="R9", reason="crash"))
    assert await store.start_turn("waits", owner=telling, turn_id="t3", at=NOW) is not None


async def test_what_an_owner_is_told_later_joins_what_it_was_told_before(store: Store) -> None:
    """C28: an operator's stop wins over an unplanned one, whichever comes first; a hurry is not taken back."""
    owner = await new_owner(store, "told")
    for stop, whole in (
        (Shutdown(why="SIGTERM", planned=False), Shutdown(why="SIGTERM", planned=False)),
        (Shutdown(why="asked over HTTP", planned=True), Shutdown(why="asked over HTTP", planned=True)),
        (Shutdown(why="SIGTERM", planned=False, now=True), Shutdown(why="asked over HTTP", planned=True, now=True)),
        (Shutdown(why="again", planned=True), Shutdown(why="asked over HTTP", planned=True, now=True)),
    ):
        await store.tell_owners(stop, by=None)
        assert [known.told for known in await store.owners() if known.id == owner] == [whole]
