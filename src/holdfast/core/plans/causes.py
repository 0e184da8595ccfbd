"""What waits in an inbox to start a turn: how a cause that is no message is recorded, and what becomes of those that no turn will take."""

from collections.abc import Sequence

import msgspec

from holdfast.core import content, notices, replies
from holdfast.core.busy import Mode
from holdfast.core.content import Content
from holdfast.core.events import CauseDropped, CauseRecorded, Event, MessageAccepted, MessageEdited, MessageRefused
from holdfast.core.plans import Plan, to_session
from holdfast.core.processes import ENDED, MATCHED
from holdfast.core.sessions import Session

MESSAGE, EDIT = "message", "edit"
# Other causes than messages that a turn which runs may take.
STEERING = (EDIT, ENDED, MATCHED)
UNREADABLE = "(this message was damaged on disk and cannot be read)"
SUSPENDED_FIRST = "the conversation was suspended first"
LEFT_FIRST = "the conversation was left first"
OUTDATED = "another turn has started since"


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """One of them, as it was recorded. `generation`: the turn it belongs to, where it belongs to one; `during`: that turn was open when it
    happened. `steers`: a turn that runs may take it.
    """

    cause_id: str
    content: Content
    what: str = MESSAGE
    sender: str | None = None
    anchor: str | None = None
    generation: int | None = None
    during: bool = False
    steers: bool = False


class Recorded(msgspec.Struct, frozen=True):
    """`duplicate`: it was recorded before, under the same key. `dropped`: why no turn will start from it, None if one may."""

    cause_id: str
    session_id: str
    duplicate: bool = False
    dropped: str | None = None


def read(cause_id: str, recorded: Event, edited: Event | None = None) -> Cause:
    """The cause that waits under this id, from its record and the newest edit of it. One that was damaged still starts its turn: somebody
    waits for it.
    """
    match recorded:
        case MessageAccepted():
            return Cause(
                cause_id=cause_id,
                content=edited.content if isinstance(edited, MessageEdited) else recorded.content,
                sender=recorded.sender,
                anchor=recorded.anchor,
                steers=recorded.mode == Mode.STEER,
            )
        case CauseRecorded():
            return Cause(
                cause_id=cause_id,
                content=recorded.content,
                what=recorded.what,
                sender=recorded.sender,
                anchor=recorded.anchor,
                generation=recorded.generation,
                during=recorded.during,
                steers=recorded.what in STEERING,
            )
        case _:
            return Cause(cause_id=cause_id, content=edited.content if isinstance(edited, MessageEdited) else UNREADABLE)


def outdated(cause: Cause | CauseRecorded, generation: int) -> bool:
    """Whether it belongs to a turn that is no longer the newest one of its session (P6, E3)."""
    return cause.generation is not None and cause.generation != generation


def startable(cause: Cause, generation: int) -> bool:
    """Whether a turn may start from it, where its session's newest turn, of this generation, is over."""
    return not cause.during and not outdated(cause, generation)


def held(cause: Cause) -> bool:
    """Whether it waits for the end of safe mode: nobody said it, so nobody waits for it (B14)."""
    return cause.what not in (MESSAGE, EDIT)


def record(session: Session, cause: CauseRecorded) -> Plan[Recorded]:
    """A cause for a session that will start no turn from it is dropped at once, on record."""
    reason = None
    if not session.current:
        reason = LEFT_FIRST
    elif session.suspended:
        reason = SUSPENDED_FIRST
    elif outdated(cause, session.generation):
        reason = OUTDATED
    dropped = [] if reason is None else [CauseDropped(cause_id=cause.cause_id, reason=reason)]
    reply = Recorded(cause.cause_id, session.session_id, dropped=reason)
    return Plan(tuple(to_session(session.session_id, [cause, *dropped])), reply)


def turned_away(session_key: str, waiting: Sequence[Cause], why: str, *, tells: bool = True) -> list[Event]:
    """What waits where no turn will start: messages are refused, and their senders are told once, with their words (A20). Other causes
    are dropped: nobody said them. But the end of a process is told, if not by a turn (E3), unless nobody is there to be told (`tells`).
    """
    messages = [cause for cause in waiting if cause.what == MESSAGE]
    others = [cause for cause in waiting if cause.what != MESSAGE]
    events: list[Event] = [CauseDropped(cause_id=cause.cause_id, reason=why) for cause in others]
    if messages:
        events += [MessageRefused(message_id=cause.cause_id, reason=why) for cause in messages]
        told = notices.refused([content.outline(cause.content) for cause in messages], why)
        events.append(replies.written(session_key, "notice", f"{messages[0].cause_id}.refused", told))
    for cause in others:
        if cause.what == ENDED and tells:
            events.append(replies.written(session_key, "notice", f"{cause.cause_id}.told", cause.content, anchor=cause.anchor))
    return events
