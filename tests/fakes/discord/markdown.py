"""What people see of Discord's Markdown: its rules in its order, as its client has them. An oracle for what we render."""

import re
from collections.abc import Callable

_Rule = tuple[re.Pattern[str], Callable[[re.Match[str]], str]]


def seen(text: str) -> str:
    """The text without its marks, with what was escaped."""
    pieces, at = [], 0
    while at < len(text):
        for pattern, show in _RULES:
            if (found := pattern.match(text, at)) is not None and found.end() > at:
                pieces.append(show(found))
                at = found.end()
                break
        else:
            pieces.append(text[at])
            at += 1
    return "".join(pieces)


_EMPHASIS = r"\b_((?:__|\\[\s\S]|[^\\_])+?)_\b|\*(?=\S)((?:\*\*|\s+(?:[^*\s]|\*\*)|[^\s*])+?)\*(?!\*)"
_RULES: tuple[_Rule, ...] = (
    (re.compile(r"```(?:([a-z0-9_+\-.#]+?)\n)?\n*([^\n][\s\S]*?)\n*```", re.IGNORECASE), lambda found: found[2].replace("\u200b", "")),
    (re.compile(r"^> ?([^\n]*\n?)", re.MULTILINE), lambda found: seen(found[1])),
    (re.compile(r"^-?#{1,3} +([^\n]*)", re.MULTILINE), lambda found: seen(found[1])),
    (re.compile(r"\\([^0-9A-Za-z\s])"), lambda found: found[1]),
    (re.compile(r"<@!?\d+>|<@&\d+>|<#\d+>|<a?:\w+:\d+>|<t:\d+>"), lambda found: "(a mention)"),
    (re.compile(r"<(https?://[^>\s]+)>"), lambda found: found[1]),
    (re.compile(r"\[((?:\\.|[^\[\]\\])+)\]\((?:<https?://[^\s>]+>|https?://[^\s<>)]+)\)"), lambda found: seen(found[1])),
    (re.compile(r"https?://[^\s<]+[^<.,:;\"'\])\s]"), lambda found: found[0]),
    (re.compile(r"\*\*((?:\\[\s\S]|[^\\])+?)\*\*(?!\*)"), lambda found: seen(found[1])),
    (re.compile(r"__((?:\\[\s\S]|[^\\])+?)__(?!_)"), lambda found: seen(found[1])),
    (re.compile(_EMPHASIS), lambda found: seen(found[1] or found[2])),
    (re.compile(r"~~(?=\S)([\s\S]*?\S)~~(?!_)"), lambda found: seen(found[1])),
    (re.compile(r"\|\|([\s\S]+?)\|\|"), lambda found: f"(a spoiler: {seen(found[1])})"),
    (re.compile(r"(`+)([\s\S]*?[^`])\1(?!`)"), lambda found: re.sub(r"^ (?= *`)|(` *) $", lambda pad: pad[1] or "", found[2])),
)
