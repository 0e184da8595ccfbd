"""`holdfast resume`: back to a conversation, or out of safe mode."""

import click

from holdfast.cli.display import count
from holdfast.cli.options import home, home_option


@click.command("resume")
@home_option
@click.argument("key_or_id", required=False)
@click.option("--all", "everything", is_flag=True, help="Leave safe mode: whatever is pending is decided upon again.")
def command(key_or_id: str | None, everything: bool) -> None:
    """Go back to a conversation, or leave safe mode.

    KEY_OR_ID is a session id or a session key. The conversation becomes its key's current one, its suspension is lifted, and its turn goes
    on if one was cut; the conversation that it takes the place of is kept. With --all instead, safe mode ends. Needs a running gateway.
    """
    if everything == (key_or_id is not None):
        raise click.UsageError("Name one conversation, or say --all.")
    if key_or_id is None:
        _leave_safe_mode()
    else:
        _resume(key_or_id)


def _resume(key_or_id: str) -> None:
    from holdfast.cli import conversations

    moved = conversations.order(home(), key_or_id, "resume").body
    session_id = moved["session_id"]
    if not moved["changed"]:
        click.echo(f"There is nothing to resume: {session_id} is its key's current conversation, not suspended, and nothing in it is cut.")
    elif moved["goes_on"]:
        click.echo(f"Resumed {session_id}. The work that was cut goes on; `holdfast show {session_id}` shows it.")
    else:
        click.echo(f"Resumed {session_id}. Its next message goes on from there.")


def _leave_safe_mode() -> None:
    from holdfast.cli.client import connect

    client = connect(home())
    before = client.get("/api/status")
    client.post("/api/admin/resume")
    pending = before["pending"]
    told = f" {count(pending, 'conversation')} {'is' if pending == 1 else 'are'} pending" if pending else ""
    if before["safe_mode"]:
        click.echo(f"Safe mode is over.{told and f'{told} and decided upon now, one at a time.'}")
    else:
        click.echo(f"The gateway is not in safe mode, so there is nothing to leave.{told and f'{told}.'}")
    if pending:
        click.echo("`holdfast sessions --state pending` says why; `holdfast resume ID` goes on with one.")
