"""Text as Telegram takes it: plain, with entities over it. No character has to be escaped, so none can make it fail."""

from collections.abc import Callable
from typing import Any

from holdfast.core.rich import Mark, Rich

MOST_ENTITIES = 100
_TYPES = {
    Mark.BOLD: "bold",
    Mark.ITALIC: "italic",
    Mark.STRIKE: "strikethrough",
    Mark.CODE: "code",
    Mark.PRE: "pre",
    Mark.QUOTE: "blockquote",
    Mark.LINK: "text_link",
}
_ADDRESSES = ("http://", "https://", "tg://", "mailto:")


def entities(text: Rich) -> list[dict[str, Any]]:
    """Offsets and lengths count UTF-16 code units."""
    places = _units(text.text)
    found = []
    for span in text.spans:
        if span.mark is Mark.LINK and not span.value.startswith(_ADDRESSES):
            continue
        entity: dict[str, Any] = {
            "type": _TYPES[span.mark],
            "offset": places(span.start),
            "length": places(span.end) - places(span.start),
        }
        if span.mark is Mark.LINK:
            entity["url"] = span.value
        if span.mark is Mark.PRE and span.value:
            entity["language"] = span.value
        found.append(entity)
    return found[:MOST_ENTITIES]


def _units(text: str) -> Callable[[int], int]:
    if text.isascii():
        return lambda place: place
    sums, total = [0], 0
    for char in text:
        total += 2 if char > "\uffff" else 1
        sums.append(total)
    return sums.__getitem__
