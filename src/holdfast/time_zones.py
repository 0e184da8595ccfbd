"""Time zones by their names, from the system's own database."""

import os
from collections.abc import Mapping
from datetime import UTC, tzinfo
from pathlib import Path

from holdfast.core.errors import BadInput

LOCALTIME = Path("/etc/localtime")
TIMEZONE = Path("/etc/timezone")


def zone(name: str) -> tzinfo:
    """Raises `BadInput`."""
    if name == "UTC":  # Also where there is no database.
        return UTC
    from zoneinfo import ZoneInfo  # A start needs none, and it takes a megabyte.

    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError):
        raise BadInput(f"There is no time zone {name[:60]!r} here. Use a name such as Europe/Berlin, or UTC.") from None


def zone_or_utc(name: str) -> tzinfo:
    """For a name that was known when it was recorded; the database may have lost it since."""
    try:
        return zone(name)
    except BadInput:
        return UTC


def local(environment: Mapping[str, str] = os.environ, *, localtime: Path = LOCALTIME, timezone: Path = TIMEZONE) -> str:
    """The name of this machine's zone; UTC where it cannot be known."""
    for name in (environment.get("TZ", "").removeprefix(":"), _linked(localtime), _written(timezone)):
        if name:
            try:
                zone(name)
            except BadInput:
                continue
            return name
    return "UTC"


def _linked(path: Path) -> str:
    """`/etc/localtime` is usually a link into the database."""
    try:
        return str(path.resolve(strict=True)).partition("zoneinfo/")[2]
    except OSError:
        return ""


def _written(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""
