"""How a keeper is started: as a child that leaves at once, or, under a user's own systemd, in a scope of its own, where the end of our
service does not reach it.
"""

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

import structlog

from holdfast.core.errors import HoldfastError
from holdfast.keeper.keep import NOT_ANOTHER_ONE

KEEP = Path(__file__).with_name("keep.py")
STARTS_S = 30.0
TRIES_S = 10.0
# What systemd-run needs to find its manager.
MANAGER = ("XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "PATH", "HOME")

log = structlog.get_logger()


class CannotStart(HoldfastError):
    code = "cannot_start"


class StartedBefore(CannotStart):
    """It has a keeper already, or had one."""


class Launcher:
    """`environment`: of this process. A scope is tried once, when it is first needed: only where systemd runs us as a user's service."""

    def __init__(self, environment: Mapping[str, str], *, cgroup: Path = Path("/proc/self/cgroup")) -> None:
        self._environment, self._cgroup = environment, cgroup
        self._scope: tuple[str, ...] | None = None
        self._trying = threading.Lock()

    def launch(self, folder: Path, spec: bytes) -> None:
        """Returns when the command runs. `spec`: as `files.spec` makes it. Raises `CannotStart`, `StartedBefore`, and `OSError`."""
        scope = self.scope
        environment = self._manager if scope else {}
        words = [*scope, sys.executable, "-ISE", "-X", "utf8", str(KEEP), str(folder)]
        try:
            done = subprocess.run(words, env=environment, input=spec, capture_output=True, timeout=STARTS_S, start_new_session=True)
        except subprocess.TimeoutExpired:
            raise CannotStart(f"its keeper did not answer within {STARTS_S:.0f} s") from None
        if done.returncode == NOT_ANOTHER_ONE:
            raise StartedBefore("it was started before")
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip()
            raise CannotStart(said.splitlines()[-1] if said else f"its keeper ended with exit code {done.returncode}")

    @property
    def scope(self) -> tuple[str, ...]:
        """The words before a keeper's that give it a scope of its own; none where it needs none, or there can be none."""
        with self._trying:
            if self._scope is None:
                self._scope = self._try_scope() if self._is_users_service() else ()
            return self._scope

    @property
    def _manager(self) -> dict[str, str]:
        return {name: self._environment[name] for name in MANAGER if name in self._environment}

    def _is_users_service(self) -> bool:
        """By the place of this process in the tree of control groups: below `user@UID.service` lie the services of a user's own systemd."""
        try:
            places = self._cgroup.read_text().split()
        except OSError:
            return False
        return any("/user@" in place and ".service/" in place and place.endswith(".service") for place in places)

    def _try_scope(self) -> tuple[str, ...]:
        program = shutil.which("systemd-run", path=self._environment.get("PATH", os.defpath))
        if program is None:
            log.warning("background processes end with a restart of the service: systemd-run is not installed")
            return ()
        words = (program, "--user", "--scope", "--collect", "--quiet", "--")
        try:
            tried = subprocess.run(
                [*words, "/bin/true"], env=self._manager, stdin=subprocess.DEVNULL, capture_output=True, timeout=TRIES_S, text=True
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            why = str(error)
        else:
            if not tried.returncode:
                return words
            why = tried.stderr.strip()
        log.warning("background processes end with a restart of the service: systemd gives them no scope", why=why)
        return ()
