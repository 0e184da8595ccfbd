"""`holdfast delete`: a conversation goes for good, after a time in which it can still be brought back."""

from datetime import datetime

import click

from holdfast.cli.options import home, home_option
from holdfast.cli.terminal.layout import moment, one_line, short
from holdfast.cli.terminal.output import say


@click.command("delete")
@home_option
@click.argument("key_or_id")
@click.option("--yes", is_flag=True, help="Do not ask first.")
@click.option("--undo", is_flag=True, help="Bring a deleted conversation back, by its id.")
def command(key_or_id: str, yes: bool, undo: bool) -> None:
    """Delete a conversation, or bring it back.

    KEY_OR_ID is a session id, its beginning, `last`, or a session key. Its turn is stopped, messages that wait are refused and their
    senders told, and replies not yet sent are dropped. For ten minutes (undo_delete_s) `holdfast delete --undo ID` brings it back. After
    that its text is gone from the disk. Copies made by `holdfast backup` stay as they are. Needs a running gateway.
    """
    from holdfast.cli.access import conversations
    from holdfast.cli.access.client import connect

    client = connect(home())
    session_id = conversations.session_id(home(), key_or_id)
    if undo:
        client.order(session_id, "undelete")
        say(f"{session_id} is back.")
        return
    title = one_line(client.session(session_id)["title"] or "(no title)")
    if not yes:
        click.confirm(f"Delete {session_id}, “{title}”?", abort=True)
    deleted = client.delete(session_id).body
    until = short(moment(deleted["undo_until"]), datetime.now().astimezone())
    say(f"Deleted {session_id}, “{title}”. Until {until}, `holdfast delete --undo {session_id}` brings it back.")
