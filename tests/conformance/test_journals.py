"""Shipping what was spooled: every event once, in its own place, whoever ships it and however late (P5, P7, F2-F9)."""

import asyncio
from contextlib import ExitStack

import pytest

from holdfast.core import events as e
from holdfast.core.blame import End, Interruption
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.errors import Deleted, NotFound, PositionGap, StaleEpoch
from holdfast.core.events import encode
from holdfast.core.journals import Found, Limits, Sight, State
from holdfast.core.plans.start import StartedTurn
from holdfast.core.spools import Spooled
from holdfast.ports.inbox import Terms
from holdfast.ports.journals import Journal, Shipped
from holdfast.ports.store import Store
from tests.conformance.backends import Backend
from tests.conformance.steps import ENDED, NOW, append, bodies, kinds, new_owner, running, text, whole_log

pytestmark = pytest.mark.anyio

LIMITS = Limits()
WHOLE = Sight(found=Found.WHOLE, size=100)
CALL = e.ToolStarted(call_id="c1", name="n", arguments={}, effect=Effect.UNSAFE)
DONE = e.ToolFinished(call_id="c1", outcome=ToolOutcome.DONE, content="done")
LOST = e.ToolFinished(call_id="c1", outcome=ToolOutcome.UNKNOWN, content="unknown")


def spooled(first: int, *events: e.Event, at: int = NOW + 5, attempt: int = 1) -> list[Spooled]:
    return [Spooled(first + number, attempt, at, event.kind, encode(event)) for number, event in enumerate(events)]


def journal_of(turn: StartedTurn) -> Journal:
    return Journal(turn.lease.session_id, turn.turn_id, turn.lease.epoch)


async def ship(store: Store, turn: StartedTurn, items: list[Spooled], sight: Sight = WHOLE, at: int = NOW + 50) -> Shipped:
    return await store.ship(journal_of(turn), items, sight, limits=LIMITS, at=at)


async def places(store: Store, turn_id: str = "t1") -> list[tuple[int | None, int, str]]:
    return [(item.epoch, item.position, item.kind) for item in await whole_log(store) if item.turn_id == turn_id]


async def interrupted(store: Store, turn: StartedTurn, *events: e.Event, late: bool) -> StartedTurn:
    """Another process has found it interrupted, and decided."""
    owner = await new_owner(store, "other")
    cut = Interruption(reason="crash", end=End.DEATH, died=turn.lease.owner, stream_id=f"t1.{turn.lease.epoch}" if late else None)
    taken = await store.take_turn("s1", owner=owner, turn_id="t1", epoch=turn.lease.epoch, events=[cut], at=NOW + 10)
    return await store.take_turn("s1", owner=owner, turn_id="t1", epoch=taken.lease.epoch, events=events, at=NOW + 20)


async def test_what_a_dead_process_spooled_continues_its_turn_with_its_own_times(store: Store) -> None:
    """P5, P7: as if it had been stored at once, but only now with a sequence."""
    turn = await append(store, await running(store), text("one"), CALL)
    items = spooled(turn.position, text(" two", 3), DONE, text(" three", 7))
    assert await ship(store, turn, items) == Shipped(3, False, None)
    session = await store.session("s1")
    assert (session.position, session.epoch, session.turn_state) == (turn.position + 3, turn.lease.epoch, "running")
    transcript = await store.transcript(session)
    assert transcript.answer_text == "one two three"
    assert [call.outcome for call in transcript.calls] == [ToolOutcome.DONE]
    assert [item.at for item in (await whole_log(store))[-3:]] == [NOW + 5] * 3


async def test_shipping_again_or_what_is_stored_already_changes_nothing(store: Store) -> None:
    turn = await append(store, await running(store), text("one"), text(" two", 3))
    items = spooled(turn.position - 1, text(" two", 3), text(" three", 7))
    assert (await ship(store, turn, items)).new == 1
    before = await whole_log(store)
    assert (await ship(store, turn, items)).new == 0
    assert (await ship(store, turn, [])).new == 0
    assert await whole_log(store) == before


