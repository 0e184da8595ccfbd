"""Interruptions that are counted where they are recorded, and trials of suspects (A17, A25)."""

import pytest

from holdfast.core import events as e
from holdfast.core.blame import End, Interruption
from holdfast.core.plans.start import StartedTurn
from holdfast.core.turns import Outcome, TurnState
from holdfast.ports.owners import Owner
from holdfast.ports.store import Store
from tests.conformance.backends import Backend
from tests.conformance.steps import CUT, ENDED, NOW, append, new_owner, question, running, say, start

pytestmark = pytest.mark.anyio

DEATH = Interruption(reason="crash", end=End.DEATH, lived_ms=70_000, died=1)
PLANNED = Interruption(reason="restart_timeout", end=End.PLANNED)


async def interrupted(store: Store, what: Interruption, session_id: str = "s1", turn_id: str = "t1") -> int:
    """A turn is found running after a death, or interrupted in some other way; the count it has then."""
    session = await store.session(session_id)
    owner = await new_owner(store, "the next")
    await store.take_turn(session_id, owner=owner, turn_id=turn_id, epoch=session.epoch, events=[what], at=NOW)
    return (await store.session(session_id)).interrupted_restarts


async def resumed(store: Store, *, trial: bool, session_id: str = "s1", turn_id: str = "t1") -> StartedTurn:
    session = await store.session(session_id)
    owner = await new_owner(store, "the next")
    again = e.TurnResumed(attempt=session.attempt + 1, rule="R9", reason="crash", trial=trial)
    return await store.take_turn(session_id, owner=owner, turn_id=turn_id, epoch=session.epoch, events=[again], at=NOW + session.attempt)


async def test_an_interruption_is_counted_on_from_what_the_session_has(backend: Backend, store: Store) -> None:
    """A17, A25: a death above two only on trial; nobody holds the turn then."""
    await running(store)
    assert await interrupted(store, DEATH) == 1
    session = await store.session("s1")
    assert (session.owner, session.deaths, session.lived_ms, session.turn_state) == (None, 1, 70_000, TurnState.INTERRUPTED)
    for counted in (2, 2):
        await resumed(store, trial=False)
        assert await interrupted(store, DEATH) == counted
    await resumed(store, trial=True)
    async with backend.opened() as other:
        assert (await other.session("s1")).on_trial
    assert await interrupted(store, DEATH) == 3
    session = await store.session("s1")
    assert (session.deaths, session.on_trial, session.tried_at, session.attempt_at) == (4, False, NOW + 3, NOW + 3)


async def test_a_planned_end_keeps_its_owner_until_that_is_gone(store: Store) -> None:
    """C1: its process still has to let go of it."""
    turn = await append(store, await running(store), PLANNED)
    session = await store.session("s1")
    assert (session.owner, session.interrupted_restarts, session.deaths) == (turn.lease.owner, 1, 0)


async def test_the_count_is_that_of_the_moment_in_which_it_is_written(store: Store) -> None:
    """A17: a trial that was passed since somebody looked."""
    await running(store)
    await interrupted(store, DEATH)
    await resumed(store, trial=False)
    await interrupted(store, DEATH)
    turn = await resumed(store, trial=True)
    assert await store.pass_trial(turn.lease, turn_id="t1", at=NOW)
    assert (await store.session("s1")).interrupted_restarts == 0
    assert await interrupted(store, DEATH) == 1


async def test_a_trial_is_passed_once_and_only_by_whoever_runs_it(store: Store) -> None:
    """A25"""
    turn = await running(store)
    assert not await store.pass_trial(turn.lease, turn_id="t1", at=NOW)  # Not on trial.
    await interrupted(store, DEATH)
    assert not await store.pass_trial(turn.lease, turn_id="t1", at=NOW)
    turn = await resumed(store, trial=True)
    stale = StartedTurn(turn.lease.__class__("s1", turn.lease.owner, turn.lease.epoch - 1), "t1", 1, 0)
    assert not await store.pass_trial(stale.lease, turn_id="t1", at=NOW)
    assert not await store.pass_trial(turn.lease, turn_id="t2", at=NOW)
    assert await store.pass_trial(turn.lease, turn_id="t1", at=NOW)
    assert not await store.pass_trial(turn.lease, turn_id="t1", at=NOW)
    await append(store, turn, e.Text(offset=0, text="its place in the log has not moved"))


