"""One installed systemd service: written, started, checked, removed. Prints nothing; what it finds is returned or raised."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from holdfast import files
from holdfast.api.status import Status
from holdfast.core.errors import HoldfastError, Refused
from holdfast.install.description import Service
from holdfast.install.systemctl import Answer, Systemctl
from holdfast.install.systemd import described_in, unit
from holdfast.install.unit_state import Shown, not_up

# From the moment systemd calls it started until everything fits together.
UP_S = 15.0
# A hand-over: the next process has half a minute to prove itself, and a quarter to take over.
HANDED_OVER_S = 60.0
LOOK_S = 0.05
TAIL = 15


class Gateway(NamedTuple):
    """What is known about the gateway of a home folder: its status file, whether its process is alive, whether it answers over HTTP."""

    status: Status | None
    alive: bool
    answers: bool


class Failed(HoldfastError):
    """`tail`: the last lines of its journal."""

    code = "service_failed"

    def __init__(self, what: str, said: str, tail: list[str], advice: str) -> None:
        journal = "".join(f"\n    {line}" for line in tail)
        told = f"\n  Its journal ends with:{journal}" if tail else "\n  Its journal says nothing, or cannot be read."
        super().__init__(f"{what}: {said}.{told}\n  {advice}")


class Taken(Refused):
    code = "service_taken"

    def __init__(self, name: str, home: str) -> None:
        super().__init__(
            f"The service {name} serves another home folder, {home}. Give this one another name with --name, or remove that one first: "
            f"`holdfast service uninstall --name {name}`."
        )


class ServedByHand(Refused):
    code = "served_by_hand"

    def __init__(self, home: str, pid: int) -> None:
        super().__init__(
            f"A gateway already serves {home} (process {pid}), which this service did not start. "
            "Stop it with `holdfast stop`, then try again."
        )


class NotInstalled(Refused):
    code = "not_installed"

    def __init__(self, path: Path) -> None:
        super().__init__(f"There is no such service: {path} does not exist. `holdfast service install` creates it.")


class Installation:
    def __init__(self, name: str, path: Path, systemctl: Systemctl, gateway: Callable[[Path], Gateway]) -> None:
        self.name, self.path, self.systemctl = name, path, systemctl
        self._gateway = gateway

    @property
    def text(self) -> str | None:
        try:
            return self.path.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return None

    @property
    def described(self) -> Service | None:
        text = self.text
        return described_in(text) if text is not None else None

    def require(self) -> str:
        text = self.text
        if text is None:
            raise NotInstalled(self.path)
        return text

    def shown(self) -> Shown:
        return self.systemctl.show(self.name)

    def gateway(self, home: str) -> Gateway:
        return self._gateway(Path(home))

    def install(self, service: Service) -> Shown:
        """Writes, enables and starts it, and waits until it is up. If it is up already and changes, it is restarted."""
        found = self.described
        if found is not None and found.home != service.home:
            raise Taken(self.name, found.home)
        before = self.shown()
        gateway = self.gateway(service.home)
        if gateway.alive and gateway.status is not None and gateway.status.pid != before.main_pid:
            raise ServedByHand(service.home, gateway.status.pid)
        changed = self._write(unit(service))
        self._must("daemon-reload")
        self._must("enable", f"{self.name}.service")
        return self.start("restart" if before.is_up and changed else "start", service.home, on_failure=self._put_to_rest)

    def start(self, how: str, home: str, on_failure: Callable[[], str] | None = None) -> Shown:
        """Starts it and waits until it is up. `how`: systemctl's name for it. Raises `Failed` with what systemd and the journal say."""
        self.systemctl.run("reset-failed", f"{self.name}.service")
        answer = self.systemctl.run(how, f"{self.name}.service")
        missing = self._wait_until_up(home, UP_S if answer.code == 0 else 0.0)
        if missing is None:
            return self.shown()
        tail = self.systemctl.journal(self.name, TAIL)
        advice = on_failure() if on_failure else f"`holdfast service logs --name {self.name}` shows more."
        raise Failed("The service did not come up", missing, tail, advice)

    def hand_over(self, home: str) -> Shown:
        """Asks for a hand-over and waits until another main process is up. Raises `Failed`; then the old one still serves."""
        before = self.shown()
        self._must("reload", f"{self.name}.service")
        deadline = time.monotonic() + HANDED_OVER_S
        while time.monotonic() < deadline:
            shown = self.shown()
            if not shown.is_up:
                break
            if shown.main_pid != before.main_pid and self._missing(home) is None:
                return shown
            time.sleep(LOOK_S)
        missing = self._missing(home) or f"process {before.main_pid} still serves, and no other took over"
        tail = self.systemctl.journal(self.name, TAIL)
        raise Failed("The restart failed", missing, tail, "`holdfast service restart --full` stops it and starts it again.")

    def stop(self) -> Answer:
        return self.systemctl.run("stop", f"{self.name}.service")

    def uninstall(self) -> None:
        """Stops and removes it. The home folder stays."""
        self.require()
        self._must("stop", f"{self.name}.service")
        self._must("disable", f"{self.name}.service")
        self.path.unlink(missing_ok=True)
        self._must("daemon-reload")
        self.systemctl.run("reset-failed", f"{self.name}.service")

    def _wait_until_up(self, home: str, patience_s: float) -> str | None:
        deadline = time.monotonic() + patience_s
        while True:
            missing = self._missing(home)
            if missing is None or time.monotonic() >= deadline or self.shown().active == "failed":
                return missing
            time.sleep(LOOK_S)

    def _missing(self, home: str) -> str | None:
        gateway = self.gateway(home)
        return not_up(self.shown(), gateway.status, alive=gateway.alive, answers=gateway.answers)

    def _put_to_rest(self) -> str:
        """A service that never came up must not keep trying unseen, nor start with the machine."""
        self.stop()
        self.systemctl.run("disable", f"{self.name}.service")
        return (
            f"It is now stopped and disabled; its unit is still at {self.path}. Fix what the journal reports, and run "
            "`holdfast service install` again; or remove it with `holdfast service uninstall`."
        )

    def _write(self, text: str) -> bool:
        """Replaced as a whole; whether anything changed."""
        if self.text == text:
            return False
        self.path.parent.mkdir(parents=True, exist_ok=True)
        files.replace(self.path, text, mode=0o644)
        return True

    def _must(self, *words: str) -> None:
        answer = self.systemctl.run(*words)
        if answer.code != 0:
            raise Refused(f"systemd refused to {words[0]}{f' {words[1]}' if len(words) > 1 else ''}: {answer.said}.")
