"""A wall clock that jumps and drifts beside a monotonic one that does not."""

from collections.abc import Callable

START_MS = 1_800_000_000_000


class SimClock:
    """`elapsed` is the time of the world outside, in seconds, which goes on while the process is dead. `monotonic` is the
    process's own and starts anywhere. `jumps` are (when, by how many milliseconds), `drift` is relative.
    """

    def __init__(
        self,
        *,
        elapsed: Callable[[], float],
        monotonic: Callable[[], float],
        drift: float = 0.0,
        jumps: tuple[tuple[float, int], ...] = (),
    ) -> None:
        self._elapsed, self._monotonic, self._drift, self._jumps = elapsed, monotonic, drift, jumps

    def now(self) -> int:
        elapsed = self._elapsed()
        jumped = sum(by_ms for when, by_ms in self._jumps if when <= elapsed)
        return START_MS + int(elapsed * 1000 * (1 + self._drift)) + jumped

    def monotonic(self) -> float:
        return self._monotonic()

    def offset_s(self, at: int) -> int:
        return 0
