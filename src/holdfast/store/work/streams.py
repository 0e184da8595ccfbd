"""Pieces of text, thought and output: the writes of which there are most. One fenced UPDATE answers for each."""

from collections.abc import Sequence

from holdfast.core import events as e
from holdfast.core.errors import Bug, Conflict, NotFound, NotStorable, PositionGap, StaleEpoch, StalePosition
from holdfast.core.sessions import Lease
from holdfast.core.turns import TurnState
from holdfast.ports.turns import StreamItem
from holdfast.store import queries as q
from holdfast.store.heads import Head
from holdfast.store.log import NOT_STORABLE, insert, number, row_of
from holdfast.store.tx import Tx


def append_stream(tx: Tx, lease: Lease, turn_id: str, attempt: int, position: int, events: Sequence[e.Event], at: int) -> int:
    """One fenced UPDATE answers for lease and position; only a refusal is looked into."""
    pieces = [(event.kind, tx.secrets.seal(event)[1]) for event in events]  # Before anything is written: it may be no text at all.
    count, epoch = len(pieces), lease.epoch
    fenced = tx.query(q.FENCED, count, count, lease.session_id, epoch, lease.owner, turn_id, attempt, position)
    if not fenced:
        raise _why_refused(tx, lease, turn_id, attempt, position)
    session, seq = fenced[0]
    seq -= count
    rows = []
    for kind, body in pieces:
        seq += 1
        rows.append(row_of(session, seq, turn_id, epoch, attempt, position, kind, 1, body, at))
        position += 1
    insert(tx, rows, at)
    return position


def append_streams(tx: Tx, items: Sequence[StreamItem], at: int) -> list[int | Exception]:
    results: list[int | Exception] = []
    for item in items:
        try:
            for event in item.events:
                if not event.stream:
                    raise Bug("Only stream events can be written for many turns at once.")
            results.append(append_stream(tx, item.lease, item.turn_id, item.attempt, item.position, item.events, at))
        except (Conflict, NotFound, Bug) as refusal:
            results.append(refusal)
        except NOT_STORABLE as error:
            results.append(NotStorable(error))
    return results


def _why_refused(tx: Tx, lease: Lease, turn_id: str, attempt: int, position: int) -> Exception:
    head = tx.head(number(tx, lease.session_id))
    if (head.epoch, head.owner, head.turn, head.state) == (lease.epoch, lease.owner, turn_id, TurnState.RUNNING):
        check_position(head, turn_id, attempt, position)
    return StaleEpoch(lease.session_id, lease.epoch)


def check_position(head: Head, turn_id: str, attempt: int, position: int) -> None:
    if attempt < head.attempt or position < head.position:
        raise StalePosition(turn_id, position, head.position)
    if attempt > head.attempt or position > head.position:
        raise PositionGap(turn_id, position, head.position)
