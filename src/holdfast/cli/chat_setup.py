"""What `holdfast <platform> setup` does: asks for what an account is reached with, tries it, lets the first person in, and writes it down.
Before the account has answered, nothing is written.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import click
import msgspec

from holdfast import config, files
from holdfast.cli.access import running
from holdfast.cli.chats import Bot, NoBot
from holdfast.cli.options import chosen_home, keep_files_private
from holdfast.cli.terminal.output import complain, note, say
from holdfast.config import chats, writing
from holdfast.config.chats.doors import Doors
from holdfast.core.errors import Refused

WAIT_S = 180.0


class NotSetUp(Refused):
    code = "not_set_up"

    def __init__(self, why: str) -> None:
        super().__init__(f"{why} Nothing was written.")


class Question(msgspec.Struct, frozen=True):
    """For a setting. `otherwise`: how to answer it without a terminal."""

    setting: str
    prompt: str
    otherwise: str


class Form(msgspec.Struct, frozen=True, kw_only=True):
    """What a platform asks for, and its words. `intro`: what to do in the platform first. `trying`: said while it is asked."""

    platform: str
    intro: tuple[str, ...]
    questions: tuple[Question, ...]
    trying: str


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """`given`: settings that need not be asked for. `users`: who may talk to it, without being asked for. `asks`: a person is there who can
    say the rest.
    """

    given: Mapping[str, str]
    users: tuple[str, ...] = ()
    asks: bool


def run(form: Form, given: Mapping[str, str | None], users: tuple[str, ...]) -> None:
    """`given`: None for a setting that is to be asked for, or stays as it is. Raises `NotSetUp`, `BadConfig` or `UsageError`."""
    wanted = Wanted(given={name: value for name, value in given.items() if value is not None}, users=users, asks=sys.stdin.isatty())
    prefix = f"HOLDFAST_{form.platform.upper()}_"
    without = {name: value for name, value in os.environ.items() if not name.startswith(prefix)}
    settings = config.load(without, home=chosen_home())
    home, before = settings.home, config.chat_accounts(settings)[form.platform]
    if wanted.asks:
        for line in form.intro:
            say(line)
    account, bot = _bot(form, wanted, before)
    say(f"It is {bot.found.name}{f' ({bot.found.about})' if bot.found.about else ''}.")
    for line in bot.found.first:
        say(line)
    found, admin = _first_person(form, wanted, bot, before, home)
    people = tuple(dict.fromkeys((*before.allowed_users, *users, *found)))
    admins = tuple(dict.fromkeys((*before.admins, *found))) if admin else before.admins
    _write(form.platform, home, account, people, admins)
    for line in bot.found.advice:
        say(line)
    _say_what_is_next(home, prefix)


def _bot(form: Form, wanted: Wanted, before: Doors) -> tuple[dict[str, str], Bot]:
    """Asks until an account answers."""
    plain = {name: value for name, value in chats.texts(before).items() if not chats.is_secret(f"{form.platform}.{name}")}
    given = dict(wanted.given)
    while True:
        for question in form.questions:
            if question.setting not in given:
                given[question.setting] = _ask(form.platform, question, plain, wanted)
        account = {**plain, **given}
        note(form.trying)
        try:
            return account, Bot(form.platform, account)
        except NoBot as error:
            if not wanted.asks:
                raise NotSetUp(str(error)) from error
            complain(str(error))
            if not click.confirm("Try again?", default=True):
                note("Nothing was written.")
                raise click.exceptions.Exit(1) from error
            if error.wrong_account:
                given = {name: value for name, value in given.items() if all(question.setting != name for question in form.questions)}


def _ask(platform: str, question: Question, before: Mapping[str, str], wanted: Wanted) -> str:
    hidden = chats.is_secret(f"{platform}.{question.setting}")
    if not wanted.asks:
        raise click.UsageError(question.otherwise)
    return str(click.prompt(question.prompt, hide_input=hidden, default=before.get(question.setting) or None)).strip()


def _first_person(form: Form, wanted: Wanted, bot: Bot, before: Doors, home: Path) -> tuple[tuple[str, ...], bool]:
    """Asks the operator to write to the bot, which tells their id. Nobody is let in unseen. Gives who it is, and whether they are to be an
    admin.
    """
    if wanted.users or before.allowed_users or not wanted.asks:
        return (), False
    if running.find(home).alive:
        say("A gateway runs here: write to the bot after the restart, and let yourself in with the code that it gives you.")
        return (), False
    if not bot.found.hears:
        say("It hears people once the gateway runs: write to it then, and let yourself in with the code that it gives you.")
        return (), False
    title = chats.PLATFORMS[form.platform].title
    say(f"Now write anything to {bot.found.name} in {title}, so that it knows you. Waiting for three minutes; Ctrl-C skips this.")
    try:
        found = bot.first_person(within_s=WAIT_S)
    except KeyboardInterrupt:
        found = None
    except NoBot as error:
        complain(str(error))
        found = None
    if found is None:
        note("Nobody wrote. Once it runs, the bot gives people who write to it a pairing code; `holdfast pair approve CODE` lets them in.")
        return (), False
    click.echo(f"  {found.name} (id {found.id}) wrote: {' '.join(found.text.split())[:60]}")
    if not click.confirm("Is that you? This person may then talk to the agent", default=True):
        return (), False
    return (found.id,), click.confirm("As an admin? Admins may also approve for others and restart Holdfast", default=True)


def _write(platform: str, home: Path, account: Mapping[str, str], users: tuple[str, ...], admins: tuple[str, ...]) -> None:
    """First the secrets, then the settings that name their files: a kill in between leaves a file that nothing names."""
    keep_files_private()
    config.prepare_home(home)
    known = chats.PLATFORMS[platform].secrets
    secrets = [name for name in known if name in account]
    values: dict[str, writing.Value] = {name: value or None for name, value in account.items() if name not in known}
    for name in known:
        values |= {name: None, f"{name}_file": f"{platform}.{name}" if name in secrets else None}
    people = {name: ids for name, ids in (("allowed_users", users), ("admins", admins)) if ids}
    edit = writing.Edit(home / config.FILE, platform, values | people)
    for name in secrets:
        files.replace(home / f"{platform}.{name}", account[name] + "\n")
    edit.make()
    held = " and ".join(str(home / f"{platform}.{name}") for name in secrets)
    words = f"The token is in {held}; only you can read it." if len(secrets) == 1 else f"Tokens are in {held}; only you can read them."
    say(f"Written to {home / config.FILE}, below [{platform}]. {words}")
    named = ", ".join(f"{user} (admin)" if user in admins else user for user in users)
    say(f"{'Allowed to talk: ' + named if users else 'Nobody may talk to it yet'}. `holdfast pair` shows and changes that.")


def _say_what_is_next(home: Path, prefix: str) -> None:
    if not config.has_agent(config.load(os.environ, home=chosen_home())):
        say("No model is chosen yet, so chats are told that no agent is set up. `holdfast setup` chooses one.")
    for variable in (name for name in os.environ if name.startswith(prefix)):
        note(f"{variable} is set here and wins over that file. Unset it where Holdfast is started.")
    alive = running.find(home).alive
    say("Next: `holdfast restart`; it interrupts no answer." if alive else "Next: `holdfast serve`.")
