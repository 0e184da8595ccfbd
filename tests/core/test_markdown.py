"""What models write becomes plain text and spans, whatever marks are in it."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core.markdown import RULE, read
from holdfast.core.rich import Rich


def spans(markdown: str) -> tuple[str, list[str]]:
    """The text, and each span as `mark:words` or `mark(value):words`."""
    found = read(markdown)
    named = [f"{s.mark}{f'({s.value})' if s.value else ''}:{found.text[s.start : s.end]}" for s in found.spans]
    return found.text, named


@pytest.mark.parametrize(
    ("markdown", "text", "marked"),
    [
        ("plain", "plain", []),
        ("**b** and *i*", "b and i", ["bold:b", "italic:i"]),
        ("__b__ and _i_", "b and i", ["bold:b", "italic:i"]),
        ("***both***", "both", ["italic:both", "bold:both"]),
        ("**a *b* c**", "a b c", ["bold:a b c", "italic:b"]),
        ("~~gone~~ ~not~", "gone ~not~", ["strike:gone"]),
        ("`a*b*c` ``d`e``", "a*b*c d`e", ["code:a*b*c", "code:d`e"]),
        ("[words](http://x.y/z_(w))", "words", ["link(http://x.y/z_(w)):words"]),
        ("[a](b c)", "[a](b c)", []),
        ("snake_case and 2*3*4 and a * b", "snake_case and 2*3*4 and a * b", []),
        ("\\*not\\* \\x", "*not* \\x", []),
        ("**open", "**open", []),
        ("`open", "`open", []),
        ("a ** b **", "a ** b **", []),
        ("# Head *x*", "Head x", ["bold:Head x", "italic:x"]),
        ("#nohead", "#nohead", []),
        ("- one\n* two\n  + three", "• one\n• two\n  • three", []),
        ("1. one", "1. one", []),
        ("> a\n> *b*\nc", "a\nb\nc", ["quote:a\nb", "italic:b"]),
        ("---", RULE, []),
        ("```py\nx = '*'\n```\nend", "x = '*'\nend", ["pre(py):x = '*'"]),
        ("~~~\na\n~~~", "a", ["pre:a"]),
        ("```\nstill growing", "still growing", ["pre:still growing"]),
        ("| a | b |\n|---|:-:|\n| 1 | **22** |", "a | b\n--+---\n1 | 22", ["pre:a | b\n--+---\n1 | 22"]),
        ("a | b", "a | b", []),
        ("", "", []),
    ],
)
def test_what_models_write_is_read_as_people_mean_it(markdown: str, text: str, marked: list[str]) -> None:
    assert spans(markdown) == (text, marked)


MARKS = st.text(alphabet="*_~`[]()#>|-\\ \nab1:.", max_size=60)


def check(found: Rich) -> None:
    ends: list[int] = []
    for span in found.spans:
        assert 0 <= span.start < span.end <= len(found.text)
        while ends and ends[-1] <= span.start:
            ends.pop()
        assert not ends or span.end <= ends[-1], "spans cross"
        ends.append(span.end)
    assert [(s.start, -s.end) for s in found.spans] == sorted((s.start, -s.end) for s in found.spans)


@settings(max_examples=500, derandomize=True, database=None, deadline=None)
@given(MARKS | st.text(max_size=80))
def test_nothing_that_anybody_writes_can_fail_and_no_word_is_lost(markdown: str) -> None:
    found = read(markdown)
    check(found)
    links = set(re.findall(r"\]\(([^)]*)\)", markdown))
    words = [word for word in re.findall(r"[a-z0-9]+", markdown) if not any(word in link for link in links)]
    fences = re.findall(r"^ {0,3}(?:`{3,}|~{3,})(.*)$", markdown, re.MULTILINE)  # The language of a block is not shown.
    for word in words:
        assert word in found.text or any(word in fence for fence in fences)


@pytest.mark.parametrize("piece", ["*a _b_ `c` [d](e) **", "_a b* ", "*a **b ", "[a`", "**a* "])
def test_a_long_text_full_of_marks_is_read_in_linear_time(piece: str) -> None:
    """P8"""
    assert len(read(piece * 10_000).text) >= 10_000
