"""Numbers over time, as many as fit into a ring, and how often something happened in the newest slots of time."""

from array import array
from collections import Counter, defaultdict
from math import isnan, nan


class Ring:
    """A number for each slot of time, for the newest `kept` slots. Slots are counted by the caller and never go back."""

    def __init__(self, kept: int) -> None:
        self._values, self._kept = array("d", [nan]) * kept, kept
        self._newest: int | None = None

    def put(self, slot: int, value: float) -> None:
        """Of several numbers for one slot the highest stays."""
        newest = slot if self._newest is None else self._newest
        for passed in range(max(newest + 1, slot - self._kept + 1), slot + 1):
            self._values[passed % self._kept] = nan
        self._newest = max(newest, slot)
        known = self._values[slot % self._kept]
        self._values[slot % self._kept] = value if isnan(known) else max(known, value)

    def window(self, until: int, *, points: int, slots: int) -> list[float | None]:
        """So many points of so many slots each, the last of which ends with the slot `until`: the highest number of each, None where there
        is none.
        """
        first = until - points * slots + 1
        return [self._highest(first + point * slots, slots) for point in range(points)]

    def _highest(self, first: int, slots: int) -> float | None:
        if self._newest is None:
            return None
        oldest = max(0, self._newest - self._kept + 1)
        found = (self._values[slot % self._kept] for slot in range(max(first, oldest), min(first + slots, self._newest + 1)))
        return max((value for value in found if not isnan(value)), default=None)


class Counts:
    """How often something happened, by name, in the newest `kept` slots of time. Slots are counted by the caller and never go back."""

    def __init__(self, kept: int) -> None:
        self._kept = kept
        self._slots: defaultdict[int, Counter[str]] = defaultdict(Counter)

    def add(self, name: str, slot: int) -> None:
        self._slots[slot][name] += 1
        for passed in [each for each in self._slots if each <= slot - self._kept]:
            del self._slots[passed]

    def total(self, name: str, until: int) -> int:
        return sum(counted[name] for slot, counted in self._slots.items() if slot > until - self._kept)
