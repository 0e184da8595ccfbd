"""Many writers: tasks, stores, processes. What was acknowledged is stored, whoever dies (P1, P2)."""

import asyncio
from contextlib import ExitStack

import pytest

from holdfast.core import events as e
from holdfast.core.errors import StoreClosed
from holdfast.core.events import Damaged
from holdfast.core.plans.start import StartedTurn
from holdfast.ports.store import Store
from tests.conformance.backends import Backend
from tests.conformance.steps import ENDED, NOW, append, kinds, new_owner, new_session, running, say, text, whole_log

pytestmark = pytest.mark.anyio


async def check_log(store: Store, session_id: str) -> None:
    """No hole and no double, neither in the session's sequence nor in the positions of its turns' leases."""
    log = await whole_log(store, session_id)
    assert [item.seq for item in log] == list(range(1, len(log) + 1))
    assert not [item for item in log if isinstance(item.event, Damaged)]
    for place in {(item.turn_id, item.epoch) for item in log if item.turn_id}:
        positions = [item.position for item in log if (item.turn_id, item.epoch) == place]
        assert positions == list(range(len(positions)))
    assert (await store.session(session_id)).seq == len(log)


async def test_two_processes_write_at_once_and_every_acknowledged_write_is_stored(backend: Backend) -> None:
    shared = ["a", "b"]
    async with backend.opened() as store:
        for session_id in shared:
            await new_session(store, session_id)
        with ExitStack() as stack:
            workers = [stack.enter_context(backend.process("write_many", name=name, sessions=shared, count=60)) for name in ("x", "y")]
            for worker in workers:
                worker.ready()
            for worker in workers:
                worker.go()
            told = [answer for worker in workers for answer in await asyncio.to_thread(worker.rest)]
        assert len(told) == 2 * 60 * 5
        for kind, session_id, what in told:
            if kind == "piece":
                assert (await store.session(session_id)).position >= what
        for session_id in (*shared, *(f"{name}{n}" for name in "xy" for n in range(3))):
            await check_log(store, session_id)
        for session_id in shared:
            accepted = [item.event.message_id for item in await whole_log(store, session_id) if isinstance(item.event, e.MessageAccepted)]
            assert sorted(accepted) == sorted(what for kind, where, what in told if (kind, where) == ("message", session_id))
        sessions = (await store.sessions(limit=100)).sessions
        assert sum(session.seq for session in sessions) == len(backend.log()) == 2 * 60 * 5 + 2 + 6 * 4


async def test_of_two_processes_that_start_or_take_a_turn_one_wins(backend: Backend) -> None:
    """P2: sixty times each."""
    sessions = [f"s{n}" for n in range(60)]
    async with backend.opened() as store:
        for session_id in sessions:
            await new_session(store, session_id)
            await say(store, session_id)
            await say(store, session_id)
        won = await race(backend, "race_starts", sessions=sessions)
        assert sorted(won["x"] + won["y"]) == sorted(sessions)
        for session_id in sessions:
            log = await whole_log(store, session_id)
            assert kinds(log).count("turn.started") == 1
            [winner] = [name for name in "xy" if session_id in won[name]]
            assert log[-1].turn_id == f"{winner}.{session_id}"
        turns = [(s.session_id, s.turn_id, s.epoch) for s in await store.open_turns(apart_from=0)]
        taken = await race(backend, "race_takes", turns=turns)
        assert sorted(taken["x"] + taken["y"]) == sorted(sessions)
        for session_id in sessions:
            log = await whole_log(store, session_id)
            assert kinds(log).count("turn.taken") == 1
            [winner] = [name for name in "xy" if session_id in taken[name]]
            assert isinstance(last := log[-1].event, e.Text) and last.text == f"from {winner}"
            await check_log(store, session_id)


async def race(backend: Backend, job: str, **arguments: object) -> dict[str, list[str]]:
    with ExitStack() as stack:
        workers = {name: stack.enter_context(backend.process(job, name=name, **arguments)) for name in "xy"}
        for worker in workers.values():
            worker.ready()
        for worker in workers.values():
            worker.go()
        return {name: await asyncio.to_thread(worker.rest) for name, worker in workers.items()}


async def test_what_a_killed_process_acknowledged_is_there_and_its_turns_can_be_taken(backend: Backend) -> None:
    """P1, three times over, with a second writer that goes on and is not held up."""
    async with backend.opened() as store:
        mine = await running(store, "mine", "mine.t")
        for round_ in range(3):
            with backend.process("append_for_ever", name=f"r{round_}n", turns=8) as worker:
                worker.ready()
                worker.go()
                told = [await asyncio.to_thread(worker.line) for _ in range(300)]
                mine = await append(store, mine, text("meanwhile", mine.position))
                worker.kill()
                told += [answer for answer in worker.rest() if answer]
            mine = await append(store, mine, text("and after", mine.position))
            reached: dict[str, int] = {}
            for session_id, position in told:
                reached[session_id] = max(position, reached.get(session_id, 0))
            async with backend.opened() as fresh:
                for session_id, position in reached.items():
                    session = await fresh.session(session_id)
                    assert position <= session.position <= position + 2  # At most the one write it did not hear of any more.
                    await check_log(fresh, session_id)
                    await fresh.take_turn(session_id, owner=999, turn_id=session.turn_id or "", epoch=session.epoch, events=[], at=NOW)
        await check_log(store, "mine")


