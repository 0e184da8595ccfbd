"""`holdfast outbox`: messages to chats that have not arrived."""

from datetime import datetime
from typing import Any

import click

from holdfast.cli.options import home, home_option, json_option
from holdfast.cli.terminal.layout import moment, one_line, short, table
from holdfast.cli.terminal.output import print_json, say

DONE = {"retry": "{} is tried again now.", "drop": "{} was dropped.", "sent": "{} counts as arrived."}


@click.command("outbox")
@home_option
@click.option("--all", "everything", is_flag=True, help="Also list what has arrived.")
@click.option("--retry", metavar="ID", help="Try this one again now, also if it was given up.")
@click.option("--drop", metavar="ID", help="Give this one up.")
@click.option("--sent", metavar="ID", help="Note that this one arrived, because you have seen it.")
@json_option
def command(everything: bool, retry: str | None, drop: str | None, sent: str | None, as_json: bool) -> None:
    """List messages to chats that have not arrived: those that wait, those of which nobody knows whether they arrived, and those that were
    given up.

    Holdfast tries them by itself: what surely did not arrive for three days, with growing waits. Needs a running gateway.
    """
    wanted = [(action, id_) for action, id_ in (("retry", retry), ("drop", drop), ("sent", sent)) if id_]
    if len(wanted) > 1:
        raise click.UsageError("Give one of --retry, --drop and --sent.")
    from holdfast.cli.access.client import connect

    client = connect(home())
    for action, id_ in wanted:
        found = client.decide_delivery(id_, action).body
        if not as_json:
            return say(DONE[action].format(id_))
    if not wanted:
        found = client.get("/api/ops/outbox", given_up="true", arrived="true" if everything else None)
    if as_json:
        print_json(found)
        return
    _show(found)


def _show(found: dict[str, Any]) -> None:
    now = datetime.now().astimezone()
    if not found["deliveries"]:
        say("Everything that was owed to chats has arrived.")
    else:
        rows = [
            (
                each["delivery_id"] + (f" part {each['part'] + 1}" if each["part"] else ""),
                each["platform"],
                each["chat"] + (f" {each['thread']}" if each["thread"] else ""),
                each["state"],
                str(each["tries"]),
                short(moment(each["at"]), now),
                one_line(each["error"] or ""),
            )
            for each in found["deliveries"]
        ]
        click.echo("\n".join(table(("DELIVERY", "PLATFORM", "CHAT", "STATE", "TRIES", "SINCE", "PROBLEM"), rows, flexible=6)))
    for gone in found["dead"]:
        where = gone["chat"] + (f" {gone['thread']}" if gone["thread"] else "")
        say(f"Nothing arrives in {where} on {gone['platform']} since {short(moment(gone['since']), now)}: {one_line(gone['why'])}")
