"""What the ports of a store stand on: lines to an engine, and a place for the damage that reads find."""

from collections.abc import Callable
from typing import TypeVar

from holdfast.core.errors import Unavailable
from holdfast.store.lines import Lines
from holdfast.store.log import Finding, quarantine

T = TypeVar("T")


class OverLines:
    """Every port of a store is one, and a store is all of them at once: they share nothing else."""

    def __init__(self, lines: Lines, *, now: Callable[[], int]) -> None:
        self._lines, self._now = lines, now
        self._quarantined: set[tuple[int, int, int]] = set()

    async def _checked(self, given: T, found: list[Finding]) -> T:
        """What a read gives, once the damage that it found is in quarantine."""
        new = {(item.session, item.seq, item.event_id): item for item in found}
        for place in self._quarantined & new.keys():
            del new[place]
        if new:
            try:
                await self._lines.write(quarantine, tuple(new.values()), self._now())
            except Unavailable:
                return given  # A conversation can be read while nothing can be written; the damage is found again.
            self._quarantined |= new.keys()
        return given

    @property
    def damaged(self) -> int:
        """How many damaged or missing events this process has found."""
        return len(self._quarantined)
