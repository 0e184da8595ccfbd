"""Shipping: what a turn's process wrote into its spool enters the log, each event in its own place and once."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from holdfast.core import content, journals
from holdfast.core import events as e
from holdfast.core.errors import BlobMissing, NotFound, PositionGap, StaleEpoch
from holdfast.core.journals import Late, Limits, Sight, State
from holdfast.core.plans import ship as plans
from holdfast.core.plans.ship import Snapshot
from holdfast.core.sessions import Lease
from holdfast.core.spools import Spooled
from holdfast.core.turns import TurnState
from holdfast.ports.journals import Journal, Shipped
from holdfast.store import blobs
from holdfast.store import queries as q
from holdfast.store.heads import Head
from holdfast.store.log import insert, number, row_of
from holdfast.store.projection import project
from holdfast.store.tx import Tx

T = TypeVar("T")


def after_spooled(tx: Tx, lease: Lease, turn_id: str, before: Sequence[Spooled], run: Callable[..., T], arguments: tuple[Any, ...]) -> T:
    """What the holder of a turn has spooled, and behind it what it writes now: together or not at all."""
    head = tx.head(number(tx, lease.session_id))
    if (head.epoch, head.owner, head.turn, head.state) != (lease.epoch, lease.owner, turn_id, TurnState.RUNNING):
        raise StaleEpoch(lease.session_id, lease.epoch)
    for item in before:
        if item.position > head.position:
            raise PositionGap(turn_id, item.position, head.position)
        if item.position == head.position:
            _put(tx, head, turn_id, lease.epoch, item, in_place=True)
    return run(tx, *arguments)


def ship(tx: Tx, journal: Journal, items: Sequence[Spooled], sight: Sight, limits: Limits, at: int) -> Shipped:
    """Needs no lease. While the lease that wrote them is the newest, the events continue the turn; after that they are late."""
    tx.session(journal.session_id)  # Of one that is purged, nothing may be added.
    head = tx.head(number(tx, journal.session_id))
    first, last = tx.query(q.OF_TURN, head.session, journal.turn_id)[0]
    if first is None:
        raise NotFound("turn", journal.turn_id)
    shipment = plans.plan(_snapshot(tx, head, journal, first, last, at), items, sight, limits=limits, at=at)
    for change in shipment.changes:
        tx.append(head, change, at, in_turn=False)
    for item in shipment.events:
        _put(tx, head, journal.turn_id, journal.epoch, item, in_place=shipment.in_place)
    return Shipped(new=len(shipment.events), late=not shipment.in_place, state=shipment.state)


def _snapshot(tx: Tx, head: Head, journal: Journal, first: int, last: int, at: int) -> Snapshot:
    """`first`, `last`: where the events of the turn begin and end in the log."""
    over = head.turn != journal.turn_id or head.state is TurnState.ENDED
    return Snapshot(
        stored=frozenset(position for (position,) in tx.query(q.PLACES, head.session, first, journal.turn_id, journal.epoch)),
        current=(head.turn, head.epoch, head.state) == (journal.turn_id, journal.epoch, TurnState.RUNNING),
        over=over,
        pruned=over and last <= tx.query(q.PRUNED_SEQ, head.session)[0][0],
        late=late_journal(tx, head.session, journal) or journals.unexpected(*journal, at=at),
    )


def _put(tx: Tx, head: Head, turn_id: str, epoch: int, item: Spooled, *, in_place: bool) -> None:
    """As it was spooled, with its own time. Secrets were replaced before that."""
    event, body = _storable(tx, head.session, item)
    head.seq += 1
    stream = int(item.kind != e.ToolFinished.kind)
    row = row_of(head.session, head.seq, turn_id, epoch, item.attempt, item.position, item.kind, stream, body, item.at)
    insert(tx, (row,), item.at)
    stands = head.position
    if in_place:
        head.position = item.position
    changes = project(head, event, item.at, in_turn=in_place)
    head.position = max(stands, head.position)
    tx.apply(head, changes)


def _storable(tx: Tx, session: int, item: Spooled) -> tuple[e.Event, bytes]:
    """Bytes that its result named may be gone by now; the words of the result stay."""
    event = item.event
    if not event.says:
        return event, item.body
    try:
        blobs.hold(tx, session, event)
        return event, item.body
    except BlobMissing:
        assert isinstance(event, e.ToolFinished)
        kept = msgspec.structs.replace(event, content=content.outline(event.content))
        return kept, e.encode(kept)


def late_journal(tx: Tx, session: int, journal: Journal) -> Late | None:
    rows = tx.query(q.JOURNAL, session, journal.turn_id, journal.epoch)
    return _late(rows[0]) if rows else None


def journal(tx: Tx, turn_id: str, epoch: int) -> Late | None:
    rows = tx.query(q.JOURNAL_NAMED, turn_id, epoch)
    return _late(rows[0]) if rows else None


def late_journals(tx: Tx, limit: int) -> list[Late]:
    return [_late(row) for row in tx.query(q.JOURNALS_LATE, limit)]


def session_of_turn(tx: Tx, turn_id: str) -> str | None:
    rows = tx.query(q.TURN_OF, turn_id, turn_id)
    return str(rows[0][0]) if rows else None


def _late(row: tuple[Any, ...]) -> Late:
    session_id, turn_id, epoch, state, tries, size, filled, first_seen, changed_at = row
    return Late(
        session_id=session_id,
        turn_id=turn_id,
        epoch=epoch,
        state=State(state),
        tries=tries,
        size=size,
        filled=bool(filled),
        first_seen=first_seen,
        changed_at=changed_at,
    )
