"""`holdfast restart`: a new process takes over from the running one. Returns when the new one serves."""

import time
from typing import Any

import click

from holdfast.cli.options import home, home_option, json_option
from holdfast.cli.terminal.layout import took
from holdfast.cli.terminal.output import print_json
from holdfast.core.errors import Unavailable

# A successor has half a minute to prove itself, and replies that are being sent may take a minute to have their outcome.
PATIENCE_S = 120.0
LOOK_S = 0.1


class NotBack(Unavailable):
    code = "not_back"

    def __init__(self, pid: int) -> None:
        super().__init__(
            f"Process {pid} ended so that its supervisor would start it again, but no new one came up within {took(PATIENCE_S)}. "
            "Look at the supervisor's log, or start it with `holdfast serve`."
        )


@click.command("restart")
@home_option
@json_option
def command(as_json: bool) -> None:
    """Restart the gateway without interrupting a turn.

    A new process starts, checks itself and takes over; running turns finish in the old one. Where that is not possible (in a container,
    under launchd), the gateway ends and its supervisor starts it again; interrupted turns are then resumed. Exit code 1 if the new process
    did not take over: the old one still serves, and the message says why.
    """
    restarted, took_s = restart()
    if as_json:
        print_json(restarted)
    else:
        click.echo(f"Process {restarted['pid']} serves now, Holdfast {restarted['version']} ({took(took_s)}).")


def restart() -> tuple[dict[str, Any], float]:
    """The result, and how long it took."""
    from holdfast.cli.access.client import connect

    began = time.monotonic()
    restarted: dict[str, Any] = connect(home()).post("/api/admin/restart", patience_s=PATIENCE_S).body
    if restarted["mode"] == "exit":
        restarted |= _next_one(restarted["pid"])
    return restarted, time.monotonic() - began


def _next_one(old: int) -> dict[str, Any]:
    from holdfast.cli.access import running

    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        found = running.find(home())
        if found.status and found.alive and found.status.pid != old and found.status.gateway_state == "running":
            return {"pid": found.status.pid, "version": found.status.version}
        time.sleep(LOOK_S)
    raise NotBack(old)
