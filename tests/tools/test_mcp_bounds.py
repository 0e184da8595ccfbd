"""Which messages of a server are read."""

import pytest

from holdfast.tools.mcp.bounds import MOST_VALUES, too_complex

MANY = MOST_VALUES + 10
MESSAGES = [
    (b'{"a":"' + b"x" * 5_000_000 + b'"}', False),
    (b'{"a":"' + b"1,2;[{:" * MANY + b'"}', False),  # In a text, nothing of it counts.
    (b'{"a":"' + rb"{\"b\":1}," * MANY + b'"}', False),
    (b"[" + b"[]," * MANY + b"[]]", True),
    (b"[" + b"1," * MANY + b"1]", True),
    (b"[" + b'"",' * MANY + b'""]', True),
    (b'{"a":"' + b"," * MANY + b'","b":[' + b"1," * MANY + b"1]}", True),
    (b'{"a":"' + b"," * MANY, True),  # A text without an end is none.
    (b"", False),
]


@pytest.mark.parametrize(("message", "expected"), MESSAGES, ids=range(len(MESSAGES)))
def test_a_message_of_too_many_values_is_known_by_looking_at_it(message: bytes, expected: bool) -> None:
    """P8: before anything is made of it."""
    assert too_complex(message) is expected
