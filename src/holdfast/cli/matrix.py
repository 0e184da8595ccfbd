"""What `holdfast matrix setup` asks for before an account is tried: a homeserver, and a password or an access token. A password is used
once, to get a token, and written nowhere.
"""

import os

import click
import msgspec

from holdfast import config
from holdfast.cli import chats
from holdfast.cli.chat_setup import NotSetUp
from holdfast.cli.chats import NoBot
from holdfast.cli.options import chosen_home
from holdfast.cli.terminal.output import complain, note, say
from holdfast.config.chats.matrix import Matrix

VARIABLES = "HOLDFAST_MATRIX_"


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """What need not be asked for. `asks`: a person is there who can say the rest."""

    homeserver: str | None = None
    user: str | None = None
    password: str | None = None
    token: str | None = None
    asks: bool


def account(given: Given) -> dict[str, str]:
    """What the account is reached with. Raises `NotSetUp`, `BadConfig` or `UsageError`."""
    without = {name: value for name, value in os.environ.items() if not name.startswith(VARIABLES)}
    before = config.load(without, home=chosen_home()).matrix
    if given.asks:
        say("Make an account for it on your homeserver, as you made your own. It reads and writes in rooms without encryption only:"
            " turn encryption off when you start a chat with it.")  # fmt: skip
    while True:
        asked = _asked(given, before)
        note("Asking the homeserver ...")
        try:
            found = chats.log_in_to_matrix(
                asked.homeserver or "",
                user=asked.user or "",
                password=asked.password or "",
                token=asked.token or "",
                device=before.device_id,
            )
        except NoBot as error:
            if not given.asks:
                raise NotSetUp(str(error)) from error
            complain(str(error))
            if not click.confirm("Try again?", default=True):
                note("Nothing was written.")
                raise click.exceptions.Exit(1) from error
            continue
        same = found["homeserver"] == before.homeserver and found["device_id"] == before.device_id
        return found | ({"since": before.since} if same and before.since else {})


def _asked(given: Given, before: Matrix) -> Given:
    if not given.asks and (given.homeserver is None or (given.token is None and (given.user is None or given.password is None))):
        raise click.UsageError(
            "Give --homeserver URL, and either the token with --token-file PATH or --token-stdin, or --account ID and the password with"
            " --password-stdin."
        )
    homeserver, user, password, token = given.homeserver, given.user, given.password, given.token
    if homeserver is None:
        homeserver = click.prompt(
            "Homeserver (its address, or what follows the colon in the account's id)", default=before.homeserver or None
        )
    if token is None and user is None:
        user = click.prompt("Account (for example @holdfast:example.org)")
    if token is None and password is None:
        password = click.prompt("Password (not shown; empty to give an access token)", hide_input=True, default="", show_default=False)
    if token is None and not password:
        token = str(click.prompt("Access token (not shown)", hide_input=True)).strip()
    return Given(homeserver=homeserver, user=user, password=password, token=token, asks=given.asks)
