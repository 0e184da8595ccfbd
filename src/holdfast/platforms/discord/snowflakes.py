"""Discord's ids. Each holds the time at which it was made, so that "after this id" is also "after this time"."""

EPOCH_MS = 1_420_070_400_000
_BELOW_TIME = 22


def at(unix_s: float) -> int:
    """The lowest id of that time."""
    return max(0, int(unix_s * 1000) - EPOCH_MS) << _BELOW_TIME


def earlier(id: int, by_s: float) -> int:
    return max(0, id - (int(by_s * 1000) << _BELOW_TIME))


def number(id: object) -> int:
    """0 for what is no id."""
    return int(id) if isinstance(id, str) and id.isascii() and id.isdecimal() else 0
