"""Why a conversation stands as it does, in words: what cut it, which rule decided upon it, and what to do about it."""

from datetime import datetime
from typing import Any

import click

from holdfast.cli.display import ago, moment
from holdfast.core import notices
from holdfast.core.resume import RULES

BEGAN_ANEW = {
    "suspended": "the one before was suspended",
    "idle": "nothing was said in the one before for a while",
    "daily": "a new day had begun",
}


def standing(session: dict[str, Any]) -> str:
    """Its state in one word, for the list. A flag says more than what the turn does, unless the turn goes on already."""
    if session["suspended"]:
        return "suspended"
    if session["resume_pending"] and session["state"] in ("idle", "interrupted"):
        return "pending"
    return str(session["state"])


def in_short(session: dict[str, Any], now: datetime) -> str:
    """Rule, reason and age of what stands open; empty where nothing does."""
    if not (session["suspended"] or session["resume_pending"] or session["left"]):
        return ""
    told = [_label(session["rule"])] if session["rule"] else []
    if session["resume_pending"]:
        told.append(_cut(session, now))
    elif session["why"]:
        told.append(session["why"])
    return ", ".join(told)


def at_length(session: dict[str, Any], now: datetime) -> list[str]:
    """Every flag that is set and the last decision, one line each, with what to do."""
    name = session["session_id"]
    lines = []
    if session["suspended"]:
        told = f"suspended: the next message starts a new conversation; `holdfast resume {name}` takes this one back"
        lines.append(click.style(told, fg="red"))
    if session["resume_pending"]:
        lines.append(click.style(f"pending: {_cut(session, now)}; {_outlook(session)}", fg="yellow"))
    if (restarts := session["interrupted_restarts"]) > 1:
        lines.append(f"cut by {restarts} restarts in a row")
    if session["rule"]:
        lines.append(f"last decision: rule {_label(session['rule'], brackets=True)}{', ' + session['why'] if session['why'] else ''}")
    if not session["current"]:
        lines.append(f"an earlier conversation of its key; `holdfast resume {name}` goes back to it")
    if session["was_auto_reset"]:
        reason = session["auto_reset_reason"]
        lines.append(f"began anew because {BEGAN_ANEW.get(reason, f'the one before was left ({reason})')}")
    return lines


def _outlook(session: dict[str, Any]) -> str:
    if session["suspended"]:
        return "not resumed while it is suspended"
    if session["left"]:
        return f"left until a message goes on from it, or `holdfast resume {session['session_id']}`"
    if session["state"] == "interrupted":
        return "the gateway decides upon it next" if session["rule"] is None else "about to go on"
    return "it goes on" if session["state"] in ("running", "waiting", "queued") else "until its next turn completes"


def _cut(session: dict[str, Any], now: datetime) -> str:
    words = f"cut by {notices.cut_by(session['resume_reason'] or '')}"
    marked_at = session["last_resume_marked_at"]
    return f"{words} {ago(moment(marked_at), now)}" if marked_at else words


def _label(rule: str, *, brackets: bool = False) -> str:
    names = " or ".join(each.name for each in RULES if each.label == rule)
    if not names:
        return rule
    return f"{rule} ({names})" if brackets else f"{rule} {names}"
