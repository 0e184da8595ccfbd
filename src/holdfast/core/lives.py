"""One life of one process, named by what no clock moves. Process ids are given out again, lives are not."""

from collections.abc import Mapping
from typing import Any

import msgspec


class Life(msgspec.Struct, frozen=True):
    """`started_at`: milliseconds from the boot of the machine to the start of the process, which setting the clock does not change.
    `boot_id` names that boot. Where the system keeps no such count, `started_at` is the time it noted at the start of the process, and
    `boot_id` is empty.
    """

    pid: int
    started_at: int
    boot_id: str

    @property
    def named(self) -> dict[str, Any]:
        """As files and answers name it."""
        return {"pid": self.pid, "process_started_at": self.started_at, "boot_id": self.boot_id}


def life_in(found: Mapping[str, Any]) -> Life | None:
    """The life that a file or an answer names; None where it names none."""
    match found:
        case {"pid": int(pid), "process_started_at": int(started_at), "boot_id": str(boot_id)}:
            return Life(pid, started_at, boot_id)
    return None
