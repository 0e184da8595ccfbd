"""How long a start waits after crashes."""

from holdfast.core import crash_loops


def test_the_third_death_within_the_window_begins_the_waiting_and_each_further_one_doubles_it_up_to_a_limit() -> None:
    """C26"""
    assert [crash_loops.wait_s(deaths) for deaths in range(10)] == [0, 0, 0, 2, 4, 8, 16, 30, 30, 30]
    assert crash_loops.wait_s(10**6) == 30
