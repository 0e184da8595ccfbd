"""Looking at files: reading one, listing a folder, searching all. None of it changes anything."""

import fnmatch
import os
import stat
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from holdfast.beneath import Beneath
from holdfast.core.errors import BadInput
from holdfast.ports.tools import ToolResult
from holdfast.tools.files.roots import PATH, ROOT, FileTool, Spot, as_text, done, fingerprint

# Of one result.
MOST_LINES, MOST_CHARS, MOST_ENTRIES, MOST_FOUND, LINE_CHARS = 2000, 60_000, 1000, 200, 300
# Of a search.
SEARCHED_BYTES, MOST_FILES, SEARCH_S = 2 * 1024 * 1024, 50_000, 10.0
LEFT_OUT = (".git", "node_modules", ".venv", "__pycache__")


class ReadFile(FileTool):
    name = "read_file"
    description = "Reads a text file. Its first line gives the hash that edit_file and write_file need."
    schema: dict[str, Any] = {  # noqa: RUF012 - nobody changes a schema.
        "type": "object",
        "properties": {
            "path": PATH,
            "root": ROOT,
            "from_line": {"type": "integer", "minimum": 1, "description": "The first line to give; 1 if left out."},
            "lines": {"type": "integer", "minimum": 1, "maximum": MOST_LINES, "description": f"How many; {MOST_LINES} if left out."},
        },
        "required": ["path"],
        "additionalProperties": False,
    }

    def _act(self, spot: Spot, arguments: dict[str, Any]) -> ToolResult:
        content = spot.content()
        lines = spot.text(content).splitlines(keepends=True)
        first, most = int(arguments.get("from_line", 1)), int(arguments.get("lines", MOST_LINES))
        shown = "".join(lines[first - 1 : first - 1 + most])
        if len(shown) > MOST_CHARS:  # Whole lines, so that the next part begins with one.
            shown = shown[: shown.rfind("\n", 0, MOST_CHARS) + 1] or shown[:MOST_CHARS]
        last = first - 1 + len(shown.splitlines())
        part = f"lines {first} to {last} of {len(lines)}" if (first, last) != (1, len(lines)) else f"{len(lines)} lines"
        return done(f"[hash {fingerprint(content)}, {part}]\n{shown}")


class ListFiles(FileTool):
    name = "list_files"
    description = "Lists a folder: folders end with /, files have their size."
    schema: dict[str, Any] = {  # noqa: RUF012 - nobody changes a schema.
        "type": "object",
        "properties": {"path": PATH | {"description": "A folder in the working folder, which itself counts if this is left out."}},
        "additionalProperties": False,
    }

    def _act(self, spot: Spot, arguments: dict[str, Any]) -> ToolResult:
        folder = spot.beneath.open_folder(spot.path)
        try:
            names = sorted(os.listdir(folder))
            lines = [_entry(folder, name) for name in names[:MOST_ENTRIES]]
        finally:
            os.close(folder)
        if len(names) > MOST_ENTRIES:
            lines.append(f"[{len(names) - MOST_ENTRIES:,} more]")
        return done("\n".join(lines) or "[empty]")


def _entry(folder: int, name: str) -> str:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return name
    if stat.S_ISDIR(found.st_mode):
        return f"{name}/"
    if stat.S_ISLNK(found.st_mode):
        return f"{name} -> {os.readlink(name, dir_fd=folder)}"
    return f"{name}  {found.st_size:,} bytes" if stat.S_ISREG(found.st_mode) else f"{name}  (special file)"


class Found(NamedTuple):
    path: str
    line: int
    text: str


class SearchFiles(FileTool):
    name = "search_files"
    description = "Searches text files for some words and gives the lines that have them."
    schema: dict[str, Any] = {  # noqa: RUF012 - nobody changes a schema.
        "type": "object",
        "properties": {
            "text": {"type": "string", "minLength": 1, "description": "What to look for: exactly these characters, in any case."},
            "path": PATH | {"description": "A folder to search, with all in it. If left out: the working folder."},
            "names": {"type": "string", "description": "Only files with such names, for example *.py."},
        },
        "required": ["text"],
        "additionalProperties": False,
    }

    def _act(self, spot: Spot, arguments: dict[str, Any]) -> ToolResult:
        """Plain words and no patterns: a pattern could keep the whole process busy for hours."""
        wanted, names, until = str(arguments["text"]).casefold(), str(arguments.get("names", "*")), time.monotonic() + SEARCH_S
        found: list[Found] = []
        for number, (name, content) in enumerate(_texts(spot.beneath, spot.path, names)):
            lines = enumerate(spot.secrets.text(content).splitlines(), 1)
            found += [Found(name, at, line.strip()) for at, line in lines if wanted in line.casefold()]
            if len(found) > MOST_FOUND or number > MOST_FILES or time.monotonic() > until:
                return done(_shown(found) + "\n[There may be more: search a part of it.]")
        return done(_shown(found) or "[nothing found]")


def _shown(found: list[Found]) -> str:
    return "\n".join(f"{path}:{line}: {text[:LINE_CHARS]}" for path, line, text in found[:MOST_FOUND])


def _texts(beneath: Beneath, path: str, names: str) -> Iterator[tuple[str, str]]:
    """The text files of a folder and all in it, by their paths. Links are not followed."""
    opened = beneath.open_folder(path)
    try:
        for folder, folders, files, at in os.fwalk(".", dir_fd=opened, follow_symlinks=False):
            folders[:] = sorted(name for name in folders if name not in LEFT_OUT)
            for name in sorted(fnmatch.filter(files, names)):
                if (text := _text(name, at)) is not None:
                    yield os.path.normpath(os.path.join(path, folder, name)), text
    finally:
        os.close(opened)


def _text(name: str, folder: int) -> str | None:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    try:
        with open(os.open(name, flags, dir_fd=folder), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_size > SEARCHED_BYTES:
                return None
            return as_text(file.read(SEARCHED_BYTES), name)
    except (OSError, BadInput):
        return None
