"""How much of a long text is kept, and that what is left out is counted."""

import itertools
import re

from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.output import (
    LONGEST_WAIT_S,
    RECORDED_HEAD,
    RECORDED_TAIL,
    RESULT_HEAD,
    RESULT_TAIL,
    SAMPLE,
    Course,
    Ends,
    Piece,
    result,
    shortened,
    shown_value,
)

MARK = re.compile(r"\n\[\.\.\. ([0-9,]+) characters left out \.\.\.\]\n")


def told(text: str) -> int:
    """How much the text itself says is missing."""
    return sum(int(count.replace(",", "")) for count in MARK.findall(text))


def test_a_long_result_keeps_its_beginning_and_its_end_and_says_how_much_is_missing() -> None:
    """P8"""
    text = "a" * RESULT_HEAD + "b" * 1_000_000 + "c" * RESULT_TAIL
    assert result(text) == "a" * RESULT_HEAD + "\n[... 1,000,000 characters left out ...]\n" + "c" * RESULT_TAIL


def test_a_text_that_was_shortened_before_is_not_shortened_again() -> None:
    text = "x" * 1_000_000
    once = result(text)
    assert result(once) == once
    assert result(f"{once}\n(exit code 1)").endswith("(exit code 1)")


def test_a_text_that_fits_is_left_alone() -> None:
    assert shortened("short", 4, 4) == Piece("short")


def test_long_texts_inside_arguments_are_shortened_and_the_rest_is_not() -> None:
    long = "x" * 100_000
    found = shown_value({"command": long, "list": [long, 1, None], "n": 2.5})
    assert told(found["command"]) == told(found["list"][0]) == 100_000 - 16 * 1024
    assert (found["list"][1:], found["n"]) == ([1, None], 2.5)


@given(st.lists(st.tuples(st.text("abc\n", max_size=30), st.integers(0, 40)), max_size=40), st.integers(0, 50), st.integers(0, 50))
def test_what_is_kept_and_what_is_counted_make_up_the_whole(pieces: list[tuple[str, int]], head: int, tail: int) -> None:
    """Whatever order pieces and gaps come in: no character is missing uncounted."""
    ends = Ends(head, tail)
    for text, omitted in pieces:
        ends.add(text, omitted)
        ends.read()  # Reading changes nothing.
    found = ends.read()
    kept = MARK.sub("", found.text)
    assert found.omitted == told(found.text)
    assert len(kept) + found.omitted == sum(len(text) + omitted for text, omitted in pieces)
    assert len(kept) <= head + tail
    everything = "".join(text for text, _ in pieces)
    if not any(omitted for _, omitted in pieces):
        assert kept == everything if len(everything) <= head + tail else kept == everything[:head] + everything[len(everything) - tail :]


def test_a_short_output_is_recorded_as_it_comes() -> None:
    course = Course()
    assert course.add("one", 0.0) == [Piece("one")]
    assert course.add("two", 9.0) == [Piece("two")]
    assert course.end() == []


def test_behind_its_beginning_a_long_output_is_sampled_and_ends_with_its_end() -> None:
    course = Course()
    assert course.add("a" * RECORDED_HEAD + "b", 0.0) == [Piece("a" * RECORDED_HEAD)]
    assert course.add("c" * 5000, 0.5) == []
    assert course.add("d", 1.0) == [Piece("c" * (SAMPLE - 1) + "d", 5002 - SAMPLE)]
    course.add("e" * 50_000 + "the end", 1.5)
    assert course.end() == [Piece("e" * (RECORDED_TAIL - 7) + "the end", 50_007 - RECORDED_TAIL)]


def test_output_after_which_nothing_more_comes_is_shown_when_it_is_due() -> None:
    """A tool that prints a lot and then works in silence: what it printed last does not wait for its end."""
    course = Course()
    course.add("a" * RECORDED_HEAD + "last words", 0.0)
    assert course.sample(0.5) == []
    assert course.sample(1.0) == [Piece("last words")]
    assert course.sample(100.0) == [] == course.end()


def test_what_a_call_records_grows_with_its_time_and_not_with_its_output() -> None:
    """P8"""
    recorded, omitted, course = 0, 0, Course()
    for tick in range(36_000):  # An hour of a hundred megabytes a second.
        for piece in course.add("x" * 10_000_000 if tick == 0 else "x" * 1000, tick / 10):
            recorded, omitted = recorded + len(piece.text), omitted + piece.omitted
    for piece in course.end():
        recorded, omitted = recorded + len(piece.text), omitted + piece.omitted
    assert recorded + omitted == 10_000_000 + 35_999 * 1000
    assert recorded <= RECORDED_HEAD + RECORDED_TAIL + SAMPLE * (16 * 5 + 3600 / LONGEST_WAIT_S)


def test_while_a_call_puts_something_out_something_of_it_is_shown_at_least_every_thirty_seconds() -> None:
    course, shown = Course(), [0.0]
    course.add("x" * RECORDED_HEAD, 0.0)
    for tick in range(1, 20_000):
        if course.add("y" * 100, tick * 0.5):
            shown.append(tick * 0.5)
    assert max(later - earlier for earlier, later in itertools.pairwise(shown)) <= LONGEST_WAIT_S + 0.5
