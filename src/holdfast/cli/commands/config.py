"""`holdfast config`: the settings and where each one comes from."""

import os

import click

from holdfast.cli.options import chosen_home, home_option, json_option
from holdfast.cli.terminal.layout import table
from holdfast.cli.terminal.output import print_json

HIDDEN = "(set, not shown)"


@click.command("config")
@home_option
@json_option
def command(as_json: bool) -> None:
    """Show the settings and where each one comes from.

    Command-line options win over HOLDFAST_* variables, those over config.toml in the home folder, and that over the defaults. A running
    gateway may have been started with other settings; changes take effect at its next start.
    """
    from holdfast import config
    from holdfast.config.chats import is_secret

    settings, sources = config.explain(os.environ, home=chosen_home())
    values = {name: HIDDEN if is_secret(name) and config.value(settings, name) else config.value(settings, name) for name in sources}
    if as_json:
        print_json({name: {"value": value, "source": sources[name]} for name, value in values.items()})
        return
    rows = [(name, _shown(value), sources[name]) for name, value in values.items()]
    click.echo("\n".join(table(("SETTING", "VALUE", "FROM"), rows, flexible=1)))


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "(none)"
    if isinstance(value, dict):
        return "; ".join(f"{name}={each}" for name, each in value.items()) or "(none)"
    if value is None or value == "":
        return "(none)"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) and value < 1e6 else str(value)
