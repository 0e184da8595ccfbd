"""`holdfast token`: the secret that gives access to the page and the HTTP API."""

import click

from holdfast.cli.options import home, home_option, json_option, keep_files_private
from holdfast.cli.terminal.output import note, print_json
from holdfast.core.errors import Refused


class NoToken(Refused):
    code = "no_token"

    def __init__(self, folder: str) -> None:
        super().__init__(
            f"There is no token in {folder} yet. `holdfast serve` makes one at its first start, `holdfast token rotate` makes one now."
        )


@click.group("token", invoke_without_command=True)
@home_option
@json_option
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """Print the token of the page and the HTTP API, or replace it.

    The token signs in any number of browsers until it is replaced; `holdfast open` gives a link that works once. Works with and without a
    running gateway.
    """
    if ctx.invoked_subcommand is not None:
        return
    from holdfast.config import read_token

    token = read_token(home())
    if token is None:
        raise NoToken(str(home()))
    _print(token, as_json)


@command.command("rotate")
@home_option
@json_option
def rotate(as_json: bool) -> None:
    """Replace the token, and print the new one. The old one stops working, and every browser that signed in with it is signed out."""
    from holdfast.cli.access import running
    from holdfast.config import make_token, prepare_home

    keep_files_private()
    prepare_home(home())
    _print(make_token(home()), as_json)
    if running.find(home()).alive:
        note("The running gateway uses it within a second.")


def _print(token: str, as_json: bool) -> None:
    if as_json:
        print_json({"token": token})
    else:
        click.echo(token)
