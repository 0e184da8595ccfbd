"""`holdfast rules`: what was allowed for conversations."""

from datetime import datetime

import click

from holdfast.cli.options import home, home_option, json_option
from holdfast.cli.terminal.layout import moment, one_line, short, table
from holdfast.cli.terminal.output import print_json, say


@click.command("rules")
@home_option
@click.option("--session", "key_or_id", metavar="KEY_OR_ID", help="Only those of this conversation.")
@click.option("--remove", metavar="ID", help="Take this rule back.")
@json_option
def command(key_or_id: str | None, remove: str | None, as_json: bool) -> None:
    """List what was allowed for conversations with `approve --always`, or take it back.

    A rule lasts until it is removed or its conversation is reset. What is allowed everywhere is in [policy] of config.toml. Needs a running
    gateway.
    """
    from holdfast.cli.access import conversations
    from holdfast.cli.access.client import connect

    client = connect(home())
    if remove is not None:
        gone = client.remove_rule(remove).body
        if as_json:
            print_json(gone)
        else:
            say(f"Removed {gone['pattern']} of {gone['session_id']}. Such calls ask again.")
        return
    session = conversations.session_id(home(), key_or_id) if key_or_id else None
    found = client.get("/api/rules", session=session)
    if as_json:
        print_json(found)
    elif not found["rules"]:
        click.echo("No rules. `approve --always` makes one.")
    else:
        now = datetime.now().astimezone()
        rows = [
            (
                rule["rule_id"],
                one_line(rule["pattern"]),
                rule["session_id"],
                one_line(rule["by"]),
                short(moment(rule["created_at"]), now),
                rule["until"],
            )
            for rule in found["rules"]
        ]
        click.echo("\n".join(table(("RULE", "ALLOWS", "SESSION", "BY", "SINCE", "UNTIL"), rows, flexible=1)))
