"""What a message of a server may be, so that reading it takes a moment: some megabytes of text are no trouble, but a few of small values
would keep the event loop for seconds and take a hundred times their size (P8).
"""

import re

# Images come in Base64.
MOST_BYTES = 8 * 1024 * 1024
MOST_VALUES = 100_000
_STRINGS = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_MARKS = (b",", b"[", b"{", b":")


def too_complex(message: bytes) -> bool:
    """Whether so many values are in it that nobody should read it. What stands inside of texts does not count."""
    if (message.count(b'"') - message.count(b'\\"')) > 2 * MOST_VALUES:
        return True
    if sum(map(message.count, _MARKS)) <= MOST_VALUES:
        return False
    return sum(map(_STRINGS.sub(b"", message).count, _MARKS)) > MOST_VALUES


def told(size: int) -> str:
    """Why a message was not read."""
    return f"longer than {MOST_BYTES // 1024 // 1024} MB" if size > MOST_BYTES else f"made of more than {MOST_VALUES:,} values"
