"""`holdfast stop`: asks the running gateway to stop and waits until its processes are gone, or stops the turn of one conversation."""

import contextlib
import os
import signal
import time
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.options import Seconds, chosen_home, home, home_option
from holdfast.cli.terminal.layout import count, took
from holdfast.cli.terminal.output import note
from holdfast.core.errors import Refused, Unavailable

if TYPE_CHECKING:
    from holdfast.api.status import Status
    from holdfast.core.process_id import ProcessId

# A gateway ends itself at its deadline; only one that cannot even do that is killed from here.
GRACE_S = 5.0
# A stopped turn ends within five seconds, whatever its tool does.
TURN_S = 10.0
# A gateway that can answer does so at once; one that hangs must be signalled while there is time.
ASK_S = 3.0
# A killed process is gone after a moment, unless its disk hangs.
GONE_S = 5.0
LOOK_S = 0.05


@click.command("stop")
@home_option
@click.argument("key_or_id", required=False)
@click.option(
    "--timeout",
    "timeout_s",
    type=Seconds(min=0),
    metavar="S",
    help="How long to wait before it is killed [default: its own deadline plus 5 s]; for a turn, how long to wait [default: 10 s].",
)
def command(key_or_id: str | None, timeout_s: float | None) -> int:
    """Stop the running gateway and wait until it is gone, or stop the turn of one conversation.

    Without KEY_OR_ID the gateway stops, and its background processes end. Turns that this interrupts continue at the next start; waiting
    messages stay in their queues. Exit code 1 if nothing runs, or if it had to be killed after the timeout.

    With KEY_OR_ID (a session id, its beginning, `last`, or a session key) that conversation's turn is cancelled for good. Messages that
    wait there are answered next. Exit code 1 if nothing runs there.
    """
    if key_or_id is not None:
        _stop_turn(key_or_id, TURN_S if timeout_s is None else timeout_s)
        return 0
    _stop_gateway(timeout_s)
    return 0


def _stop_turn(key_or_id: str, patience_s: float) -> None:
    from holdfast.cli.access import conversations
    from holdfast.cli.access.client import connect

    began = time.monotonic()
    client = connect(home())
    session_id = conversations.session_id(home(), key_or_id)
    stopped = client.order(session_id, "stop", turn_id=_open_turn(client.session(session_id))).body
    while not _is_over(client.session(session_id), stopped["turn_id"]):
        if time.monotonic() - began >= patience_s:
            raise StillRunning(session_id, patience_s)
        time.sleep(LOOK_S)
    queued = stopped["queued"]
    waits = f" {count(queued, 'message')} {'waits and is' if queued == 1 else 'wait and are'} answered next." if queued else ""
    click.echo(f"Stopped the turn of {session_id} ({took(time.monotonic() - began)}).{waits}")


def _open_turn(session: dict[str, Any]) -> str | None:
    return next((turn["id"] for turn in reversed(session["turns"]) if turn["state"] != "ended"), None)


def _is_over(session: dict[str, Any], turn_id: str) -> bool:
    return all(turn["state"] == "ended" for turn in session["turns"] if turn["id"] == turn_id)


def _stop_gateway(timeout_s: float | None) -> None:
    from holdfast import status_file
    from holdfast.cli.access import running

    status = running.find(home()).status
    chain = running.Chain(home(), status)
    if not (left := chain.left()):
        if ended := _end_processes():
            click.echo(f"No gateway was running. Ended {count(ended, 'background process', 'background processes')}.")
            return
        raise running.NotRunning(home(), status)
    began, asked = time.monotonic(), left[0]
    patience_s = _default_timeout_s(status) if timeout_s is None else timeout_s
    _ask_to_stop(asked, chain.at_work, min(ASK_S, patience_s), marked=_mark(asked))
    while left := chain.left():
        if time.monotonic() - began >= patience_s:
            raise Forced(left[0].pid, patience_s, _force(left, status))
        if asked not in left and chain.at_work:  # It is gone; its successor is asked instead.
            asked = chain.at_work[0]
            _ask_to_stop(asked, chain.at_work, min(ASK_S, patience_s), marked=_mark(asked))
        time.sleep(LOOK_S)
    if not running.find(home()).alive:  # A process that died while it stopped could not record that.
        status_file.leave_stopped(home())
    click.echo(f"Stopped (process {asked.pid}, {took(time.monotonic() - began)}).")