async def test_what_stands_behind_damage_keeps_its_place_and_the_hole_can_be_filled_later(store: Store) -> None:
    """F8: the result behind the damaged piece is on record before anything is decided (P5)."""
    turn = await append(store, await running(store), CALL)
    first, hole, result = spooled(turn.position, text("one"), text(" two", 3), DONE)
    assert (await ship(store, turn, [first, result])).new == 2
    assert (await store.session("s1")).position == turn.position + 3
    assert (await ship(store, turn, [first, hole, result])).new == 1
    assert (await store.session("s1")).position == turn.position + 3
    transcript = await store.transcript(await store.session("s1"))
    assert (transcript.answer_text, transcript.calls[0].outcome) == ("one two", ToolOutcome.DONE)


async def test_a_record_and_everything_spooled_before_it_are_one_transaction(store: Store) -> None:
    turn = await append(store, await running(store), text("one"))
    items = spooled(turn.position, text(" two", 3), text(" three", 7))
    behind = turn.position + 2
    position = await store.append_turn(
        turn.lease, turn_id="t1", attempt=1, position=behind, events=[text(" four", 13), CALL], at=NOW, before=items
    )
    assert position == behind + 2
    assert kinds(await whole_log(store))[-4:] == ["text", "text", "text", "tool.started"]
    assert (await store.transcript(await store.session("s1"))).answer_text == "one two three four"


async def test_a_record_that_is_refused_takes_nothing_of_the_spool_with_it(store: Store) -> None:
    turn = await append(store, await running(store), text("one"))
    items = spooled(turn.position, text(" two", 3))
    before = await whole_log(store)
    for position, refusal in ((turn.position, PositionGap), (turn.position + 5, PositionGap)):
        gap = spooled(turn.position + 1, text("x")) if position == turn.position else items
        with pytest.raises(refusal):
            await store.append_turn(turn.lease, turn_id="t1", attempt=1, position=position, events=[ENDED], at=NOW, before=gap)
    await interrupted(store, turn, late=False)
    with pytest.raises(StaleEpoch):
        await store.append_turn(turn.lease, turn_id="t1", attempt=1, position=turn.position + 1, events=[ENDED], at=NOW, before=items)
    assert await whole_log(store) == before + (await whole_log(store))[len(before) :]
    assert " two" not in [event.text for event in await bodies(store) if isinstance(event, e.Text)]


async def test_waiting_and_taking_messages_ship_what_was_spooled_before_them(store: Store) -> None:
    turn = await append(store, await running(store), text("one"))
    first = spooled(turn.position, text(" two", 3))
    _, position = await store.take_causes(
        turn.lease, turn_id="t1", attempt=1, position=turn.position + 1, step=0, offset=7, at=NOW, before=first
    )
    asked = e.QuestionAsked(question_id="q1", call_id="c1", content="?", expires_at=NOW + 1000, ends_attempt=False)
    turn = await append(store, StartedTurn(turn.lease, "t1", 1, position), CALL, asked)
    second = spooled(turn.position, text(" three", 7))
    waiting, position = await store.wait_turn(
        turn.lease, turn_id="t1", attempt=1, position=turn.position + 1, asking=("c1",), at=NOW, before=second
    )
    assert waiting.open and position == turn.position + 2
    assert (await store.transcript(await store.session("s1"))).answer_text == "one two three"


