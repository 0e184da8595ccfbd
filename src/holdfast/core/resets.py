"""When a conversation that rests is left for a new one: policies per platform and chat type (A19, A24)."""

import re

import msgspec

from holdfast.core.errors import BadInput
from holdfast.core.sessions import Session
from holdfast.core.turns import TurnState

DAY_MS = 24 * 3600 * 1000
_PART = re.compile(r"(idle|daily)\s+(\d{1,6})")


class Policy(msgspec.Struct, frozen=True):
    """After `idle_min` minutes without a word, at `daily_hour` o'clock local time, at both, or never."""

    idle_min: int | None = None
    daily_hour: int | None = None


class Boundary(msgspec.Struct, frozen=True):
    """A session whose last sign of life lies before this time is left."""

    reason: str
    before: int


def policy(text: str) -> Policy:
    """`none`, `idle 60`, `daily 4`, or `idle 60, daily 4`."""
    if text.strip() == "none":
        return Policy()
    parts: dict[str, int] = {}
    for part in text.split(","):
        match = _PART.fullmatch(part.strip())
        if match is None or match[1] in parts:
            raise BadInput(f"{text!r} is not a reset policy. Use `none`, `idle 60` (minutes), `daily 4` (hour), or `idle 60, daily 4`.")
        parts[match[1]] = int(match[2])
    if parts.get("idle", 1) < 1 or parts.get("daily", 0) > 23:
        raise BadInput(f"{text!r} is not a reset policy: idle must be at least 1 minute, daily an hour from 0 to 23.")
    return Policy(parts.get("idle"), parts.get("daily"))


def policy_for(policies: dict[str, Policy], platform: str, chat_type: str) -> Policy:
    """The most exact one counts: `platform.chat_type`, then `platform`, then `default`."""
    for name in (f"{platform}.{chat_type}", platform, "default"):
        if name in policies:
            return policies[name]
    return Policy()


def boundaries(policy: Policy, *, now: int, offset_s: int) -> tuple[Boundary, ...]:
    """`offset_s` is how far local time is ahead of UTC."""
    found = []
    if policy.idle_min is not None:
        found.append(Boundary("idle", now - policy.idle_min * 60_000))
    if policy.daily_hour is not None:
        shift = policy.daily_hour * 3_600_000 - offset_s * 1000
        found.append(Boundary("daily", (now - shift) // DAY_MS * DAY_MS + shift))
    return tuple(found)


def due(session: Session, boundaries: tuple[Boundary, ...]) -> str | None:
    """Why a new message should begin a new session, or None. One that is pending, waiting or queued is never left (A24), nor one with a
    process that runs in the background (A19).
    """
    if session.turn_state is not TurnState.ENDED or session.resume_pending or session.queued or session.processes:
        return None
    return next((boundary.reason for boundary in boundaries if session.updated_at < boundary.before), None)
