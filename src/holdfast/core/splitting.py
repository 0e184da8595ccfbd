"""How a long text is sent in several messages: where it breaks, in the unit that the platform counts in."""

import unicodedata
from collections.abc import Callable

from holdfast.core.rich import Mark, Rich, Span

# A break is looked for in the last part of what fits; before that a message would be left half empty.
LEAST_FULL = 0.5
_JOINERS = "\u200d\ufe0e\ufe0f"
_TONES = range(0x1F3FB, 0x1F400)
_FLAGS = range(0x1F1E6, 0x1F200)

Size = Callable[[Rich], int]


def utf16(text: str) -> int:
    """How long a text is in UTF-16 code units."""
    return len(text) + sum(char > "\uffff" for char in text)


def split(text: Rich, limit: int, size: Size) -> list[Rich]:
    """At least one part, and none that is larger than the limit. A block of code that fits into one message is not broken; a larger one
    is a block of its language in each part. No space or line break is left at a break outside of code. Costs the length of the text.
    """
    return list(_Splitting(text, limit, size).parts())


class _Splitting:
    """A text from `start` on. Spans before `_low` are over."""

    def __init__(self, text: Rich, limit: int, size: Size) -> None:
        self._text, self._spans, self._low = text.text, text.spans, 0
        self._limit, self._size = limit, size

    def parts(self) -> list[Rich]:
        parts: list[Rich] = []
        start, end = self._trimmed(0, len(self._text))
        while end - start > self._limit or self._size(self._cut(start, end)) > self._limit:
            at = self._break(start, self._most(start, end))
            first, last = self._trimmed(start, at)
            if first < last:
                parts.append(self._cut(first, last))
            start = self._behind(at, end)
            while self._low < len(self._spans) and self._spans[self._low].end <= start:
                self._low += 1
        if start < end or not parts:
            parts.append(self._cut(start, end))
        return parts

    def _cut(self, start: int, end: int) -> Rich:
        kept = []
        for place in range(self._low, len(self._spans)):
            span = self._spans[place]
            if span.start >= end:
                break
            if span.end > start:
                kept.append(Span(span.mark, max(span.start, start) - start, min(span.end, end) - start, span.value))
        return Rich(self._text[start:end], tuple(kept))

    def _most(self, start: int, end: int) -> int:
        """The last place up to which it fits: at least one character, even if that is too large."""
        low, high = start + 1, min(end, start + self._limit)
        while low < high:
            middle = (low + high + 1) // 2
            if self._size(self._cut(start, middle)) <= self._limit:
                low = middle
            else:
                high = middle - 1
        return low

    def _break(self, start: int, most: int) -> int:
        """The best place to break at or before `most`."""
        block = self._block_at(most)
        if block is not None and block.start > start and self._fits(block):
            return block.start
        least = start + max(1, int((most - start) * LEAST_FULL))
        if block is not None:
            least = max(least, block.start + 1)
        for mark in ("\n",) if block is not None else ("\n\n", "\n", ". ", " "):
            found = self._text.rfind(mark, least, most + (1 if mark == ". " else len(mark)))
            if found > start:
                return found + 1 if mark == ". " else found
        return _between_characters(self._text, start, most)

    def _fits(self, block: Span) -> bool:
        return block.end - block.start <= self._limit and self._size(self._cut(block.start, block.end)) <= self._limit

    def _block_at(self, place: int) -> Span | None:
        for span in self._spans[self._low :]:
            if span.start > place:
                return None
            if span.mark is Mark.PRE and place < span.end:
                return span
        return None

    def _trimmed(self, start: int, end: int) -> tuple[int, int]:
        while start < end and self._text[start] in " \n" and self._block_at(start) is None:
            start += 1
        while start < end and self._text[end - 1] in " \n" and self._block_at(end - 1) is None:
            end -= 1
        return start, end

    def _behind(self, at: int, end: int) -> int:
        """Where the next part begins. In a block of code one line break belongs to the break; spaces there mean something."""
        if self._block_at(at) is not None:
            return at + 1 if self._text[at] == "\n" and at + 1 < end else at
        return self._trimmed(at, end)[0]


def _between_characters(text: str, start: int, at: int) -> int:
    """Not within what people see as one character."""
    place = at
    while place > start + 1 and _joined(text, place):
        place -= 1
    return place if not _joined(text, place) else at


def _joined(text: str, place: int) -> bool:
    if place >= len(text):
        return False
    char, before = text[place], text[place - 1]
    tied = char in _JOINERS or before == "\u200d" or unicodedata.combining(char) > 0 or ord(char) in _TONES
    return tied or (ord(char) in _FLAGS and ord(before) in _FLAGS)