async def test_what_arrives_late_gets_new_sequences_keeps_its_place_and_moves_nothing(store: Store, backend: Backend) -> None:
    """F2: every cursor sees it, and it is shown by turn, epoch and position. What was told stays told."""
    turn = await append(store, await running(store), text("one"), CALL)
    again = await interrupted(store, turn, LOST, e.TurnResumed(attempt=2, rule="R9", reason="crash"), late=True)
    again = await append(store, again, text("new"))
    before = await store.session("s1")
    items = spooled(turn.position, text(" two", 3), DONE)
    shipped = await ship(store, turn, items)
    assert shipped == Shipped(2, True, State.RECOVERED)
    after = await store.session("s1")
    assert after.seq == before.seq + 3
    assert (after.epoch, after.position, after.attempt, after.turn_state, after.updated_at) == (
        *(before.epoch, before.position, before.attempt, before.turn_state, before.updated_at),
    )
    changed, *late = (await whole_log(store))[before.seq :]
    assert isinstance(changed.event, e.JournalChanged)
    assert (changed.turn_id, changed.event.stream_id, changed.event.text, changed.event.call_ids) == (None, "t1.1", " two", ("c1",))
    assert [(item.epoch, item.position, item.attempt) for item in late] == [(1, turn.position, 1), (1, turn.position + 1, 1)]
    transcript = await store.transcript(after)
    assert (transcript.answer_text, transcript.calls[0].outcome) == ("new", ToolOutcome.UNKNOWN)
    await append(store, again, ENDED)
    catalog = backend.catalog()
    backend.rebuild()
    assert backend.catalog() == catalog


async def test_a_late_event_of_an_older_turn_stays_with_its_turn(store: Store, backend: Backend) -> None:
    turn = await append(store, await running(store), text("one"), ENDED)
    await store.accept("s1", e.MessageAccepted(message_id="m2", content="x"), Terms(fresh=("f", "f"), max_waiting=9), at=NOW)
    owner = await new_owner(store)
    newer = await store.start_turn("s1", owner=owner, turn_id="t2", at=NOW)
    assert newer is not None
    assert (await ship(store, turn, spooled(turn.position, text(" two", 3)))).late
    session = await store.session("s1")
    assert (session.turn_id, session.epoch, session.position) == ("t2", newer.lease.epoch, newer.position)
    await append(store, newer, text("fine"), ENDED)
    catalog = backend.catalog()
    backend.rebuild()
    assert backend.catalog() == catalog


async def test_two_processes_that_ship_at_once_ship_every_event_once(backend: Backend) -> None:
    """F3, F9: forty journals, two processes, each event in one place."""
    async with backend.opened() as store:
        owner = await new_owner(store)
        turns = [await append(store, await running(store, f"s{n}", f"t{n}", owner=owner), text("one")) for n in range(40)]
        journals = [(*journal_of(turn), turn.position, n % 2 == 0) for n, turn in enumerate(turns)]
        for session_id, turn_id, epoch, _, late in journals:
            if late:
                await store.take_turn(session_id, owner=owner, turn_id=turn_id, epoch=epoch, events=[], at=NOW)
        with ExitStack() as stack:
            workers = [stack.enter_context(backend.process("race_ships", journals=journals, pieces=5)) for _ in range(2)]
            for worker in workers:
                worker.ready()
            for worker in workers:
                worker.go()
            told = [answer for worker in workers for answer in await asyncio.to_thread(worker.rest)]
        assert sum(new for _, new in told) == 40 * 5
        for session_id, turn_id, epoch, position, _ in journals:
            found = [item.position for item in await whole_log(store, session_id) if (item.turn_id, item.epoch) == (turn_id, epoch)]
            assert sorted(found) == list(range(position + 5)) and len(found) == len(set(found))


async def test_a_journal_of_nothing_that_is_known_is_refused(store: Store) -> None:
    turn = await running(store)
    for journal in (Journal("nowhere", "t1", 1), Journal("s1", "t9", 1)):
        with pytest.raises(NotFound):
            await store.ship(journal, spooled(0, text("x")), WHOLE, limits=LIMITS, at=NOW)
    await append(store, turn, ENDED)
    await store.delete_session("s1", by="owner", until=NOW + 1, at=NOW)
    while await store.purge(now=NOW + 10, steps=100):
        pass
    with pytest.raises(Deleted):
        await ship(store, turn, spooled(5, text("x")))


