"""What a chat must be told besides answers: notices, and questions that never arrived. A page reads the log; a chat has to be sent to."""

from collections.abc import Sequence
from enum import Enum, auto

import msgspec

from holdfast.core import replies
from holdfast.core.content import Content
from holdfast.core.delivery import DeliveryState
from holdfast.core.events import DeliveryChanged, DeliveryOpened, DeliveryPlanned, Event, MessageWritten
from holdfast.core.plans import Plan, Write
from holdfast.core.sessions import Session
from holdfast.core.turns import TurnState

UNREADABLE = "(this answer was damaged on disk and cannot be read)"


class Asked(Enum):
    """How far a question has come on its way to its user. LOST: every attempt to deliver it was given up."""

    SEEN = auto()
    ON_ITS_WAY = auto()
    LOST = auto()


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """An open question. `deliveries`: of every message that carries it to a chat, the first one first; a page needs none. `receipts`: how
    the platform names those that arrived. `told`: that first message, where it can be read. `choices`: what can be chosen.
    """

    question_id: str
    call_id: str
    expires_at: int
    form: str = "question"
    deliveries: tuple[DeliveryState, ...] = ()
    receipts: tuple[str, ...] = ()
    told: MessageWritten | None = None
    choices: tuple[str, ...] = ()


def asked(deliveries: Sequence[DeliveryState]) -> Asked:
    """Whether the user of a question can have seen it (A27)."""
    if not deliveries or DeliveryState.SENT in deliveries:
        return Asked.SEEN
    return Asked.LOST if all(state is DeliveryState.DEAD for state in deliveries) else Asked.ON_ITS_WAY


def arrived(pieces: Sequence[DeliveryState]) -> DeliveryState:
    """How far a message has come that is sent in pieces: it is there when all of them are."""
    for state in (DeliveryState.DEAD, DeliveryState.SENT):
        if state in pieces and (state is DeliveryState.DEAD or set(pieces) == {state}):
            return state
    return DeliveryState.PENDING


def question_again(question: Question, *, at: int) -> list[MessageWritten]:
    """Owes the chat an open question once more, if no message that carried it will ever arrive and there is time to answer (R5)."""
    told = question.told
    if told is None or question.expires_at <= at or asked(question.deliveries) is not Asked.LOST:
        return []
    name = f"{told.delivery_id}.{len(question.deliveries) + 1}"
    return [msgspec.structs.replace(told, message_id=name, delivery_id=name)]


def written(recorded: Event) -> Content:
    """What a delivery carries, from the record of its message. Of one that was damaged its chat is told at least that it was there."""
    return recorded.content if isinstance(recorded, MessageWritten) else UNREADABLE


def notice_key(session_id: str, notice_id: str) -> str:
    """Under which a notice is remembered, so that it is written once."""
    return f"notice|{session_id}|{notice_id}"


def notice(session: Session, notice_id: str, content: Content, *, anchor: str | None) -> Plan[bool]:
    session_id = session.session_id
    told = replies.written(session.session_key, "notice", f"{session_id}.{notice_id}", content, anchor=anchor)
    return Plan((Write(session_id, msgspec.structs.replace(told, dedup_key=notice_key(session_id, notice_id))),), True)


def delivery(session_id: str, change: DeliveryChanged, *, state: DeliveryState | None, expect: DeliveryState) -> Plan[bool]:
    """Moves a delivery on, if it is where its sender believes it to be. `state`: None where there is no such delivery."""
    return Plan((Write(session_id, change),), True) if state is expect else Plan((), False)


class Planning(msgspec.Struct, frozen=True, kw_only=True):
    """What is found of a delivery that is to be sent in pieces. `state`: None where it is planned already, or not there. `live`: of the
    messages that it is to be put into.
    """

    state: DeliveryState | None
    live: dict[str, DeliveryState] = {}


def pieces(session_id: str, planned: DeliveryPlanned, found: Planning) -> Plan[bool]:
    holds = found.state is DeliveryState.PENDING
    holds = holds and all(found.live.get(name) is DeliveryState.LIVE for name in planned.live)
    holds = holds and all(found.live.get(name) is DeliveryState.UNKNOWN for name in planned.lost)
    return Plan((Write(session_id, planned),), True) if holds else Plan((), False)


def opening(session: Session, opened: DeliveryOpened, *, owes: bool) -> Plan[bool]:
    """`owes`: something else is still owed to the chat, by this conversation or by another one, and comes first."""
    runs = session.turn_id == opened.turn_id and session.turn_state is TurnState.RUNNING and not session.deleted
    return Plan((Write(session.session_id, opened),), True) if runs and not owes else Plan((), False)
