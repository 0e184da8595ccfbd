"""Small files of the home folder that one process writes and others read: replaced as a whole, so that nobody sees half of one."""

import json
import os
from pathlib import Path
from typing import Any


def replace(path: Path, content: dict[str, Any]) -> None:
    making = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(making, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            json.dump(content, file, indent=1)
            file.write("\n")
        os.replace(making, path)
    except OSError:
        making.unlink(missing_ok=True)
        raise


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
