"""`holdfast telegram`: a bot on Telegram."""

import sys
from pathlib import Path

import click

from holdfast.cli.options import home_option
from holdfast.core.errors import Refused

LIMIT = 64 * 1024


class NoToken(Refused):
    code = "no_token"


@click.group("telegram")
@home_option
def command() -> None:
    """Connect a Telegram bot."""


@command.command("setup")
@home_option
@click.option("--token-file", type=click.Path(path_type=Path), metavar="PATH", help="Copy the token from this file.")
@click.option("--token-stdin", is_flag=True, help="Read the token from standard input.")
@click.option("--base-url", metavar="URL", help="The address of a Bot API server of your own.")
@click.option("--user", "users", multiple=True, metavar="ID", help="Let this person talk to the bot. May be given several times.")
def setup(token_file: Path | None, token_stdin: bool, base_url: str | None, users: tuple[str, ...]) -> None:
    """Ask for the token of a bot, try it, and write it down.

    At a terminal it asks for what the options do not say, and lets you in: write to the bot, and confirm that it was you. The token is
    written to a file of its own that only you can read, and its name to config.toml, both in the home folder. Everything else in
    config.toml stays as it is. There is no option for the token itself, because other users of the machine can read command lines.
    """
    if token_file and token_stdin:
        raise click.UsageError("Give --token-file or --token-stdin, not both.")
    from holdfast.cli import telegram

    token = _read(token_file) if token_file else sys.stdin.read(LIMIT).strip() if token_stdin else None
    if token == "":
        raise NoToken("There is no token: it is empty.")
    telegram.run(telegram.Wanted(token=token, base_url=base_url, users=users, asks=sys.stdin.isatty()))


def _read(path: Path) -> str:
    try:
        return path.expanduser().read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise NoToken(f"The token file {path} cannot be read: {getattr(error, 'strerror', None) or error}.") from error
