"""Which process: a pid alone does not say, because the system uses pids again."""

from collections.abc import Mapping
from typing import Any

import msgspec


class ProcessId(msgspec.Struct, frozen=True):
    """One process of one boot, named by values that setting the clock does not change.

    `started_at`: milliseconds from the boot of the machine to the start of the process; `boot_id` names that boot. Where the system keeps
    no such count, `started_at` is the time of day it noted when the process started, and `boot_id` is empty.
    """

    pid: int
    started_at: int
    boot_id: str

    @property
    def fields(self) -> dict[str, Any]:
        """As files and API replies name it."""
        return {"pid": self.pid, "process_started_at": self.started_at, "boot_id": self.boot_id}


def process_in(found: Mapping[str, Any]) -> ProcessId | None:
    """The process that a file or an API reply names; None if it names none."""
    match found:
        case {"pid": int(pid), "process_started_at": int(started_at), "boot_id": str(boot_id)}:
            return ProcessId(pid, started_at, boot_id)
    return None
