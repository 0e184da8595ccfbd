"""Decides whether the unit of an installed service is still right, and whether the service is up. Reads nothing itself."""

import msgspec

from holdfast.api.status import Status
from holdfast.core import exits
from holdfast.install.description import Service
from holdfast.install.systemd import unit

INSTALL_AGAIN = "`holdfast service install` writes it again."
WORDS = {
    "command": "the command",
    "folder": "the folder its tools work in",
    "stop_timeout_s": "how long a stop may take",
    "watchdog_s": "the watchdog",
    "environment": "its variables",
    "user": "its user",
}


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """What the supervisor says of a unit."""

    active: str = "inactive"
    sub: str = "dead"
    result: str = "success"
    main_pid: int = 0
    exit_status: int = 0
    restarts: int = 0
    enabled: str = ""
    needs_reload: bool = False

    @property
    def is_up(self) -> bool:
        return self.active in ("active", "reloading")


def stale(text: str, described: Service | None, wanted: Service | None, *, python_exists: bool, home_exists: bool) -> list[str]:
    """What is wrong with an installed unit, each with what to do; empty if it is what this version would write. `wanted` is None if that is
    not known, because the settings cannot be read.
    """
    if described is None:
        return [f"It was not written by this version of Holdfast, so it cannot be checked. {INSTALL_AGAIN}"]
    found = []
    if not python_exists:
        found.append(f"Its interpreter {described.command[0]} no longer exists, so the next start fails. {INSTALL_AGAIN}")
    if not home_exists:
        found.append(
            f"Its home folder {described.home} no longer exists: its conversations are not there. Put the folder back, or remove the "
            "service with `holdfast service uninstall`."
        )
    if text != unit(described):
        found.append(f"It was changed by hand, or written by another version. {INSTALL_AGAIN}")
    differing = [word for field, word in WORDS.items() if wanted is not None and getattr(described, field) != getattr(wanted, field)]
    if differing and python_exists:
        found.append(f"It no longer fits this installation or its settings: {', '.join(differing)}. {INSTALL_AGAIN}")
    return found


def not_up(shown: Shown, status: Status | None, *, alive: bool, answers: bool) -> str | None:
    """What is missing until the service is up; None if it is."""
    if not shown.is_up:
        return f"the service is {shown.active} ({explained(shown)})"
    if not shown.main_pid:
        return "it has no main process"
    if status is None:
        return f"its process {shown.main_pid} has written no status.json"
    if status.pid != shown.main_pid or not alive:
        return f"status.json names process {status.pid}, but the main process is {shown.main_pid}"
    if not answers:
        return f"its process {shown.main_pid} does not answer at {status.url}"
    return None


ENDS = {
    exits.HELD: "another process has its home folder, port or address for now, exit code 69",
    exits.AGAIN: "it was stopped by a signal and comes back with the service, exit code 75",
    exits.CONFIG: "it refused to start with this configuration, exit code 78",
    # Of the supervisor itself, from before our program runs.
    200: "its folder cannot be entered",
    203: "its interpreter cannot be run",
    216: "its group is not known",
    217: "its user is not known",
}
RESULTS = {
    "start-limit-hit": "it failed more often than your own limit allows, and is not restarted automatically",
    "timeout": "it was not ready in time, or did not stop in time",
    "watchdog": "it hung, and was killed by the watchdog",
    "oom-kill": "the system ran out of memory",
    "signal": "it was killed",
    "core-dump": "it crashed",
}


def explained(shown: Shown) -> str:
    """Why a service is not up, in words."""
    if shown.result == "exit-code" or (shown.result == "success" and shown.exit_status):
        return ENDS.get(shown.exit_status, f"it ended with exit code {shown.exit_status}")
    if shown.result == "success":
        return "it is starting" if shown.active == "activating" else "it was not started, or was stopped"
    return RESULTS.get(shown.result, shown.result)
