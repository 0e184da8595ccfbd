"""`holdfast stop`: asks the running gateway to stop and waits until its process is gone; or stops the turn of one conversation."""

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
# A stopped turn ends within five seconds, whatever its tool does.
TURN_S = 10.0
LOOK_S = 0.05


@click.command("stop")
@home_option
@click.argument("key_or_id", required=False)
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0),
    metavar="S",
    help="How long to wait until it is gone. [default: its drain timeout and 30 s; for a turn, 10 s]",
)
def command(key_or_id: str | None, timeout_s: float | None) -> int:
    """Stop the running gateway and wait until it is gone, or stop the turn of one conversation.

    Without KEY_OR_ID the gateway stops. A turn that is cut by this is resumed at the next start; messages that wait stay where they are.
    Exit code 1 when no gateway runs, or when it is still there after the timeout.

    With KEY_OR_ID, a session id or a session key, that conversation's turn ends as cancelled, for good. Messages that wait in it stay and
    are answered next. Exit code 1 when nothing runs there.
    """
    if key_or_id is not None:
        _stop_turn(key_or_id, TURN_S if timeout_s is None else timeout_s)
        return 0
    _stop_gateway(timeout_s)
    return 0


def _stop_turn(key_or_id: str, patience_s: float) -> None:
    from holdfast.cli import conversations
    from holdfast.cli.client import connect

    began = time.monotonic()
    client = connect(home())
    session_id = conversations.session_id(home(), key_or_id)
    stopped = client.order(session_id, "stop").body
    while not _is_over(client.session(session_id), stopped["turn_id"]):
        if time.monotonic() - began >= patience_s:
            raise StillRunning(session_id, patience_s)
        time.sleep(LOOK_S)
    queued = stopped["queued"]
    waits = f" {count(queued, 'message')} {'waits and is' if queued == 1 else 'wait and are'} answered next." if queued else ""
    click.echo(f"Stopped the turn of {session_id} ({took(time.monotonic() - began)}).{waits}")


def _is_over(session: dict[str, Any], turn_id: str) -> bool:
    return all(turn["state"] == "ended" for turn in session["turns"] if turn["id"] == turn_id)


def _stop_gateway(timeout_s: float | None) -> None:
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


class StillRunning(Refused):
    code = "still_running"

    def __init__(self, session_id: str, waited_s: float) -> None:
        super().__init__(
            f"The stop is on disk, but the turn of {session_id} has not ended after {took(waited_s)}. It will: "
            f"`holdfast show {session_id}` says when it has."
        )


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
