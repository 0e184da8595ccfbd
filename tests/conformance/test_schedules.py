"""Schedules in the store: one time is told once, whichever process, crash or clock brings it (P6, E7)."""

import asyncio

import pytest

from holdfast.core import events as e
from holdfast.core import schedules
from holdfast.core.errors import Deleted, DuplicateOtherContent, NotFound
from holdfast.core.plans.schedules import UNREADABLE, Fired
from holdfast.core.schedules import Due, Schedule, Timing, TooManySchedules
from holdfast.ports.store import Store
from tests.conformance.backends import Backend
from tests.conformance.steps import CHAT, ENDED, NOW, append, bodies, new_owner, new_session, notices, owed, rested, say, start

pytestmark = pytest.mark.anyio

HOUR = 3_600_000
FRESH = ("s9", "l9")
WHEN = "Sunday 1 March 2026, 08:00 (UTC)"


def added(schedule_id: str = "c1", *, text: str = "water the plants", due_at: int = NOW + HOUR, key: str | None = None) -> e.ScheduleAdded:
    return e.ScheduleAdded(schedule_id=schedule_id, content=text, due_at=due_at, every_s=3600, since=NOW, sender="ann", dedup_key=key)


async def add(store: Store, session_id: str = "s1", schedule_id: str = "c1", *, limit: int = 50, key: str | None = None) -> Schedule:
    return await store.add_schedule(session_id, added(schedule_id, key=key), limit=limit, at=NOW)


def come(due_at: int = NOW + HOUR, next_at: int | None = NOW + 2 * HOUR, *, missed: int = 0, skipped: str | None = None) -> Due:
    return Due(due_at=due_at, next_at=next_at, missed=missed, skipped=skipped)


async def fire(store: Store, schedule: Schedule, due: Due | None = None, *, at: int = NOW + HOUR) -> Fired | None:
    return await store.fire_schedule(schedule, due or come(), when=WHEN, fresh=FRESH, at=at)


async def causes(store: Store, session_id: str = "s1") -> list[e.CauseRecorded]:
    return [event for event in await bodies(store, session_id) if isinstance(event, e.CauseRecorded)]


async def came(store: Store, session_id: str = "s1") -> list[e.ScheduleDue]:
    return [event for event in await bodies(store, session_id) if isinstance(event, e.ScheduleDue)]


# adding and removing


async def test_a_schedule_is_read_as_it_was_made(backend: Backend) -> None:
    async with backend.opened() as store:
        await new_session(store, key=CHAT)
        made = await add(store)
    async with backend.opened() as store:
        assert await store.schedules() == await store.schedules(CHAT) == [made]
    assert made == Schedule(
        schedule_id="c1",
        session_id="s1",
        session_key=CHAT,
        text="water the plants",
        timing=Timing(every_s=3600, since=NOW),
        missed="run",
        sender="ann",
        call_id=None,
        created_at=NOW,
        due_at=NOW + HOUR,
        noted_at=NOW,
    )


async def test_a_schedule_is_made_once_however_often_it_is_asked_for(store: Store) -> None:
    """P1"""
    await new_session(store)
    first = await add(store, key="k")
    assert await add(store, schedule_id="c2", key="k") == first
    with pytest.raises(DuplicateOtherContent):
        await store.add_schedule("s1", added("c3", text="something else", key="k"), limit=50, at=NOW)
    await store.remove_schedule("c1", by="ann", at=NOW)
    with pytest.raises(NotFound):
        await add(store, schedule_id="c2", key="k")


async def test_a_key_has_a_limit_of_schedules_that_others_do_not_use_up(store: Store) -> None:
    """P8"""
    await new_session(store, key=CHAT)
    await new_session(store, "s2")
    for number in range(3):
        await add(store, schedule_id=f"c{number}", limit=3)
    await rested_with_reset(store)
    with pytest.raises(TooManySchedules):
        await add(store, "s9", "c9", limit=3)
    await add(store, "s2", "c8", limit=3)
    await store.remove_schedule("c0", by="ann", at=NOW)
    await add(store, schedule_id="c7", limit=3)


async def rested_with_reset(store: Store) -> None:
    """The session s1 has said something, and another one took its place."""
    await say(store)
    await append(store, await start(store, "s1", "t1", owner=await new_owner(store)), ENDED)
    await store.reset("s1", fresh=FRESH, by="ann", dedup_key=None, at=NOW)


async def test_a_schedule_that_was_removed_is_gone_and_its_cause_stays(store: Store) -> None:
    await new_session(store)
    made = await add(store)
    await fire(store, made)
    gone = await store.remove_schedule("c1", by="bob", at=NOW)
    assert (gone.due_at, gone.last_at, await store.schedules()) == (NOW + 2 * HOUR, NOW + HOUR, [])
    assert (await store.session("s1")).queued == 1
    assert (await bodies(store))[-1] == e.ScheduleRemoved(schedule_id="c1", by="bob")
    assert await fire(store, made) is None
    with pytest.raises(NotFound):
        await store.remove_schedule("c1", by="bob", at=NOW)


