"""What becomes of a message that comes while its conversation is busy: policies per platform, chat type and chat."""

from enum import StrEnum
from fnmatch import fnmatchcase

from holdfast.core import keys
from holdfast.core.errors import BadInput
from holdfast.core.sessions import Session
from holdfast.core.turns import TurnState


class Mode(StrEnum):
    """QUEUE: it waits for a turn of its own. STEER: the turn that runs takes it. INTERRUPT: that turn is stopped, and it comes next.
    REJECT: it is refused.
    """

    QUEUE = "queue"
    STEER = "steer"
    INTERRUPT = "interrupt"
    REJECT = "reject"


def mode(text: str) -> Mode:
    try:
        return Mode(text.strip())
    except ValueError:
        raise BadInput(f"{text!r} is not a busy policy. Use {', '.join(list(Mode)[:-1])} or {list(Mode)[-1]}.") from None


def policies(table: dict[str, str]) -> dict[str, Mode]:
    """By `default`, platform, platform.chat_type, or a pattern of session keys, in which `*` stands for anything."""
    return {_name(name): mode(text) for name, text in table.items()}


def _name(name: str) -> str:
    if ":" in name and not name.startswith("agent:"):
        raise BadInput(f"{name!r} matches no session key. An example: agent:main:telegram:group:*")
    return name


def mode_for(policies: dict[str, Mode], session_key: str) -> Mode:
    """The most exact one counts: the longest pattern that matches the key, then `platform.chat_type`, `platform`, `default`."""
    if not policies:
        return Mode.QUEUE
    patterns = [name for name in policies if ":" in name and fnmatchcase(session_key, name)]
    if patterns:
        return policies[max(patterns, key=len)]
    key = keys.parse(session_key)
    names = (f"{key.platform}.{key.chat_type}", key.platform, "default")
    return next((policies[name] for name in names if name in policies), Mode.QUEUE)


def at_work(session: Session) -> bool:
    """Whether it has a turn that will continue. One that was interrupted and left continues from the next message (A23)."""
    return session.open_turn and not (session.left and session.turn_state is TurnState.INTERRUPTED)


def is_busy(session: Session) -> bool:
    """Whether a message could not be answered at once."""
    return at_work(session) or session.queued > 0
