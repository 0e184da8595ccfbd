"""Messages and other causes: what waits, what is written, and how far it has come on its way to a chat."""

from typing import Any

from holdfast.core import events as e
from holdfast.core import notices
from holdfast.core.delivery import DeliveryState
from holdfast.core.messages import Delivery, Message
from holdfast.core.transcript.fold import Fold, Free, InTurn, Work


def _accept(fold: Fold, item: e.Logged, event: e.MessageAccepted) -> None:
    _wait(fold, item, event, event.message_id, role="user", sender_name=event.sender_name or None)


def _record_cause(fold: Fold, item: e.Logged, event: e.CauseRecorded) -> None:
    _wait(fold, item, event, event.cause_id, role="cause", cause=event.what, schedule=event.schedule)


def _wait(fold: Fold, item: e.Logged, event: e.MessageAccepted | e.CauseRecorded, id_: str, **more: Any) -> None:
    fold.queued[id_] = Message(
        id=id_,
        content=event.content,
        turn_id=None,
        created_at=item.at,
        sender=event.sender,
        anchor=event.anchor,
        seq=item.seq,
        accepted=item.seq,
        **more,
    )


def _refuse(fold: Fold, item: e.Logged, event: e.MessageRefused) -> None:
    if refused := fold.queued.pop(event.message_id, None):
        refused.status = "refused"
        fold.rows.append(refused)


def _edit(fold: Fold, item: e.Logged, event: e.MessageEdited) -> None:
    if message := fold.find(event.message_id):
        message.content, message.edited_at, message.seq = event.content, item.at, item.seq


def _drop(fold: Fold, item: e.Logged, event: e.CauseDropped) -> None:
    fold.queued.pop(event.cause_id, None)


def _take(fold: Fold, work: Work, item: e.Logged, event: e.CauseTaken) -> None:
    """Its message stands above the answer, which continues, and the answer says where it took it."""
    if message := fold.queued.pop(event.cause_id, None):
        message.turn_id = work.turn.id
        fold.rows.insert_above(work.answer, message)
        work.steps.take(event)
        fold.open(work, item)


def _write(fold: Fold, item: e.Logged, event: e.MessageWritten) -> None:
    """Outside of any turn: a command, or what the gateway says."""
    fold.rows.append(_written(fold, item, event, "command" if event.role == "user" else "complete"))


def _write_in_turn(fold: Fold, work: Work, item: e.Logged, event: e.MessageWritten) -> None:
    if event.role == "assistant":
        work.steps.write(event.content)
        if event.begun:
            work.begin_again(work.turn.steps, event.begun)
        fold.open(work, item)
        answer = work.answer
        answer.content, answer.status, answer.created_at, answer.seq = event.content, "complete", item.at, item.seq
        answer.delivery = _owed(fold, event)
    elif event.role == "user":
        _request(fold, work, item, event)
    else:
        fold.rows.append(_written(fold, item, event))


def _request(fold: Fold, work: Work, item: e.Logged, event: e.MessageWritten) -> None:
    turn = work.turn
    if event.message_id in turn.causes and fold.rows.newest((event.message_id,)):
        return  # It stands there since the turn started.
    turn.causes = turn.causes or (event.message_id,)
    fold.rows.insert_above(work.answer, _written(fold, item, event))


def _written(fold: Fold, item: e.Logged, event: e.MessageWritten, status: str = "complete") -> Message:
    waiting = fold.queued.pop(event.message_id, None)
    return Message(
        id=event.message_id,
        role=event.role,
        content=event.content,
        turn_id=item.turn_id,
        created_at=waiting.created_at if waiting else item.at,
        edited_at=waiting.edited_at if waiting else None,
        status=status,
        seq=item.seq,
        delivery=_owed(fold, event),
    )


def _owed(fold: Fold, event: e.MessageWritten) -> Delivery | None:
    if event.delivery_id is None:
        return None
    return fold.deliveries.setdefault(event.delivery_id, Delivery(delivery_id=event.delivery_id, states=[DeliveryState.PENDING]))


def _plan_delivery(fold: Fold, item: e.Logged, event: e.DeliveryPlanned) -> None:
    if found := fold.deliveries.get(event.delivery_id):
        found.states += [DeliveryState.PENDING] * (len(event.pieces) - len(found.states))


def _deliver(fold: Fold, item: e.Logged, event: e.DeliveryChanged) -> None:
    found = fold.deliveries.get(event.delivery_id)
    if found is not None and event.part < len(found.states):
        found.states[event.part] = event.state
        found.tries, found.retry_at, found.error = event.tries, event.retry_at, event.error


def _branch(fold: Fold, item: e.Logged, event: e.SessionBranched) -> None:
    told = notices.branched(event.title, event.left_out)
    fold.rows.append(Message(id=f"branched.{item.seq}", role="notice", content=told, turn_id=None, created_at=item.at))


def _damage(fold: Fold, item: e.Logged, event: e.Damaged) -> None:
    fold.holes = True
    text = f"One record of this conversation could not be read: {event.reason}."
    fold.rows.append(Message(id=f"notice.{item.seq}", role="notice", content=text, turn_id=item.turn_id, created_at=item.at))


IN_TURN: InTurn = {
    e.CauseTaken: _take,
    e.MessageWritten: _write_in_turn,
}
FREE: Free = {
    e.MessageAccepted: _accept,
    e.MessageEdited: _edit,
    e.MessageRefused: _refuse,
    e.CauseRecorded: _record_cause,
    e.CauseDropped: _drop,
    e.MessageWritten: _write,
    e.DeliveryPlanned: _plan_delivery,
    e.DeliveryChanged: _deliver,
    e.SessionBranched: _branch,
    e.Damaged: _damage,
}