async def test_a_schedule_needs_a_session(store: Store) -> None:
    with pytest.raises(NotFound):
        await add(store)
    await rested(store)
    await store.delete_session("s1", by="ann", until=NOW + 1, at=NOW)
    with pytest.raises(Deleted):
        await add(store)


# a time has come


async def test_a_time_that_has_come_is_a_cause_with_the_rights_of_the_one_who_made_it(store: Store) -> None:
    """P6, E8: a turn starts from it, and no message is invented."""
    await new_session(store, key=CHAT)
    assert await fire(store, await add(store), come(missed=2)) == Fired("s1")
    [cause] = await causes(store)
    assert (cause.what, cause.text, cause.sender, cause.anchor, cause.generation) == ("schedule", "water the plants", "ann", None, None)
    assert cause.schedule == e.DueTime(schedule_id="c1", due_at=NOW + HOUR, when=WHEN, missed=2)
    [schedule] = await store.schedules()
    assert (schedule.due_at, schedule.last_at, schedule.noted_at, schedule.skipped) == (NOW + 2 * HOUR, NOW + HOUR, NOW + HOUR, None)
    await start(store, "s1", "t1", owner=await new_owner(store))
    transcript = await store.transcript(await store.session("s1"))
    assert [(message.role, message.cause, message.schedule) for message in transcript.messages] == [("cause", "schedule", cause.schedule)]
    assert transcript.turns[-1].cause == "schedule"


async def test_of_two_processes_that_find_it_due_one_records_it(backend: Backend, store: Store) -> None:
    """P6: as in a hand-over."""
    await new_session(store)
    made = await add(store)
    async with backend.opened() as other:
        fired = await asyncio.gather(*(fire(by, made) for by in (store, other) * 3))
    assert sum(each is not None for each in fired) == 1
    assert len(await causes(store)) == len(await came(store)) == 1


async def test_a_time_that_a_clock_brings_again_is_not_told_again(backend: Backend) -> None:
    """P6: the clock ran ahead, was set back, and comes to the same time once more."""
    async with backend.opened() as store:
        await new_session(store)
        await fire(store, await add(store), at=NOW + HOUR)
        [schedule] = await store.schedules()
        back = Due(due_at=schedule.due_at, next_at=NOW + HOUR, skipped=schedules.SET_BACK)
        assert await fire(store, schedule, back, at=NOW) == Fired(None, schedules.SET_BACK)
    async with backend.opened() as store:
        [schedule] = await store.schedules()
        assert schedule.due_at == NOW + HOUR
        assert await fire(store, schedule) == Fired(None, schedules.KNOWN)
        assert len(await causes(store)) == 1
        [schedule] = await store.schedules()
        assert (schedule.due_at, schedule.skipped) == (NOW + 2 * HOUR, schedules.KNOWN)


async def test_the_last_time_ends_a_schedule(store: Store) -> None:
    await new_session(store)
    await fire(store, await add(store), come(next_at=None))
    assert await store.schedules() == []
    assert len(await causes(store)) == 1


async def test_a_time_that_is_skipped_is_on_record_and_starts_nothing(store: Store) -> None:
    await new_session(store)
    assert await fire(store, await add(store), come(skipped=schedules.TOO_LATE, missed=3)) == Fired(None, schedules.TOO_LATE)
    assert (await store.session("s1")).queued == 0
    expected = e.ScheduleDue(schedule_id="c1", due_at=NOW + HOUR, next_at=NOW + 2 * HOUR, missed=3, skipped=schedules.TOO_LATE)
    assert await came(store) == [expected]


async def test_while_one_time_waits_for_its_turn_the_next_adds_nothing(store: Store) -> None:
    """P8: what is due every minute does not pile up behind a turn that lasts an hour."""
    await new_session(store)
    await add(store, schedule_id="c2")
    await fire(store, await add(store))
    again = come(NOW + 2 * HOUR, NOW + 3 * HOUR)
    assert await fire(store, (await store.schedules())[-1], again) == Fired(None, schedules.STILL_WAITS)
    [_, other] = sorted(await store.schedules(), key=lambda each: each.schedule_id)
    assert other.schedule_id == "c2" and await fire(store, other) == Fired("s1")
    turn = await start(store, "s1", "t1", owner=await new_owner(store))
    [schedule] = [each for each in await store.schedules() if each.schedule_id == "c1"]
    assert await fire(store, schedule, come(NOW + 3 * HOUR, NOW + 4 * HOUR)) == Fired("s1")  # Behind the turn that runs.
    await append(store, turn, ENDED)
    assert (await store.session("s1")).queued == 2


# which session


