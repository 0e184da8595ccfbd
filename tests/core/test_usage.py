"""What models used, added up."""

import pytest

from holdfast.core import events as e
from holdfast.core import usage
from holdfast.core.events import Usage
from holdfast.core.usage import Spent


def test_sums_say_of_how_many_requests_the_price_is_not_known() -> None:
    priced = usage.of(e.ModelResponded(step=0, usage=Usage(input=3, output=2, cached=1), cost=5))
    free = usage.of(e.ModelResponded(step=1, usage=Usage(input=1, thought=1), cost=0))
    unknown = usage.of(e.ModelResponded(step=2, usage=Usage(input=10, stored=4)))
    total = priced + free + unknown
    assert total == Spent(requests=3, input=14, output=2, cached=1, stored=4, thought=1, cost=5, unpriced=1)
    assert (total.tokens, total.known_cost, unknown.known_cost, usage.NOTHING.known_cost) == (16, 5, None, 0)


@pytest.mark.parametrize(
    ("at", "offset_s", "day"),
    [(0, 0, "1970-01-01"), (86_399_999, 0, "1970-01-01"), (86_399_999, 1, "1970-01-02"), (0, -3600, "1969-12-31")],
)
def test_a_day_is_that_of_the_clock_on_the_wall(at: int, offset_s: int, day: str) -> None:
    assert usage.day(at, offset_s) == day


def test_the_days_before_a_day_include_it() -> None:
    assert [usage.days_before("2024-03-01", count) for count in (1, 2)] == ["2024-03-01", "2024-02-29"]
