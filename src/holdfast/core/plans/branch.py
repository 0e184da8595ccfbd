"""Beginning a conversation with what another one said up to a message. What is copied are the records of turns that are over: nothing of it
is sent, asked, started or paid for once more.
"""

from collections.abc import Collection, Iterator, Sequence

import msgspec

from holdfast.core import events as e
from holdfast.core.effects import ToolOutcome
from holdfast.core.errors import NotFound, Refused
from holdfast.core.events import Event, Logged
from holdfast.core.messages import answer_id
from holdfast.core.plans import Plan, Write
from holdfast.core.sessions import Session, numbered_title
from holdfast.core.transcript import Transcript
from holdfast.core.turns import TurnState

# As much as one transaction may write without holding up others; the newest turns that fit are copied.
MOST_EVENTS, MOST_BYTES = 1000, 1024 * 1024
# So far before a turn its causes are looked for.
NEAR = 200


class NotOverYet(Refused):
    code = "not_over"

    def __init__(self, message_id: str) -> None:
        super().__init__(f"The answer to the message {message_id!r} is not finished. Branch from it once it is.")


class TooMuchToCopy(Refused):
    code = "too_much_to_copy"

    def __init__(self, message_id: str) -> None:
        super().__init__(
            f"The last turn up to the message {message_id!r} is too large to copy: it has more than {MOST_EVENTS} records, or more than"
            f" {MOST_BYTES // 1024**2} MiB of them. Branch from an earlier or a later message."
        )


class Names(msgspec.Struct, frozen=True, kw_only=True):
    """Of the new conversation, and of each of its turns by the turn that is copied."""

    session_id: str
    session_key: str
    log: str
    turns: dict[str, str]


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """What is copied: `records` of these `turns`, the oldest first. `left_out`: how many earlier turns are not."""

    session: Session
    message_id: str
    turns: tuple[str, ...]
    records: tuple[Logged, ...]
    left_out: int = 0


def turns_up_to(transcript: Transcript, message_id: str) -> tuple[str, ...]:
    """The turns whose conversation leads up to a message: with an answer its own turn, with a request those before."""
    message = transcript.find(message_id)
    if message is None or message.role not in ("user", "assistant"):
        raise NotFound("message", message_id)
    ids = [turn.id for turn in transcript.turns]
    if message.turn_id is None:  # It waits, or was never answered.
        return tuple(turn.id for turn in transcript.turns if turn.state is TurnState.ENDED and turn.started_at <= message.created_at)
    place = ids.index(message.turn_id)
    if message.role == "user":
        return tuple(ids[:place])
    if transcript.turns[place].state is not TurnState.ENDED:
        raise NotOverYet(message_id)
    return tuple(ids[: place + 1])


def fitting(records: Sequence[Logged], turns: Sequence[str]) -> tuple[str, ...]:
    """The newest of the turns whose records fit into one transaction."""
    count: dict[str, int] = {}
    size: dict[str, int] = {}
    for item in records:
        if item.turn_id is not None:
            count[item.turn_id] = count.get(item.turn_id, 0) + 1
            size[item.turn_id] = size.get(item.turn_id, 0) + len(item.body)
    found: list[str] = []
    events = octets = 0
    for turn in reversed([turn for turn in turns if turn in count]):
        events, octets = events + count[turn], octets + size[turn]
        if events > MOST_EVENTS or octets > MOST_BYTES:
            break
        found.append(turn)
    return tuple(reversed(found))


def concerns(item: Logged, turns: Collection[str]) -> bool:
    """Whether a record may have to be copied with these turns."""
    return item.turn_id in turns if item.turn_id is not None else isinstance(item.event, e.MessageAccepted | e.CauseRecorded)


def trimmed(records: Sequence[Logged], turns: Sequence[str]) -> tuple[list[Logged], tuple[str, ...]]:
    """The records without the turns that do not fit, and what was said to them; and the turns that may still be copied. A turn that does
    not fit is dropped for good, with those before it: the rest of its records would make a turn without a beginning.
    """
    fit = set(fitting(records, turns))
    first = min((item.seq for item in records if item.turn_id in fit), default=0)
    kept = [item for item in records if (item.seq >= first - NEAR if item.turn_id is None else item.turn_id in fit)]
    dropped = {item.turn_id for item in records} - fit
    begins = next((place for place in range(len(turns), 0, -1) if turns[place - 1] in dropped), 0)
    return kept, tuple(turns[begins:])


