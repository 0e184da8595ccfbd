"""Which bytes of a whole a request asks for (RFC 9110, 14)."""

import re
from typing import NamedTuple

_RANGE = re.compile(rb"\s*bytes\s*=\s*([0-9]{0,18})\s*-\s*([0-9]{0,18})\s*", re.IGNORECASE)


class Span(NamedTuple):
    """From `first` up to, without, `end`."""

    first: int
    end: int


class Unsatisfiable(Exception):
    """The range lies behind the end."""


def asked(header: bytes | None, size: int) -> Span | None:
    """The one range asked for; None for the whole. A header that is no single range of bytes counts as none, as the standard allows."""
    found = _RANGE.fullmatch(header) if header is not None else None
    if found is None or found[1] == found[2] == b"":
        return None
    if not found[1]:  # The last so many bytes.
        first, end = max(0, size - int(found[2])), size
    else:
        first, end = int(found[1]), min(size, int(found[2]) + 1) if found[2] else size
        if found[2] and int(found[2]) < first:
            return None
    if first >= size:
        raise Unsatisfiable
    return Span(first, end)


def matches(header: bytes | None, tag: bytes) -> bool:
    """Whether an If-None-Match names this version."""
    if header is None:
        return False
    named = {part.strip().removeprefix(b"W/") for part in header.split(b",")}
    return b"*" in named or tag in named
