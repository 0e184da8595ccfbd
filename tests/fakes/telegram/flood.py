"""How fast a bot may be. The Bot API says: some thirty messages in a second for all chats, twenty in a minute for a group, one in a second
for a private chat, with short bursts. Edits count. A bot that is faster hears nothing but refusals for a while.
"""

import math
import time
from collections import defaultdict, deque
from collections.abc import Callable

PENALTY_S = 3.0
ACCOUNT, PRIVATE, GROUP = (30, 1.0), (8, 5.0), (20, 60.0)


class _Window:
    """At most so many within any so many seconds."""

    def __init__(self, most: int, per_s: float) -> None:
        self._most, self._per_s = most, per_s
        self._taken: deque[float] = deque()
        self._closed_until = 0.0

    def wait_s(self, now: float) -> float:
        while self._taken and now - self._taken[0] >= self._per_s:
            self._taken.popleft()
        if len(self._taken) >= self._most:
            self._closed_until = max(self._closed_until, self._taken[0] + self._per_s + PENALTY_S)
        return self._closed_until - now

    def take(self, now: float) -> None:
        self._taken.append(now)


class Flood:
    """`refused`: how often a bot was too fast."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now, self.refused = now, 0
        self._account = _Window(*ACCOUNT)
        self._private: dict[int, _Window] = defaultdict(lambda: _Window(*PRIVATE))
        self._groups: dict[int, _Window] = defaultdict(lambda: _Window(*GROUP))

    def wait_s(self, chat: int) -> int:
        """0 if one more may go there, which then counts; else how many seconds to wait."""
        now = self._now()
        windows = (self._account, self._groups[chat] if chat < 0 else self._private[chat])
        waits_s = max(window.wait_s(now) for window in windows)
        if waits_s > 0:
            self.refused += 1
            return math.ceil(waits_s)
        for window in windows:
            window.take(now)
        return 0
