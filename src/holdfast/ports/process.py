"""What a part may ask of the process it runs in and of the machine: time, ids, who lives, and restarts."""

from collections.abc import Sequence
from typing import Protocol

from holdfast.core.restarts import Request


class Clock(Protocol):
    """Wall time for records, monotonic time for waits. They may move independently; never subtract one from the other."""

    def now(self) -> int:
        """Milliseconds since the epoch, UTC. May step in either direction."""

    def monotonic(self) -> float:
        """Seconds. Never goes back."""

    def offset_s(self, at: int) -> int:
        """How many seconds local time is ahead of UTC at that moment."""


class Ids(Protocol):
    def new(self, prefix: str) -> str:
        """`<prefix>_` and at least 80 random bits, in letters and digits."""


class Liveness(Protocol):
    """Which processes live. The operating system is asked, not a clock. Where it cannot answer, a process counts as living."""

    def alive(self, name: str) -> bool: ...


class Restarts(Protocol):
    """The process that a gateway lives in, as far as restarts go, and the note that outlives it. `cuts`: a restart here is an end and a new
    start, so that running turns are cut; otherwise a successor takes over.
    """

    cuts: bool

    def note(self) -> Sequence[Request]:
        """Who waits for a restart."""

    def keep(self, requests: Sequence[Request]) -> None:
        """The note from now on, for every later process. Raises nothing: what cannot be kept is logged."""

    def begin(self, request: Request) -> None:
        """A restart begins soon after this returns. If it fails, `Announcements.failed` is called."""
