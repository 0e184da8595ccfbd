"""`holdfast pair`: who may talk to the agent in chats."""

from datetime import datetime
from typing import Any

import click

from holdfast.cli.options import home, home_option, json_option
from holdfast.cli.terminal.layout import moment, one_line, short, table
from holdfast.cli.terminal.output import print_json, say


@click.group("pair", invoke_without_command=True)
@home_option
@json_option
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """Show who was let in to talk to the agent in chats, let somebody in, or shut them out.

    A stranger who writes gets a pairing code, valid for an hour; approve it to let them in. Those listed in config.toml are allowed in any
    case. Needs a running gateway.
    """
    if ctx.invoked_subcommand is not None:
        return
    from holdfast.cli.access.client import connect

    found = connect(home()).get("/api/ops/people")
    if as_json:
        print_json(found)
    elif not found["paired"] and not found["asking"]:
        say("Nobody was let in, and nobody asks to be. People who write to the bot get a code; `holdfast pair approve CODE` lets them in.")
    else:
        rows = [*_rows(found["paired"], "let in"), *_rows(found["asking"], "asks")]
        click.echo("\n".join(table(("PLATFORM", "USER", "NAME", "", "SINCE"), rows, flexible=2)))


@command.command("approve")
@home_option
@click.argument("code")
@json_option
def approve(code: str, as_json: bool) -> None:
    """Let the person in who was given this pairing CODE."""
    _let_in({"code": code}, as_json)


@command.command("add")
@home_option
@click.argument("platform")
@click.argument("user")
@click.option("--name", default="", metavar="NAME", help="What to call them in lists.")
@json_option
def add(platform: str, user: str, name: str, as_json: bool) -> None:
    """Let somebody in without a code, by their id (USER) on the PLATFORM."""
    _let_in({"platform": platform, "user": user, "name": name}, as_json)


@command.command("remove")
@home_option
@click.argument("platform")
@click.argument("user")
def remove(platform: str, user: str) -> None:
    """Shut somebody out again who was let in, or deny somebody who asks to be."""
    from holdfast.cli.access.client import connect

    connect(home()).remove_person(platform, user)
    say(f"{user} on {platform} may not talk to the agent any more, unless config.toml says so.")


def _let_in(wanted: dict[str, str], as_json: bool) -> None:
    from holdfast.cli.access.client import connect

    found = connect(home()).post("/api/ops/people", wanted).body
    if as_json:
        print_json(found)
    else:
        called = f"{one_line(found['name'])} (id {found['user']})" if found["name"] else found["user"]
        undo = f"`holdfast pair remove {found['platform']} {found['user']}`"
        say(f"{called} on {found['platform']} may talk to the agent now. {undo} undoes it.")


def _rows(people: list[dict[str, Any]], what: str) -> list[tuple[str, ...]]:
    now = datetime.now().astimezone()
    return [(one["platform"], one["user"], one_line(one["name"]), what, short(moment(one["at"]), now)) for one in people]
