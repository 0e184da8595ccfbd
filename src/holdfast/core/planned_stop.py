"""The planned-stop marker: which life of which process is asked to stop, and for how long the asking counts."""

from typing import Any

import msgspec

NAME = "planned-stop.json"
COUNTS_FOR_MS = 60_000


class Life(msgspec.Struct, frozen=True):
    """One life of one process: a pid counts only with its start time."""

    pid: int
    started_at: int


def marker(life: Life, *, at: int) -> dict[str, Any]:
    return {"pid": life.pid, "process_started_at": life.started_at, "written_at": at}


def names(marker: dict[str, Any] | None, life: Life, *, now: int) -> bool:
    """Whether a marker asks this life to stop, and is young enough to count."""
    if marker is None or (marker.get("pid"), marker.get("process_started_at")) != (life.pid, life.started_at):
        return False
    written = marker.get("written_at")
    return isinstance(written, int) and abs(now - written) <= COUNTS_FOR_MS
