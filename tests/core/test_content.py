"""What content says where only text fits."""

import pytest

from holdfast.core import content
from holdfast.core.content import Content, TextPart, bytes_part

IMAGE = bytes_part(blob="0" * 64, size=1, media_type="image/png", name="a.png")
UNNAMED = bytes_part(blob="1" * 64, size=1, media_type="audio/mpeg", name=None)


@pytest.mark.parametrize(
    ("given", "outline"),
    [
        ("", ""),
        ("look", "look"),
        ((TextPart("look"), IMAGE), "look\n[a.png]"),
        ((IMAGE, UNNAMED), "[a.png, audio/mpeg]"),
        ((TextPart("one"), TextPart("two")), "one\n\ntwo"),
    ],
)
def test_an_outline_has_the_words_and_the_names_of_what_is_attached(given: Content, outline: str) -> None:
    assert content.outline(given) == outline