@pytest.mark.parametrize("outcome", Outcome)
async def test_any_end_of_a_turn_on_trial_passes_it(store: Store, outcome: Outcome) -> None:
    """A25"""
    await running(store)
    await interrupted(store, DEATH)
    await append(store, await resumed(store, trial=True), e.TurnEnded(outcome=outcome))
    session = await store.session("s1")
    assert (session.interrupted_restarts, session.on_trial) == (0, False)


@pytest.mark.parametrize("outcome", Outcome)
async def test_without_a_trial_only_a_completed_turn_sets_the_count_back(store: Store, outcome: Outcome) -> None:
    """A17"""
    await running(store)
    await interrupted(store, DEATH)
    await append(store, await resumed(store, trial=False), e.TurnEnded(outcome=outcome))
    assert (await store.session("s1")).interrupted_restarts == (0 if outcome is Outcome.COMPLETED else 1)


async def test_a_question_ends_a_trial_without_a_verdict(store: Store) -> None:
    """A25"""
    await running(store)
    await interrupted(store, DEATH)
    await append(store, await resumed(store, trial=True), question())
    session = await store.session("s1")
    assert (session.interrupted_restarts, session.on_trial) == (1, False)


async def test_a_new_turn_can_begin_on_trial_and_begins_without_deaths(store: Store) -> None:
    """A25: new ones too."""
    await running(store)
    await interrupted(store, DEATH)
    await append(store, await resumed(store, trial=False), e.TurnEnded(outcome=Outcome.FAILED))
    await say(store)
    owner = await new_owner(store)
    assert await store.start_turn("s1", owner=owner, turn_id="t2", at=NOW + 9, trial=True)
    session = await store.session("s1")
    assert (session.on_trial, session.tried_at, session.deaths, session.interrupted_restarts) == (True, NOW + 9, 0, 1)


async def test_a_wait_for_a_trial_is_recorded_only_while_it_lasts(store: Store) -> None:
    """A25, R6"""
    turn = await running(store)
    assert not await store.await_trial("s1", turn_id="t1", aged_ms=5, at=NOW)
    await append(store, turn, CUT)
    assert await store.await_trial("s1", turn_id="t1", aged_ms=5, at=NOW)
    assert not await store.await_trial("s1", turn_id="t2", aged_ms=5, at=NOW)
    await resumed(store, trial=True)
    assert not await store.await_trial("s1", turn_id="t1", aged_ms=5, at=NOW)


async def test_a_start_whose_death_a_suspended_session_explains_neither_counts_nor_breaks_the_row(store: Store) -> None:
    """B14"""
    owners = [await store.register_owner(Owner(name=f"life {number}", pid=1, started_at=NOW, boot_id="b")) for number in range(4)]
    for owner in owners[:3]:
        await store.record_start(owner, at=NOW)
    turn = await running(store, owner=owners[1])
    assert await store.record_start(owners[3], at=NOW) == 3
    await append(store, turn, e.TurnEnded(outcome=Outcome.SET_ASIDE, rule="R2", blamed_for=owners[1]))
    assert await store.record_start(owners[3], at=NOW) == 2


async def test_a_session_that_is_suspended_with_its_turn_refuses_what_waits_in_the_same_transaction(store: Store) -> None:
    """A20, R2"""
    turn = await running(store)
    await say(store, text="second")
    await append(store, turn, CUT)
    session = await store.session("s1")
    ending = [e.SessionChanged(suspended=True), e.TurnEnded(outcome=Outcome.SET_ASIDE, rule="R2")]
    await store.take_turn("s1", owner=turn.lease.owner, turn_id="t1", epoch=session.epoch, events=ending, at=NOW)
    session = await store.session("s1")
    assert (session.suspended, session.queued) == (True, 0)
    told = [item.event for item in await store.records("s1", after=0, limit=100)]
    assert [event.text for event in told if isinstance(event, e.MessageWritten) and event.role == "notice"] == [
        "This message was not answered, because the conversation was suspended first. Send it again:\n\n> second"
    ]


async def test_a_completed_turn_forgives_what_came_before(store: Store) -> None:
    """A17, A18"""
    await running(store)
    await interrupted(store, DEATH)
    await append(store, await resumed(store, trial=False), ENDED)
    await say(store)
    await start(store, "s1", "t2", owner=await new_owner(store))
    assert await interrupted(store, DEATH, turn_id="t2") == 1
