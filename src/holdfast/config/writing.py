"""Changes settings in `config.toml` and leaves everything else in it as its author wrote it: order, comments, blank lines."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

from holdfast import files
from holdfast.config.errors import BadConfig

# A text, a list of texts, or nothing: then the setting is removed.
Value = str | tuple[str, ...] | None


class Edit:
    """A change that is worked out and not made yet: these settings of a table are set, or removed where they are None. `changes`: false if
    all is so already. Raises `BadConfig` for a file that cannot be edited, with what to write into it.
    """

    def __init__(self, path: Path, table: str, values: Mapping[str, Value]) -> None:
        self._path = path.resolve()  # What a link leads to is replaced, not the link.
        try:
            with self._path.open(encoding="utf-8", newline="") as file:
                text, self._mode = file.read(), os.fstat(file.fileno()).st_mode & 0o777
        except FileNotFoundError:
            text, self._mode = "", 0o600
        new = edited(text, table, values)
        if new is None:
            lines = "; ".join(f"{name} = {_quoted(value)}" if value is not None else f"no {name}" for name, value in values.items())
            raise BadConfig(f"{path} is written in a way that Holdfast does not edit. Write this below [{table}] yourself: {lines}.")
        self._new, self.changes = new, new != text

    def make(self) -> None:
        """The file is replaced as a whole, and keeps its mode."""
        if self.changes:
            files.replace(self._path, self._new, mode=self._mode)


def edited(text: str, table: str, values: Mapping[str, Value]) -> str | None:
    """The text with these settings. None if it cannot be changed line by line: the result is read again and must mean what it should."""
    import tomllib

    try:
        meant = tomllib.loads(text)
        now = meant.setdefault(table, {})
        for name, value in values.items():
            now.pop(name, None)
            if value is not None:
                now[name] = value if isinstance(value, str) else list(value)
        new = _edited(text, table, values)
        return new if tomllib.loads(new) == meant else None
    except (tomllib.TOMLDecodeError, AttributeError, TypeError):
        return None


def _edited(text: str, table: str, values: Mapping[str, Value]) -> str:
    lines = text.splitlines(keepends=True)
    end = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += end
    header = re.compile(rf"\s*\[\s*{re.escape(table)}\s*\]\s*(#.*)?$")
    start = next((place for place, line in enumerate(lines) if header.match(line)), None)
    if start is None:
        start = len(lines) + bool(lines)
        lines += ([end] if lines else []) + [f"[{table}]{end}"]
    after = start + 1
    for name, value in values.items():
        place = _place(lines, start, name)
        if place is None:
            if value is not None:
                lines.insert(after, f"{name} = {_quoted(value)}{end}")
                after += 1
        elif value is None:
            del lines[place]
            after -= place < after
        else:
            if found := _VALUE.match(lines[place]):
                lines[place] = found[1] + _quoted(value) + lines[place][found.end() :]
            after = max(after, place + 1)
    return "".join(lines)


# A setting and its value on one line; what comes after it stays.
_VALUE = re.compile(r"""^(\s*[\w-]+\s*=\s*)("(?:[^"\\]|\\.)*"|'[^']*'|\[[^\]\n]*\])""")


def _place(lines: list[str], start: int, name: str) -> int | None:
    """Where the table that starts there has this setting."""
    for place in range(start + 1, len(lines)):
        if re.match(r"\s*\[", lines[place]):
            return None
        if re.match(rf"\s*{re.escape(name)}\s*=", lines[place]):
            return place
    return None


def _quoted(value: str | tuple[str, ...]) -> str:
    return json.dumps(value, ensure_ascii=False)
