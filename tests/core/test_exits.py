"""How a process ends and what its supervisor makes of it: the whole table."""

import itertools

import pytest

from holdfast.core import exits, lifecycle
from holdfast.core.errors import Held, HoldfastError, Refused, StoreFull, Unavailable
from holdfast.core.exits import End, Ending, Signal
from holdfast.core.lifecycle import GatewayState
from holdfast.core.shutdowns import Shutdown


@pytest.mark.parametrize(
    ("end", "announced", "code"),
    [
        (End.STOP, True, 0),
        (End.STOP, False, 75),
        (End.RESTART, True, 75),
        (End.RESTART, False, 75),
        (End.BROKEN, True, 1),
        (End.BROKEN, False, 1),
        (End.RETIRED, True, 0),
        (End.RETIRED, False, 0),
    ],
)
def test_a_stop_ends_with_0_only_if_somebody_announced_it(end: End, announced: bool, code: int) -> None:
    """C26, C9"""
    assert exits.code(end, announced=announced) == code


PLANNED, UNPLANNED = Shutdown(why="an operator", planned=True), Shutdown(why="SIGTERM", planned=False)


@pytest.mark.parametrize("signalled", [False, True])
@pytest.mark.parametrize(
    ("shutdown", "other", "end", "code"),
    [
        (None, None, End.STOP, 0),
        (None, End.RESTART, End.RESTART, 75),
        (None, End.BROKEN, End.BROKEN, 1),
        (PLANNED, None, End.STOP, 0),
        (PLANNED, End.RESTART, End.STOP, 0),
        (PLANNED, End.BROKEN, End.STOP, 0),
        (UNPLANNED, None, End.STOP, 75),
        (UNPLANNED, End.RESTART, End.RESTART, 75),
        (UNPLANNED, End.BROKEN, End.BROKEN, 1),
    ],
)
def test_the_operators_word_wins_over_every_other_reason_to_end(
    shutdown: Shutdown | None, other: End | None, end: End, code: int, signalled: bool
) -> None:
    """C26, C28: everything that can be known of an end. A signal that nobody has looked at yet is nobody's word."""
    ending = Ending(shutdown=shutdown, other=other, because="a reason", signalled=signalled)
    assert ending.end is end
    assert ending.code == (75 if signalled and shutdown is None and other is None else code)
    assert ending.why == ("a reason" if shutdown is None else shutdown.why)
    assert ending.for_good is (shutdown is PLANNED), "what runs in the background ends with an operator's stop alone (C15)"


@pytest.mark.parametrize("other", [None, End.RESTART, End.BROKEN])
@pytest.mark.parametrize("awaited", [False, True])
@pytest.mark.parametrize("shutdown", [None, PLANNED, UNPLANNED])
def test_a_process_that_handed_over_retires_unless_somebody_waits_for_the_stop_of_all(
    shutdown: Shutdown | None, awaited: bool, other: End | None
) -> None:
    """C24, C28"""
    ending = Ending(shutdown=shutdown, other=other, succeeded=True, awaited=awaited)
    if shutdown is None or not awaited:
        assert (ending.end, ending.code, ending.for_good) == (End.RETIRED, 0, False)
    else:
        assert ending.end is Ending(shutdown=shutdown, other=other).end


def test_a_stop_that_is_asked_for_joins_the_one_under_way() -> None:
    """C28"""
    ending = Ending().asked(UNPLANNED)
    assert not ending.announced
    assert ending.asked(PLANNED).announced and ending.asked(PLANNED).asked(UNPLANNED).announced


def test_every_end_has_an_exit_code() -> None:
    assert {exits.code(end, announced=announced) for end in End for announced in (True, False)} == {0, 1, 75}


@pytest.mark.parametrize("state", GatewayState)
def test_an_end_that_nobody_announced_leaves_a_state_that_is_brought_back(state: GatewayState) -> None:
    """C17, C26"""
    assert exits.left_behind(state, announced=True) is state
    left = exits.left_behind(state, announced=False)
    assert left is (GatewayState.RUNNING if state is GatewayState.STOPPED else state)
    assert lifecycle.comes_back(left) == (state is not GatewayState.STARTUP_FAILED)


def test_only_a_marker_a_person_at_the_terminal_and_our_own_signal_announce_a_stop() -> None:
    """C26, D9: every combination."""
    found = {
        (signal, marked, at_terminal)
        for signal, marked, at_terminal in itertools.product(Signal, (False, True), (False, True))
        if exits.announces(signal, marked=marked, at_terminal=at_terminal)
    }
    by_marker = {(signal, True, at_terminal) for signal in Signal for at_terminal in (False, True)}
    assert found - by_marker == {(Signal.INT, False, True), (Signal.ANNOUNCED, False, True), (Signal.ANNOUNCED, False, False)}
    assert by_marker <= found


@pytest.mark.parametrize(
    ("error", "code"),
    [(Refused("a setting is wrong"), 78), (Held("another one has it"), 69), (StoreFull(), 1), (Unavailable("the store hangs"), 1)],
)
def test_a_start_that_may_work_later_does_not_end_with_78(error: HoldfastError, code: int) -> None:
    """C26: 78 alone stays down."""
    assert exits.refused(error) == code
