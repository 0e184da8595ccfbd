"""`holdfast unpause`: the work goes on."""

import click

from holdfast.cli.options import home, home_option, json_option, print_json


@click.command("unpause")
@home_option
@json_option
def command(as_json: bool) -> None:
    """Go on after a pause: what was said meanwhile is answered now."""
    from holdfast.cli.client import connect

    ordered = connect(home()).post("/api/admin/unpause").body
    if as_json:
        print_json(ordered)
    else:
        click.echo("The work goes on." if ordered["gateway_state"] == "running" else f"The gateway is {ordered['gateway_state']}.")
