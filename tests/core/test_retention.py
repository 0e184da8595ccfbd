"""Retention: off by default, and never more at once than a minute can bear."""

import pytest

from holdfast.core.retention import AT_ONCE, DAY_MS, LEAST_AGE_MS, Limits, Removal, by_age, by_size

NOW = 1_800_000_000_000
MB = 1_000_000


def test_by_default_nothing_is_ever_removed() -> None:
    assert by_age(Limits(), now=NOW) is None
    assert by_size(Limits(), used_bytes=10**15, sessions=10**6, removing=0, now=NOW) is None


def test_an_age_is_counted_in_days() -> None:
    assert by_age(Limits(days=0.5), now=NOW) == Removal(NOW - DAY_MS // 2, AT_ONCE, "no message in it for 0.5 days")


@pytest.mark.parametrize(
    ("used_mb", "sessions", "removing", "limit"),
    [
        (10, 100, 0, None),  # Not more than it may be.
        (20, 100, 0, 50),  # Half of it is too much.
        (11, 100, 0, 10),
        (10.001, 100, 0, 1),
        (20, 1, 0, 1),
        (1000, 10**6, 0, AT_ONCE),
        (20, 100, 1, None),  # What is being removed may be enough.
        (20, 0, 0, None),
    ],
)
def test_as_many_go_as_hold_the_surplus(used_mb: float, sessions: int, removing: int, limit: int | None) -> None:
    removal = by_size(Limits(max_mb=10), used_bytes=int(used_mb * MB), sessions=sessions, removing=removing, now=NOW)
    why = "all conversations together take more than 10 MB"
    assert removal == (None if limit is None else Removal(NOW - LEAST_AGE_MS, limit, why))
