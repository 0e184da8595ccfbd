"""Commits that fail and disks without room: nothing acknowledged is lost, nothing is acknowledged that is not stored."""

import asyncio

import anyio
import pytest

from holdfast.core import events as e
from holdfast.core.errors import HoldfastError, StaleEpoch, StoreFull, Unavailable
from holdfast.core.plans.start import StartedTurn
from holdfast.core.turns import Outcome
from holdfast.ports.owners import Owner
from holdfast.ports.store import Store
from holdfast.store.sqlite import threads
from tests.conformance.backends import ROOMS, Backend
from tests.conformance.steps import ENDED, NOW, append, bodies, new_owner, new_session, running, say, text, well_again, whole_log

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "RESERVE_RETRY_S", 0.05)


async def test_a_commit_that_failed_stored_nothing_and_says_so(backend: Backend) -> None:
    async with backend.failing() as (store, faults):
        turn = await running(store)
        before = await whole_log(store)
        faults.next = ["lost"]
        with pytest.raises(Unavailable):
            await append(store, turn, text("a"), ENDED)
        assert faults.failed == 1
        assert await whole_log(store) == before
        assert store.degraded is None
        await append(store, turn, text("a"), ENDED)
    async with backend.opened() as store:
        assert [event.kind for event in await bodies(store)][-2:] == ["text", "turn.ended"]


async def test_a_commit_that_failed_but_is_on_disk_is_acknowledged(backend: Backend) -> None:
    """Read back, not believed: the caller would otherwise write it a second time."""
    async with backend.failing() as (store, faults):
        turn = await running(store)
        faults.next = ["stored"]
        after = await append(store, turn, text("a"))
        assert faults.failed == 1
        assert after.position == turn.position + 1
        await append(store, after, text("b", 1), ENDED)
        assert [event.kind for event in await bodies(store)][-3:] == ["text", "text", "turn.ended"]


@pytest.mark.parametrize("fault", ["lost", "stored"])
async def test_a_failed_commit_answers_every_write_of_its_batch_and_every_refusal_stays_a_refusal(backend: Backend, fault: str) -> None:
    async with backend.failing() as (store, faults):
        owner = await new_owner(store)
        turns = [await running(store, f"s{n}", f"t{n}", owner=owner) for n in range(20)]
        await append(store, turns[0], ENDED)
        faults.next = [fault]
        results = await asyncio.gather(*(append(store, turn, text("x")) for turn in turns), return_exceptions=True)
        assert faults.failed == 1
        assert isinstance(results[0], StaleEpoch)
        for turn, result in list(zip(turns, results, strict=True))[1:]:
            stored = (await store.session(turn.lease.session_id)).position == turn.position + 1
            assert stored == (not isinstance(result, BaseException))
            assert stored or isinstance(result, Unavailable)


@pytest.mark.parametrize("fault", ["lost", "stored"])
async def test_a_write_without_an_event_is_read_back_as_well(backend: Backend, fault: str) -> None:
    async with backend.failing() as (store, faults):
        await new_session(store)
        faults.next = [fault]
        owner = Owner(name="me", pid=1, started_at=NOW, boot_id="b")
        if fault == "stored":
            number = await store.register_owner(owner)
            assert [known.id for known in await store.owners()] == [number]
        else:
            with pytest.raises(Unavailable):
                await store.register_owner(owner)
            assert await store.owners() == []
        assert faults.failed == 1


async def test_commits_that_fail_again_and_again_are_told_each_time_and_then_it_goes_on(backend: Backend) -> None:
    async with backend.failing() as (store, faults):
        turn = await running(store)
        for fault in ("lost", "lost", "stored", "lost", "stored"):
            faults.next = [fault]
            try:
                turn = await append(store, turn, text(fault, turn.position))
            except Unavailable:
                assert fault == "lost"
        assert faults.failed == 5
        assert [event.text for event in await bodies(store) if isinstance(event, e.Text)] == ["stored", "stored"]


