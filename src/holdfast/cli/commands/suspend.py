"""`holdfast suspend`: suspends a conversation until it is resumed."""

import click

from holdfast.cli.options import home, home_option
from holdfast.cli.terminal.output import say


@click.command("suspend")
@home_option
@click.argument("key_or_id")
def command(key_or_id: str) -> None:
    """Suspend a conversation: its turn is interrupted, and its next message starts a new conversation.

    KEY_OR_ID is a session id, its beginning, `last`, or a session key. Nothing is lost: `holdfast resume` brings it back, and the turn
    continues. Waiting messages are refused, and their senders are told. Needs a running gateway.
    """
    from holdfast.cli.access import conversations

    session = conversations.order(home(), key_or_id, "suspend").body
    session_id = session["session_id"]
    left = " Its turn was interrupted and does not continue by itself." if session["state"] in ("running", "interrupted") else ""
    say(f"Suspended {session_id}.{left} Its next message starts a new conversation; `holdfast resume {session_id}` brings it back.")
