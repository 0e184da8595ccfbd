"""`holdfast pause`: no turn starts for a while; what is said is kept."""

import click

from holdfast.cli.display import moment, short
from holdfast.cli.options import home, home_option, json_option, print_json


@click.command("pause")
@home_option
@json_option
@click.option("--for", "for_s", type=click.FloatRange(min=1, max=86400), default=3600.0, show_default=True, metavar="S", help="Seconds.")
@click.option("--holder", default="the command line", show_default=True, help="Who holds up the work, for those who wonder.")
def command(as_json: bool, for_s: float, holder: str) -> None:
    """Start no turn for a while. Turns that run go on; messages are kept, and answered after.

    A pause ends by itself, so that one which is forgotten does no harm. It outlives a restart. `holdfast unpause` ends it now.
    """
    from datetime import datetime

    from holdfast.cli.client import connect

    paused = connect(home()).post("/api/admin/pause", {"holder": holder, "for_s": for_s}).body
    if as_json:
        print_json(paused)
    else:
        until = short(moment(paused["until"]), datetime.now().astimezone())
        click.echo(f"Paused until {until}. `holdfast unpause` goes on before that.")
