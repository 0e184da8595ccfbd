"""`holdfast pause`: no turn starts for a while; messages are kept."""

import click

from holdfast.cli.options import Seconds, home, home_option, json_option
from holdfast.cli.terminal.layout import moment, short
from holdfast.cli.terminal.output import print_json, say


@click.command("pause")
@home_option
@json_option
@click.option("--for", "for_s", type=Seconds(min=1, max=86400), default=3600.0, show_default=True, metavar="S", help="Seconds.")
@click.option("--holder", default="the command line", show_default=True, help="Who paused it; shown to anyone who asks.")
def command(as_json: bool, for_s: float, holder: str) -> None:
    """Start no turns for a while. Running turns continue; messages are saved and answered after the pause.

    A pause ends by itself, so a forgotten one does no harm. It lasts across restarts. `holdfast unpause` ends it now.
    """
    from datetime import datetime

    from holdfast.cli.access.client import connect

    paused = connect(home()).post("/api/admin/pause", {"holder": holder, "for_s": for_s}).body
    if as_json:
        print_json(paused)
    else:
        until = short(moment(paused["until"]), datetime.now().astimezone())
        say(f"Paused until {until}. `holdfast unpause` ends the pause now.")
