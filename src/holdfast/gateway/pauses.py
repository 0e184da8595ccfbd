"""Until when messages to chats wait that were tried and are tried again: on the monotonic clock, because the wall clock may jump. What is
stored of it is somebody else's; here lies what only this process has to know, and not for ever.
"""

from holdfast.core import delivery
from holdfast.ports.outbox import Delivery
from holdfast.ports.process import Clock

# What is still to be sent is looked at within seconds of its time. What was not has been deleted, dropped, or cannot be sent for now.
FORGET_S, LOOK_S = 3600.0, 60.0


class Pauses:
    """Its length: how many messages it knows."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # By message and its stored time to be tried again.
        self._not_before: dict[tuple[str, int, int], float] = {}
        # How often a message failed here for a reason of ours, and until when it waits.
        self._failures: dict[tuple[str, int], tuple[int, float]] = {}
        self._looked_at = clock.monotonic()

    def __len__(self) -> int:
        return len({name[:2] for name in self._not_before} | set(self._failures))

    def stored(self, owed: Delivery, retry_at: int, wait_s: float) -> None:
        """It waits for so long; the store says until when by the wall clock."""
        self._not_before[owed.delivery_id, owed.part, retry_at] = self._clock.monotonic() + wait_s
        self._forget()

    def failed(self, owed: Delivery) -> None:
        """For a reason of ours, of which nothing is stored: it is tried again ever more rarely."""
        now = self._clock.monotonic()
        times, _ = self._failures.get((owed.delivery_id, owed.part), (0, 0.0))
        self._failures[owed.delivery_id, owed.part] = times + 1, now + delivery.retry_delay_ms(times) / 1000
        self._forget()

    def works(self, owed: Delivery) -> None:
        self._failures.pop((owed.delivery_id, owed.part), None)

    def holds(self, owed: Delivery) -> bool:
        """Whether it was tried, and is to be tried again later. What an earlier process stored counts, too."""
        now, name = self._clock.monotonic(), (owed.delivery_id, owed.part, owed.retry_at)
        if now < self._failures.get((owed.delivery_id, owed.part), (0, 0.0))[1]:
            return True
        if not owed.retry_at:
            return False
        if name not in self._not_before:
            self._not_before[name] = now + delivery.stored_wait_ms(owed.state, owed.retry_at - self._clock.now()) / 1000
        if self._not_before[name] > now:
            return True
        del self._not_before[name]
        return False

    def _forget(self) -> None:
        now = self._clock.monotonic()
        if now - self._looked_at < LOOK_S:
            return
        self._looked_at, since = now, now - FORGET_S
        self._not_before = {name: until for name, until in self._not_before.items() if until > since}
        self._failures = {name: failed for name, failed in self._failures.items() if failed[1] > since}
