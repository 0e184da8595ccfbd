"""Where a long text breaks into messages, in the unit that its platform counts in."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core.markdown import read
from holdfast.core.rich import Mark, Rich
from holdfast.core.splitting import Size, split, utf16


def chars(text: Rich) -> int:
    return len(text.text)


def units(text: Rich) -> int:
    return utf16(text.text)


def octets(text: Rich) -> int:
    return len(text.text.encode())


def texts(markdown: str, limit: int, size: Size = chars) -> list[str]:
    return [part.text for part in split(read(markdown), limit, size)]


@pytest.mark.parametrize(
    ("markdown", "limit", "parts"),
    [
        ("", 10, [""]),
        ("short", 10, ["short"]),
        ("one two three", 8, ["one two", "three"]),
        ("aaaa bbbb\n\ncc dd", 12, ["aaaa bbbb", "cc dd"]),
        ("one. two three", 10, ["one. two", "three"]),
        ("abcdefghij", 4, ["abcd", "efgh", "ij"]),
        ("  a  \n", 3, ["a"]),
        ("a\n\n\n\nb", 3, ["a", "b"]),
    ],
)
def test_a_text_breaks_between_paragraphs_lines_sentences_or_words(markdown: str, limit: int, parts: list[str]) -> None:
    assert texts(markdown, limit) == parts


def test_the_limit_is_in_the_unit_of_the_platform() -> None:
    assert texts("😀" * 6, 4, units) == ["😀😀"] * 3
    assert texts("ä" * 6, 4, octets) == ["ää"] * 3
    assert texts("😀" * 6, 4, chars) == ["😀" * 4, "😀" * 2]


def test_what_people_see_as_one_character_stays_whole() -> None:
    family = "👨‍👩‍👧"  # Five code points.
    assert texts(family * 3, 12, chars) == [family * 2, family]
    assert texts("e\u0301" * 4, 3, chars) == ["e\u0301"] * 4


def test_a_block_of_code_that_fits_into_a_message_is_not_broken() -> None:
    parts = split(read("Some words first.\n```py\none\ntwo\n```\nafter"), 22, chars)
    assert [part.text for part in parts] == ["Some words first.", "one\ntwo\nafter"]
    assert [(span.mark, span.value) for span in parts[1].spans] == [(Mark.PRE, "py")]


def test_a_larger_block_of_code_is_a_block_of_its_language_in_each_part() -> None:
    code = "\n".join(f"    line {number}" for number in range(20))
    parts = split(read(f"```py\n{code}\n```"), 60, chars)
    assert len(parts) > 3
    for part in parts:
        assert [(span.mark, span.start, span.end, span.value) for span in part.spans] == [(Mark.PRE, 0, len(part.text), "py")]
        assert all(line.startswith("    line ") for line in part.text.split("\n"))
    assert "\n".join(part.text for part in parts) == code


TEXTS = st.text(alphabet="ab .\n😀é`*", max_size=200)


@settings(max_examples=400, derandomize=True, database=None, deadline=None)
@given(TEXTS, st.integers(4, 40), st.sampled_from([chars, units, octets]))
def test_no_part_is_too_large_none_is_empty_and_nothing_is_lost(markdown: str, limit: int, size: Size) -> None:
    """P4: the parts together say what the whole says."""
    whole = read(markdown)
    parts = split(whole, limit, size)
    assert all(size(part) <= limit for part in parts)
    assert all(part.text for part in parts) or len(parts) == 1
    assert "".join("".join(part.text.split()) for part in parts) == "".join(whole.text.split())


def test_a_text_of_megabytes_is_split_in_time() -> None:
    """P8"""
    assert len(texts("some **words** of a text. " * 40_000, 4096, units)) > 150


def test_what_was_split_stays_where_it_is_while_the_text_grows() -> None:
    """B11: a message that is full is not edited again with every word."""
    text = "word " * 300
    for size in range(400, len(text), 97):
        assert texts(text[:size], 200)[0] == texts(text, 200)[0]
