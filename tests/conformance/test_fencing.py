"""Who may write a turn, and where: every write that is out of place is refused and changes nothing (P2, F9)."""

import asyncio

import pytest

from holdfast.core import events as e
from holdfast.core.errors import BadInput, Bug, NotFound, NotStorable, PositionGap, StaleEpoch, StalePosition
from holdfast.core.plans.answer import Answer
from holdfast.core.plans.start import StartedTurn
from holdfast.core.sessions import Lease
from holdfast.core.turns import Outcome, TurnState
from holdfast.ports.store import Store
from holdfast.ports.turns import StreamItem
from tests.conformance.backends import Backend
from tests.conformance.steps import (
    ANSWER,
    ENDED,
    NOW,
    append,
    kinds,
    new_owner,
    new_session,
    question,
    running,
    say,
    start,
    text,
    whole_log,
)

pytestmark = pytest.mark.anyio

PIECE = (text("x"),)
RECORD = (e.ToolFinished(call_id="c1", outcome="done", content="ok"),)  # type: ignore[arg-type]
BOTH = (text("x"), *RECORD)


async def refused(store: Store, turn: StartedTurn, events: tuple[e.Event, ...], error: type[Exception], **changes: object) -> None:
    """The write is refused, alone and among others, and nothing of it is in the log."""
    before = await whole_log(store, turn.lease.session_id) if turn.lease.session_id != "nowhere" else []
    asked = {"turn_id": turn.turn_id, "attempt": turn.attempt, "position": turn.position, **changes}
    lease = asked.pop("lease", turn.lease)
    with pytest.raises(error):
        await store.append_turn(lease, events=events, at=NOW, **asked)  # type: ignore[arg-type]
    if all(event.stream for event in events):
        item = StreamItem(lease, asked["turn_id"], asked["attempt"], asked["position"], events)  # type: ignore[arg-type]
        [result] = await store.append_streams([item], at=NOW)
        assert isinstance(result, error)
    if before:
        assert await whole_log(store, turn.lease.session_id) == before


