"""Until when messages wait that were tried, and what is forgotten of those that nobody will try again."""

import pytest

from holdfast.core.delivery import MOST_WAIT_MS, DeliveryState
from holdfast.gateway.pauses import FORGET_S, Pauses
from holdfast.ports.outbox import Delivery
from tests.fakes.clock import SimClock


class Time:
    def __init__(self) -> None:
        self.s = 1000.0
        self.clock = SimClock(elapsed=lambda: self.s, monotonic=lambda: self.s)


def owed(name: str = "d1", *, retry_at: int = 0) -> Delivery:
    key = "agent:main:test:dm:ann"
    return Delivery(
        delivery_id=name, session_id="s1", session_key=key, state=DeliveryState.PENDING, content="x", tries=1, retry_at=retry_at
    )


@pytest.fixture
def time() -> Time:
    return Time()


def test_what_failed_for_a_reason_of_ours_is_tried_ever_more_rarely_until_it_works(time: Time) -> None:
    pauses, waited = Pauses(time.clock), list[float]()
    for _ in range(4):
        pauses.failed(owed())
        began = time.s
        while pauses.holds(owed()):
            time.s += 0.5
        waited.append(time.s - began)
    assert waited == [1.0, 2.0, 4.0, 8.0]
    pauses.works(owed())
    pauses.failed(owed())
    time.s += 1.0
    assert not pauses.holds(owed())


def test_a_stored_time_counts_by_the_clock_that_does_not_jump_and_never_for_longer_than_ten_minutes(time: Time) -> None:
    pauses = Pauses(time.clock)
    mine, theirs = owed(retry_at=time.clock.now() + 3_000), owed("d2", retry_at=time.clock.now() + 10**9)
    pauses.stored(mine, mine.retry_at, 3.0)
    assert pauses.holds(mine) and pauses.holds(theirs) and not pauses.holds(owed("d3"))
    time.s += 3.0
    assert not pauses.holds(mine) and pauses.holds(theirs)
    time.s += MOST_WAIT_MS / 1000
    assert not pauses.holds(theirs)


def test_messages_that_failed_and_were_deleted_are_forgotten_and_those_that_wait_are_not(time: Time) -> None:
    """P8: what a process remembers does not grow with what it has seen."""
    pauses = Pauses(time.clock)
    for number in range(100):
        gone = owed(f"gone{number}")
        pauses.failed(gone)
        pauses.stored(gone, time.clock.now() + 1000, 1.0)
    assert len(pauses) == 100
    time.s += FORGET_S + 1.0
    waits = owed("waits", retry_at=time.clock.now() + 60_000)
    pauses.stored(waits, waits.retry_at, 60.0)
    time.s += 59.0
    pauses.failed(owed("failed"))
    assert len(pauses) == 2 and pauses.holds(waits) and pauses.holds(owed("failed"))
