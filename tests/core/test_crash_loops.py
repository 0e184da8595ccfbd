"""Which crashes of earlier starts count, and how long a start waits after them."""

from itertools import product

from holdfast.core import crash_loops
from holdfast.core.crash_loops import Start


def test_the_third_death_within_the_window_begins_the_waiting_and_each_further_one_doubles_it_up_to_a_limit() -> None:
    """C26"""
    assert [crash_loops.wait_s(deaths) for deaths in range(10)] == [0, 0, 0, 2, 4, 8, 16, 30, 30, 30]
    assert crash_loops.wait_s(10**6) == 30


def test_deaths_count_in_a_row_until_a_start_that_ended_or_was_sound() -> None:
    """B14: over every three starts; one whose death a suspended session explains is as if it had not been."""
    every = [Start(*facts) for facts in product((False, True), repeat=3)]
    for earlier in product(every, repeat=3):
        unclean = [not (start.ended or start.sound) for start in earlier]
        row = earlier[: unclean.index(False)] if False in unclean else earlier
        assert crash_loops.in_a_row(earlier) == len([start for start in row if not start.explained]), earlier
    assert crash_loops.in_a_row(()) == 0