@pytest.mark.parametrize("events", [PIECE, RECORD, BOTH], ids=["piece", "record", "both"])
class TestRefusals:
    async def test_a_stale_epoch(self, store: Store, events: tuple[e.Event, ...]) -> None:
        turn = await running(store)
        await refused(store, turn, events, StaleEpoch, lease=Lease("s1", turn.lease.owner, turn.lease.epoch - 1))

    async def test_an_epoch_from_the_future(self, store: Store, events: tuple[e.Event, ...]) -> None:
        turn = await running(store)
        await refused(store, turn, events, StaleEpoch, lease=Lease("s1", turn.lease.owner, turn.lease.epoch + 1))

    async def test_another_owner_with_the_right_epoch(self, store: Store, events: tuple[e.Event, ...]) -> None:
        turn = await running(store)
        await refused(store, turn, events, StaleEpoch, lease=Lease("s1", turn.lease.owner + 1, turn.lease.epoch))

    async def test_another_turn(self, store: Store, events: tuple[e.Event, ...]) -> None:
        turn = await running(store)
        await refused(store, turn, events, StaleEpoch, turn_id="t2")

    async def test_a_session_that_is_not_there(self, store: Store, events: tuple[e.Event, ...]) -> None:
        turn = await running(store)
        await refused(store, turn, events, NotFound, lease=Lease("nowhere", turn.lease.owner, turn.lease.epoch))

    async def test_a_stale_position(self, store: Store, events: tuple[e.Event, ...]) -> None:
        turn = await running(store)
        await append(store, turn, text("a"))
        await refused(store, turn, events, StalePosition)

    async def test_a_gap(self, store: Store, events: tuple[e.Event, ...]) -> None:
        turn = await running(store)
        await refused(store, turn, events, PositionGap, position=turn.position + 1)

    async def test_an_attempt_that_is_over(self, store: Store, events: tuple[e.Event, ...]) -> None:
        turn = await running(store)
        cut = await append(store, turn, e.TurnInterrupted(reason="crash", restarts=1))
        resumed = await append(store, cut, e.TurnResumed(attempt=2, rule="R9", reason="crash"))
        await refused(store, turn, events, StalePosition, position=resumed.position)

    async def test_an_attempt_that_has_not_begun(self, store: Store, events: tuple[e.Event, ...]) -> None:
        turn = await running(store)
        await refused(store, turn, events, PositionGap, attempt=2)

    async def test_a_turn_that_ended(self, store: Store, events: tuple[e.Event, ...]) -> None:
        turn = await running(store)
        ended = await append(store, turn, ANSWER, ENDED)
        await refused(store, turn, events, StaleEpoch, position=ended.position)

    async def test_a_turn_that_asked_and_waits(self, store: Store, events: tuple[e.Event, ...]) -> None:
        turn = await running(store)
        asked = await append(store, turn, question())
        await refused(store, turn, events, StaleEpoch, position=asked.position)

    async def test_a_turn_whose_lease_was_taken(self, store: Store, events: tuple[e.Event, ...]) -> None:
        """The process that lost its turn cannot write one event more (P2)."""
        turn = await running(store)
        other = await new_owner(store, "other")
        taken = await store.take_turn("s1", owner=other, turn_id="t1", epoch=turn.lease.epoch, events=[], at=NOW)
        await refused(store, turn, events, StaleEpoch, position=taken.position)
        await append(store, taken, *events)

    async def test_the_turn_before_the_one_that_runs(self, store: Store, events: tuple[e.Event, ...]) -> None:
        turn = await running(store)
        await append(store, turn, ENDED)
        await say(store)
        await start(store, "s1", "t2", owner=turn.lease.owner)
        await refused(store, turn, events, StaleEpoch)

    @pytest.mark.parametrize("position", [-1, 2**62, 2**70, -(2**70)])
    async def test_positions_out_of_every_range(self, store: Store, events: tuple[e.Event, ...], position: int) -> None:
        turn = await running(store)
        await refused(store, turn, events, (StalePosition, PositionGap, BadInput), position=position)  # type: ignore[arg-type]


async def test_pieces_of_an_interrupted_attempt_are_refused_but_its_end_can_be_written(store: Store) -> None:
    """C1: the mark comes first, the interruption after; what the agent still says is not part of the turn."""
    turn = await running(store)
    cut = await append(store, turn, e.TurnInterrupted(reason="shutdown_timeout", restarts=1))
    await refused(store, cut, PIECE, StaleEpoch)
    await append(store, cut, e.TurnEnded(outcome=Outcome.CANCELLED))


async def test_a_write_the_turn_cannot_make_is_a_bug_and_changes_nothing(store: Store) -> None:
    turn = await running(store)
    await refused(store, turn, (text("x"), e.TurnResumed(attempt=2, rule="R9", reason="crash")), Bug)
    await append(store, turn, text("goes on"))


async def test_a_refused_write_tells_where_the_turn_stands(store: Store) -> None:
    turn = await running(store)
    await append(store, turn, text("a"), text("b"))
    with pytest.raises(StalePosition) as stale:
        await append(store, turn, *PIECE)
    assert stale.value.actual == turn.position + 2
    with pytest.raises(PositionGap) as gap:
        await append(store, StartedTurn(turn.lease, "t1", 1, turn.position + 9), *PIECE)
    assert gap.value.actual == turn.position + 2


async def test_an_append_of_nothing_asks_whether_the_lease_still_holds(store: Store) -> None:
    turn = await running(store)
    assert (await append(store, turn)).position == turn.position
    await append(store, turn, ENDED)
    with pytest.raises(StaleEpoch):
        await append(store, turn)


