"""Background processes in the store: on record before they start, told once, and silent once they are consumed (P6, E2, E3, E6)."""

from typing import Any

import msgspec
import pytest

from holdfast.core import events as e
from holdfast.core.errors import Deleted, NotFound, StaleEpoch
from holdfast.core.plans.processes import CONSUMED
from holdfast.core.plans.start import StartedTurn
from holdfast.core.processes import Matches, Moment, Telling, TooManyProcesses
from holdfast.core.resets import Boundary
from holdfast.ports.store import Store
from tests.conformance.backends import Backend
from tests.conformance.steps import CHAT, ENDED, NOW, append, bodies, new_owner, new_session, notices, owed, running, say, start

pytestmark = pytest.mark.anyio
LINES = Matches(lines=1, quoted=("ready",), through=10)
DURING, AFTER = Moment(generation=1, during=True), Moment(generation=1)


def wanted(process_id: str = "p1", *, owner: int, turn_id: str = "t1", **more: Any) -> e.ProcessStarted:
    return e.ProcessStarted(process_id=process_id, command="make", turn_id=turn_id, call_id="c1", owner=owner, **more)


async def begin(store: Store, process_id: str = "p1", session_id: str = "s1", *, key: str = CHAT, **more: Any) -> StartedTurn:
    """A process that a turn of a chat has started; the turn still runs."""
    owner = await new_owner(store)
    await new_session(store, session_id, key=key)
    await say(store, session_id, message_id=f"{session_id}.m", anchor="a7")
    turn = await start(store, session_id, "t1", owner=owner)
    await store.start_process(session_id, wanted(process_id, owner=owner, **more), most=10, at=NOW)
    return turn


async def end(store: Store, process_id: str = "p1", *, at: int = NOW, matches: Matches = Matches(), **more: object) -> Telling:  # noqa: B008
    ended = e.ProcessEnded(process_id=process_id, ended_at=NOW, code=0, **more)  # type: ignore[arg-type]
    return await store.end_process(ended, tail="the tail", matches=matches, window_s=3600, at=at)


async def match(store: Store, seen: Moment, *, through: int = 10) -> bool:
    return await store.match_process("p1", msgspec.structs.replace(LINES, seen=seen, through=through), at=NOW)


async def waiting(store: Store, session_id: str = "s1") -> int:
    return (await store.session(session_id)).queued


async def test_a_start_is_on_record_with_the_sender_and_the_anchor_of_its_turn(store: Store) -> None:
    """E3"""
    await begin(store, patterns=("ready",), notify=False)
    process = await store.process("p1")
    assert (process.session_id, process.command, process.sender, process.anchor) == ("s1", "make", "owner", "a7")
    assert (process.generation, process.notify, process.patterns, process.end, process.consumed) == (1, False, ("ready",), None, None)
    assert process.started_at == NOW and await store.processes("s1") == [process] == await store.running_processes()
    assert (await store.session("s1")).processes == 1 and await store.processes("other") == []
    with pytest.raises(NotFound):
        await store.process("p2")


async def test_a_start_is_recorded_once_and_only_by_the_turn_that_runs(store: Store) -> None:
    """P2, P5"""
    turn = await begin(store)
    owner = turn.lease.owner
    known = await store.process("p1")
    assert await store.start_process("s1", wanted(owner=owner, notify=False), most=0, at=NOW + 5) == known
    with pytest.raises(StaleEpoch):
        await store.start_process("s1", wanted("p2", owner=owner + 1), most=10, at=NOW)
    with pytest.raises(TooManyProcesses):
        await store.start_process("s1", wanted("p2", owner=owner), most=1, at=NOW)
    await store.request_stop("s1", by="ann", dedup_key=None, at=NOW)
    with pytest.raises(StaleEpoch):
        await store.start_process("s1", wanted("p2", owner=owner), most=10, at=NOW)
    assert [process.process_id for process in await store.running_processes()] == ["p1"]


async def test_an_end_starts_one_turn_and_is_told_once(store: Store) -> None:
    """E6, P6: whichever processes see it, in whatever order."""
    turn = await begin(store)
    await append(store, turn, ENDED)
    assert await end(store) is Telling.TURN
    assert await end(store) is Telling.NOTHING
    assert await waiting(store) == 1 and (await store.session("s1")).processes == 0 and await store.running_processes() == []
    process = await store.process("p1")
    assert process.end is not None and process.end.code == 0
    started = await store.start_turn("s1", owner=turn.lease.owner, turn_id="t2", at=NOW)
    assert started is not None and await waiting(store) == 0
    transcript = await store.transcript(await store.session("s1"))
    assert transcript.turns[-1].cause == "process" and transcript.anchor == "a7"
    cause = transcript.messages[-1]
    assert (cause.role, cause.sender) == ("cause", "owner") and "exit code 0" in cause.text and cause.text.endswith("the tail")
    await append(store, started, ENDED)
    assert await store.start_turn("s1", owner=turn.lease.owner, turn_id="t3", at=NOW) is None


