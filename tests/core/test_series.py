"""Numbers over time in a ring."""

from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.series import Counts, Ring


def test_of_a_slot_the_highest_number_stays_and_gaps_are_gaps() -> None:
    ring = Ring(10)
    for slot, value in ((4, 1.0), (4, 3.0), (4, 2.0), (6, 5.0)):
        ring.put(slot, value)
    assert ring.window(7, points=5, slots=1) == [None, 3.0, None, 5.0, None]
    assert ring.window(7, points=2, slots=2) == [3.0, 5.0]


def test_what_is_older_than_the_ring_is_forgotten_and_never_comes_back() -> None:
    ring = Ring(4)
    for slot in range(4):
        ring.put(slot, 1.0)
    ring.put(9, 2.0)
    assert ring.window(9, points=10, slots=1) == [None] * 9 + [2.0]
    assert Ring(4).window(3, points=2, slots=2) == [None, None]


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9)), max_size=30), st.integers(0, 8))
def test_a_window_shows_what_a_list_of_everything_would(steps: list[tuple[int, int]], later: int) -> None:
    ring, known, slot = Ring(8), dict[int, float](), 0
    for passed, value in steps:
        slot += passed
        ring.put(slot, float(value))
        known[slot] = max(known.get(slot, 0.0), float(value))
    until = slot + later
    shown = [known.get(each) if each > slot - 8 else None for each in range(until - 11, until + 1)]
    assert ring.window(until, points=12, slots=1) == shown


def test_what_happened_is_counted_by_name_in_the_newest_slots_alone() -> None:
    counts = Counts(3)
    for slot, name in ((1, "a"), (1, "b"), (2, "a"), (4, "a")):
        counts.add(name, slot)
    assert [counts.total("a", until) for until in (4, 5, 6, 7)] == [2, 1, 1, 0]
    assert counts.total("b", 4) == 0 == counts.total("c", 4)
