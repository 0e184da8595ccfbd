"""`holdfast sessions`: the list of conversations."""

from datetime import datetime
from typing import Any

import click

from holdfast.cli.display import ago, moment, one_line, short, table
from holdfast.cli.options import home, home_option, json_option, print_json

STATES = ("idle", "queued", "running", "waiting", "interrupted")
COLOURS = {"running": "green", "queued": "cyan", "waiting": "yellow", "interrupted": "red", "suspended": "red"}


@click.command("sessions")
@home_option
@click.option("--query", default="", metavar="Q", help="Only those whose title or messages have these words.")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, metavar="N", help="At most this many.")
@click.option("--state", type=click.Choice(STATES), help="Only those in this state.")
@click.option("--archived", is_flag=True, help="The archived ones instead of the others.")
@json_option
def command(query: str, limit: int, state: str | None, archived: bool, as_json: bool) -> None:
    """List conversations, newest first.

    Works with and without a running gateway.
    """
    found, more = _find(query, limit, state, archived)
    if as_json:
        print_json({"sessions": found})
    elif not found:
        click.echo(
            "No conversation fits." if query or state or archived else 'No conversations yet. `holdfast send new "hello"` begins one.'
        )
    else:
        click.echo("\n".join(_table(found)))
        if more:
            click.echo(click.style(f"The newest {len(found)}; --limit shows more.", dim=True))


def _find(query: str, limit: int, state: str | None, archived: bool) -> tuple[list[dict[str, Any]], bool]:
    """Up to `limit` of them, and whether there may be more. The state is looked at here: the list itself knows none."""
    from holdfast.cli import conversations

    found: list[dict[str, Any]] = []
    before: str | None = None
    while True:
        wanted = conversations.MAX_PAGE if state else limit - len(found)
        page = conversations.page(home(), query=query, archived=archived, limit=wanted, before=before)
        found += [session for session in page["sessions"] if state in (None, session["state"])]
        before = page["next"]
        if before is None or len(found) >= limit:
            return found[:limit], before is not None or len(found) > limit


def _table(found: list[dict[str, Any]]) -> list[str]:
    now = datetime.now().astimezone()
    rows = []
    for session in found:
        at = moment(session["updated_at"])
        state = "suspended" if session["suspended"] else session["state"]
        waiting = str(session["queued"]) if session["queued"] else ""
        rows.append((session["session_id"], state, waiting, short(at, now), ago(at, now), one_line(session["title"] or _place(session))))
    return table(("SESSION", "STATE", "QUEUED", "UPDATED", "", "TITLE"), rows, flexible=5, optional=(4, 2), styles=COLOURS)


def _place(session: dict[str, Any]) -> str:
    """A conversation without a title is known by where it is held; those of the page are all called after themselves."""
    key = str(session["session_key"])
    return "(no title)" if key.endswith(session["session_id"]) else key
