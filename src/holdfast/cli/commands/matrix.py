"""`holdfast matrix`: an account on Matrix."""

import sys
from pathlib import Path

import click

from holdfast.cli.options import home_option, setup_options


@click.group("matrix")
@home_option
def command() -> None:
    """Connect an account on Matrix."""


@command.command("setup")
@click.option("--homeserver", metavar="URL", help="The address of the homeserver, or what follows the colon in the account's id.")
@click.option("--account", "account_id", metavar="ID", help="The account, for example @holdfast:example.org.")
@click.option("--password-stdin", is_flag=True, help="Read its password from standard input.")
@setup_options(token="an access token")
def setup(
    homeserver: str | None,
    account_id: str | None,
    password_stdin: bool,
    token_file: Path | None,
    token_stdin: bool,
    users: tuple[str, ...],
) -> None:
    """Ask for an account on a homeserver, try it, and write it down.

    At a terminal it asks for what the options do not say, and lets you in: invite the account to a chat, and confirm that it was you. A
    password is used once, to log in; what is written is the access token, to a file of its own that only you can read. The account stays
    the same device when this is run again. Everything else in config.toml stays as it is.
    """
    if password_stdin and (token_file or token_stdin):
        raise click.UsageError("Give the password or an access token, not both.")
    from holdfast.cli import chat_setup, matrix, tokens

    given = matrix.Given(
        homeserver=homeserver,
        user=account_id,
        password=tokens.given(None, stdin=True) if password_stdin else None,
        token=tokens.given(token_file, stdin=token_stdin),
        asks=sys.stdin.isatty(),
    )
    form = chat_setup.Form(
        platform="matrix",
        intro=(),
        questions=(),
        trying="Asking whose token it is ...",
    )
    chat_setup.run(form, dict(matrix.account(given)), users)
