"""Whether the start of a container brings the gateway up: a decision over what the last process left in the home folder."""

from collections.abc import Mapping
from typing import Any

from holdfast.core import lifecycle

WHY_DOWN = {
    "stopped": "it was stopped, and stays down until it is started",
    "startup_failed": "its last start failed, and so would the next one until that is fixed",
}


def held_down(status: Mapping[str, Any] | None, *, restart_noted: bool) -> str | None:
    """Why it stays down; None if it comes up. `status` is status.json, if it can be read.

    Every other state means that it was interrupted: by a kill, by the end of its container, in the middle of a drain. A restart without a
    hand-over ends like a stop and leaves `stopped` too; the restart note tells the two apart.
    """
    if status is None or restart_noted or lifecycle.comes_back(state := str(status.get("gateway_state"))):
        return None
    return WHY_DOWN[state]
