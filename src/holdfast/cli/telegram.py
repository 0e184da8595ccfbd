"""What `holdfast telegram setup` does: asks for the bot's token, tries it, lets the first person in, and writes it down. Before the bot has
answered, nothing is written.
"""

import os
from pathlib import Path

import click
import msgspec

from holdfast import config, files
from holdfast.cli.access import running
from holdfast.cli.chats import NoBot, TelegramBot
from holdfast.cli.options import chosen_home, keep_files_private
from holdfast.cli.terminal.output import complain, note, say
from holdfast.config import writing
from holdfast.core.errors import Refused

TOKEN_FILE = "telegram.token"
VARIABLES = "HOLDFAST_TELEGRAM_"
WAIT_S = 180.0


class NotSetUp(Refused):
    code = "not_set_up"

    def __init__(self, why: str) -> None:
        super().__init__(f"{why} Nothing was written.")


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """`users`: who may talk to it, without being asked for. `asks`: a person is there who can say the rest."""

    token: str | None = None
    base_url: str | None = None
    users: tuple[str, ...] = ()
    asks: bool


def run(wanted: Wanted) -> None:
    """Raises `NotSetUp`, `BadConfig` or `UsageError`."""
    without = {name: value for name, value in os.environ.items() if not name.startswith(VARIABLES)}
    settings = config.load(without, home=chosen_home())
    home, before = settings.home, settings.telegram
    base_url = wanted.base_url if wanted.base_url is not None else before.base_url
    if wanted.asks:
        say("A bot is made by @BotFather, in Telegram itself: send it /newbot, choose a name, and copy the token that it gives.")
    token, bot = _bot(wanted, base_url)
    say(f"It is @{bot.found.username} ({bot.found.name}).")
    users = tuple(dict.fromkeys((*before.allowed_users, *wanted.users, *_first_person(wanted, bot, before.allowed_users, home))))
    _write(home, token, base_url, users, bot)


def _bot(wanted: Wanted, base_url: str) -> tuple[str, TelegramBot]:
    token = wanted.token
    while True:
        if token is None:
            if not wanted.asks:
                raise click.UsageError("Give the token with --token-file PATH or --token-stdin.")
            token = str(click.prompt("Token (not shown)", hide_input=True)).strip()
        note("Asking Telegram whose token it is ...")
        try:
            return token, TelegramBot(token, base_url)
        except NoBot as error:
            if not wanted.asks:
                raise NotSetUp(str(error)) from error
            complain(str(error))
            if not click.confirm("Try again?", default=True):
                note("Nothing was written.")
                raise click.exceptions.Exit(1) from error
            token = None if error.wrong_token else token


def _first_person(wanted: Wanted, bot: TelegramBot, there: tuple[str, ...], home: Path) -> tuple[str, ...]:
    """Asks whoever sets it up to write to the bot, which says their id. Nobody is let in unseen."""
    if wanted.users or there or not wanted.asks:
        return ()
    if running.find(home).alive:
        say("A gateway runs here: write to the bot after the restart, and let yourself in with the code that it gives you.")
        return ()
    say(f"Now write anything to @{bot.found.username} in Telegram, so that it knows you. Waiting for three minutes; Ctrl-C skips this.")
    try:
        found = bot.first_person(within_s=WAIT_S)
    except KeyboardInterrupt:
        found = None
    except NoBot as error:
        complain(str(error))
        found = None
    if found is None:
        note("Nobody wrote. Once it runs, the bot gives a pairing code to whoever writes; `holdfast pair approve CODE` lets them in.")
        return ()
    user, name, text = found
    click.echo(f"  {name} (id {user}) wrote: {' '.join(text.split())[:60]}")
    return (user,) if click.confirm("Is that you? This person may then talk to the agent", default=True) else ()


def _write(home: Path, token: str, base_url: str, users: tuple[str, ...], bot: TelegramBot) -> None:
    """First the token, then the settings that name its file: a kill in between leaves a file that nothing names."""
    keep_files_private()
    config.prepare_home(home)
    values: dict[str, writing.Value] = {"token": None, "token_file": TOKEN_FILE, "base_url": base_url or None}
    edit = writing.Edit(home / config.FILE, "telegram", values | ({"allowed_users": users} if users else {}))
    files.replace(home / TOKEN_FILE, token + "\n")
    edit.make()
    say(f"Written to {home / config.FILE}, below [telegram]. The token is in {home / TOKEN_FILE}; only you can read it.")
    say(f"{'Allowed to talk: ' + ', '.join(users) if users else 'Nobody may talk to it yet'}. `holdfast pair` shows and changes that.")
    if not bot.found.reads_groups:
        say("In groups Telegram shows it only messages that mention it, reply to it, or are commands. That is usually what you want;"
            " @BotFather changes it with /setprivacy.")  # fmt: skip
    if not config.has_agent(config.load(os.environ, home=chosen_home())):
        say("No model is chosen yet, so chats are told that no agent is set up. `holdfast setup` chooses one.")
    for variable in (name for name in os.environ if name.startswith(VARIABLES)):
        note(f"{variable} is set here and wins over that file. Unset it where Holdfast is started.")
    alive = running.find(home).alive
    say("Next: `holdfast restart`; it interrupts no answer." if alive else "Next: `holdfast serve`.")
