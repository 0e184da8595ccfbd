"""Secrets that a command is given: from a file, or from standard input. There is no option for the secret itself, because other users of
the machine can read command lines.
"""

import sys
from pathlib import Path

import click

from holdfast.core.errors import Refused

LIMIT = 64 * 1024


class NoToken(Refused):
    code = "no_token"


def given(path: Path | None, *, stdin: bool = False) -> str | None:
    """None if there is neither. Raises `NoToken`, `UsageError`."""
    if path is not None and stdin:
        raise click.UsageError("Give --token-file or --token-stdin, not both.")
    token = _read(path) if path is not None else sys.stdin.read(LIMIT).strip() if stdin else None
    if token == "":
        raise NoToken("There is no token: it is empty.")
    return token


def _read(path: Path) -> str:
    try:
        return path.expanduser().read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise NoToken(f"The token file {path} cannot be read: {getattr(error, 'strerror', None) or error}.") from error
