"""Which bytes a Range header asks for."""

import pytest

from holdfast.web import ranges
from holdfast.web.ranges import Span


@pytest.mark.parametrize(
    ("header", "span"),
    [
        (None, None),
        (b"bytes=0-0", Span(0, 1)),
        (b"bytes=0-", Span(0, 10)),
        (b"bytes=3-5", Span(3, 6)),
        (b"bytes=3-500", Span(3, 10)),
        (b"bytes=-4", Span(6, 10)),
        (b"bytes=-400", Span(0, 10)),
        (b"Bytes = 2 - 4 ", Span(2, 5)),
        (b"bytes=5-3", None),
        (b"bytes=-", None),
        (b"bytes=1-2,4-5", None),
        (b"items=1-2", None),
        (b"bytes=a-b", None),
        (b"bytes=99999999999999999999-", None),
    ],
)
def test_one_range_is_given_and_anything_else_means_the_whole(header: bytes | None, span: Span | None) -> None:
    assert ranges.asked(header, 10) == span


@pytest.mark.parametrize(
    ("header", "size"), [(b"bytes=10-", 10), (b"bytes=10-20", 10), (b"bytes=-0", 10), (b"bytes=0-", 0), (b"bytes=-5", 0)]
)
def test_a_range_behind_the_end_is_refused(header: bytes, size: int) -> None:
    with pytest.raises(ranges.Unsatisfiable):
        ranges.asked(header, size)


@pytest.mark.parametrize(
    ("header", "matches"),
    [(None, False), (b'"a"', True), (b'W/"a"', True), (b'"b", "a"', True), (b"*", True), (b'"b"', False), (b"a", False)],
)
def test_a_version_that_the_client_has_is_known_again(header: bytes | None, matches: bool) -> None:
    assert ranges.matches(header, b'"a"') is matches
