"""Times as the API shows them: RFC 3339, in UTC, with milliseconds."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_S = 253_402_300_799  # The last second of the year 9999, behind which the format ends.


@lru_cache(maxsize=64)  # Events that are stored together have the same time.
def rfc3339(ms: int) -> str:
    """Never fails: a time that no calendar has is shown as the nearest one that it has."""
    second, milli = divmod(ms, 1000)
    return f"{_second(min(max(second, 0), _LAST_S))}.{milli:03d}Z"


def rfc3339_or_none(ms: int | None) -> str | None:
    return None if ms is None else rfc3339(ms)


@lru_cache(maxsize=64)
def _second(second: int) -> str:
    return (_EPOCH + timedelta(seconds=second)).strftime("%Y-%m-%dT%H:%M:%S")