def _mark(process: "ProcessId") -> bool:
    """Announces the stop on disk, before anything is done: however the process ends, it is an operator's stop. False where it cannot be
    written; then HTTP or a signal of our own announces it (D9).
    """
    from holdfast import files
    from holdfast.core import planned_stop

    try:
        files.replace_json(home() / planned_stop.NAME, planned_stop.marker(process, at=time.time_ns() // 1_000_000))
    except OSError as error:
        note(f"The stop marker {home() / planned_stop.NAME} cannot be written ({error.strerror}). Stopping without it.")
        return False
    return True


def _force(left: list["ProcessId"], status: "Status | None") -> int | None:
    """Kills the processes and what their tools run; gives how many turns were interrupted by that, None where nobody can know (C29)."""
    from holdfast import processes, status_file, tool_processes

    if status is not None and status.supervisor == "systemd":
        from holdfast.install.systemctl import want_stopped

        want_stopped(status.pid, os.environ)
    for process in left:
        processes.send_signal(process, signal.SIGKILL)
    deadline = time.monotonic() + GONE_S
    while any(processes.is_alive(process) for process in left) and time.monotonic() < deadline:
        time.sleep(LOOK_S)
    owners, turns = _left_by(left) or ([status.owner] if status and status.owner else [], None)
    tool_processes.kill(home(), lambda owner: owner in owners)
    _end_processes()
    status_file.leave_stopped(home())
    return turns


def _end_processes() -> int:
    """Of the background, which outlive a gateway that dies, but not an operator's stop (C15)."""
    from holdfast.keeper.keepers import end_all

    return end_all(home())


def _left_by(gone: list["ProcessId"]) -> tuple[list[str], int] | None:
    """The names of these owners, and how many turns they ran; None if the store cannot be read. Their ends are recorded as the stop that
    the operator wanted, so that no turn counts as interrupted by a crash.
    """
    from holdfast.cli.access import offline
    from holdfast.core.errors import HoldfastError
    from holdfast.core.shutdowns import STOPPED
    from holdfast.ports.owners import Owner
    from holdfast.store import SqliteStore, record_stop

    async def look(store: SqliteStore, _: object) -> tuple[list[Owner], int]:
        owners, running = await store.owners(), await store.running_by_owner()
        dead = [owner for owner in owners if owner.process in gone]
        return dead, sum(running.get(owner.id, 0) for owner in dead)

    try:
        dead, turns = offline.read(home(), look)
    except HoldfastError:
        return None
    with contextlib.suppress(HoldfastError):  # Their turns continue in any case, as after a crash.
        record_stop(home(), [owner.id for owner in dead], reason=STOPPED)
    return [owner.name for owner in dead], turns


class StillRunning(Refused):
    code = "still_running"

    def __init__(self, session_id: str, waited_s: float) -> None:
        super().__init__(
            f"The stop is recorded, but the turn of {session_id} has not ended after {took(waited_s)}. It will end soon: "
            f"`holdfast show {session_id}` shows whether it has."
        )


class Forced(Unavailable):
    code = "forced"

    def __init__(self, pid: int, waited_s: float, turns: int | None) -> None:
        interrupted = {None: "", 0: " No turn was running.", 1: " 1 turn was interrupted and continues at the next start."}.get(
            turns, f" {turns} turns were interrupted and continue at the next start."
        )
        super().__init__(
            f"Process {pid} was asked to stop but was still running after {took(waited_s)}, so it was killed, along with the commands its "
            f"tools were running.{interrupted} Accepted messages are on disk."
        )


def _ask_to_stop(process: "ProcessId", at_work: list["ProcessId"], patience_s: float, *, marked: bool) -> None:
    """Over HTTP; where that fails, by a signal: one that the marker announces, or one that announces itself. Where no signal can be sent,
    the marker alone does it. A process that does not answer may not tell the others either, so they are then signalled from here (C30).
    """
    from holdfast import processes
    from holdfast.cli.access.client import connect
    from holdfast.core.errors import HoldfastError
    from holdfast.core.exits import Signal

    try:
        connect(home()).post("/api/admin/stop", patience_s=max(0.1, patience_s))
        return
    except HoldfastError:
        pass
    try:
        processes.send_signal(process, signal.SIGTERM if marked else signal.Signals[Signal.ANNOUNCED])
    except PermissionError:
        if not marked:
            raise Refused(f"Process {process.pid} belongs to another user. Run this as that user, or as root.") from None
    for other in at_work:
        if other != process:
            with contextlib.suppress(PermissionError):
                processes.send_signal(other, signal.Signals[Signal.ANNOUNCED])


def _default_timeout_s(status: "Status | None") -> float:
    """By the deadline of the process itself; one of version 0.1 does not say it, and is taken to have the settings found here."""
    from holdfast import config

    if status is not None and status.stop_timeout_s:
        return status.stop_timeout_s + GRACE_S
    try:
        return config.stop_deadline_s(config.load(os.environ, home=chosen_home())) + GRACE_S
    except config.BadConfig:
        return config.CLOSING_S + GRACE_S  # A wrong setting must not keep anyone from stopping.
