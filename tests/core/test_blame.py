"""Who is to blame for an interruption: every way in which a count of restarts can move, and how suspects are tried (A17, A25)."""

import itertools

import pytest

from holdfast.core import blame
from holdfast.core.blame import End, Interruption, Standing

COUNTS = (0, 1, 2, 3, 7)


def expected(end: End, progressed: bool, restarts: int, on_trial: bool) -> int:
    """The row A17 as a person reads it."""
    if end is End.HARMLESS:
        return restarts
    if end is End.PLANNED:
        return restarts if progressed else restarts + 1
    if on_trial or restarts < 2:
        return restarts + 1
    return restarts


def test_every_interruption_is_counted_as_the_row_says() -> None:
    """A17, A25: over every end, progress, count and trial."""
    for end, progressed, restarts, on_trial in itertools.product(End, (False, True), COUNTS, (False, True)):
        for deaths in (0, 4):
            what = Interruption(reason="r", end=end, progressed=progressed, lived_ms=70, written=3, died=9, stream_id="t.4")
            made = blame.recorded(what, Standing(restarts, on_trial, deaths))
            assert made.restarts == expected(end, progressed, restarts, on_trial), (end, progressed, restarts, on_trial)
            assert made.deaths == deaths + (end is End.DEATH)
            assert made.lived_ms == (0 if end is End.HARMLESS else 70)
            assert (made.reason, made.written, made.died, made.stream_id) == ("r", 3, 9, "t.4")


def test_nobody_is_stuck_for_having_run_beside_another() -> None:
    """A25: however often a process dies, without a trial nobody becomes more than a suspect."""
    restarts = 0
    for deaths in range(9):
        restarts = blame.restarts_after(End.DEATH, progressed=True, before=Standing(restarts, False, deaths))
        assert not blame.is_stuck(restarts, deaths + 1)
    assert blame.is_suspect(restarts) and restarts == 2


def test_a_suspect_whose_trial_ends_in_a_death_is_stuck() -> None:
    """A17, A25: whatever it had recorded before."""
    for progressed in (False, True):
        restarts = blame.restarts_after(End.DEATH, progressed=progressed, before=Standing(2, True, 2))
        assert blame.is_stuck(restarts, 3)


def test_ten_unclean_deaths_of_one_turn_are_enough_whatever_it_did_between() -> None:
    """A17"""
    assert [blame.is_stuck(0, deaths) for deaths in (0, 9, 10, 11)] == [False, False, True, True]


def test_the_number_of_restarts_that_suspend_can_be_chosen() -> None:
    """A17: `stuck_after`."""
    assert [blame.is_stuck(count, 0) for count in (2, 3, 4)] == [False, True, True]
    assert [blame.is_stuck(count, 0, stuck_after=5) for count in (3, 4, 5)] == [False, False, True]


@pytest.mark.parametrize(
    ("draining", "boot_id", "this_boot", "end"),
    [
        (None, "a", "a", (End.DEATH, "crash")),
        (None, "a", "b", (End.PLANNED, "crash")),
        ("restart_timeout", "a", "a", (End.PLANNED, "restart_timeout")),
        ("shutdown_timeout", "a", "b", (End.PLANNED, "shutdown_timeout")),
        (None, None, "b", (End.DEATH, "crash")),
        (None, "a", None, (End.DEATH, "crash")),
    ],
)
def test_a_death_in_a_recorded_drain_or_with_the_whole_machine_is_a_planned_end(
    draining: str | None, boot_id: str | None, this_boot: str | None, end: tuple[End, str]
) -> None:
    """A17, C27"""
    assert blame.end_of(draining=draining, boot_id=boot_id, this_boot=this_boot) == end


@pytest.mark.parametrize(
    ("spoke", "lived_ms", "progress"), [(False, 0, False), (False, 599_999, False), (False, 600_000, True), (True, 0, True)]
)
def test_progress_is_something_of_its_own_or_ten_minutes(spoke: bool, lived_ms: int, progress: bool) -> None:
    """A17"""
    assert blame.made_progress(spoke=spoke, lived_ms=lived_ms) is progress


@pytest.mark.parametrize(("lived_s", "trial_s"), [(0, 30), (15, 30), (16, 32), (120, 240), (300, 600), (301, 600), (10**6, 600)])
def test_a_trial_lasts_twice_as_long_as_the_attempt_that_died_within_bounds(lived_s: int, trial_s: int) -> None:
    """A25: at least 30 s, at most ten minutes."""
    assert blame.trial_ms(1000 * lived_s) == 1000 * trial_s


def test_the_least_recently_tried_comes_first_and_then_the_one_that_started_last() -> None:
    """A25"""
    suspects = {"tried last": (50, 9), "tried first": (1, 1), "started first": (None, 1), "started last": (None, 8)}
    ranked = sorted(suspects, key=lambda name: blame.trial_rank(*suspects[name]))
    assert ranked == ["started last", "started first", "tried first", "tried last"]


def test_an_interruption_of_which_nothing_is_said_shows_no_progress_and_no_life() -> None:
    """A17: what nobody knows counts for nothing."""
    found = blame.recorded(Interruption(reason="restart", end=End.PLANNED), Standing(1, False, 0))
    assert (found.restarts, found.lived_ms, found.written, found.died) == (2, 0, 0, None)
