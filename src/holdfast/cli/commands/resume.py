"""`holdfast resume`: goes back to a conversation, or leaves safe mode."""

import click

from holdfast.cli.options import home, home_option
from holdfast.cli.terminal.layout import count
from holdfast.cli.terminal.output import say


@click.command("resume")
@home_option
@click.argument("key_or_id", required=False)
@click.option("--all", "everything", is_flag=True, help="Leave safe mode: pending conversations are decided again.")
def command(key_or_id: str | None, everything: bool) -> None:
    """Go back to a conversation, or leave safe mode.

    KEY_OR_ID is a session id, its beginning, `last`, or a session key. The conversation becomes the current one of its chat, its
    suspension is lifted, and its interrupted work continues. The conversation it replaces is kept. With --all instead, safe mode ends.
    Needs a running gateway.
    """
    if everything == (key_or_id is not None):
        raise click.UsageError("Name one conversation, or say --all.")
    if key_or_id is None:
        _leave_safe_mode()
    else:
        _resume(key_or_id)


def _resume(key_or_id: str) -> None:
    from holdfast.cli.access import conversations

    moved = conversations.order(home(), key_or_id, "resume").body
    session_id = moved["session_id"]
    if not moved["changed"]:
        say(f"There is nothing to resume: {session_id} is the current conversation of its chat, is not suspended, and was not interrupted.")
    elif moved["continues"]:
        say(f"Resumed {session_id}. The interrupted work continues; `holdfast show {session_id}` shows it.")
    else:
        say(f"Resumed {session_id}. Its next message continues from there.")


def _leave_safe_mode() -> None:
    from holdfast.cli.access.client import connect

    client = connect(home())
    before = client.status()
    client.post("/api/admin/resume")
    pending = before.pending
    told = f" {count(pending, 'conversation')} {'is' if pending == 1 else 'are'} pending" if pending else ""
    if before.safe_mode:
        say(f"Safe mode is over.{told and f'{told}; what happens next is decided now, one conversation at a time.'}")
    else:
        say(f"The gateway is not in safe mode, so there is nothing to leave.{told and f'{told}.'}")
    if pending:
        say("`holdfast sessions --state pending` says why; `holdfast resume ID` continues one.")
