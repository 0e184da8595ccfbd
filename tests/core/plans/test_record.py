"""What the holder of a turn may record, over stops on record, stops of the process, and interruptions to be counted."""

from itertools import product

import pytest

from holdfast.core import events as e
from holdfast.core.blame import End, Interruption, Standing
from holdfast.core.errors import StaleEpoch, ToldToStop
from holdfast.core.plans import record
from holdfast.core.sessions import Lease
from holdfast.core.turns import Outcome, TurnState

LEASE = Lease("s1", 7, 2)
FLAGS = (False, True)
RESUMED = e.TurnResumed(attempt=2, rule="R9", reason="crash")
CALLED = e.ToolFinished(call_id="c1", outcome="done", content="ok")  # type: ignore[arg-type]


def plan(
    *events: e.Event | Interruption, stop: bool = False, state: TurnState = TurnState.RUNNING, told: bool = False, restarts: int = 0
) -> list[e.Event]:
    standing = Standing(restarts, False, 0) if record.counts(events) else None
    return record.plan(events, lease=LEASE, state=state, stop_requested=stop, standing=standing, told_to_stop=told)


@pytest.mark.parametrize(("state", "stop", "told"), list(product(record.HELD, FLAGS, FLAGS)))
def test_nothing_is_resumed_by_a_process_that_stops_or_after_a_stop(state: TurnState, stop: bool, told: bool) -> None:
    """R0, C28"""
    if told or stop:
        with pytest.raises(ToldToStop if told else StaleEpoch):
            plan(CALLED, RESUMED, stop=stop, state=state, told=told)
    else:
        assert plan(CALLED, RESUMED, state=state) == [CALLED, RESUMED]
    assert plan(CALLED, stop=stop, state=state, told=told) == [CALLED]  # What is done is recorded in any case.


def test_a_process_holds_what_runs_and_what_it_interrupted_and_another_may_take_over_what_was_answered_too() -> None:
    """P2, P3: nobody takes a turn that waits for people, or one that is over."""
    assert set(record.HELD) == {TurnState.RUNNING, TurnState.INTERRUPTED}
    assert set(record.TAKEABLE) == {TurnState.RUNNING, TurnState.INTERRUPTED, TurnState.ANSWERED}


@pytest.mark.parametrize(("state", "stop", "outcome", "rule"), list(product(record.HELD, FLAGS, Outcome, (None, "R4"))))
def test_a_turn_with_a_stop_on_record_ends_as_cancelled_and_as_nothing_else(
    state: TurnState, stop: bool, outcome: Outcome, rule: str | None
) -> None:
    """R0, A21: people were told that it is stopped."""
    ended = e.TurnEnded(outcome=outcome, rule=rule, error="no" if outcome is Outcome.FAILED else None)
    if not stop or outcome is Outcome.CANCELLED:
        assert plan(CALLED, ended, stop=stop, state=state) == [CALLED, ended]
    elif state is TurnState.INTERRUPTED:
        with pytest.raises(StaleEpoch):
            plan(CALLED, ended, stop=stop, state=state)
    else:
        assert plan(CALLED, ended, stop=stop, state=state) == [
            CALLED,
            e.TurnEnded(outcome=Outcome.CANCELLED, rule="R0" if rule else None),
        ]


@pytest.mark.parametrize(("end", "restarts", "stop"), list(product(End, (0, 2), FLAGS)))
def test_an_interruption_is_counted_on_from_what_the_session_has(end: End, restarts: int, stop: bool) -> None:
    """P8, A25"""
    called, found = plan(CALLED, Interruption(reason="crash", end=end), restarts=restarts, stop=stop)
    assert called is CALLED and isinstance(found, e.TurnInterrupted)
    assert found.restarts == {End.HARMLESS: restarts, End.PLANNED: restarts + 1, End.DEATH: max(restarts, min(restarts + 1, 2))}[end]
