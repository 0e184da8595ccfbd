"""What is owed to chats: what there is of it, and how it moves on."""

from collections.abc import Sequence
from typing import Any

from holdfast.core import events as e
from holdfast.core.delivery import DeliveryState
from holdfast.core.plans import owe
from holdfast.core.plans.deliver import Live
from holdfast.ports.outbox import Delivery
from holdfast.store import queries as q
from holdfast.store import reads
from holdfast.store.log import number
from holdfast.store.tx import Tx
from holdfast.store.work import run, snapshots


def deliveries(tx: Tx, states: Sequence[DeliveryState], now: int, limit: int, platforms: Sequence[str] | None = None) -> list[Delivery]:
    if not states or (platforms is not None and not platforms):
        return []
    names, lanes = [str(state) for state in states], [f":{platform}:" for platform in platforms or ()]
    begins = [value for lane in lanes for value in (len(lane), lane)]
    rows = tx.query(q.deliveries(len(states), len(lanes)), *names, *begins, reads.bounded(now), reads.bounded(limit))
    return [_delivery(tx, row) for row in rows]


def live_deliveries(tx: Tx) -> list[Delivery]:
    return [_delivery(tx, row) for row in tx.query(q.LIVE)]


def delivery(tx: Tx, delivery_id: str) -> list[Delivery]:
    return [_delivery(tx, row) for row in tx.query(q.DELIVERY, delivery_id)]


def live_messages(tx: Tx, session_id: str, turn_id: str, before: int) -> list[Live]:
    until = reads.bounded(before)
    return [
        Live(delivery_id=name, state=reads.member(DeliveryState, state), seq=seq, receipt=receipt, owner=owner, followed=bool(followed))
        for name, state, seq, receipt, owner, followed in tx.query(q.LIVE_OF_TURN, until, until, session_id, turn_id)
    ]


def _delivery(tx: Tx, row: tuple[Any, ...]) -> Delivery:
    (
        delivery_id, part, session_id, session_key, state, tries, retry_at, owner, session, seq, at, tried_at, turn, live, planned, target,
        receipt, error,
    ) = row  # fmt: skip
    written = tx.event_at(session, seq)
    plan = tx.event_at(session, planned) if planned is not None else None
    pieces = plan.pieces if isinstance(plan, e.DeliveryPlanned) else ()
    message = written if isinstance(written, e.MessageWritten) else None
    return Delivery(
        delivery_id=delivery_id,
        session_id=session_id,
        session_key=session_key,
        state=reads.member(DeliveryState, state),
        content="" if live else owe.written(written),
        tries=tries,
        retry_at=retry_at,
        part=part,
        parts=max(1, len(pieces)),
        piece=pieces[part] if part < len(pieces) else None,
        anchor=written.anchor if isinstance(written, e.MessageWritten | e.DeliveryOpened) else None,
        owner=owner,
        written_at=at,
        tried_at=tried_at,
        turn_id=turn,
        live=bool(live),
        planned=planned is not None,
        target=target,
        receipt=receipt,
        error=error,
        buttons=message.buttons if message else (),
        role=message.role if message else "",
        seq=seq,
    )


def record_delivery(tx: Tx, session_id: str, change: e.DeliveryChanged, expect: DeliveryState, at: int) -> bool:
    state = snapshots.delivery_state(tx, number(tx, session_id), change.delivery_id, change.part)
    return run(tx, owe.delivery(session_id, change, state=state, expect=expect), at)


def plan_delivery(tx: Tx, session_id: str, planned: e.DeliveryPlanned, at: int) -> bool:
    return run(tx, owe.pieces(session_id, planned, snapshots.planning(tx, number(tx, session_id), planned)), at)


def open_delivery(tx: Tx, session_id: str, opened: e.DeliveryOpened, at: int) -> bool:
    session = tx.session(session_id)
    owes = bool(tx.query(q.OWES, session.session_key))
    return run(tx, owe.opening(session, opened, owes=owes), at)


def reply_anchor(tx: Tx, session_id: str) -> str | None:
    return snapshots.anchor(tx, tx.head(number(tx, session_id)))
