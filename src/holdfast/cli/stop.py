"""`holdfast stop`: asks the running gateway to stop and waits until its process is gone."""

import os
import signal
import time
from typing import Any

import click

from holdfast.cli.display import count, took
from holdfast.cli.options import chosen_home, home, home_option
from holdfast.core.errors import Refused

# What a stop needs beside the drain: turns let go, replies are recorded, the store is closed.
CLOSING_S = 30.0
LOOK_S = 0.05


@click.command("stop")
@home_option
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0),
    metavar="S",
    help="How long to wait until it is gone. [default: its drain timeout and 30 s]",
)
def command(timeout_s: float | None) -> int:
    """Stop the running gateway and wait until it is gone.

    A turn that is cut by this is resumed at the next start; messages that wait stay where they are. Exit code 1 when no gateway
    runs, or when it is still there after the timeout.
    """
    from holdfast.cli import running

    status = running.require(home())
    pid, started_at = status["pid"], status["process_started_at"]
    began = time.monotonic()
    _ask_to_stop(status)
    patience_s = _default_timeout_s() if timeout_s is None else timeout_s
    while running.lives(pid, started_at):
        if time.monotonic() - began >= patience_s:
            raise StillThere(pid, patience_s, running.find(home()).status or status)
        time.sleep(LOOK_S)
    click.echo(f"Stopped (process {pid}, {took(time.monotonic() - began)}).")
    return 0


class StillThere(Refused):
    code = "still_there"

    def __init__(self, pid: int, waited_s: float, status: dict[str, Any]) -> None:
        turns = count(status.get("running_turns", 0), "turn")
        super().__init__(
            f"Process {pid} was asked to stop and is still there after {took(waited_s)} ({status['gateway_state']}, {turns} running). "
            f"Wait longer with --timeout, or end it with `kill -9 {pid}`: what was accepted is on disk and goes on at the next start."
        )


def _ask_to_stop(status: dict[str, Any]) -> None:
    """Over HTTP; where that fails, by the signal that means the same."""
    from holdfast.cli import running
    from holdfast.cli.client import connect
    from holdfast.core.errors import HoldfastError

    try:
        connect(home()).post("/api/admin/stop")
        return
    except HoldfastError:
        pid = status["pid"]
    if not running.lives(pid, status["process_started_at"]):
        return  # It went by itself in this moment.
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return
    except PermissionError:
        raise Refused(f"Process {pid} belongs to another user. Run this as that user, or as root.") from None


def _default_timeout_s() -> float:
    from holdfast import config

    try:
        return config.load(os.environ, home=chosen_home()).drain_timeout_s + CLOSING_S
    except config.BadConfig:
        return CLOSING_S  # A wrong setting must not keep anyone from stopping.
