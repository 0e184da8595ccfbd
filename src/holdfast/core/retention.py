"""How long conversations are kept: by age, by the room they take, or, by default, for ever."""

import math

import msgspec

DAY_MS = 24 * 3_600_000
# What somebody may still be talking in is never removed to make room.
LEAST_AGE_MS = 3_600_000
AT_ONCE = 100


class Limits(msgspec.Struct, frozen=True):
    """0 is no limit."""

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
    """As many as hold the surplus, if all were alike; what is still being removed is waited for first."""
    surplus = used_bytes - limits.max_mb * 1_000_000
    if not limits.max_mb or surplus <= 0 or removing or not sessions:
        return None
    count = max(1, math.ceil(sessions * surplus / used_bytes))
    return Removal(now - LEAST_AGE_MS, min(AT_ONCE, count), f"all conversations together take more than {limits.max_mb:g} MB")