async def test_a_schedule_works_in_its_keys_current_session(store: Store) -> None:
    """It belongs to the chat: a new conversation there changes nothing."""
    await new_session(store, key=CHAT)
    made = await add(store)
    await rested_with_reset(store)
    assert await fire(store, made) == Fired("s9")
    assert len(await causes(store, "s9")) == 1 and await causes(store, "s1") == []
    assert await store.schedules(CHAT) == await store.schedules()
    await store.resume_session("s1", by="ann", dedup_key=None, at=NOW)
    assert await fire(store, (await store.schedules())[0], come(NOW + 2 * HOUR, NOW + 3 * HOUR)) == Fired("s1")


async def test_a_new_schedule_stands_in_its_keys_current_session(store: Store) -> None:
    await new_session(store, key=CHAT)
    await rested_with_reset(store)
    assert (await add(store, "s1")).session_id == "s9"


async def test_in_a_suspended_session_nothing_starts_and_its_people_are_told_once(store: Store) -> None:
    """P8"""
    await rested(store, key=CHAT)
    await store.change_session("s1", e.SessionChanged(suspended=True), at=NOW)
    await add(store)
    for number in range(1, 4):
        [schedule] = await store.schedules()
        due = come(NOW + number * HOUR, NOW + (number + 1) * HOUR)
        assert await fire(store, schedule, due) == Fired(None, schedules.SUSPENDED)
    [told] = await notices(store)
    assert WHEN in told.text and "/resume" in told.text and told.text.endswith("> water the plants")
    assert len(await owed(store)) == 1 and (await store.session("s1")).queued == 0
    await store.resume_session("s1", by="ann", dedup_key=None, at=NOW)
    assert await fire(store, (await store.schedules())[0], come(NOW + 4 * HOUR, NOW + 5 * HOUR)) == Fired("s1")


async def test_a_schedule_goes_and_comes_back_with_the_session_it_was_made_in(store: Store) -> None:
    """A28"""
    await rested(store)
    made = await add(store)
    await store.delete_session("s1", by="ann", until=NOW + 10, at=NOW)
    assert await store.schedules() == [] and (await store.due_schedules(now=2**50, limit=10)).found == ()
    assert await fire(store, made) is None
    with pytest.raises(NotFound):
        await store.remove_schedule("c1", by="ann", at=NOW)
    await store.undelete_session("s1", by="ann", at=NOW)
    assert await store.schedules() == [made]
    await store.delete_session("s1", by="ann", until=NOW + 10, at=NOW)
    while await store.purge(now=NOW + 10**9, steps=100):
        pass
    assert await store.schedules() == []


async def test_where_the_current_session_was_deleted_a_schedule_of_an_earlier_one_begins_another(store: Store) -> None:
    await new_session(store, key=CHAT)
    made = await add(store)
    await rested_with_reset(store)
    await store.delete_session("s9", by="ann", until=NOW + 10, at=NOW)
    assert await store.fire_schedule(made, come(), when=WHEN, fresh=("s10", "l10"), at=NOW) == Fired("s10")
    current = await store.current_session(CHAT)
    assert current is not None and (current.session_id, current.queued) == ("s10", 1)


async def test_retention_keeps_a_session_with_a_schedule(store: Store) -> None:
    await rested(store)
    await rested(store, "s2")
    await add(store)
    removed = await store.remove_oldest(before=NOW + HOUR, limit=10, why="old", until=NOW, at=NOW)
    assert removed == ["s2"]


# what is due


async def test_what_is_due_is_found_and_what_comes_next(store: Store) -> None:
    await new_session(store)
    for number in (3, 1, 2):
        await store.add_schedule("s1", added(f"c{number}", due_at=NOW + number * HOUR), limit=50, at=NOW)

    async def found(now: int, limit: int = 10) -> tuple[list[str], int | None]:
        due = await store.due_schedules(now=now, limit=limit)
        return [each.schedule_id for each in due.found], due.next_at

    assert await found(NOW) == ([], NOW + HOUR)
    assert await found(NOW + 2 * HOUR) == (["c1", "c2"], NOW + 3 * HOUR)
    assert await found(NOW + 9 * HOUR, 2) == (["c1", "c2"], None)
    # A clock that was set back: records of the future are looked at again.
    assert await found(NOW - HOUR) == (["c1", "c2", "c3"], NOW + HOUR)


async def test_a_schedule_whose_record_is_damaged_is_told_once_and_over(backend: Backend) -> None:
    """P7: somebody learns of it, and nothing else is held up."""
    async with backend.opened() as store:
        await new_session(store)
        await add(store)
        await add(store, schedule_id="c2")
        [seq, _] = [item.seq for item in await store.records("s1", after=0, limit=100) if item.kind == "schedule.added"]
        backend.change_byte("s1", seq, "body")
        damaged, whole = await store.schedules()
        assert (damaged.text, damaged.timing, whole.text) == (UNREADABLE, Timing(once_at=NOW + HOUR), "water the plants")
        await fire(store, damaged, come(next_at=None))
        assert [each.schedule_id for each in await store.schedules()] == ["c2"]