async def test_a_turn_that_runs_takes_an_end_and_none_starts_from_it(store: Store) -> None:
    """P6"""
    turn = await begin(store)
    await end(store)
    taken, position = await store.take_causes(turn.lease, turn_id="t1", attempt=1, position=turn.position, step=0, offset=0, at=NOW)
    assert [cause.what for cause in taken] == ["process"]
    await append(store, StartedTurn(turn.lease, "t1", 1, position), ENDED)
    assert await store.start_turn("s1", owner=turn.lease.owner, turn_id="t2", at=NOW) is None


@pytest.mark.parametrize("where", ["in a turn", "by anyone"])
async def test_what_waits_of_a_consumed_process_is_dropped_in_the_same_transaction(store: Store, where: str) -> None:
    """E2: killed, waited for, or read."""
    turn = await begin(store)
    await match(store, DURING)
    await end(store)
    assert await waiting(store) == 2
    if where == "in a turn":
        await append(store, turn, e.ProcessConsumed(process_id="p1", how="waited"))
    else:
        assert await store.consume_process("p1", how="killed", at=NOW)
        assert not await store.consume_process("p1", how="read", at=NOW)
    assert await waiting(store) == 0
    reasons = [event.reason for event in await bodies(store) if isinstance(event, e.CauseDropped)]
    assert reasons == [CONSUMED, CONSUMED]
    assert (await store.process("p1")).consumed == ("waited" if where == "in a turn" else "killed")


async def test_after_it_was_consumed_neither_its_end_nor_its_lines_are_told(store: Store) -> None:
    """E2: neither a turn nor a plain message."""
    turn = await begin(store)
    await append(store, turn, e.ProcessConsumed(process_id="p1", how="read"), ENDED)
    assert not await match(store, AFTER)
    assert await end(store) is Telling.NOTHING
    assert await waiting(store) == 0 and await notices(store) == [] and await owed(store) == []
    process = await store.process("p1")
    assert process.end is not None and process.consumed == "read"


async def test_lines_of_a_turn_that_is_open_start_no_other_turn(store: Store) -> None:
    """E3: one during the turn that is about to end does not start a new turn."""
    turn = await begin(store)
    assert await match(store, DURING)
    assert not await match(store, DURING), "they are on record"
    await append(store, turn, ENDED)
    assert await store.start_turn("s1", owner=turn.lease.owner, turn_id="t2", at=NOW) is None
    assert await waiting(store) == 0
    process = await store.process("p1")
    assert (process.scanned, process.matched_at, process.streak) == (10, NOW, 0)


async def test_lines_that_come_after_the_turn_start_one_unless_another_came_first(store: Store) -> None:
    """E3, P6"""
    turn = await begin(store)
    owner = turn.lease.owner
    await append(store, turn, ENDED)
    await match(store, AFTER)
    second = await store.start_turn("s1", owner=owner, turn_id="t2", at=NOW)
    assert second is not None
    await append(store, second, ENDED)
    await say(store, "s1", message_id="m2")
    await match(store, Moment(generation=2), through=20)
    third = await store.start_turn("s1", owner=owner, turn_id="t3", at=NOW)
    assert third is not None
    await append(store, third, ENDED)
    assert await store.start_turn("s1", owner=owner, turn_id="t4", at=NOW) is None
    started = [event.cause for event in await bodies(store) if isinstance(event, e.TurnStarted)]
    assert started == ["message", "watch", "message"]


async def test_lines_of_a_turn_that_is_over_start_none_are_not_told_again_and_delay_nothing(store: Store) -> None:
    """E3"""
    turn = await begin(store)
    assert await match(store, DURING)
    await append(store, turn, ENDED)
    assert not await match(store, DURING, through=20)
    process = await store.process("p1")
    assert (process.scanned, process.matched_at, process.streak) == (20, NOW, 0)
    assert not await match(store, AFTER, through=20), "they are on record"
    assert await store.start_turn("s1", owner=turn.lease.owner, turn_id="t2", at=NOW) is None


