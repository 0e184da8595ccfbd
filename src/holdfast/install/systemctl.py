"""Talks to systemd through its commands, for one scope: the user's manager or the machine's."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from holdfast.core.errors import Refused
from holdfast.install.description import checked
from holdfast.install.unit_state import Shown

# A start lasts until the service says that it is ready, a stop until it is gone; both have limits of their own in the unit.
PATIENCE_S = 600.0
# A forced stop kills, whether systemd answers or not.
FORCED_S = 5.0
FIELDS = ("ActiveState", "SubState", "Result", "MainPID", "ExecMainStatus", "NRestarts", "UnitFileState", "NeedDaemonReload")


class Scope(StrEnum):
    USER = "user"
    SYSTEM = "system"


class NoSystemd(Refused):
    code = "no_systemd"

    def __init__(self) -> None:
        super().__init__(
            "No systemd runs on this machine (as usual in a container), so no service can be installed. Let whatever starts programs here "
            "run `holdfast serve`, and restart it when it exits with code 75 or is killed; docs/service.md has examples."
        )


class NotReached(Refused):
    code = "systemd_not_reached"

    def __init__(self, scope: Scope, said: str) -> None:
        advice = {
            Scope.USER: "Log in as the user who is to run it, not through sudo or su; or install it for the machine: "
            "`sudo holdfast service install --system`.",
            Scope.SYSTEM: "Run this as root.",
        }
        whose = "Your systemd" if scope is Scope.USER else "The machine's systemd"
        super().__init__(f"{whose} cannot be reached ({said}). {advice[scope]}")


class Answer(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def said(self) -> str:
        """The last thing it said, for a sentence of ours."""
        lines = [line for line in (self.err or self.out).splitlines() if line.strip()]
        return lines[-1].strip().rstrip(".") if lines else f"exit code {self.code}"


def is_there() -> bool:
    """The test that systemd's own programs use."""
    return Path("/run/systemd/system").is_dir() and shutil.which("systemctl") is not None


class Systemctl:
    def __init__(self, scope: Scope, environment: Mapping[str, str]) -> None:
        self.scope = scope
        self._environment = dict(environment)
        runtime = f"/run/user/{os.geteuid()}"
        if scope is Scope.USER and not environment.get("XDG_RUNTIME_DIR") and os.path.isdir(runtime):
            self._environment["XDG_RUNTIME_DIR"] = runtime  # Where a login would have set it: `ssh host command` does not.

    def require(self) -> "Systemctl":
        """Raises `NoSystemd` or `NotReached` where nothing can be asked."""
        if not is_there():
            raise NoSystemd
        answer = self.run("show", "--property=Version")
        if answer.code != 0:
            raise NotReached(self.scope, answer.said)
        return self

    def run(self, *words: str, patience_s: float = PATIENCE_S) -> Answer:
        done = subprocess.run(
            ["systemctl", f"--{self.scope}", "--no-pager", "--no-ask-password", *words],
            env=self._environment,
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=patience_s,
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    def show(self, name: str) -> Shown:
        answer = self.run("show", f"{name}.service", f"--property={','.join(FIELDS)}")
        values = dict(line.partition("=")[::2] for line in answer.out.splitlines())
        number = {key: int(values.get(key) or 0) for key in ("MainPID", "ExecMainStatus", "NRestarts")}
        return Shown(
            active=values.get("ActiveState") or "inactive",
            sub=values.get("SubState") or "dead",
            result=values.get("Result") or "success",
            main_pid=number["MainPID"],
            exit_status=number["ExecMainStatus"],
            restarts=number["NRestarts"],
            enabled=values.get("UnitFileState", ""),
            needs_reload=values.get("NeedDaemonReload") == "yes",
        )

    def journal_command(self, name: str, *words: str) -> list[str]:
        """`--user-unit` finds it even if the user has no journal file."""
        unit = "--user-unit" if self.scope is Scope.USER else "--unit"
        return ["journalctl", "--no-pager", f"{unit}={name}.service", *words]

    def journal(self, name: str, lines: int) -> list[str]:
        """The last lines, oldest first; nothing where they cannot be read."""
        command = self.journal_command(name, f"--lines={lines}", "--quiet", "--output=cat")
        try:
            done = subprocess.run(command, env=self._environment, capture_output=True, text=True, errors="replace", timeout=30)
        except (OSError, subprocess.TimeoutExpired):
            return []
        return [line for line in done.stdout.splitlines() if line.strip()]

    @property
    def environment(self) -> dict[str, str]:
        return self._environment


def unit_path(scope: Scope, name: str, environment: Mapping[str, str]) -> Path:
    file = f"{checked(name)}.service"
    if scope is Scope.SYSTEM:
        return Path("/etc/systemd/system") / file
    settings = environment.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return Path(settings) / "systemd" / "user" / file


def let_linger(environment: Mapping[str, str]) -> bool:
    """Lets this user's services run without a login, from the machine's start on; whether that was granted."""
    if shutil.which("loginctl") is None:
        return False
    done = subprocess.run(
        ["loginctl", "--no-ask-password", "enable-linger"], env=dict(environment), capture_output=True, stdin=subprocess.DEVNULL, timeout=30
    )
    return done.returncode == 0


def want_stopped(pid: int, environment: Mapping[str, str]) -> None:
    """Tells systemd that the service of this process is wanted down, and does not wait: however the process ends then, systemd does not
    start it again. Nothing happens where no service or no systemd is found, or where it does not answer.
    """
    if (found := service_of(pid)) is not None and shutil.which("systemctl") is not None:
        scope, name = found
        with contextlib.suppress(subprocess.TimeoutExpired):
            Systemctl(scope, environment).run("stop", "--no-block", name, patience_s=FORCED_S)


def service_of(pid: int) -> tuple[Scope, str] | None:
    try:
        parts = Path(f"/proc/{pid}/cgroup").read_text().splitlines()[-1].rpartition(":")[2].split("/")
    except (OSError, IndexError):
        return None
    services = [part for part in parts if part.endswith(".service")]
    managers = [part for part in services if part.startswith("user@")]
    own = [part for part in services if part not in managers]
    return (Scope.USER if managers else Scope.SYSTEM, own[-1]) if own else None