def plan(origin: Origin, names: Names, *, by: str, dedup_key: str | None = None) -> Plan[str]:
    """The whole of the new conversation, and its id."""
    session = origin.session
    made = e.SessionCreated(
        session_id=names.session_id,
        session_key=names.session_key,
        log=names.log,
        title=numbered_title(session.title, 2),
        folder=session.folder,
        dedup_key=dedup_key,
    )
    branched = e.SessionBranched(
        origin=session.session_id,
        message_id=origin.message_id,
        title=session.title,
        left_out=origin.left_out,
        by=by,
    )
    model = [Write(names.session_id, e.SessionChanged(model=session.model))] if session.model is not None else []
    return Plan((Write(names.session_id, made), *model, *_copies(origin, names), Write(names.session_id, branched)), names.session_id)


def _copies(origin: Origin, names: Names) -> Iterator[Write]:
    wanted = set(origin.turns)
    taken: set[str] = set()
    for item in origin.records:
        if item.turn_id in wanted and isinstance(event := item.event, e.CauseTaken | e.TurnStarted):
            taken |= {event.cause_id} if isinstance(event, e.CauseTaken) else {*event.causes}
    epoch = 0
    for item in origin.records:
        event = item.event
        if item.turn_id is None:
            if isinstance(event, e.MessageAccepted | e.CauseRecorded) and _id_of(event) in taken:
                yield Write(names.session_id, _said(event), at=item.at)
        elif item.turn_id in wanted and (copied := _copied(event, item.turn_id, names.turns[item.turn_id])) is not None:
            starts = None
            if isinstance(copied, e.TurnStarted):
                epoch, starts = epoch + 1, names.turns[item.turn_id]
                copied = msgspec.structs.replace(copied, epoch=epoch)
            yield Write(names.session_id, copied, in_turn=True, starts=starts, at=item.at)


def _id_of(event: e.MessageAccepted | e.CauseRecorded) -> str:
    return event.message_id if isinstance(event, e.MessageAccepted) else event.cause_id


def _said(event: e.MessageAccepted | e.CauseRecorded) -> Event:
    if isinstance(event, e.MessageAccepted):
        return msgspec.structs.replace(event, anchor=None, dedup_key=None, recital=None, mode="queue")
    return msgspec.structs.replace(event, anchor=None, dedup_key=None)


def _copied(event: Event, old: str, new: str) -> Event | None:
    """None for what concerns only the turn it was recorded in: its processes, its interruptions, what was asked and delivered."""
    match event:
        case e.TurnStarted():
            return msgspec.structs.replace(event, attempt=1, owner=0, trial=False, sender=None, day=None)
        case e.MessageWritten(role="assistant"):
            return msgspec.structs.replace(event, message_id=answer_id(new), delivery_id=None, anchor=None, buttons=(), begun=0)
        case e.MessageWritten(role="user"):
            return msgspec.structs.replace(event, delivery_id=None, anchor=None, dedup_key=None, recital=None)
        case e.ModelResponded():
            return msgspec.structs.replace(event, copied=True)
        case e.ContextCompacted():  # Its place is one in the other log.
            return msgspec.structs.replace(event, copied=True, recall=0)
        case e.ToolStarted():
            return msgspec.structs.replace(event, call_id=_call(event.call_id, old, new), key=None, approval=None, place=None)
        case e.ToolFinished():  # What it used was counted where it was made.
            return msgspec.structs.replace(event, call_id=_call(event.call_id, old, new), used=None)
        case e.QuestionAnswered(verdict=None):  # The answer is the call's result.
            return e.ToolFinished(call_id=_call(event.call_id, old, new), outcome=ToolOutcome.DONE, content=event.content)
        case e.CauseTaken():
            return event
        case e.TurnEnded():
            return e.TurnEnded(outcome=event.outcome, error=event.error)
    return None


def _call(call_id: str, old: str, new: str) -> str:
    return f"{new}{call_id.removeprefix(old)}" if call_id.startswith(f"{old}.") else call_id