async def test_one_refusal_among_many_turns_does_not_touch_the_rest(store: Store) -> None:
    """A stale turn, one that is not there and one whose text cannot be written stand among good ones."""
    owner = await new_owner(store)
    turns = [await running(store, f"s{n}", f"t{n}", owner=owner) for n in range(4)]
    await append(store, turns[1], ENDED)

    def item(turn: StartedTurn, *events: e.Event, session_id: str | None = None) -> StreamItem:
        lease = Lease(session_id or turn.lease.session_id, turn.lease.owner, turn.lease.epoch)
        return StreamItem(lease, turn.turn_id, turn.attempt, turn.position, events)

    results = await store.append_streams(
        [
            item(turns[0], text("one"), text("two", 3)),
            item(turns[1], text("late")),
            item(turns[2], text("half \ud83d")),
            item(turns[2], text("nowhere"), session_id="nowhere"),
            item(turns[2], ENDED),
            item(turns[2]),
            item(turns[3], text("three")),
        ],
        at=NOW,
    )
    assert [result if isinstance(result, int) else type(result) for result in results] == [4, StaleEpoch, NotStorable, NotFound, Bug, 2, 3]
    assert [event.text for item in await whole_log(store, "s0") if isinstance(event := item.event, e.Text)] == ["one", "two"]
    assert kinds(await whole_log(store, "s2"))[-1] == "message.written"
    assert kinds(await whole_log(store, "s3"))[-1] == "text"
    assert await store.append_streams([], at=NOW) == []


async def test_the_same_turn_twice_in_one_write_goes_on_where_it_stands(store: Store) -> None:
    turn = await running(store)
    items = [StreamItem(turn.lease, "t1", 1, turn.position + n, (text("x"),)) for n in (0, 1, 1, 2)]
    results = await store.append_streams(items, at=NOW)
    assert [result if isinstance(result, int) else type(result) for result in results] == [3, 4, StalePosition, 5]


async def test_two_writers_cannot_interleave_one_turn(backend: Backend, store: Store) -> None:
    """F9: of two writers at one position exactly one is heard, every time."""
    turn = await running(store)
    async with backend.opened() as other:
        for round_ in range(20):
            position = turn.position + round_

            async def write(store: Store, who: str, position: int = position) -> str | None:
                try:
                    await store.append_turn(turn.lease, turn_id="t1", attempt=1, position=position, events=[text(who)], at=NOW)
                except StalePosition:
                    return None
                return who

            winners = [who for who in await asyncio.gather(write(store, "one"), write(other, "other")) if who]
            assert len(winners) == 1
            last = (await store.events("s1", after=position + 2, limit=10))[-1]
            assert isinstance(last.event, e.Text) and last.event.text == winners[0] and last.position == position


async def test_a_turn_starts_with_its_lease_its_message_and_the_next_generation(store: Store) -> None:
    owner = await new_owner(store)
    await new_session(store)
    await say(store, text="first", message_id="m1")
    await say(store, text="second", message_id="m2")
    turn = await start(store, "s1", "t1", owner=owner)
    assert turn == StartedTurn(Lease("s1", owner, 1), "t1", 1, 2)
    session = await store.session("s1")
    assert (session.generation, session.queued, session.turn_state, session.owner) == (1, 1, TurnState.RUNNING, owner)
    started, written = (item.event for item in (await whole_log(store))[-2:])
    assert started == e.TurnStarted(generation=1, attempt=1, cause="message", causes=("m1",), owner=owner, epoch=1)
    assert written == e.MessageWritten(message_id="m1", role="user", content="first")
    await append(store, turn, ENDED)
    second = await start(store, "s1", "t2", owner=owner)
    assert (second.lease.epoch, (await store.session("s1")).generation) == (2, 2)


async def test_no_turn_starts_where_nothing_waits_or_one_is_open(store: Store) -> None:
    """P2: a session never has two turns."""
    owner = await new_owner(store)
    await new_session(store)
    assert await store.start_turn("s1", owner=owner, turn_id="t1", at=NOW) is None
    await say(store)
    await say(store)
    turn = await start(store, "s1", "t1", owner=owner)
    assert await store.start_turn("s1", owner=owner, turn_id="t2", at=NOW) is None
    cut = await append(store, turn, e.TurnInterrupted(reason="crash", restarts=1))
    assert await store.start_turn("s1", owner=owner, turn_id="t2", at=NOW) is None
    resumed = await append(store, cut, e.TurnResumed(attempt=2, rule="R9", reason="crash"))
    await append(store, resumed, question())
    assert await store.start_turn("s1", owner=owner, turn_id="t2", at=NOW) is None
    await store.answer("q1", Answer(content="yes", by="owner"), at=NOW)
    assert await store.start_turn("s1", owner=owner, turn_id="t2", at=NOW) is None
    with pytest.raises(NotFound):
        await store.start_turn("nowhere", owner=owner, turn_id="t2", at=NOW)


