"""Text as Matrix takes it: plain, and where it has marks also as HTML. Every character of it is escaped, so none can become a tag, and
nobody is mentioned by what it says.
"""

from collections.abc import Sequence
from html import escape
from typing import Any

import msgspec

from holdfast.core import inbound
from holdfast.core.events import Button
from holdfast.core.rich import Mark, Rich, Span

HTML = "org.matrix.custom.html"
# Fields of our own in what we send: the key of a message, and what reactions to it stand for.
KEY, BUTTONS = "dev.holdfast.key", "dev.holdfast.buttons"
_TAGS = {Mark.BOLD: "strong", Mark.ITALIC: "em", Mark.STRIKE: "del", Mark.CODE: "code", Mark.QUOTE: "blockquote"}
_BLOCKS = (Mark.PRE, Mark.QUOTE)
_ADDRESSES = ("http://", "https://", "mailto:", "matrix:")
_SIGNS = {inbound.APPROVE: "👍", inbound.ALWAYS: "♾️", inbound.DENY: "👎"}
_ALSO = {"✅": inbound.APPROVE, "✔": inbound.APPROVE, "∞": inbound.ALWAYS, "❌": inbound.DENY, "🚫": inbound.DENY}
# What makes the same sign look otherwise: variants of it, and tones of skin.
_VARIANTS = {ord(char): None for char in "\ufe0e\ufe0f"} | dict.fromkeys(range(0x1F3FB, 0x1F400))


def content(text: Rich, *, buttons: Sequence[Button] = (), key: str = "") -> dict[str, Any]:
    """What a message says. An empty `m.mentions`: nobody is called by it, whatever names it holds."""
    shown = _with_signs(text, buttons)
    found: dict[str, Any] = {"msgtype": "m.text", "body": shown.text, "m.mentions": {}}
    if shown.spans:
        found |= {"format": HTML, "formatted_body": html(shown)}
    if buttons:
        found[BUTTONS] = [button.data for button in buttons]
    if key:
        found[KEY] = key
    return found


def replacing(target: str, new: dict[str, Any]) -> dict[str, Any]:
    """An edit. Clients that know none show it as a message of its own, which is why it says so."""
    plain = {**new, "body": f"* {new['body']}"}
    if "formatted_body" in new:
        plain["formatted_body"] = f"* {new['formatted_body']}"
    return {**plain, "m.new_content": new, "m.relates_to": {"rel_type": "m.replace", "event_id": target}}


def size(text: Rich) -> int:
    """In bytes, as the larger of its two forms takes them on the wire. An edit carries each form twice."""
    return max(len(msgspec.json.encode(text.text)), len(msgspec.json.encode(html(text)))) - 2


# signs in the place of buttons


def sign(which: str) -> str:
    return _SIGNS.get(which) or f"{int(which) + 1}\ufe0f\u20e3"


def pressed(reaction: str, data: Sequence[str]) -> str | None:
    """Of the buttons below a message, the one that a reaction stands for."""
    plain = reaction.translate(_VARIANTS)
    for each in data:
        found = inbound.button(each)
        if found is not None and (sign(found[1]).translate(_VARIANTS) == plain or _ALSO.get(plain) == found[1]):
            return each
    return None


def _with_signs(text: Rich, buttons: Sequence[Button]) -> Rich:
    signs = [(sign(found[1]), button.label) for button in buttons if (found := inbound.button(button.data)) is not None]
    line = " · ".join(f"{each} {label}" for each, label in signs)
    return Rich(f"{text.text}\n\nReact with {line}", text.spans) if signs else text


# html


class _Page:
    def __init__(self, text: str) -> None:
        self._text, self._at, self._open = text, 0, list[Span]()
        self.out: list[str] = []

    def open(self, span: Span) -> None:
        self.close_until(span.start)
        self._write(span.start, before_block=span.mark in _BLOCKS)
        inside = self._open[-1].end if self._open else len(self._text)
        self._open.append(Span(span.mark, span.start, min(span.end, inside), span.value))
        self.out.append(_opening(span))

    def close_until(self, place: int) -> None:
        while self._open and self._open[-1].end <= place:
            span = self._open[-1]
            self._write(span.end)
            self._open.pop()
            self.out.append(_closing(span))
            if span.mark in _BLOCKS and self._text[self._at : self._at + 1] == "\n":
                self._at += 1  # A block ends its line.

    def end(self) -> str:
        self.close_until(len(self._text))
        self._write(len(self._text))
        return "".join(self.out)

    def _write(self, end: int, *, before_block: bool = False) -> None:
        if end <= self._at:
            return
        words = self._text[self._at : end]
        if before_block and words.endswith("\n"):
            words = words[:-1]
        words = escape(words, quote=False)
        self.out.append(words if any(span.mark is Mark.PRE for span in self._open) else words.replace("\n", "<br>"))
        self._at = end


def html(text: Rich) -> str:
    page = _Page(text.text)
    for span in text.spans:
        if span.mark is not Mark.LINK or span.value.startswith(_ADDRESSES):
            page.open(span)
    return page.end()


def _opening(span: Span) -> str:
    match span.mark:
        case Mark.PRE:
            return f'<pre><code class="language-{escape(span.value)}">' if span.value else "<pre><code>"
        case Mark.LINK:
            return f'<a href="{escape(span.value)}">'
        case mark:
            return f"<{_TAGS[mark]}>"


def _closing(span: Span) -> str:
    match span.mark:
        case Mark.PRE:
            return "</code></pre>"
        case Mark.LINK:
            return "</a>"
        case mark:
            return f"</{_TAGS[mark]}>"
