"""`holdfast slack`: an app on Slack."""

from pathlib import Path
from typing import Any

import click

from holdfast.cli.options import chosen_home, home_option, setup_options

SCOPES = (
    *("chat:write", "commands", "im:history", "mpim:history", "channels:history", "groups:history"),
    *("im:read", "mpim:read", "channels:read", "groups:read", "files:read", "files:write", "users:read"),
)
EVENTS = (
    *("message.im", "message.mpim", "message.channels", "message.groups"),
    *("member_joined_channel", "channel_left", "group_left", "channel_archive", "channel_unarchive", "group_archive", "group_unarchive"),
)
_SECRET_PATH = click.Path(path_type=Path)


@click.group("slack")
@home_option
def command() -> None:
    """Connect a Slack app."""


@command.command("manifest")
@click.option("--http", "url", metavar="URL", help="For an app that is told over HTTP: the public_url of this Holdfast.")
def manifest(url: str | None) -> None:
    """Print the manifest from which Slack makes the app.

    At api.slack.com/apps choose Create New App, From a manifest, and paste it as JSON.
    """
    click.echo(_manifest(url))


@command.command("setup")
@click.option("--bot-token-file", type=_SECRET_PATH, metavar="PATH", help="Copy the bot token (xoxb-) from this file.")
@click.option("--app-token-file", type=_SECRET_PATH, metavar="PATH", help="Copy the app token (xapp-) from this file.")
@click.option("--signing-secret-file", type=_SECRET_PATH, metavar="PATH", help="With --http: copy the signing secret from this file.")
@click.option("--http", is_flag=True, help="Slack tells what is new at public_url, instead of being asked (Socket Mode).")
@setup_options(base_url="The address of another API than Slack's own.")
def setup(
    bot_token_file: Path | None,
    app_token_file: Path | None,
    signing_secret_file: Path | None,
    http: bool,
    base_url: str | None,
    users: tuple[str, ...],
) -> None:
    """Ask for the tokens of an app, try them, and write them down.

    At a terminal it prints the manifest from which Slack makes the app, asks for what the options do not say, and lets you in: write to
    the bot, and confirm that it was you. Tokens are written to files of their own that only you can read, and their names to config.toml,
    all in the home folder. Everything else in config.toml stays as it is. There are no options for the tokens themselves, because other
    users of the machine can read command lines.
    """
    if http and app_token_file:
        raise click.UsageError("Give --http or --app-token-file, not both: over HTTP there is a signing secret instead.")
    if signing_secret_file and not http:
        raise click.UsageError("--signing-secret-file is for --http.")
    from holdfast.cli import chat_setup, tokens

    second, where, given = (
        ("signing_secret", "Signing secret (Basic Information; not shown)", tokens.given(signing_secret_file))
        if http
        else ("app_token", "App token (xapp-..., Basic Information, App-Level Tokens; not shown)", tokens.given(app_token_file))
    )
    option = f"--{second.replace('_', '-')}-file"
    form = chat_setup.Form(
        platform="slack",
        intro=_intro(_public_url() if http else None),
        questions=(
            chat_setup.Question(
                "bot_token", "Bot token (xoxb-..., OAuth & Permissions; not shown)", "Give the bot token with --bot-token-file PATH."
            ),
            chat_setup.Question(second, where, f"Give the other one with {option} PATH."),
        ),
        trying="Asking Slack whose tokens they are ...",
    )
    chat_setup.run(form, {"bot_token": tokens.given(bot_token_file), second: given, "base_url": base_url}, users)


def _public_url() -> str:
    import os

    from holdfast import config

    url = config.load(os.environ, home=chosen_home()).public_url
    if not url.startswith("https://"):
        raise click.UsageError("Over HTTP Slack must reach this Holdfast. First set public_url, an address that begins with https://.")
    return url


def _intro(url: str | None) -> tuple[str, ...]:
    return (
        "An app is made at https://api.slack.com/apps: choose Create New App, From a manifest, your workspace, and paste this as JSON:",
        "",
        _manifest(url),
        "",
        "Then Install App gives the bot token."
        + ("" if url else " Below Basic Information, App-Level Tokens, generate one with the scope connections:write."),
    )


def _manifest(url: str | None) -> str:
    import json

    told = {"request_url": f"{url.rstrip('/')}/hooks/slack"} if url else {}
    command = {"command": "/holdfast", "description": "Stop, start over, list conversations", "usage_hint": "stop, new, status, help"}
    made: dict[str, Any] = {
        "display_information": {"name": "Holdfast"},
        "features": {
            "app_home": {"home_tab_enabled": False, "messages_tab_enabled": True, "messages_tab_read_only_enabled": False},
            "bot_user": {"display_name": "holdfast", "always_online": True},
            "slash_commands": [{**command, **({"url": told["request_url"]} if told else {})}],
        },
        "oauth_config": {"scopes": {"bot": list(SCOPES)}},
        "settings": {
            "event_subscriptions": {**told, "bot_events": list(EVENTS)},
            "interactivity": {"is_enabled": True, **told},
            "org_deploy_enabled": False,
            "socket_mode_enabled": not told,
            "token_rotation_enabled": False,
        },
    }
    return json.dumps(made, indent=2)
