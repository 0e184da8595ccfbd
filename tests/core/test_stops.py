"""Which turn a stop is for, over every combination of what may be known."""

import itertools

import pytest

from holdfast.core import stops
from holdfast.core.delivery import DeliveryState
from holdfast.core.sessions import Session
from holdfast.core.stops import LastStop
from holdfast.core.turns import OPEN, TurnState

NOW = 1_700_000_000_000
HEARD = (DeliveryState.SENT, DeliveryState.DEAD)


def session(state: TurnState, turn_id: str | None = "t2") -> Session:
    return Session(session_id="s", session_key="k", log="l", seq=1, created_at=0, updated_at=0, turn_state=state, turn_id=turn_id)


@pytest.mark.parametrize(("state", "saw"), [*itertools.product(TurnState, [None, "t1", "t2"])])
def test_a_stop_is_for_the_turn_it_saw_and_without_one_for_the_open_one(state: TurnState, saw: str | None) -> None:
    """A21: one for a turn that has ended stops nothing."""
    found = stops.named(session(state), turn_id=None, saw=saw, last=None, now=NOW)
    assert found == (saw or ("t2" if state in OPEN else None))
    assert stops.stops(session(state), found) == (state in OPEN and saw != "t1")


@pytest.mark.parametrize("age_ms", [-10_001, -1, 0, 3000, 3001, 10_000, 10_001])
@pytest.mark.parametrize("waited", [False, True])
@pytest.mark.parametrize("reply", [None, *DeliveryState])
def test_until_people_can_know_that_a_turn_stopped_a_further_stop_is_for_the_same(
    reply: DeliveryState | None, waited: bool, age_ms: int
) -> None:
    """A21, P8: only where what runs now had been waiting, and not for long; then, and by its name at any time, it is stopped."""
    last = LastStop("t1", NOW - age_ms, waited, reply)
    unheard_ms = 3000 if reply is None else -1 if reply in HEARD else 10_000
    same = waited and abs(age_ms) <= unheard_ms
    running = session(TurnState.RUNNING)
    assert stops.named(running, turn_id=None, saw="t2", last=last, now=NOW) == ("t1" if same else "t2")
    assert stops.named(running, turn_id="t2", saw="t2", last=last, now=NOW) == "t2"


@pytest.mark.parametrize("state", TurnState)
def test_a_stop_for_no_turn_stops_nothing(state: TurnState) -> None:
    """A21"""
    assert stops.stops(session(state, turn_id=None), None) is False