async def test_a_turn_is_taken_once_per_epoch(store: Store) -> None:
    turn = await running(store)
    other = await new_owner(store, "other")
    cut = [e.TurnInterrupted(reason="crash", restarts=1), e.TurnResumed(attempt=2, rule="R9", reason="crash")]
    taken = await store.take_turn("s1", owner=other, turn_id="t1", epoch=1, events=cut, at=NOW)
    assert taken == StartedTurn(Lease("s1", other, 2), "t1", 2, 3)
    for owner in (turn.lease.owner, other):
        with pytest.raises(StaleEpoch):
            await store.take_turn("s1", owner=owner, turn_id="t1", epoch=1, events=cut, at=NOW)
    with pytest.raises(StaleEpoch):
        await store.take_turn("s1", owner=other, turn_id="t2", epoch=2, events=[], at=NOW)
    with pytest.raises(NotFound):
        await store.take_turn("nowhere", owner=other, turn_id="t1", epoch=2, events=[], at=NOW)


async def test_a_turn_is_taken_where_it_stood_or_not_at_all(store: Store) -> None:
    """P1: what was decided before an answer came is decided again, whoever held the turn when it came."""
    turn = await running(store)
    seq = (await store.session("s1")).seq
    await say(store)  # It takes no position of the turn.
    with pytest.raises(StalePosition):
        await store.take_turn("s1", owner=9, turn_id="t1", epoch=1, events=[], at=NOW, seq=seq)
    await append(store, turn, e.TurnInterrupted(reason="crash", restarts=1))
    seq = (await store.session("s1")).seq
    for other in (seq - 1, seq + 1):
        with pytest.raises(StalePosition):
            await store.take_turn("s1", owner=9, turn_id="t1", epoch=1, events=[], at=NOW, seq=other)
    assert (await store.take_turn("s1", owner=9, turn_id="t1", epoch=1, events=[], at=NOW, seq=seq)).lease.epoch == 2


async def test_a_turn_that_waits_or_ended_cannot_be_taken(store: Store) -> None:
    """A waiting turn has no owner and needs none; whoever serves when the answer comes takes it then."""
    turn = await running(store)
    await append(store, turn, question())
    with pytest.raises(StaleEpoch):
        await store.take_turn("s1", owner=9, turn_id="t1", epoch=1, events=[], at=NOW)
    await store.answer("q1", Answer(content="yes", by="owner"), at=NOW)
    resumed = e.TurnResumed(attempt=2, rule="answer", reason="answered")
    taken = await store.take_turn("s1", owner=9, turn_id="t1", epoch=1, events=[resumed], at=NOW)
    await append(store, taken, ENDED)
    with pytest.raises(StaleEpoch):
        await store.take_turn("s1", owner=9, turn_id="t1", epoch=2, events=[], at=NOW)


async def test_what_a_take_cannot_record_leaves_the_lease_where_it_was(store: Store) -> None:
    turn = await running(store)
    with pytest.raises(Bug):
        await store.take_turn("s1", owner=9, turn_id="t1", epoch=1, events=[e.TurnResumed(attempt=2, rule="R9", reason="x")], at=NOW)
    await append(store, turn, text("still mine"))


