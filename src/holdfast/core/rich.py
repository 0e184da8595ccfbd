"""Formatted text as plain text and spans over it. A platform renders it in its own way; no character of it can be mistaken for a mark."""

from enum import StrEnum

import msgspec


class Mark(StrEnum):
    """What a span is. PRE is a block of code; its value is the language. The value of a LINK is its address."""

    BOLD = "bold"
    ITALIC = "italic"
    STRIKE = "strike"
    CODE = "code"
    PRE = "pre"
    QUOTE = "quote"
    LINK = "link"


class Span(msgspec.Struct, frozen=True, array_like=True):
    """From `start` up to, but not including, `end`, in characters."""

    mark: Mark
    start: int
    end: int
    value: str = ""


class Rich(msgspec.Struct, frozen=True, array_like=True):
    """Spans are ordered by where they start; of two that start in the same place, the longer one comes first. They nest and never cross."""

    text: str
    spans: tuple[Span, ...] = ()

    def cut(self, start: int, end: int) -> "Rich":
        """The part from `start` to `end`. A span that goes beyond it is continued in the next part."""
        kept = []
        for span in self.spans:
            first, last = max(span.start, start), min(span.end, end)
            if first < last:
                kept.append(Span(span.mark, first - start, last - start, span.value))
        return Rich(self.text[start:end], tuple(kept))

    def after(self, words: str) -> "Rich":
        """The same behind some plain words."""
        by = len(words)
        return Rich(words + self.text, tuple(Span(span.mark, span.start + by, span.end + by, span.value) for span in self.spans))

    def __bool__(self) -> bool:
        return bool(self.text)


def ordered(spans: list[Span]) -> tuple[Span, ...]:
    return tuple(sorted(spans, key=lambda span: (span.start, -span.end, span.mark != Mark.QUOTE)))
