"""`holdfast deny`: refuses a tool call that waits for an approval."""

import click

from holdfast.cli.options import home, home_option
from holdfast.cli.terminal.output import say


@click.command("deny")
@home_option
@click.argument("approval_id")
@click.option("--reason", default="", metavar="TEXT", help="Why, for the agent.")
def command(approval_id: str, reason: str) -> None:
    """Refuse a tool call that waits for your approval.

    APPROVAL_ID is what `holdfast show` names with the call. The agent is told, with the reason. Needs a running gateway.
    """
    from holdfast.cli.access.client import connect

    answered = connect(home()).judge(approval_id, "deny", reason=reason).body
    say(f"Denied. `holdfast show {answered['session_id']}` shows how it continues.")
