"""What becomes of a turn that no process runs, and of messages that no turn will take. Parts of operations, inside their transaction."""

import msgspec

from holdfast.core import events as e
from holdfast.core import notices, replies
from holdfast.core.busy import Asked, asked
from holdfast.core.delivery import DeliveryState
from holdfast.core.effects import ToolOutcome
from holdfast.core.errors import Bug
from holdfast.core.recovery import close_every_call
from holdfast.core.replies import asked_delivery
from holdfast.core.transcript import answer_id
from holdfast.core.turns import Outcome, TurnState
from holdfast.store import reads
from holdfast.store.heads import Head
from holdfast.store.tx import Tx

STOPPED_WAITING = "The turn was stopped before an answer came."
SUSPENDED_FIRST = "the conversation was suspended first"


def open_question(tx: Tx, session: int) -> tuple[str, str, int]:
    """Its id, the call it belongs to, and until when it may be answered."""
    rows = tx.query("SELECT question_id, call_id, expires_at FROM question WHERE session = ? AND state = 'open'", session)
    if not rows:
        raise Bug(f"Session {session} waits, but no question of it is open.")
    return rows[0][0], rows[0][1], rows[0][2]


def question_told(tx: Tx, session: int) -> Asked:
    """How far the open question has come on its way to its chat."""
    return asked([DeliveryState(state) for _, state, _ in _tellings(tx, session)])


def ask_again(tx: Tx, head: Head, at: int) -> None:
    """Owes the chat its open question once more, if no message that carried it will ever arrive and there is still time to answer (R5).
    The caller saves the head.
    """
    tellings = _tellings(tx, head.session)
    if open_question(tx, head.session)[2] <= at or asked([DeliveryState(state) for _, state, _ in tellings]) is not Asked.LOST:
        return
    first, _, seq = tellings[0]
    written = tx.event_at(head.session, seq)
    if isinstance(written, e.MessageWritten):
        name = f"{first}.{len(tellings) + 1}"
        tx.append(head, msgspec.structs.replace(written, message_id=name, delivery_id=name), at, in_turn=True)


def _tellings(tx: Tx, session: int) -> list[tuple[str, str, int]]:
    """(delivery, state, seq) of every message that carries the open question to a chat, the first one first."""
    first = asked_delivery(open_question(tx, session)[0])
    return tx.query(
        "SELECT delivery_id, state, seq FROM outbox WHERE session = ?1 AND delivery_id BETWEEN ?2 AND ?2 || '/' ORDER BY id", session, first
    )


def end_unattended(tx: Tx, head: Head, outcome: Outcome, why: str, at: int) -> None:
    """Ends a turn that no process runs: its open question is closed, and what it had said becomes a record."""
    if head.state is TurnState.WAITING:
        _, call_id, _ = open_question(tx, head.session)
        tx.append(head, e.ToolFinished(call_id=call_id, outcome=ToolOutcome.FAILED, content=why), at, in_turn=True)
    key, anchor = tx.session(reads.name(tx, head.session)).session_key, anchor_of(tx, head)
    if head.turn is not None and (said := reads.answer_text(tx, head)):
        tx.append(head, replies.written(key, "assistant", answer_id(head.turn), said, anchor=anchor), at, in_turn=True)
    if outcome is Outcome.FAILED and replies.owed(key):
        tx.append(head, replies.written(key, "notice", f"{head.turn}.error", why, anchor=anchor), at, in_turn=True)
    tx.append(head, e.TurnEnded(outcome=outcome, error=why if outcome is Outcome.FAILED else None), at, in_turn=True)


def last_request(tx: Tx, head: Head) -> list[e.Event]:
    """What puts the last request of a session again: as a message of the same sender, in reply to the same one, with the mark of what
    interrupted it, so that its agent is told (B1). Nothing where it cannot be read.
    """
    asked = tx.event_at(head.session, head.asked_seq)
    if not isinstance(asked, e.MessageAccepted):
        return []
    # It may be refused before its turn starts, and put once more: that is another message.
    message_id = f"{head.turn}.again.{head.seq}"
    again = e.MessageAccepted(message_id=message_id, content=asked.text, sender=asked.sender, anchor=asked.anchor)
    return [e.SessionChanged(resume_pending=True, resume_reason=reads.last_reason(tx, head)), again]


def set_aside(tx: Tx, head: Head, key: str, at: int) -> None:
    """A human's message goes on from a turn that was left. The mark outlives it, until a turn completes (A13, A23)."""
    cut = reads.open_turn(tx, head)
    rule, why = tx.query("SELECT rule, why FROM session WHERE id = ?", head.session)[0]
    events: list[e.Event] = [*close_every_call(cut.calls)]
    if cut.answer_text:
        events.append(replies.written(key, "assistant", answer_id(head.turn or ""), cut.answer_text, anchor=anchor_of(tx, head)))
    events.append(e.TurnEnded(outcome=Outcome.SET_ASIDE, rule=rule, why=why, still_pending=True))
    for event in events:
        tx.append(head, event, at, in_turn=True)


def refuse_waiting(tx: Tx, head: Head, why: str, at: int) -> None:
    """What waits where no turn will start is refused; its senders are told once, with their words (A20). The caller saves the head."""
    waiting = reads.waiting_texts(tx, head.session)
    if not waiting:
        return
    for message_id, _ in waiting:
        tx.append(head, e.MessageRefused(message_id=message_id, reason=why), at, in_turn=False)
    key = tx.session(reads.name(tx, head.session)).session_key
    told = notices.refused([text for _, text in waiting], why)
    tx.append(head, replies.written(key, "notice", f"{waiting[0][0]}.refused", told), at, in_turn=False)


def anchor_of(tx: Tx, head: Head) -> str | None:
    """What a reply of the open turn hangs on."""
    asked = tx.event_at(head.session, head.asked_seq)
    return asked.anchor if isinstance(asked, e.MessageAccepted) else None