async def test_the_end_of_a_process_whose_conversation_was_left_is_told_where_people_are(store: Store) -> None:
    """E3: as a plain message."""
    turn = await begin(store)
    await append(store, turn, ENDED)
    await store.reset("s1", fresh=("s2", "l2"), by="ann", dedup_key=None, at=NOW)
    away = Moment(generation=1, away=True)
    assert not await match(store, away)
    assert await end(store, matches=msgspec.structs.replace(LINES, seen=away)) is Telling.NOTICE
    told = [notice.text for notice in await notices(store, "s2")]
    assert "exit code 0" in told[-1] and "ready" in told[-1] and await waiting(store, "s2") == 0
    assert [delivery.anchor for delivery in await owed(store) if delivery.delivery_id == "p1.ended"] == ["a7"]
    assert [notice for notice in await notices(store) if notice.message_id.startswith("p1")] == []


async def test_an_old_end_is_told_as_a_plain_message(store: Store) -> None:
    """E3, E5, R6"""
    turn = await begin(store)
    await append(store, turn, ENDED)
    assert await end(store, at=NOW + 3_600_001) is Telling.NOTICE
    assert len(await notices(store)) == 1 and await waiting(store) == 0


@pytest.mark.parametrize("how", ["reset", "suspended"])
async def test_an_end_that_waits_in_a_session_that_is_left_is_still_told(store: Store, how: str) -> None:
    """E3, E6"""
    turn = await begin(store)
    await append(store, turn, ENDED)
    await end(store)
    if how == "reset":
        await store.reset("s1", fresh=("s2", "l2"), by="ann", dedup_key=None, at=NOW)
    else:
        await store.change_session("s1", e.SessionChanged(suspended=True), at=NOW)
    told = [notice.message_id for notice in await notices(store)]
    assert told == ["p1.ended.told"] and await waiting(store) == 0


async def test_of_a_deleted_conversation_nothing_is_told(store: Store) -> None:
    """A28: neither what waits nor what comes; its processes are to be killed."""
    turn = await begin(store)
    await store.start_process("s1", wanted("p2", owner=turn.lease.owner), most=10, at=NOW)
    await append(store, turn, ENDED)
    await end(store)
    await store.delete_session("s1", by="ann", until=NOW + 1, at=NOW)
    assert [process.consumed for process in await store.processes("s1")] == ["deleted", "deleted"]
    assert [process.doomed for process in await store.running_processes()] == [True]
    assert await end(store, "p2", lost="keeper") is Telling.NOTHING
    await store.undelete_session("s1", by="ann", at=NOW)
    assert await notices(store) == [] and await waiting(store) == 0


async def test_of_a_purged_conversation_nothing_is_known(store: Store, backend: Backend) -> None:
    turn = await begin(store)
    await append(store, turn, ENDED)
    await store.delete_session("s1", by="ann", until=NOW + 1, at=NOW)
    while await store.purge(now=NOW + 10, steps=100):
        pass
    assert await store.running_processes() == []
    with pytest.raises((NotFound, Deleted)):
        await end(store)


async def test_a_conversation_with_a_process_in_its_background_is_neither_reset_nor_removed(store: Store) -> None:
    """A19: by no policy; a person may."""
    turn = await begin(store)
    await append(store, turn, ENDED)
    later = NOW + 1_000_000
    idle = (Boundary("idle", later - 1),)
    assert (await say(store, at=later, message_id="m2", resets=idle, fresh=("s2", "l2"))).session_id == "s1"
    second = await start(store, "s1", "t2", owner=turn.lease.owner)
    await append(store, second, ENDED)
    assert await store.remove_oldest(before=2**50, limit=10, why="old", until=later, at=later) == []
    await store.consume_process("p1", how="read", at=later)
    await end(store)
    assert (await say(store, at=later, message_id="m3", resets=idle, fresh=("s2", "l2"))).session_id == "s2"


async def test_what_is_known_of_a_process_is_in_the_log_alone(backend: Backend) -> None:
    """The catalog made anew is the same, and a damaged record does not hide that a process runs."""
    async with backend.opened() as store:
        turn = await begin(store, patterns=("ready",))
        await match(store, DURING)
        await match(store, AFTER, through=20)
        await store.start_process("s1", wanted("p2", owner=turn.lease.owner), most=10, at=NOW)
        await append(store, turn, e.ProcessConsumed(process_id="p2", how="killed"))
        await end(store, "p2")
        before = await store.processes("s1")
    backend.rebuild()
    async with backend.opened() as store:
        assert await store.processes("s1") == before
        assert [(process.process_id, process.end is None) for process in before] == [("p1", True), ("p2", False)]


async def test_a_running_turn_starts_processes_of_its_own_session_only(store: Store) -> None:
    turn = await running(store, "s1")
    await new_session(store, "s2")
    with pytest.raises(StaleEpoch):
        await store.start_process("s2", wanted(owner=turn.lease.owner), most=10, at=NOW)
