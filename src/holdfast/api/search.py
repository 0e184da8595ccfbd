"""What a search found, as it is shown: an excerpt around the first find, in pieces that are a find or not."""

import re
import unicodedata
from collections.abc import Iterable

import msgspec

from holdfast.api.times import rfc3339
from holdfast.ports.desk import Hit

BEFORE_CHARS, EXCERPT_CHARS = 40, 180


class HitView(msgspec.Struct, kw_only=True):
    """A message, or a title (`message_id` is null). `excerpt`: pairs of a text and whether it is a find."""

    session_id: str
    session_key: str
    title: str | None
    archived: bool
    message_id: str | None
    at: str
    excerpt: list[tuple[str, bool]]


class FoundView(msgspec.Struct, kw_only=True):
    """Those of one session stand together; the session with the newest find is first."""

    hits: list[HitView]


def found(hits: Iterable[Hit], query: str) -> FoundView:
    words = _words(query)
    return FoundView(
        hits=[
            HitView(
                session_id=hit.session.session_id,
                session_key=hit.session.session_key,
                title=hit.session.title,
                archived=hit.session.archived,
                message_id=hit.message_id,
                at=rfc3339(hit.at),
                excerpt=excerpt(hit.text, words),
            )
            for hit in hits
        ]
    )


def _words(query: str) -> list[str]:
    return [_folded(word) for word in re.findall(r"\w+", query)]


def _folded(text: str) -> str:
    """As the index sees it: without case and accents. Keeps the length of every character."""
    return "".join((unicodedata.normalize("NFD", char)[0].lower() or char)[:1] for char in text)


def excerpt(text: str, words: list[str]) -> list[tuple[str, bool]]:
    """Around the first find, on one line. Every word of the query is marked where a word of the text begins with it."""
    line = " ".join(text[:200_000].split())
    folded = _folded(line)
    spans = _spans(folded, words)
    start = max(0, spans[0][0] - BEFORE_CHARS) if spans else 0
    if start:
        start = line.find(" ", start, spans[0][0]) + 1 or start
    end = min(len(line), start + EXCERPT_CHARS)
    pieces: list[tuple[str, bool]] = [("…", False)] if start else []
    at = start
    for first, last in spans:
        if first >= end:
            break
        if first > at:
            pieces.append((line[at:first], False))
        pieces.append((line[first : min(last, end)], True))
        at = min(last, end)
    rest = line[at:end] + ("…" if end < len(line) else "")
    return [*pieces, (rest, False)] if rest else pieces


def _spans(folded: str, words: list[str]) -> list[tuple[int, int]]:
    wanted = "|".join(re.escape(word) for word in sorted(set(words), key=len, reverse=True) if word)
    return [match.span() for match in re.finditer(rf"\b(?:{wanted})\w*", folded)] if wanted else []
