"""`holdfast suspend`: a conversation is taken out of service until somebody brings it back."""

import click

from holdfast.cli.options import home, home_option


@click.command("suspend")
@home_option
@click.argument("key_or_id")
def command(key_or_id: str) -> None:
    """Suspend a conversation: its turn is cut and left, its next message starts a new one.

    KEY_OR_ID is a session id or a session key. Nothing is lost: `holdfast resume` takes it back, and the turn goes on. Messages that
    wait in it are refused, and their senders told. Needs a running gateway.
    """
    from holdfast.cli import conversations

    session = conversations.order(home(), key_or_id, "suspend").body
    session_id = session["session_id"]
    cut = " Its turn is cut and left." if session["state"] in ("running", "interrupted") else ""
    click.echo(f"Suspended {session_id}.{cut} Its next message starts a new conversation; `holdfast resume {session_id}` takes it back.")
