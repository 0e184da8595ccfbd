"""`holdfast schedules`: what starts work at certain times."""

from datetime import datetime
from typing import Any

import click

from holdfast.cli.options import home, home_option, json_option
from holdfast.cli.terminal.layout import moment, one_line, short, table
from holdfast.cli.terminal.output import print_json, say


@click.group("schedules", invoke_without_command=True)
@home_option
@click.option("--session", "key_or_id", metavar="KEY_OR_ID", help="Only those of this conversation.")
@json_option
@click.pass_context
def command(ctx: click.Context, key_or_id: str | None, as_json: bool) -> None:
    """List what is planned for later, plan more, pause or remove it.

    At each of its times a schedule starts a turn from its text, in the current conversation of its chat. Lists with and without a running
    gateway; only a running one starts anything.
    """
    if ctx.invoked_subcommand is not None:
        return
    from holdfast.cli.access import conversations

    found = conversations.schedules(home(), key_or_id)
    if as_json:
        print_json(found)
    elif not found["schedules"]:
        say('Nothing is scheduled. `holdfast schedules add last "tomorrow 9:00" water the plants` plans something.')
    else:
        click.echo("\n".join(_table(found["schedules"])))


@command.command("add")
@home_option
@click.argument("key_or_id")
@click.argument("when")
@click.argument("text", nargs=-1, required=True)
@click.option("--time-zone", metavar="NAME", help="In which WHEN is read, for example Europe/Berlin. [default: as configured]")
@click.option(
    "--missed", type=click.Choice(("run", "skip")), help="What to do about a time at which nothing can start. [default: as configured]"
)
@json_option
def add(key_or_id: str, when: str, text: tuple[str, ...], time_zone: str | None, missed: str | None, as_json: bool) -> None:
    """Plan work: at WHEN a turn starts from TEXT in the conversation KEY_OR_ID.

    WHEN is one argument, for example "in 20 minutes", "tomorrow 9:00", "every weekday 8:00" or "0 8 * * 1-5".
    """
    from holdfast.cli.access import conversations
    from holdfast.cli.access.client import connect

    client = connect(home())
    wanted = {"session_id": conversations.session_id(home(), key_or_id), "text": " ".join(text), "when": when}
    more = {name: value for name, value in (("time_zone", time_zone), ("missed", missed)) if value is not None}
    made = client.post("/api/schedules", wanted | more).body
    if as_json:
        print_json(made)
    else:
        say(f"Scheduled {made['when']}. `holdfast schedules remove {made['schedule_id']}` removes it.")


@command.command("pause")
@home_option
@click.argument("schedule_id")
@json_option
def pause(schedule_id: str, as_json: bool) -> None:
    """Pause a schedule: none of its times is due until you continue it."""
    from holdfast.cli.access.client import connect

    paused = connect(home()).pause_schedule(schedule_id, paused=True).body
    if as_json:
        print_json(paused)
    else:
        name = paused["schedule_id"]
        say(f"Paused {name}: {one_line(paused['text'])}. `holdfast schedules continue {name}` continues it.")


@command.command("continue")
@home_option
@click.argument("schedule_id")
@json_option
def continue_(schedule_id: str, as_json: bool) -> None:
    """Continue a paused schedule with its next time. Times that came while it was paused are skipped."""
    from holdfast.cli.access.client import connect

    continued = connect(home()).pause_schedule(schedule_id, paused=False).body
    if as_json:
        print_json(continued)
    else:
        due = short(moment(continued["due_at"]), datetime.now().astimezone())
        click.echo(f"Continued {continued['schedule_id']}: {one_line(continued['text'])}. Next: {due}.")


@command.command("remove")
@home_option
@click.argument("schedule_id")
@json_option
def remove(schedule_id: str, as_json: bool) -> None:
    """Remove a schedule. What it has started already goes on."""
    from holdfast.cli.access.client import connect

    gone = connect(home()).remove_schedule(schedule_id).body
    if as_json:
        print_json(gone)
    else:
        click.echo(f"Removed {gone['schedule_id']}: {one_line(gone['text'])}")


def _table(found: list[dict[str, Any]]) -> list[str]:
    now = datetime.now().astimezone()
    rows = [
        (
            each["schedule_id"],
            "paused" if each.get("paused_at") else short(moment(each["due_at"]), now),
            one_line(each["when"]),
            each["session_id"],
            one_line(each["skipped"] or ""),
            one_line(each["text"]),
        )
        for each in found
    ]
    return table(("SCHEDULE", "NEXT", "WHEN", "SESSION", "LAST SKIPPED", "TEXT"), rows, flexible=5, optional=(4, 3))
