"""The state of a conversation in words: what interrupted it, which rule decided, and what to do about it."""

from datetime import datetime
from typing import Any

import click

from holdfast.cli.terminal.layout import ago, moment
from holdfast.cli.terminal.output import as_typed
from holdfast.core import notices
from holdfast.core.resume import RULES


def standing(session: dict[str, Any]) -> str:
    """Its state in one word, for the list. A flag says more than the state of the turn, unless the turn is running again."""
    if session["suspended"]:
        return "suspended"
    if session["resume_pending"] and session["state"] in ("idle", "interrupted"):
        return "pending"
    return str(session["state"])


def in_short(session: dict[str, Any], now: datetime) -> str:
    """What interrupted it and how long ago; empty if nothing needs attention."""
    if session["resume_pending"]:
        return _interrupted(session, now)
    return str(session["why"] or "") if session["suspended"] or session["left"] else ""


def at_length(session: dict[str, Any], now: datetime) -> list[str]:
    """Each flag that is set and the last decision, one line each, with what to do."""
    name = session["session_id"]
    lines = []
    if session["suspended"]:
        told = f"suspended: the next message starts a new conversation; `holdfast resume {name}` continues this one"
        lines.append(click.style(as_typed(told), fg="red"))
    if session["resume_pending"]:
        lines.append(click.style(as_typed(f"pending: {_interrupted(session, now)}; {_outlook(session)}"), fg="yellow"))
    if (restarts := session["interrupted_restarts"]) > 1:
        lines.append(f"interrupted by {restarts} restarts in a row")
    if session["rule"] and (session["suspended"] or session["resume_pending"] or session["left"]):
        lines.append(click.style(f"why: rule {_label(session['rule'])}{', ' + session['why'] if session['why'] else ''}", dim=True))
    if not session["current"]:
        lines.append(as_typed(f"an earlier conversation of its chat; `holdfast resume {name}` goes back to it"))
    if session["was_auto_reset"]:
        lines.append(f"started because {notices.begun_because(session['auto_reset_reason'])}")
    return lines


def _outlook(session: dict[str, Any]) -> str:
    if session["suspended"]:
        return "not resumed while it is suspended"
    if session["left"]:
        return f"its next message continues it, or `holdfast resume {session['session_id']}`"
    if session["state"] == "interrupted":
        return "the next start decides what happens to it" if session["rule"] is None else "it is about to continue"
    return "it continues" if session["state"] in ("running", "waiting", "queued") else "until its next turn completes"


def _interrupted(session: dict[str, Any], now: datetime) -> str:
    words = f"interrupted by {notices.interrupted_by(session['resume_reason'] or '')}"
    marked_at = session["last_resume_marked_at"]
    return f"{words} {ago(moment(marked_at), now)}" if marked_at else words


def _label(rule: str) -> str:
    names = " or ".join(each.name for each in RULES if each.label == rule)
    return f"{rule} ({names})" if names else rule
