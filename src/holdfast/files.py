"""Small files of the home folder that one process writes and others read: replaced as a whole, so that nobody sees half of one, and still
there after a power cut, as is their removal.
"""

import json
import os
from pathlib import Path
from typing import Any

STATUS = "status.json"


def replace(path: Path, content: dict[str, Any]) -> None:
    """Durable once it has returned."""
    making = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(making, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            json.dump(content, file, indent=1)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(making, path)
    except OSError:
        making.unlink(missing_ok=True)
        raise
    sync(path.parent)


def remove(path: Path) -> None:
    """Durable once it has returned; nothing happens where there is no such file."""
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


def leave_stopped(home: Path) -> None:
    """What a process that was killed could not say itself: an operator stopped it, and no start-up script is to bring it back (C18)."""
    place = home / STATUS
    if status := read(place):
        replace(place, status | {"gateway_state": "stopped", "running_turns": 0})


def read(path: Path) -> dict[str, Any] | None:
    """What it says; None where there is none. Raises `OSError` or `ValueError` for one that cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError(f"{path.name} holds no object")
    return found