async def test_a_reader_sees_what_another_process_just_had_acknowledged(backend: Backend) -> None:
    async with backend.opened() as one, backend.opened() as two:
        await new_session(one)
        for number in range(30):
            writer, reader = (one, two) if number % 2 else (two, one)
            accepted = await say(writer, text=f"message {number}")
            last = (await reader.events("s1", after=number + 1, limit=10))[-1].event
            assert isinstance(last, e.MessageAccepted) and last.message_id == accepted.message_id


async def test_a_cancelled_write_happened_whole_or_not_at_all(store: Store) -> None:
    """And whoever comes after finds the turn in one of the two places."""
    owner = await new_owner(store)
    for number in range(40):
        turn = await running(store, f"s{number}", f"t{number}", owner=owner)
        writing = asyncio.ensure_future(append(store, turn, text("a"), text("b", 1), ENDED))
        for _ in range(number % 4):
            await asyncio.sleep(0)
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        await store.change_session(f"s{number}", e.SessionChanged(title="after it"), at=NOW)
        session = await store.session(f"s{number}")
        assert session.position in (turn.position, turn.position + 3)
        assert session.open_turn == (session.position == turn.position)
        await check_log(store, f"s{number}")


async def test_cancelled_reads_leave_the_others_alone(store: Store) -> None:
    await new_session(store)
    reads = [asyncio.ensure_future(store.events("s1", after=0, limit=10)) for _ in range(50)]
    await asyncio.sleep(0)
    for read in reads[::2]:
        read.cancel()
    results = await asyncio.gather(*reads, return_exceptions=True)
    assert all(isinstance(result, list) and len(result) == 1 for result in results[1::2])


async def test_one_hundred_tasks_write_and_every_answer_is_its_own(store: Store) -> None:
    owner = await new_owner(store)
    turns = [await running(store, f"s{n}", f"t{n}", owner=owner) for n in range(100)]

    async def write(turn: StartedTurn) -> None:
        for number in range(20):
            wrong = StartedTurn(turn.lease, turn.turn_id, turn.attempt, turn.position + 1)
            good, bad = await asyncio.gather(append(store, turn, text("x", number)), append(store, wrong, ENDED), return_exceptions=True)
            if isinstance(bad, StartedTurn):  # It came second: its place was right by then.
                return
            assert isinstance(good, StartedTurn) and good.position == turn.position + 1
            turn = good

    await asyncio.gather(*map(write, turns))
    for turn in turns:
        await check_log(store, turn.lease.session_id)


async def test_operations_that_fail_half_way_do_not_harm_their_neighbours(store: Store) -> None:
    """All in one batch: some write and then cannot go on, some are refused at once, some are good."""
    owner = await new_owner(store)
    turns = [await running(store, f"s{n}", f"t{n}", owner=owner) for n in range(30)]
    half = e.TurnResumed(attempt=2, rule="R9", reason="crash")  # Impossible for a running turn: found out after the piece is written.
    results = await asyncio.gather(
        *(append(store, turn, text("x"), *((half,) if number % 3 == 0 else ())) for number, turn in enumerate(turns)),
        *(store.start_turn(f"s{number}", owner=owner, turn_id="no", at=NOW) for number in range(30)),
        *(new_session(store, f"s{number}") for number in range(0, 60, 2)),
        return_exceptions=True,
    )
    for number, turn in enumerate(turns):
        position = (await store.session(turn.lease.session_id)).position
        assert position == turn.position + (number % 3 != 0)
        assert isinstance(results[number], StartedTurn) == (number % 3 != 0)
        await check_log(store, turn.lease.session_id)
    assert all(result is None for result in results[30:60])
    assert [isinstance(result, Exception) for result in results[60:]] == [True] * 15 + [False] * 15


async def test_closing_writes_what_was_accepted_and_refuses_the_rest(backend: Backend) -> None:
    async with backend.opened() as store:
        await new_session(store)
        writes = [asyncio.ensure_future(say(store, max_waiting=1000)) for _ in range(200)]
        reads = [asyncio.ensure_future(store.session("s1")) for _ in range(20)]
        await asyncio.sleep(0)
        await store.aclose()
        assert all(write.done() and not write.exception() for write in writes)
        assert all(read.done() and not read.exception() for read in reads)
        with pytest.raises(StoreClosed):
            await say(store)
        with pytest.raises(StoreClosed):
            await store.session("s1")
        with pytest.raises(StoreClosed):
            await store.append_streams([], at=NOW)
        await store.aclose()
    async with backend.opened() as store:
        assert (await store.session("s1")).queued == 200


async def test_a_backup_taken_under_load_is_consistent_and_opens(backend: Backend, tmp_path_factory: pytest.TempPathFactory) -> None:
    place = tmp_path_factory.mktemp("backup")
    async with backend.opened() as store:
        owner = await new_owner(store)
        turns = [await running(store, f"s{n}", f"t{n}", owner=owner) for n in range(10)]
        done = False

        async def write(turn: StartedTurn) -> None:
            while not done:
                turn = await append(store, turn, text("x" * 500, turn.position))
                await say(store, turn.lease.session_id, max_waiting=10**6)

        writers = [asyncio.ensure_future(write(turn)) for turn in turns]
        for number in range(3):
            before = [(await store.session(turn.lease.session_id)).seq for turn in turns]
            await store.backup(str(place / "holdfast.db"))
            async with type(backend)(place).opened() as copy:  # type: ignore[call-arg]
                for turn, seq in zip(turns, before, strict=True):
                    assert (await copy.session(turn.lease.session_id)).seq >= seq
                    await check_log(copy, turn.lease.session_id)
                await say(copy, "s0", f"goes on {number}", max_waiting=10**6)
        done = True
        await asyncio.gather(*writers)
    assert not list(place.glob("*.partial"))
