"""`status.json` in the home folder: what the serving process says about itself, for commands and start-up scripts that cannot ask it.

The process writes it (`process/status.py`); a command that killed the process corrects it.
"""

import contextlib
import errno
import json
import os
from pathlib import Path
from typing import Any

from holdfast import files
from holdfast.core.lifecycle import GatewayState
from holdfast.core.process_id import ProcessId, process_in

NAME = "status.json"
FULL = (errno.ENOSPC, errno.EDQUOT)


def read(home: Path) -> dict[str, Any] | None:
    """None if there is none, or one that nobody can have meant. Raises `OSError` if it cannot be read now."""
    try:
        return files.read_json(home / NAME)
    except ValueError:
        return None


def process(home: Path) -> ProcessId | None:
    """The process that wrote it; None if it names none, or cannot be read."""
    try:
        return process_in(read(home) or {})
    except OSError:
        return None


def write(home: Path, status: dict[str, Any], *, durable: bool) -> None:
    """`durable`: it must be there after a power cut, too. A full disk has no room for a second file: then it is written over, in one piece
    and in the block that it has.
    """
    try:
        files.replace_json(home / NAME, status, durable=durable)
    except OSError as error:
        if error.errno not in FULL:
            raise
        _write_over(home / NAME, status)


def leave_stopped(home: Path) -> None:
    """Says for a process that was killed that an operator stopped it, so that no start-up script brings it back (C18)."""
    with contextlib.suppress(OSError):
        if status := read(home):
            files.replace_json(home / NAME, status | {"gateway_state": GatewayState.STOPPED, "running_turns": 0})


def forget(home: Path) -> None:
    """What is not on record does not hold a start back."""
    files.remove(home / NAME)


def _write_over(path: Path, status: dict[str, Any]) -> None:
    content = json.dumps(status, indent=1).encode() + b"\n"
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.pwrite(descriptor, content.ljust(os.fstat(descriptor).st_size), 0)
        os.ftruncate(descriptor, len(content))
    finally:
        os.close(descriptor)
