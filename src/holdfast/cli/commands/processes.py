"""`holdfast processes`: commands that agents have started in the background."""

from datetime import datetime
from typing import Any

import click

from holdfast.cli.options import home, home_option, json_option
from holdfast.cli.terminal.layout import clean, moment, one_line, short, table
from holdfast.cli.terminal.output import print_json, say

MOST_BYTES = 256 * 1024


@click.group("processes", invoke_without_command=True)
@home_option
@click.option("--session", "key_or_id", metavar="KEY_OR_ID", help="Those of this conversation, also those that have ended.")
@json_option
@click.pass_context
def command(ctx: click.Context, key_or_id: str | None, as_json: bool) -> None:
    """List background processes, read what one prints, or end it.

    Lists those that run, in all conversations, with and without a running gateway.
    """
    if ctx.invoked_subcommand is None:
        _list(key_or_id, as_json)


@command.command("list")
@home_option
@click.option("--session", "key_or_id", metavar="KEY_OR_ID", help="Those of this conversation, also those that have ended.")
@json_option
def listed(key_or_id: str | None, as_json: bool) -> None:
    """List them; the same as `holdfast processes` alone."""
    _list(key_or_id, as_json)


@command.command("show")
@home_option
@click.argument("process_id")
@click.option("--offset", type=click.IntRange(min=0), metavar="BYTE", help="From this byte of its output on. [default: the end of it]")
@click.option("--limit", type=click.IntRange(min=1, max=MOST_BYTES), metavar="BYTES", help="At most so many bytes. [default: 8192]")
@json_option
def show(process_id: str, offset: int | None, limit: int | None, as_json: bool) -> None:
    """Show a process and what it prints. The output goes to standard output, everything else to standard error."""
    from holdfast.cli.access.client import connect
    from holdfast.cli.terminal.output import note

    found = connect(home()).process(process_id, offset=offset, limit=limit)
    if as_json:
        print_json(found)
        return
    process, output = found["process"], found["output"]
    note(f"{process['process_id']} {_state(process)}: {one_line(process['command'])}")
    note(f"Its output from byte {output['offset']} to {output['next']} of {output['size']}:")
    click.echo(clean(output["text"]), nl=not output["text"].endswith("\n"))


@command.command("kill")
@home_option
@click.argument("process_id")
@json_option
def kill(process_id: str, as_json: bool) -> None:
    """End a process with everything it started. Its conversation is told that a person ended it."""
    from holdfast.cli.access.client import connect

    process = connect(home()).kill_process(process_id).body
    if as_json:
        print_json(process)
    else:
        click.echo(f"{process['process_id']} {_state(process)}: {one_line(process['command'])}")


def _list(key_or_id: str | None, as_json: bool) -> None:
    from holdfast.cli.access import conversations

    found = conversations.processes(home(), key_or_id)
    if as_json:
        print_json(found)
    elif found["processes"]:
        click.echo("\n".join(_table(found["processes"])))
    else:
        say("This conversation has started no background processes." if key_or_id else "No background process is running.")


def _state(process: dict[str, Any]) -> str:
    return str(process["how"] or "is running")


def _table(found: list[dict[str, Any]]) -> list[str]:
    now = datetime.now().astimezone()
    rows = [
        (each["process_id"], short(moment(each["started_at"]), now), _state(each), each["session_id"], one_line(each["command"]))
        for each in found
    ]
    return table(("PROCESS", "STARTED", "STATE", "SESSION", "COMMAND"), rows, flexible=4, optional=(3,))
