"""Text as Slack takes it: blocks of rich text, whose words are never searched for marks. No character has to be escaped, so none can make
it fail. The words alone go along for notifications, and for those whom no blocks reach.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from holdfast.core.events import Button
from holdfast.core.rich import Mark, Rich, Span
from holdfast.core.splitting import utf16

MOST_BUTTON_DATA, MOST_LABEL = 255, 75
_STYLES = {Mark.BOLD: "bold", Mark.ITALIC: "italic", Mark.STRIKE: "strike", Mark.CODE: "code"}
_ADDRESSES = ("http://", "https://", "mailto:")
_SECTION, _PRE, _QUOTE = "rich_text_section", "rich_text_preformatted", "rich_text_quote"


def words(text: Rich) -> str:
    """Three characters have a meaning even where nothing else has."""
    return text.text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def size(text: Rich) -> int:
    return utf16(words(text))


def blocks(text: Rich, buttons: Sequence[Button] = ()) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    if text:
        made.append({"type": "rich_text", "elements": _elements(text)})
    if buttons and all(len(button.data) <= MOST_BUTTON_DATA for button in buttons):
        made.append({"type": "actions", "elements": [_button(number, button) for number, button in enumerate(buttons)]})
    return made


def _button(number: int, button: Button) -> dict[str, Any]:
    label = {"type": "plain_text", "text": button.label[:MOST_LABEL], "emoji": False}
    return {"type": "button", "action_id": f"holdfast-{number}", "text": label, "value": button.data}


def _elements(text: Rich) -> list[dict[str, Any]]:
    """Code and quotes are blocks of their own. The line break before and after one is the block's, not the text's."""
    made: list[dict[str, Any]] = []
    for kind, start, end in _regions(text):
        if made:
            start += text.text.startswith("\n", start, end)
        if end < len(text.text):
            end -= text.text.endswith("\n", start, end)
        if inside := list(_pieces(text, kind, start, end)):
            made.append({"type": kind, "elements": inside})
    return made or [{"type": _SECTION, "elements": [{"type": "text", "text": text.text}]}]


def _regions(text: Rich) -> Iterator[tuple[str, int, int]]:
    """Where each block begins and ends. Code within a quote is code."""
    own = [span for span in text.spans if span.mark in (Mark.PRE, Mark.QUOTE)]
    borders = sorted({0, len(text.text), *(place for span in own for place in (span.start, span.end))})
    before: tuple[str, Span | None, int] | None = None
    for start, end in pairwise(borders):
        pre = next((span for span in own if span.mark is Mark.PRE and span.start <= start and end <= span.end), None)
        quote = next((span for span in own if span.mark is Mark.QUOTE and span.start <= start and end <= span.end), None)
        now = (_PRE, pre) if pre else (_QUOTE, quote) if quote else (_SECTION, None)
        if before is not None and before[:2] != now:
            yield before[0], before[2], start
            before = None
        before = before or (*now, start)
    if before is not None:
        yield before[0], before[2], len(text.text)


def _pieces(text: Rich, kind: str, start: int, end: int) -> Iterator[dict[str, Any]]:
    if kind == _PRE:
        if start < end:
            yield {"type": "text", "text": text.text[start:end]}
        return
    spans = [span for span in text.spans if span.start < end and span.end > start and span.mark not in (Mark.PRE, Mark.QUOTE)]
    borders = sorted({start, end, *(place for span in spans for place in (span.start, span.end) if start < place < end)})
    for first, last in pairwise(borders):
        over = [span for span in spans if span.start <= first and last <= span.end]
        piece: dict[str, Any] = {"type": "text", "text": text.text[first:last]}
        link = next((span.value for span in over if span.mark is Mark.LINK and span.value.startswith(_ADDRESSES)), None)
        if link is not None:
            piece |= {"type": "link", "url": link}
        if style := {_STYLES[span.mark]: True for span in over if span.mark in _STYLES}:
            piece["style"] = style
        yield piece