async def test_what_ends_a_turn_is_one_transaction(backend: Backend, store: Store) -> None:
    """P4, A18: answer, end, what is owed, flags and count, together; the lease is released."""
    turn = await running(store)
    cut = await append(store, turn, e.TurnInterrupted(reason="crash", restarts=2))
    resumed = await append(store, cut, e.TurnResumed(attempt=2, rule="R9", reason="crash"))
    session = await store.session("s1")
    assert (session.resume_pending, session.resume_reason, session.interrupted_restarts) == (True, "crash", 2)
    await append(store, resumed, e.MessageWritten(message_id="a1", role="assistant", content="42", delivery_id="d1"), ENDED, at=NOW + 5)
    session = await store.session("s1")
    assert (session.resume_pending, session.resume_reason, session.last_resume_marked_at) == (False, None, None)
    assert (session.interrupted_restarts, session.turn_state, session.owner) == (0, TurnState.ENDED, None)
    [owed] = await store.deliveries(states=["pending"], now=NOW, limit=10)  # type: ignore[list-item]
    assert (owed.delivery_id, owed.text) == ("d1", "42")


async def test_only_a_completed_turn_takes_the_count_of_restarts_back(store: Store) -> None:
    """A17: a boot, a failure or a stop does not erase it."""
    turn = await running(store)
    cut = await append(store, turn, e.TurnInterrupted(reason="crash", restarts=2))
    await append(store, cut, e.TurnEnded(outcome=Outcome.CANCELLED))
    session = await store.session("s1")
    assert (session.resume_pending, session.interrupted_restarts) == (False, 2)


async def test_open_turns_are_those_somebody_must_look_after(store: Store) -> None:
    owner, other = await new_owner(store), await new_owner(store, "other")
    turns = [await running(store, f"s{n}", f"t{n}", owner=owner) for n in range(7)]
    await running(store, "s7", "t7", owner=other)
    await append(store, turns[1], ENDED)
    await append(store, turns[2], question("q2"))
    await append(store, turns[3], question("q3"))
    await store.answer("q3", Answer(content="yes", by="owner"), at=NOW)
    await append(store, turns[4], e.TurnInterrupted(reason="crash", restarts=1))
    await store.request_stop("s5", by="owner", dedup_key=None, at=NOW)
    await new_session(store, "s8")
    assert [session.session_id for session in await store.open_turns(apart_from=owner)] == ["s3", "s4", "s5", "s7"]
    assert [session.session_id for session in await store.open_turns(apart_from=other)] == ["s0", "s3", "s4", "s5", "s6"]


async def test_lanes_wait_oldest_message_first(store: Store) -> None:
    owner = await new_owner(store)
    for session_id in ("s1", "s2", "s3", "s4"):
        await new_session(store, session_id)
    for later, session_id in enumerate(("s3", "s1", "s2", "s1", "s4")):
        await say(store, session_id, at=NOW + later)
    assert await store.waiting_lanes(limit=10) == ["s3", "s1", "s2", "s4"]
    turn = await start(store, "s3", "t3", owner=owner)
    await start(store, "s1", "t1", owner=owner)
    assert await store.waiting_lanes(limit=10) == ["s2", "s4"]
    assert await store.waiting_lanes(limit=1) == ["s2"]
    await say(store, "s3", at=NOW + 9)
    await append(store, turn, ENDED)
    assert await store.waiting_lanes(limit=10) == ["s2", "s4", "s3"]


async def test_an_owner_is_forgotten_only_when_it_holds_nothing(store: Store) -> None:
    turn = await running(store)
    owner = turn.lease.owner
    other = await new_owner(store, "other")
    assert [(known.id, known.name) for known in await store.owners()] == [(owner, "me"), (other, "other")]
    await store.forget_owner(owner)
    await store.forget_owner(other)
    assert [known.id for known in await store.owners()] == [owner]
    await append(store, turn, ENDED)
    await store.forget_owner(owner)
    assert await store.owners() == []
    assert await new_owner(store, "third") > other  # A number is never given twice: a lease of the dead stays of the dead.


async def test_registering_the_same_life_again_gives_the_same_number(store: Store) -> None:
    """A caller that was cancelled may ask again."""
    assert await new_owner(store) == await new_owner(store)
