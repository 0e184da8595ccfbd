"""`holdfast approve`: lets a tool call run that waits for it."""

import click

from holdfast.cli.options import home, home_option
from holdfast.cli.terminal.output import say


@click.command("approve")
@home_option
@click.argument("approval_id")
@click.option("--always", is_flag=True, help="Also allow calls like it in this conversation from now on.")
def command(approval_id: str, always: bool) -> None:
    """Let a tool call run that waits for your approval.

    APPROVAL_ID is what `holdfast show` names with the call. With --always the pattern shown there is allowed in this conversation until
    `holdfast rules --remove` takes it back. Needs a running gateway.
    """
    from holdfast.cli.access.client import connect

    answered = connect(home()).judge(approval_id, "approve", scope="session" if always else "once").body
    say(f"Approved. `holdfast show {answered['session_id']}` shows what it does.")
