"""Small files that one process writes and others read: replaced as a whole, so that nobody sees half of one, and still there after a power
cut, as is their removal.
"""

import json
import os
from pathlib import Path
from typing import Any


def make_folder(path: Path, *, within: Path) -> None:
    """With the folders between the two that are missing. `within` itself is never made: a home that was moved away must not appear again
    as an empty one. Raises `OSError`.
    """
    place = within
    for name in path.relative_to(within).parts:
        place /= name
        place.mkdir(mode=0o700, exist_ok=True)


def replace(path: Path, text: str, *, mode: int = 0o600, durable: bool = True) -> None:
    """A reader sees the old content or the new one. Durable once it has returned, unless that is not wanted."""
    making = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        descriptor = os.open(making, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, mode)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            os.fchmod(descriptor, mode)
            file.write(text)
        if durable:
            put_in_place(making, path)
        else:
            os.replace(making, path)
    except OSError:
        making.unlink(missing_ok=True)
        raise


def replace_json(path: Path, content: dict[str, Any], *, durable: bool = True) -> None:
    replace(path, json.dumps(content, indent=1) + "\n", durable=durable)


def put_in_place(made: Path, path: Path) -> None:
    """Gives a finished file its name: first its content is on disk, then its name. Durable once it has returned."""
    sync(made)
    os.replace(made, path)
    sync(path.parent)


def read_json(path: Path) -> dict[str, Any] | None:
    """None if there is no such file. Raises `OSError` or `ValueError` if it cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError(f"{path.name} holds no object")
    return found


def remove(path: Path) -> None:
    """Durable once it has returned. Does nothing if there is no such file."""
    try:
        path.unlink()
    except FileNotFoundError:
        return
    sync(path.parent)


def sync(path: Path) -> None:
    """A file's content, or the names in a folder: without the latter a name may be lost, or come back, though the content is on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
