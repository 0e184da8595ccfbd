"""`holdfast sessions`: the list of conversations."""

from datetime import datetime
from typing import Any

import click

from holdfast.cli.options import home, home_option, json_option
from holdfast.cli.terminal.layout import ago, moment, one_line, short, table
from holdfast.cli.terminal.output import as_typed, print_json

# The list can filter by these; the others are searched for in its pages.
LISTED = ("suspended", "pending", "running", "waiting", "pinned", "deleted")
STATES = (*LISTED, "queued", "interrupted", "idle")
COLOURS = {"running": "green", "queued": "cyan", "waiting": "yellow", "pending": "yellow", "interrupted": "red", "suspended": "red"}


@click.command("sessions")
@home_option
@click.option("--query", default="", metavar="Q", help="Only conversations with these words in the title or messages.")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, metavar="N", help="How many at most.")
@click.option("--state", type=click.Choice(STATES), help="Only conversations in this state.")
@click.option("--archived", is_flag=True, help="Archived conversations instead.")
@json_option
def command(query: str, limit: int, state: str | None, archived: bool, as_json: bool) -> None:
    """List conversations, newest first.

    A pending conversation was interrupted and has not recovered yet. The next message to a suspended conversation starts a new one. The
    list says why a conversation is pending or suspended. Works with and without a running gateway.
    """
    found, more = _find(query, limit, state, archived)
    if as_json:
        print_json({"sessions": found})
    elif not found:
        click.echo(
            "No conversation matches."
            if query or state or archived
            else as_typed("No conversations yet. `holdfast send new hello` starts one.")
        )
    else:
        click.echo("\n".join(_table(found)))
        if more:
            click.echo(click.style(f"The newest {len(found)}; --limit shows more.", dim=True))


def _find(query: str, limit: int, state: str | None, archived: bool) -> tuple[list[dict[str, Any]], bool]:
    """Up to `limit` conversations, and whether there may be more. A turn that the store calls running may belong to a dead process."""
    from holdfast.cli.access import conversations

    found: list[dict[str, Any]] = []
    before: str | None = None
    while True:
        asked = state if state in LISTED else None
        looked_for = None if state in ("suspended", "pending", "pinned", "deleted") else state
        wanted = conversations.MAX_PAGE if looked_for else limit - len(found)
        page = conversations.page(home(), query=query, archived=archived, state=asked, limit=wanted, before=before)
        found += [session for session in page["sessions"] if looked_for in (None, session["state"])]
        before = page["next"]
        if before is None or len(found) >= limit:
            return found[:limit], before is not None or len(found) > limit


def _table(found: list[dict[str, Any]]) -> list[str]:
    from holdfast.cli.terminal import states

    now = datetime.now().astimezone()
    rows = []
    for session in found:
        at = moment(session["updated_at"])
        rows.append(
            (
                session["session_id"],
                states.standing(session),
                states.in_short(session, now),
                str(session["queued"]) if session["queued"] else "",
                short(at, now),
                ago(at, now),
                one_line(session["title"] or _chat(session)),
            )
        )
    headers = ("SESSION", "STATE", "WHY", "QUEUED", "UPDATED", "", "TITLE")
    return table(headers, rows, flexible=6, optional=(5, 4, 3, 2), styles=COLOURS)


def _chat(session: dict[str, Any]) -> str:
    """A conversation without a title is named after its chat; those of the page have keys made from their own ids."""
    key = str(session["session_key"])
    return "(no title)" if key.endswith(session["session_id"]) else key
