"""How a process ends and what its supervisor makes of it: the whole table."""

import itertools

import pytest

from holdfast.core import exits, lifecycle
from holdfast.core.errors import Held, HoldfastError, Refused, StoreFull, Unavailable
from holdfast.core.exits import End, Signal
from holdfast.core.lifecycle import GatewayState


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
