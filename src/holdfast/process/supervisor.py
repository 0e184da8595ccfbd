"""What started this process and waits for it: a service manager that wants to be told, a container, or a terminal."""

import os
import socket
from collections.abc import Mapping
from enum import StrEnum

import structlog

log = structlog.get_logger()


class Kind(StrEnum):
    """SYSTEMD: it is told through its socket. CONTAINER: this is process 1, and no other process can take over. OTHER: it knows only the
    process it started, and restarts it after exit code 75. PLAIN: a terminal or a script.
    """

    SYSTEMD = "systemd"
    CONTAINER = "container"
    OTHER = "other"
    PLAIN = "plain"


def kind_of(environment: Mapping[str, str], pid: int) -> Kind:
    if pid == 1:
        return Kind.CONTAINER
    if environment.get("NOTIFY_SOCKET"):
        return Kind.SYSTEMD
    return Kind.OTHER if environment.get("HOLDFAST_SUPERVISOR") else Kind.PLAIN


def at_terminal() -> bool:
    """Whether this process is in the foreground of its terminal: then a SIGINT is a person's Ctrl-C."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


class Supervisor:
    """Tells the service manager what it must know. Without one, nothing is sent."""

    def __init__(self, environment: Mapping[str, str], pid: int) -> None:
        self.kind = kind_of(environment, pid)
        self._address = environment.get("NOTIFY_SOCKET", "")
        micros = environment.get("WATCHDOG_USEC", "")
        for_us = environment.get("WATCHDOG_PID", str(pid)) == str(pid)
        # Half of what it allows, as its manual asks for.
        self.watchdog_s = int(micros) / 2_000_000 if micros.isdigit() and int(micros) and for_us else None

    @property
    def restarts_us(self) -> bool:
        """The supervisor does the restart: this process only exits, with the code that asks for it."""
        return self.kind in (Kind.CONTAINER, Kind.OTHER)

    def ready(self) -> None:
        self._tell(f"READY=1\nMAINPID={os.getpid()}")

    def replaced_by(self, pid: int) -> None:
        """Said by the old process before the new one says that it is ready: systemd believes only the main process."""
        self._tell(f"MAINPID={pid}")

    def stopping(self, within_s: float) -> None:
        self._tell(f"STOPPING=1\nEXTEND_TIMEOUT_USEC={int(within_s * 1_000_000)}")

    def alive(self) -> None:
        self._tell("WATCHDOG=1")

    def _tell(self, text: str) -> None:
        if not self._address:
            return
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as wire:
                wire.sendto(text.encode(), address)
        except OSError as error:
            log.warning("the service manager cannot be told", what=text.partition("\n")[0], error=str(error))
