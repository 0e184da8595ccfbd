"""The journals of a store: what was spooled while it could not be written, on its way into the log."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from holdfast.core.journals import Late, Limits, Sight, State
from holdfast.core.spools import Spooled


class Journal(NamedTuple):
    """What one lease wrote of a turn."""

    session_id: str
    turn_id: str
    epoch: int


class Shipped(NamedTuple):
    """`new`: how many events were not in the log yet. `late`: another lease has followed, or the turn is over. `state`: of a late one, as
    the row of its interruption says it.
    """

    new: int
    late: bool
    state: State | None


class Journals(Protocol):
    """Shipping. Every method keeps to the contract of `ports.store`."""

    async def writable(self) -> None:
        """Returns when writes are taken again, after `StoreAway`; at once where nothing is known to be in the way."""

    async def ship(self, journal: Journal, events: Sequence[Spooled], sight: Sight, *, limits: Limits, at: int) -> Shipped:
        """Puts events of a journal that are not in the log yet into it, each in its own place of the turn; those that are there already
        change nothing. Needs no lease: the caller must know that the process that spooled them is gone, or be that process. While the
        turn still runs under that lease, they continue it. Later they are late: they get new sequences and keep their places, nothing
        that was decided or told changes, and what has become of the journal is recorded with them, in the same transaction (`sight`: how
        it was found; also where it gave nothing). Raises `NotFound` where there is no such session, or no such turn in it.
        """

    async def late_journals(self, *, limit: int) -> list[Late]:
        """Those that are still looked for, the oldest first."""

    async def journal(self, turn_id: str, epoch: int) -> Late | None:
        """One that is or was late."""

    async def session_of_turn(self, turn_id: str) -> str | None:
        """The session whose newest turn this is, or that waits for a journal of it. None where neither is known."""
