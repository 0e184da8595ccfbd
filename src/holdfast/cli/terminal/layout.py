"""How things look at a terminal: times, tables, wrapped text. Knows no command. Text from conversations is made harmless first."""

import json
import os
import re
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import click

# A conversation may contain anything. Escape sequences and marks that change the direction of writing must not reach the terminal.
HARMFUL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
EXCERPT_LINES = 12
UNITS = (("year", 31_556_952.0), ("month", 2_629_746.0), ("day", 86400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0))


def width() -> int | None:
    """The width of the terminal; None for a file or a pipe."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit():
        return max(40, shutil.get_terminal_size().columns)
    return None


def clean(text: str) -> str:
    return HARMFUL.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    return clean(" ".join(text.split()))


def given(arguments: dict[str, Any]) -> str:
    """What a tool was called with: its only argument as it is, several as JSON."""
    return str(next(iter(arguments.values()))) if len(arguments) == 1 else json.dumps(arguments, ensure_ascii=False)


def cells(text: str) -> int:
    """The width of a text in columns: some characters take two, some none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) or unicodedata.category(char) == "Cf" else 1 + (unicodedata.east_asian_width(char) in "WF")
        for char in text
    )


def cut(text: str, room: int | None) -> str:
    """One line of at most `room` columns; an ellipsis stands for what was left out."""
    if room is None or cells(text) <= room:
        return text
    kept = text[: max(0, room - 1)]
    while kept and cells(kept) > room - 1:
        kept = kept[:-1]
    return kept.rstrip() + "…"


def wrap(text: str, indent: str = "  ") -> list[str]:
    """Text for reading: indented, with its own line breaks, wrapped at the width of the terminal."""
    columns = width()
    lines: list[str] = []
    for line in clean(text).expandtabs(4).splitlines() or [""]:
        if columns is None or cells(line) + len(indent) <= columns:
            lines.append(indent + line if line else "")
        else:
            room = max(10, (columns - len(indent)) * len(line) // cells(line))
            lines += [
                indent + part for part in textwrap.wrap(line, room, break_on_hyphens=False, drop_whitespace=True, replace_whitespace=False)
            ]
    return lines


def excerpt(text: str, indent: str, *, hint: str = "") -> list[str]:
    """The first lines of a text that may be long, and how many were left out; `hint` says how to see them."""
    lines = clean(text).rstrip().splitlines()
    shown = [part for line in lines[:EXCERPT_LINES] for part in wrap(line, indent)]
    left = len(lines) - EXCERPT_LINES
    return [*shown, f"{indent}... {count(left, 'more line')}{hint}"] if left > 0 else shown


def table(
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    flexible: int,
    optional: Sequence[int] = (),
    styles: dict[str, str] | None = None,
) -> list[str]:
    """Aligned columns, without empty ones. If the terminal is too narrow, the flexible column is shortened, then the optional ones are left
    out in their order. `styles` gives words of the table a colour.
    """
    widths = {
        column: max(cells(row[column]) for row in (headers, *rows)) for column in range(len(headers)) if any(row[column] for row in rows)
    }
    columns = width()
    if columns is not None:
        least = min(widths.get(flexible, 0), 8)
        for column in optional:
            if _others(widths, flexible) + least > columns:
                widths.pop(column, None)
        if flexible in widths:
            widths[flexible] = max(least, min(widths[flexible], columns - _others(widths, flexible)))
    lines = [click.style(_row(headers, widths, {}), dim=True)]
    return lines + [_row(row, widths, styles or {}) for row in rows]


def _others(widths: dict[int, int], flexible: int) -> int:
    """The width of all columns but the flexible one, with the gaps."""
    return sum(widths.values()) - widths.get(flexible, 0) + 2 * (len(widths) - 1)


def _row(row: Sequence[str], widths: dict[int, int], styles: dict[str, str]) -> str:
    line = ""
    for column, room in widths.items():
        text = cut(row[column], room)
        padding = " " * (room - cells(text) + 2)
        line += (click.style(text, fg=styles[text]) if text in styles else text) + padding
    return line.rstrip()


def fields(pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Names and values, one pair to a line."""
    room = max(len(name) for name, _ in pairs) + 2
    columns = width()
    return [f"  {click.style(f'{name:<{room}}', dim=True)}{cut(value, columns - room - 2 if columns else None)}" for name, value in pairs]


# times


def moment(value: str | int) -> datetime:
    """A time of the API (RFC 3339) or of the store (milliseconds) as local time."""
    if isinstance(value, int):
        return datetime.fromtimestamp(value / 1000).astimezone()
    return datetime.fromisoformat(value).astimezone()


def short(at: datetime, now: datetime) -> str:
    """14:02 today, Nov 14 14:02 this year, 2024-11-14 earlier."""
    if at.date() == now.date():
        return f"{at:%H:%M}"
    return f"{at:%b} {at.day} {at:%H:%M}" if at.year == now.year else f"{at:%Y-%m-%d}"


def ago(at: datetime, now: datetime) -> str:
    seconds = (now - at).total_seconds()
    if abs(seconds) < 3:
        return "just now"
    return f"{_rough(seconds)} ago" if seconds > 0 else f"in {_rough(-seconds)}"


def _rough(seconds: float) -> str:
    for unit, size in UNITS:
        if seconds >= size:
            count = int(seconds / size)
            return f"{count} {unit}s" if size >= 86400 and count > 1 else f"{count} {unit}"
    return "0 s"


def took(seconds: float) -> str:
    """A span of time: 0.3 s, 42 s, 2 min 5 s, 3 h 12 min."""
    if seconds < 10:
        return f"{max(0.0, seconds):.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{int(seconds // 60)} min {int(seconds % 60)} s"
    if seconds < 86400:
        return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60)} min"
    days = int(seconds // 86400)
    return f"{days} day{'s' if days > 1 else ''} {int(seconds % 86400 // 3600)} h"


def size(count: int) -> str:
    """Bytes for people."""
    amount = float(count)
    for unit in ("bytes", "KB", "MB", "GB"):
        if amount < 1000 or unit == "GB":
            return f"{amount:.0f} {unit}" if unit == "bytes" or amount >= 100 else f"{amount:.1f} {unit}"
        amount /= 1000
    raise AssertionError


def count(number: int, one: str, many: str | None = None) -> str:
    return f"{number} {one}" if number == 1 else f"{number} {many or one + 's'}"
