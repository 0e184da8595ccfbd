"""An edit of a message: what it replaces, and whether somebody still has to read it."""

import msgspec

from holdfast.core import content
from holdfast.core.content import BytesPart, Content
from holdfast.core.errors import CannotEdit
from holdfast.core.events import CauseDropped, CauseRecorded, Event, MessageAccepted, MessageEdited, QuestionAnswered
from holdfast.core.plans import Plan, to_session
from holdfast.core.plans.causes import EDIT, Cause
from holdfast.core.plans.repeats import Known
from holdfast.core.sessions import Session

REPLACED, STEERED, RECORDED = "replaced", "steered", "recorded"
AGAIN = "the message was edited again"
OWNER = "owner"


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """`seq`: where the newest words of the message stand in the log, `turn_id`: the turn that took it, and `waits`: no turn has yet; all as
    the one who asks has read it.
    """

    message_id: str
    text: str
    by: str
    seq: int
    turn_id: str | None = None
    waits: bool = False
    dedup_key: str | None = None


class Edited(msgspec.Struct, frozen=True):
    """`effect`: "replaced" (the turn that takes it will read the new words), "steered" (the open turn has read the old ones and is given
    the new ones as a correction), or "recorded" (its turn is over, or no word of it is new).
    """

    message_id: str
    session_id: str
    effect: str


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """`words`: the record with the newest words of the message, at `seq` in the log. `waits`: no turn has taken it. `in_turn`: the open
    turn has; `waiting`: what waits then.
    """

    session: Session
    words: Event
    seq: int
    waits: bool = False
    in_turn: bool = False
    waiting: tuple[Cause, ...] = ()


def again(known: Known, message_id: str) -> Edited:
    return Edited(message_id, known.session_id, known.ref)


def plan(found: Snapshot, edit: Edit) -> Plan[Edited]:
    session, (sender, since, before) = found.session, _said(found, edit.message_id)
    if sender != edit.by:
        raise CannotEdit(edit.message_id, "somebody else wrote it")
    words = content.of([*content.parts(edit.text), *content.attached(before)])
    steers = found.in_turn and not session.stop_requested and not session.suspended and words != before
    effect = REPLACED if found.waits else STEERED if steers else RECORDED
    edited = MessageEdited(message_id=edit.message_id, content=words, effect=effect, sender=sender, since=since, dedup_key=edit.dedup_key)
    events: list[Event] = [edited]
    if effect == STEERED:
        events += _correction(found, edit, content.attached(before))
    return Plan(tuple(to_session(session.session_id, events)), Edited(edit.message_id, session.session_id, effect))


def _said(found: Snapshot, message_id: str) -> tuple[str, int, Content]:
    """Who said it, from where on its words stand in the log, and the newest of them."""
    match words := found.words:
        case MessageEdited() if words.message_id == message_id:
            return words.sender, words.since, words.content
        case MessageAccepted() if words.message_id == message_id:
            return words.sender, found.seq, words.content
        case QuestionAnswered() if words.message_id == message_id:
            return words.by or OWNER, found.seq, words.content
        case _:
            raise CannotEdit(message_id, "it is no message that a person sent, or its record cannot be read")


def _correction(found: Snapshot, edit: Edit, attached: tuple[BytesPart, ...]) -> list[Event]:
    """For the turn that runs, or its next attempt. An earlier one that nobody has read is out of date; so is this one, once another turn
    has started: that one reads the new words in the history (P6).
    """
    session, name = found.session, f"{edit.message_id}.edit."
    old = [cause.cause_id for cause in found.waiting if cause.what == EDIT and cause.cause_id.startswith(name)]
    told = f"The message was edited. It now reads:\n\n{edit.text}"
    correction = CauseRecorded(
        cause_id=f"{name}{session.seq + 1}",
        what=EDIT,
        content=content.of([*content.parts(told), *attached]),
        sender=edit.by,
        generation=session.generation,
    )
    return [*(CauseDropped(cause_id=cause_id, reason=AGAIN) for cause_id in old), correction]
