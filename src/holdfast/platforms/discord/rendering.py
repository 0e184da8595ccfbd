"""Text as Discord takes it: its own Markdown. Every character that means something there is escaped where it means itself, so that none can
change what is read.
"""

import re
from collections.abc import Sequence

from holdfast.core.rich import Mark, Rich, Span

# Shown as nothing; keeps apart what would mean something together.
_NOTHING = "\u200b"
_ADDRESS = re.compile(r"https?://[^\s<>]*[^\s<>.,:;\"'\])*_~`|]")
_CHARS = re.compile(r"[\\*_~`|\[\]<]")
_LINE_START = re.compile(r"^( *)(#|-#|>)")
_LANGUAGE = re.compile(r"[A-Za-z0-9_+.#-]{1,30}")
_AROUND = {Mark.BOLD: "**", Mark.STRIKE: "~~", Mark.ITALIC: "_"}


def render(text: Rich) -> str:
    return _Rendering(text).all()


class _Rendering:
    def __init__(self, text: Rich) -> None:
        self._text = text.text
        self._spans = text.spans

    def all(self) -> str:
        return self._within(0, len(self._text), self._spans)

    def _within(self, start: int, end: int, spans: Sequence[Span]) -> str:
        """Spans nest and never cross: each is rendered with those inside it."""
        pieces: list[str] = []
        at, place = start, 0
        while place < len(spans):
            span = spans[place]
            inner = place + 1
            while inner < len(spans) and spans[inner].start < span.end:
                inner += 1
            pieces.append(escaped(self._text[at : span.start], line_start=self._begins_line(at)))
            pieces.append(self._span(span, spans[place + 1 : inner], pieces))
            at, place = span.end, inner
        pieces.append(escaped(self._text[at:end], line_start=self._begins_line(at)))
        return "".join(pieces)

    def _span(self, span: Span, inner: Sequence[Span], before: Sequence[str]) -> str:
        raw = self._text[span.start : span.end]
        match span.mark:
            case Mark.PRE:
                language = span.value if _LANGUAGE.fullmatch(span.value) else ""
                return f"```{language}\n{raw.replace('```', f'`{_NOTHING}`{_NOTHING}`')}\n```"
            case Mark.CODE:
                return _code(raw)
        said = self._within(span.start, span.end, inner)
        match span.mark:
            case Mark.QUOTE:
                return "\n".join(f"> {line}" for line in said.split("\n"))
            case Mark.LINK:
                return _link(said, raw, span.value)
            case Mark.ITALIC if not self._stands_alone(span):
                return said
        if not raw.strip() or raw != raw.strip():
            return said
        around = _AROUND[span.mark]
        apart = _NOTHING if before and before[-1].endswith(around[-1]) and not before[-1].endswith(f"\\{around[-1]}") else ""
        return f"{apart}{around}{said}{around}"

    def _stands_alone(self, span: Span) -> bool:
        """Inside a word Discord takes the marks for a part of it."""
        before, behind = self._text[max(0, span.start - 1) : span.start], self._text[span.end : span.end + 1]
        return not (_is_word(before) or _is_word(behind))

    def _begins_line(self, place: int) -> bool:
        return place == 0 or self._text[place - 1] == "\n"


def escaped(text: str, *, line_start: bool = True) -> str:
    """Plain text. Addresses stay as they are: an escape inside would become a part of them."""
    pieces, at = [], 0
    for found in _ADDRESS.finditer(text):
        pieces.append(_escaped(text[at : found.start()], line_start if at == 0 else False))
        pieces.append(found[0])
        at = found.end()
    pieces.append(_escaped(text[at:], line_start if at == 0 else False))
    return "".join(pieces)


def _escaped(text: str, line_start: bool) -> str:
    lines = _CHARS.sub(r"\\\g<0>", text).split("\n")
    first = 0 if line_start else 1
    return "\n".join(_LINE_START.sub(r"\1\\\2", line) if number >= first else line for number, line in enumerate(lines))


def _code(raw: str) -> str:
    """Inside code nothing is escaped, so ticks need longer ones around them."""
    if not raw.strip():
        return escaped(raw, line_start=False)
    if "`" not in raw:
        return f"`{raw}`"
    if "``" in raw:
        return escaped(raw, line_start=False)
    before, behind = " " if raw.startswith("`") else "", " " if raw.endswith("`") else ""
    return f"``{before}{raw}{behind}``"


def _link(said: str, raw: str, address: str) -> str:
    if not address.startswith(("http://", "https://")):
        return said
    if "://" in raw:  # Discord shows no link whose words look like another address.
        return said if raw == address else f"{said} ({address})"
    return f"[{said}](<{address}>)"


def _is_word(char: str) -> bool:
    return char == "_" or char.isalnum()