async def test_a_late_journal_is_known_until_it_is_recovered_or_given_up(store: Store, backend: Backend) -> None:
    """F1, F4-F6: the budget is on record, so that a restart does not begin it anew."""
    turn = await append(store, await running(store), text("one"))
    await interrupted(store, turn, e.TurnLeft(rule="R7"), late=True)
    [late] = await store.late_journals(limit=10)
    assert (late.session_id, late.stream_id, late.tries, late.first_seen, late.state) == ("s1", "t1.1", 0, NOW + 10, "recovering")
    assert await store.session_of_turn("t1") == "s1" and await store.session_of_turn("t9") is None
    gone = Sight(found=Found.UNREADABLE)
    for number in range(1, LIMITS.tries):
        now = NOW + number * LIMITS.every_ms
        for _ in range(3):
            await ship(store, turn, [], gone, at=now)
        assert [late.tries for late in await store.late_journals(limit=10)] == [number]
    assert (await ship(store, turn, [], gone, at=NOW + LIMITS.tries * LIMITS.every_ms)).state is State.NEUTRAL
    assert await store.late_journals(limit=10) == []
    catalog = backend.catalog()
    backend.rebuild()
    assert backend.catalog() == catalog


async def test_a_journal_that_arrives_in_parts_is_completed_part_by_part(store: Store) -> None:
    """F4, F7"""
    turn = await append(store, await running(store), text("one"))
    await interrupted(store, turn, e.TurnLeft(rule="R7"), late=True)
    items = spooled(turn.position, text(" two", 3), text(" three", 7))
    arriving = Sight(found=Found.ARRIVING, size=50)
    assert (await ship(store, turn, items[:1], arriving)).state is State.RECOVERING
    assert (await store.transcript(await store.session("s1"))).answer_text == "one two"
    assert (await ship(store, turn, items[:1], arriving)).new == 0
    assert (await ship(store, turn, items, WHOLE)) == Shipped(1, True, State.RECOVERED)
    assert (await store.transcript(await store.session("s1"))).answer_text == "one two three"
    assert (await ship(store, turn, items, WHOLE)).new == 0
    assert await store.late_journals(limit=10) == []


async def test_a_long_text_that_arrives_late_is_shown_whole_and_in_no_record_too_long_for_a_reader(store: Store) -> None:
    """P8, F2"""
    turn = await append(store, await running(store), text("one"))
    long = "x" * 200_000
    await interrupted(store, turn, e.TurnResumed(attempt=2, rule="R9", reason="crash"), late=True)
    pieces = [text(long[start : start + 50_000], 3 + start) for start in range(0, len(long), 50_000)]
    assert (await ship(store, turn, spooled(turn.position, *pieces))).state is State.RECOVERED
    changes = [item for item in await whole_log(store) if item.kind == "journal.changed"]
    assert len(changes) == 4 and max(len(item.body) for item in changes) < 70_000
    transcript = await store.transcript(await store.session("s1"))
    assert [message.text for message in transcript.messages if message.status == "superseded"] == [long]


async def test_pieces_of_a_turn_that_were_pruned_do_not_come_back(store: Store) -> None:
    turn = await append(store, await running(store), text("one"), CALL)
    turn = await append(store, turn, text(" two", 3), ENDED)
    await store.prune_streams(before=NOW + 100, at=NOW + 200, limit=10)
    items = spooled(turn.position - 2, text(" two", 3))
    assert (await ship(store, turn, items)).new == 0
    assert "text" not in kinds(await whole_log(store))


async def test_a_result_whose_bytes_are_gone_is_shipped_with_its_words(store: Store) -> None:
    from holdfast.core.content import TextPart, bytes_part

    turn = await append(store, await running(store), CALL)
    picture = bytes_part(blob="f" * 64, size=1, media_type="image/png", name="f.png")
    done = e.ToolFinished(call_id="c1", outcome=ToolOutcome.DONE, content=(TextPart("seen"), picture))
    assert (await ship(store, turn, spooled(turn.position, done))).new == 1
    call = (await store.transcript(await store.session("s1"))).calls[0]
    assert call.outcome is ToolOutcome.DONE and "seen" in (call.result or "")