async def test_a_failed_commit_among_writes_that_run_one_by_one_leaves_nobody_waiting(backend: Backend) -> None:
    """The batch had to be taken apart, because one of it did not fit; then a commit in the middle failed."""
    async with backend.failing() as (store, faults):
        owner = await new_owner(store)
        turns = [await running(store, f"s{n}", f"t{n}", owner=owner) for n in range(9)]
        for nth in range(6):
            faults.next = [*[""] * nth, "lost"]
            with anyio.fail_after(60):
                results = await asyncio.gather(
                    *(append(store, turn, text("x"), *((e.TurnResumed(attempt=9, rule="", reason=""),) if n == 4 else ()))
                      for n, turn in enumerate(turns)),
                    return_exceptions=True,
                )  # fmt: skip
            for number, (turn, result) in enumerate(zip(turns, results, strict=True)):
                position = (await store.session(turn.lease.session_id)).position
                assert isinstance(result, BaseException) == (position == turn.position)
                if not isinstance(result, BaseException):
                    turns[number] = result
            faults.next = []


async def fill_up(store: Store, turn_text: str = "x" * 3000) -> list[str]:
    """Messages until there is no room; gives the ids of those that were acknowledged."""
    acknowledged = []
    while True:
        try:
            acknowledged.append((await say(store, "s1", turn_text, max_waiting=10**6)).message_id)
        except StoreFull:
            return acknowledged


@pytest.mark.parametrize("room", ROOMS)
async def test_without_room_nothing_is_acknowledged_and_it_goes_on_by_itself(backend: Backend, room: str) -> None:
    async with backend.limited(room) as (store, space):
        owner = await new_owner(store)
        turn = await running(store, "s2", "t2", owner=owner)
        await new_session(store)
        assert store.degraded is None
        await space.fill()
        acknowledged = await fill_up(store)
        assert store.degraded
        with pytest.raises(StoreFull):
            await new_session(store, "s3")
        accepted = [event.message_id for event in await bodies(store) if isinstance(event, e.MessageAccepted)]
        assert accepted == acknowledged
        if space.keeps_reserve:
            # C, store_full: the ends of what is running are recorded from the reserve, while nothing new is taken.
            end = e.MessageWritten(message_id="a", role="assistant", content="y" * 50_000)
            await append(store, turn, text("z" * 50_000), end, e.TurnEnded(outcome=Outcome.FAILED))
            assert store.degraded
            with pytest.raises(StoreFull):
                await say(store)
        await space.free()
        await well_again(store)
        await say(store, "s1", "there is room", max_waiting=10**6)
        log = await whole_log(store)
        assert [item.seq for item in log] == list(range(1, len(log) + 1))


@pytest.mark.parametrize("room", ROOMS)
async def test_writes_that_were_queued_before_the_disk_was_full_do_not_eat_the_reserve(backend: Backend, room: str) -> None:
    async with backend.limited(room) as (store, space):
        owner = await new_owner(store)
        turns = [await running(store, f"s{n}", f"t{n}", owner=owner) for n in range(1, 40)]
        await space.fill()
        results = await asyncio.gather(
            *(append(store, turn, text("x" * 200_000)) for turn in turns for _ in range(3)),
            *(append(store, turn, ENDED) for turn in turns[:3]),
            return_exceptions=True,
        )
        assert [result for result in results if isinstance(result, StoreFull)]
        assert not [result for result in results if isinstance(result, BaseException) and not isinstance(result, HoldfastError)]
        if space.keeps_reserve:
            for turn in turns:
                session = await store.session(turn.lease.session_id)
                if session.open_turn:
                    await append(store, StartedTurn(turn.lease, turn.turn_id, 1, session.position), e.TurnEnded(outcome=Outcome.FAILED))
            assert (await store.counts()).running == 0
        for turn in turns:
            log = await whole_log(store, turn.lease.session_id)
            assert [item.seq for item in log] == list(range(1, len(log) + 1))
        await space.free()
        await well_again(store)


async def test_the_end_that_finds_the_disk_full_is_recorded_all_the_same(backend: Backend) -> None:
    """The reserve is given up for it; its writer need not ask again."""
    async with backend.limited("disk") as (store, space):
        turn = await running(store)
        await space.fill()
        await append(store, turn, text("z" * 3_500_000), ENDED)
        assert store.degraded
        assert (await store.session("s1")).state == "idle"


@pytest.mark.parametrize("room", ROOMS)
async def test_stops_can_be_recorded_without_room(backend: Backend, room: str) -> None:
    """A21: `/stop` always wins, also on a full disk."""
    async with backend.limited(room) as (store, space):
        await running(store)
        await space.fill()
        await fill_up(store)
        if not space.keeps_reserve:
            await space.free()
        assert not (await store.request_stop("s1", by="owner", dedup_key=None, at=NOW)).ended
        assert (await store.session("s1")).stop_requested
