"""Reads the Markdown that models write into plain text and spans. Nothing can fail: a mark that has no partner is a character like any
other.

It knows what models use: headings, emphasis, code, links, quotes, lists, rules and tables. A table becomes a block of code with straight
columns, because most chats have none.
"""

import re
import unicodedata
from collections import Counter

from holdfast.core.rich import Mark, Rich, Span, ordered

_FENCE = re.compile(r"^( {0,3})(`{3,}|~{3,})[ \t]*([^`\n]*)$")
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*$")
_QUOTE = re.compile(r"^ {0,3}>[ \t]?")
_BULLET = re.compile(r"^([ \t]*)[-*+][ \t]+(?=\S)")
_RULE = re.compile(r"^ {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$")
_TABLE_RULE = re.compile(r"^[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
_LINK = re.compile(r"\[([^\[\]\n]+)\]\(<?([^\s()<>]+(?:\([^\s()<>]*\)[^\s()<>]*)*)>?(?:[ \t]+\"[^\"\n]*\")?\)")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_RUN = re.compile(r"\*+|_+|~~")
_TICKS = re.compile(r"`+")
RULE = "———"


class _Writer:
    """What has been read so far."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self.length = 0
        self.spans: list[Span] = []

    def write(self, text: str) -> None:
        self._pieces.append(text)
        self.length += len(text)

    def mark(self, mark: Mark, start: int, value: str = "") -> None:
        if self.length > start:
            self.spans.append(Span(mark, start, self.length, value))

    def rich(self) -> Rich:
        return Rich("".join(self._pieces), ordered(self.spans))


def read(markdown: str) -> Rich:
    """Costs the length of the text."""
    writer, lines = _Writer(), markdown.split("\n")
    at = 0
    while at < len(lines):
        if writer.length:
            writer.write("\n")
        at = _block(writer, lines, at)
    return writer.rich()


def _block(writer: _Writer, lines: list[str], at: int) -> int:
    """Reads the block that begins at a line; gives the line behind it."""
    line = lines[at]
    if fence := _FENCE.match(line):
        return _fenced(writer, lines, at, fence)
    if "|" in line and at + 1 < len(lines) and "|" in lines[at + 1] and _TABLE_RULE.match(lines[at + 1]):
        return _table(writer, lines, at)
    if _QUOTE.match(line):
        return _quote(writer, lines, at)
    if _RULE.match(line):
        writer.write(RULE)
    elif heading := _HEADING.match(line):
        start = writer.length
        _inline(writer, heading[1])
        writer.mark(Mark.BOLD, start)
    else:
        if bullet := _BULLET.match(line):
            writer.write(f"{bullet[1]}• ")
            line = line[bullet.end() :]
        _inline(writer, line)
    return at + 1


def _fenced(writer: _Writer, lines: list[str], at: int, fence: re.Match[str]) -> int:
    """A block that is not closed goes on to the end: it may still be growing."""
    indent, marks, language = len(fence[1]), fence[2], fence[3].strip().split(" ")[0]
    closing = re.compile(rf"^ {{0,3}}{re.escape(marks[0])}{{{len(marks)},}}[ \t]*$")
    end = next((place for place in range(at + 1, len(lines)) if closing.match(lines[place])), len(lines))
    code = [line[min(indent, len(line) - len(line.lstrip(" "))) :] for line in lines[at + 1 : end]]
    start = writer.length
    writer.write("\n".join(code))
    writer.mark(Mark.PRE, start, language)
    return min(end + 1, len(lines))


def _quote(writer: _Writer, lines: list[str], at: int) -> int:
    end = at
    while end < len(lines) and _QUOTE.match(lines[end]):
        end += 1
    start = writer.length
    for place in range(at, end):
        if place > at:
            writer.write("\n")
        _inline(writer, _QUOTE.sub("", lines[place]))
    writer.mark(Mark.QUOTE, start)
    return end


def _table(writer: _Writer, lines: list[str], at: int) -> int:
    end = at + 2
    while end < len(lines) and "|" in lines[end]:
        end += 1
    rows = [[read_plain(cell) for cell in _cells(lines[place])] for place in range(at, end) if place != at + 1]
    columns = max(len(row) for row in rows)
    widths = [max((_width(row[column]) for row in rows if column < len(row)), default=0) for column in range(columns)]
    drawn = [" | ".join(_padded(cell, width) for cell, width in zip(row, widths, strict=False)).rstrip() for row in rows]
    start = writer.length
    writer.write("\n".join([drawn[0], "-+-".join("-" * width for width in widths), *drawn[1:]]))
    writer.mark(Mark.PRE, start)
    return end


def _cells(line: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip().removeprefix("|").removesuffix("|"))]


def _padded(cell: str, width: int) -> str:
    return cell + " " * (width - _width(cell))


def _width(text: str) -> int:
    """In columns of a font whose letters are all equally wide."""
    return sum(0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def read_plain(line: str) -> str:
    """The text of a line without its marks."""
    writer = _Writer()
    _inline(writer, line)
    return writer.rich().text


class _Token:
    """A piece of a line. `run`: marks of emphasis, of which `opens` and `closes` may each take some."""

    __slots__ = ("closes", "link", "marks", "opened", "run", "text")

    def __init__(self, text: str, *, run: bool = False, marks: tuple[Mark, ...] = (), link: str = "") -> None:
        self.text, self.run, self.marks, self.link = text, run, marks, link
        self.opened: list[tuple[Mark, int]] = []  # The marks that begin here, with their partner's place.
        self.closes = 0  # How many of its characters end something.


def _inline(writer: _Writer, line: str) -> None:
    tokens = _tokens(line)
    _match(tokens, line)
    _write(writer, tokens)


def _tokens(line: str) -> list[_Token]:
    tokens: list[_Token] = []
    at = 0
    for place in _places(line):
        if place < at:
            continue
        found, end = _token(line, place)
        if found is not None:
            if place > at:
                tokens.append(_Token(line[at:place]))
            tokens.append(found)
            at = end
    tokens.append(_Token(line[at:]))
    return tokens


_SPECIAL = re.compile(r"[\\`\[*_]|~~")


def _places(line: str) -> list[int]:
    return [found.start() for found in _SPECIAL.finditer(line)]


def _token(line: str, place: int) -> tuple[_Token | None, int]:
    char = line[place]
    if char == "\\":
        escaped = _ESCAPED.match(line, place)
        return (_Token(escaped[1]), escaped.end()) if escaped else (None, place)
    if char == "`":
        return _code(line, place)
    if char == "[":
        link = _LINK.match(line, place)
        return (_Token(read_plain(link[1]), marks=(Mark.LINK,), link=link[2]), link.end()) if link else (None, place)
    run = _RUN.match(line, place)
    return (_Token(run[0], run=True), run.end()) if run else (None, place)


def _code(line: str, place: int) -> tuple[_Token | None, int]:
    ticks = _TICKS.match(line, place)
    if ticks is None:
        return None, place
    size = len(ticks[0])
    for closing in _TICKS.finditer(line, ticks.end()):
        if len(closing[0]) == size:
            code = line[ticks.end() : closing.start()]
            if len(code) > 2 and code[0] == code[-1] == " " and code.strip():
                code = code[1:-1]
            return _Token(code, marks=(Mark.CODE,)), closing.end()
    return _Token(ticks[0]), ticks.end()


def _match(tokens: list[_Token], line: str) -> None:
    """Finds the partner of each mark. One that has none stays a character."""
    open_ones: list[tuple[int, str, int]] = []  # The token, its character, and how many of its marks are left.
    known: Counter[str] = Counter()  # How many of them have this character, so that a mark without a partner costs nothing.
    for place, token in enumerate(tokens):
        if not token.run:
            continue
        before = tokens[place - 1].text[-1:] if place else ""
        behind = tokens[place + 1].text[:1] if place + 1 < len(tokens) else ""
        opens, closes = _flanks(token.text[0], before, behind)
        left = len(token.text)
        while closes and left and known[token.text[0]]:
            partner = next(index for index in range(len(open_ones) - 1, -1, -1) if open_ones[index][1] == token.text[0])
            opener, char, free = open_ones[partner]
            size = 2 if (free >= 2 and left >= 2) or char == "~" else 1
            mark = Mark.STRIKE if char == "~" else Mark.BOLD if size == 2 else Mark.ITALIC
            tokens[opener].opened.append((mark, place))
            token.closes += size
            left -= size
            known.subtract(inner for _, inner, _ in open_ones[partner:])
            del open_ones[partner:]  # What began inside and did not end there never ends.
            if free - size > 0:
                open_ones.append((opener, char, free - size))
                known[char] += 1
        if opens and left:
            open_ones.append((place, token.text[0], left))
            known[token.text[0]] += 1


def _flanks(char: str, before: str, behind: str) -> tuple[bool, bool]:
    """Whether marks between these characters may begin something, and whether they may end something."""
    left = bool(behind) and not behind.isspace()
    right = bool(before) and not before.isspace()
    if char == "_":  # Inside a word it is a part of the word: snake_case.
        return left and not before.isalnum(), right and not behind.isalnum()
    if char == "*" and before.isdigit() and behind.isdigit():  # 2*3*4
        return False, False
    return left, right


def _write(writer: _Writer, tokens: list[_Token]) -> None:
    ending: dict[int, list[tuple[Mark, int]]] = {}
    for place, token in enumerate(tokens):
        for mark, start in reversed(ending.pop(place, [])):
            writer.mark(mark, start)
        used = token.closes + sum(1 if mark is Mark.ITALIC else 2 for mark, _ in token.opened)
        start = writer.length
        writer.write(token.text[used:] if token.run else token.text)
        for mark in token.marks:
            writer.mark(mark, start, token.link)
        for mark, partner in token.opened:
            ending.setdefault(partner, []).append((mark, writer.length))
