"""`holdfast journal`: what turns recorded while the database was locked, and journals that are late."""

import os
from datetime import datetime
from typing import Any

import click

from holdfast.cli.options import chosen_home, home, home_option, json_option
from holdfast.cli.terminal.layout import ago, count, cut, moment, one_line, short, size, table, width
from holdfast.cli.terminal.output import as_typed, complain, print_json, say

STYLES = {"whole": "green", "damaged": "red", "unreadable": "red"}


@click.group("journal")
@home_option
def command() -> None:
    """Look at, check and store what turns recorded while the database was locked.

    Holdfast does all of this by itself. This is for operators who want to see it, or whose spools could not be read when they were wanted.
    docs/journal.md explains it.
    """


@command.command("show")
@home_option
@click.argument("name", required=False)
@json_option
def show(name: str | None, as_json: bool) -> None:
    """List the spools that are not stored yet, and the journals that conversations still wait for; or show the events of one.

    NAME is the name of a spool, such as t_x4k2m9.1. Works with and without a running gateway, and while the database is locked.
    """
    from holdfast.cli.access import journals

    if name is not None:
        events = journals.events(home(), name)
        if as_json:
            print_json({"events": events})
        else:
            click.echo("\n".join(_event(event) for event in events) or "No events.")
        return
    found, late, hidden = journals.found(home()), journals.late(home()), journals.hidden(home())
    if as_json:
        print_json({"spools": found, "late": late, "hidden": hidden})
        return
    _complain_of(hidden)
    now = datetime.now().astimezone()
    click.echo("\n".join(_spools(found, now, hidden=bool(hidden)) + _late(late, {each["stream_id"] for each in found}, now)))


@command.command("verify")
@home_option
@json_option
def verify(as_json: bool) -> int:
    """Read every spool and check each record in it. Changes nothing. Exit code 1 if one is damaged or cannot be read, or a folder of
    spools cannot be listed.

    Half a record at the end is what a killed process leaves; it counts as nothing, and is no damage.
    """
    from holdfast.cli.access import journals

    found, hidden = journals.found(home()), journals.hidden(home())
    bad = [each for each in found if _state(each) != "whole"]
    if as_json:
        print_json({"spools": found, "damaged": len(bad), "hidden": hidden})
        return 1 if bad or hidden else 0
    _complain_of(hidden)
    if not found and not hidden:
        click.echo("There are no spools: everything is stored.")
    else:
        for each in found:
            torn = f", and half a record of {size(each['torn'])}" if each["torn"] else ""
            said = each["problem"] or f"{count(each['events'], 'event')}{torn}"
            hurt = f"; {count(each['damaged'], 'part')} of it cannot be read" if each["damaged"] else ""
            click.echo(f"{each['stream_id']}: {click.style(_state(each), fg=STYLES[_state(each)])}, {said}{hurt}")
    return 1 if bad or hidden else 0


@command.command("ship")
@home_option
@json_option
def ship(as_json: bool) -> int:
    """Store what processes that are gone left in their spools. What is stored already changes nothing.

    Safe while a gateway runs. The spool of a running process is left to that process. Exit code 1 if a spool could not be stored.
    """
    from holdfast import config
    from holdfast.cli.access import journals

    limits = config.load(os.environ, home=chosen_home()).journal.limits
    shipped, hidden = journals.ship(home(), limits), journals.hidden(home())
    failed = [each for each in shipped if each["problem"] and each["kept"]]
    if as_json:
        print_json({"spools": shipped, "hidden": hidden})
        return 1 if failed or hidden else 0
    _complain_of(hidden)
    if not shipped and not hidden:
        click.echo("There is nothing to store: no process left a spool.")
    else:
        for each in shipped:
            stored = f"{count(each['stored'], 'event')} stored{' as a late journal' if each['late'] else ''}"
            click.echo(f"{each['stream_id']}: " + (f"{stored}; {each['problem']}" if each["problem"] else stored))
    if failed:
        say("What could not be stored stays where it is. `holdfast journal verify` says what can be read.")
    return 1 if failed or hidden else 0


def _complain_of(hidden: list[dict[str, Any]]) -> None:
    for each in hidden:
        complain(f"{each['folder']} cannot be listed: {each['problem']}. Spools in it are not seen. Check its permissions and the disk.")


def _state(spool: dict[str, Any]) -> str:
    return "unreadable" if spool["problem"] else "damaged" if spool["damaged"] else "whole"


def _spools(found: list[dict[str, Any]], now: datetime, *, hidden: bool) -> list[str]:
    if not found and hidden:
        return ["No spool can be seen."]
    if not found:
        return ["There are no spools: everything is stored."]
    rows = [
        (
            each["stream_id"],
            each["session_id"] or "unknown",
            str(each["events"]),
            size(each["bytes"]),
            short(moment(each["changed_at"]), now),
            "running" if each["running"] else "gone",
            _state(each),
        )
        for each in found
    ]
    return table(("SPOOL", "SESSION", "EVENTS", "SIZE", "CHANGED", "PROCESS", "STATE"), rows, flexible=1, styles=STYLES)


def _late(late: list[dict[str, Any]], there: set[str], now: datetime) -> list[str]:
    lines = []
    for each in late:
        missing = "cannot be read" if each["stream_id"] in there else "is not there"
        tries = count(each["tries"], "try", "tries")
        since = ago(moment(each["first_seen"]), now)
        lines.append(f"{each['session_id']} waits for {each['stream_id']}, which {missing}: missed since {since}, {tries} so far.")
    return ["", *map(as_typed, lines)] if lines else []


def _event(event: dict[str, Any]) -> str:
    time, where = f"{moment(event['at']):%H:%M:%S}", f"{event['attempt']}.{event['position']}"
    return cut(f"{time}  {where:>7}  {event['event']:<14}  {one_line(event['data'])}", width()).rstrip()
