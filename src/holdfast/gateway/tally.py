"""What this process has counted since it started, for metrics and the operator's view. Never consulted by a decision."""

from collections import Counter, deque

from holdfast.core.series import Counts
from holdfast.ports.process import Clock

SLOT_S = 600
DAY = 24 * 3600 // SLOT_S
MOST_KEPT = 1000


class Tally:
    """Turns by how they ended here; decisions over interrupted turns by the rule that made them. By platform, in the last day: messages
    that were accepted, and messages that arrived there. `waited_ms`, `first_text_ms`: of the turns that ended since somebody last took
    these numbers, how long their messages waited, and how long their first words took.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.turns: Counter[str] = Counter()
        self.rules: Counter[str] = Counter()
        self.waited_ms: deque[float] = deque(maxlen=MOST_KEPT)
        self.first_text_ms: deque[float] = deque(maxlen=MOST_KEPT)
        self._accepted, self._delivered = Counts(DAY), Counts(DAY)

    def accepted(self, platform: str) -> None:
        self._accepted.add(platform, self._slot)

    def delivered(self, platform: str) -> None:
        self._delivered.add(platform, self._slot)

    def traffic(self, platform: str) -> tuple[int, int]:
        """How many messages were accepted and delivered."""
        return self._accepted.total(platform, self._slot), self._delivered.total(platform, self._slot)

    @property
    def _slot(self) -> int:
        return int(self._clock.monotonic() // SLOT_S)
