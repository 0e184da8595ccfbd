"""The planned-stop marker: which process is asked to stop, and for how long the request counts."""

from typing import Any

from holdfast.core.process_id import ProcessId, process_in

NAME = "planned-stop.json"
COUNTS_FOR_MS = 60_000


def marker(process: ProcessId, *, at: int) -> dict[str, Any]:
    return {**process.fields, "written_at": at}


def names(marker: dict[str, Any] | None, process: ProcessId, *, now: int) -> bool:
    """Whether a marker asks this process to stop, and is young enough to count."""
    if marker is None or process_in(marker) != process:
        return False
    return not stale(marker, now=now)


def stale(marker: dict[str, Any] | None, *, now: int) -> bool:
    """Whether a marker has expired. A marker from the future comes from a wrong clock: it must not count later."""
    if marker is None:
        return False
    written = marker.get("written_at")
    return not isinstance(written, int) or abs(now - written) > COUNTS_FOR_MS
