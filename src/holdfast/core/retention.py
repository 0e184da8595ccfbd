"""How long conversations are kept: by age, by size or, by default, forever."""

import math

import msgspec

DAY_MS = 24 * 3_600_000
# A conversation that may still be in use is never removed to save space.
LEAST_AGE_MS = 3_600_000
AT_ONCE = 100


class Limits(msgspec.Struct, frozen=True):
    """0 means no limit."""

    days: float = 0.0
    max_mb: float = 0.0


class Removal(msgspec.Struct, frozen=True):
    """At most `limit` sessions, the oldest first, none with a sign of life since `before`."""

    before: int
    limit: int
    why: str


def by_age(limits: Limits, *, now: int) -> Removal | None:
    if not limits.days:
        return None
    return Removal(now - int(limits.days * DAY_MS), AT_ONCE, f"no message in it for {limits.days:g} days")


def by_size(limits: Limits, *, used_bytes: int, sessions: int, removing: int, now: int) -> Removal | None:
    """As many as make up the excess if all had the same size. Waits for removals that are still under way."""
    surplus = used_bytes - limits.max_mb * 1_000_000
    if not limits.max_mb or surplus <= 0 or removing or not sessions:
        return None
    count = max(1, math.ceil(sessions * surplus / used_bytes))
    return Removal(now - LEAST_AGE_MS, min(AT_ONCE, count), f"all conversations together take more than {limits.max_mb:g} MB")
