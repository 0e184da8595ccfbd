"""`holdfast discord`: a bot on Discord."""

from pathlib import Path

import click

from holdfast.cli.options import home_option, setup_options


@click.group("discord")
@home_option
def command() -> None:
    """Connect a Discord bot."""


@command.command("setup")
@setup_options(token="the token", base_url="The address of another API than Discord's own.")
def setup(token_file: Path | None, token_stdin: bool, base_url: str | None, users: tuple[str, ...]) -> None:
    """Ask for the token of a bot, try it, and write it down.

    At a terminal it asks for what the options do not say, prints the address that invites the bot into a server, and lets you in: write to
    the bot, and confirm that it was you. The token is written to a file of its own that only you can read, and its name to config.toml,
    both in the home folder. Everything else in config.toml stays as it is. There is no option for the token itself, because other users of
    the machine can read command lines.
    """
    from holdfast.cli import chat_setup, tokens

    form = chat_setup.Form(
        platform="discord",
        intro=(
            "A bot is made in the developer portal, https://discord.com/developers/applications:",
            "1. New Application, a name, Create.",
            "2. Bot: switch on the Message Content Intent (Privileged Gateway Intents), and save.",
            "3. Bot, Reset Token: copy the token. It is shown only once.",
        ),
        questions=(chat_setup.Question("token", "Token (not shown)", "Give the token with --token-file PATH or --token-stdin."),),
        trying="Asking Discord whose token it is ...",
    )
    chat_setup.run(form, {"token": tokens.given(token_file, stdin=token_stdin), "base_url": base_url}, users)
