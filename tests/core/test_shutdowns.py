"""Several requests to stop are one stop."""

from itertools import product

import pytest

from holdfast.core.shutdowns import Shutdown, joined

EVERY = [
    Shutdown(why=why, planned=planned, now=now)
    for why, planned, now in product(("SIGTERM", "asked over HTTP"), (False, True), (False, True))
]


@pytest.mark.parametrize("first", EVERY)
@pytest.mark.parametrize("later", EVERY)
def test_what_was_announced_stays_so_and_what_is_to_be_quick_stays_quick(first: Shutdown, later: Shutdown) -> None:
    """C28: whichever of the two comes first; and joining the same again changes nothing, so nobody is told twice (C30)."""
    both = joined(first, later)
    assert (both.planned, both.now) == (first.planned or later.planned, first.now or later.now)
    assert both.why == (later.why if later.planned and not first.planned else first.why), "the operator's reason is the one that is shown"
    assert joined(both, later) == joined(both, first) == both


def test_the_first_request_is_the_stop() -> None:
    """C28"""
    assert [joined(None, stop) for stop in EVERY] == EVERY
