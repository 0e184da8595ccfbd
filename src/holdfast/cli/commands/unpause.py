"""`holdfast unpause`: ends a pause."""

import click

from holdfast.cli.options import home, home_option, json_option
from holdfast.cli.terminal.output import print_json, say


@click.command("unpause")
@home_option
@json_option
def command(as_json: bool) -> None:
    """Resume after a pause: messages that arrived during it are answered now."""
    from holdfast.cli.access.client import connect

    ordered = connect(home()).post("/api/admin/unpause").body
    if as_json:
        print_json(ordered)
    else:
        say("Resumed." if ordered["gateway_state"] == "running" else f"The gateway is {ordered['gateway_state']}.")
