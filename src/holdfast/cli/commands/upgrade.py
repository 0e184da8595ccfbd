"""`holdfast upgrade`: a hand-over to the version that is installed now."""

import click

from holdfast import __version__
from holdfast.cli.options import home, home_option, json_option
from holdfast.cli.terminal.layout import took
from holdfast.cli.terminal.output import print_json


@click.command("upgrade")
@home_option
@json_option
def command(as_json: bool) -> None:
    """Restart with the version that is installed now.

    Install the new version first, in the same place. No turn is interrupted. If the new version changes the database in a way that the
    running one cannot read, the upgrade is refused and the message says so: stop the gateway, then start it again.
    """
    from holdfast.cli.access import running
    from holdfast.cli.commands.restart import restart

    before = running.require(home()).version
    restarted, took_s = restart()
    if as_json:
        print_json(restarted | {"version_before": before, "version_installed": __version__})
        return
    same = before == restarted["version"]
    step = f"still Holdfast {before}: no other version is installed here" if same else f"Holdfast {before} -> {restarted['version']}"
    click.echo(f"Process {restarted['pid']} serves now, {step} ({took(took_s)}).")
