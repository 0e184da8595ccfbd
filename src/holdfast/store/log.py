"""Rows of the log: how an event becomes one, how it is read back and checked."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from holdfast.core.errors import Bug, NotFound
from holdfast.core.events import KINDS, LARGE_BYTES, Damaged, Event, Logged, Page, TurnResumed, TurnStarted, TurnTaken, checksum, encode
from holdfast.core.notices import CHANGED_EVENT, DAMAGED_EVENT, MISSING_EVENT
from holdfast.ports.log import Make
from holdfast.store import blobs
from holdfast.store import queries as q
from holdfast.store.heads import Head
from holdfast.store.projection import project
from holdfast.store.tx import Tx

_KIND_NAMES = {kind.encode(): kind for kind in KINDS}
# Version 0.1 had no such column, and its checksums do not cover it.
_IS_STREAM = {kind: int(event.stream) for kind, event in KINDS.items()}

# What Python raises for values that no event and no column can hold.
NOT_STORABLE = (UnicodeEncodeError, OverflowError, RecursionError)


def number(tx: Tx, session_id: str) -> int:
    """The store's own number of a session."""
    rows = tx.query(q.SESSION_NUMBER, session_id)
    if not rows:
        raise NotFound("session", session_id)
    return int(rows[0][0])


def row_of(
    session: int,
    seq: int,
    turn: str | None,
    epoch: int,
    attempt: int,
    position: int,
    kind: str,
    stream: int,
    body: bytes,
    at: int,
) -> tuple[Any, ...]:
    """An event as it is added to the log (`queries.INSERT`)."""
    checked = checksum(session, seq, turn, attempt, position, kind, at, body, epoch, stream)
    return (session, seq, turn, epoch, attempt, position, kind, stream, at, body, checked)


def insert(tx: Tx, rows: Sequence[tuple[Any, ...]], at: int) -> None:
    added = tx.insert(rows)
    while added < len(rows):
        # The head says that the place is free. Only a row whose own session or sequence was changed on disk can stand there.
        session, seq = rows[added][:2]
        if not _clear_stray(tx, session, seq, at):
            raise Bug(f"The place {seq} of session {session} is taken in the log.")
        added += tx.insert(rows[added:])


# The place of an event outside any turn: no turn, epoch, attempt or position.
OUTSIDE = (None, 0, 0, 0)


def append(tx: Tx, head: Head, event: Event, at: int, *, in_turn: bool) -> None:
    """Writes one event behind the head, and everything that follows from it. Positions count within a lease, from its first event."""
    if isinstance(event, TurnStarted | TurnTaken):
        head.epoch, head.position = event.epoch, 0
        if isinstance(event, TurnStarted):
            head.turn_seq = head.seq + 1
    attempt = event.attempt if isinstance(event, TurnStarted | TurnResumed) else head.attempt
    event, body = tx.secrets.seal(event)
    if event.says:
        blobs.hold(tx, head.session, event)
    head.seq += 1
    place = (head.turn, head.epoch, attempt, head.position) if in_turn else OUTSIDE
    insert(tx, (row_of(head.session, head.seq, *place, event.kind, int(event.stream), body, at),), at)
    tx.apply(head, project(head, event, at, in_turn=in_turn))


class Finding(msgspec.Struct, frozen=True):
    """A stored event that does not read, for the quarantine. `event_id` is 0 where nothing is stored at all."""

    event_id: int
    session: int
    seq: int
    reason: str
    row: bytes


def read(tx: Tx, rows: Iterable[tuple[Any, ...]], names: dict[int, str], found: list[Finding]) -> list[Logged]:
    """Rows as events. What fails its checksum stands as `Damaged` in its place and is added to `found`; one that has lost even its place
    belongs to the session ""."""
    logged = []
    for row in rows:
        _, session, seq, raw_turn, epoch, attempt, position, raw_kind, stream, at, body, stored = row
        kind = _KIND_NAMES.get(raw_kind)
        reason = turn = None
        try:
            if raw_turn is not None:
                turn = raw_turn.decode()
            if kind is None and raw_kind is not None:
                kind = raw_kind.decode()  # One of a later version, if its checksum holds.
            if kind is None or type(body) is not bytes or (epoch is None and stream != _IS_STREAM.get(kind)):
                reason = CHANGED_EVENT
            elif checksum(session, seq, turn, attempt, position, kind, at, body, epoch, stream) != stored:
                reason = DAMAGED_EVENT
        except UnicodeDecodeError:
            reason = CHANGED_EVENT
        if reason is None:
            name = names.get(session)
            if name is None:
                name = names[session] = _session_name(tx, session)
            logged.append(Logged(name, seq, turn, attempt, position, kind or "", at, body, epoch, stream == 1))
        else:
            found.append(_finding(row, reason))
            if _has_place(tx, session, seq):
                logged.append(damaged(names.get(session) or _session_name(tx, session), seq, reason))
            else:
                logged.append(damaged("", 0, reason))
    return logged


def made(page: Page, make: Make | None) -> Page:
    """What is made of large events is made here, where it holds up no event loop."""
    if make is not None:
        page.made = {(item.session_id, item.seq): make(item) for item in page if len(item.body) >= LARGE_BYTES}
    return page


def body_size(row: tuple[Any, ...]) -> int:
    return len(row[10]) if type(row[10]) is bytes else 0


def salvage(tx: Tx, places: Iterable[tuple[int, int, int]]) -> list[tuple[Any, ...]]:
    """The rows at these places (id, session, seq), read one by one where SQLite cannot read them together. A row that cannot be read at
    all is given without content, which `read` takes as damage."""
    rows: list[tuple[Any, ...]] = []
    for id_, session, seq in places:
        try:
            rows += tx.query(q.EVENT_BY_ID, id_)
        except tx.unreadable:
            rows.append((id_, session, seq, None, 0, 0, 0, None, 0, 0, None, 0))
    return rows


def damaged(session_id: str, seq: int, reason: str) -> Logged:
    return Logged(session_id, seq, None, 0, 0, Damaged.kind, 0, encode(Damaged(reason=reason)))


def fill_gaps(
    session_id: str, session: int, after: int, logged: list[Logged], until: int, limit: int, found: list[Finding]
) -> list[Logged]:
    """Where a sequence between `after` and `until` is missing, `Damaged` stands for it. At most `limit` events."""
    by_seq = {item.seq: item for item in logged}
    whole: list[Logged] = []
    for seq in range(after + 1, min(until, after + limit) + 1):
        item = by_seq.get(seq)
        if item is None:
            found.append(Finding(0, session, seq, MISSING_EVENT, b""))
            item = damaged(session_id, seq, MISSING_EVENT)
        whole.append(item)
    return whole


def _session_name(tx: Tx, session: int) -> str:
    rows = tx.query(q.SESSION_NAME, session)
    return str(rows[0][0]) if rows else f"?{session}"


def _has_place(tx: Tx, session: Any, seq: Any) -> bool:
    """Whether a damaged row stands where its session's log has an event at all. Otherwise it may belong anywhere."""
    if type(session) is not int or type(seq) is not int:
        return False
    return bool(tx.query(q.IN_LOG, session, seq))


def _clear_stray(tx: Tx, session: int, seq: int, at: int) -> bool:
    rows = tx.query(q.EVENT_AT, session, seq)
    found: list[Finding] = []
    read(tx, rows, {}, found)
    if not found:
        return False
    quarantine(tx, found, at)
    tx.execute(q.EVENT_REMOVE, session, seq)
    return True


def quarantine(tx: Tx, found: Iterable[Finding], at: int) -> None:
    tx.write_many(
        q.QUARANTINE,
        [(item.session, item.seq, item.event_id, item.reason, item.row, at) for item in found],
    )


def _finding(row: tuple[Any, ...], reason: str) -> Finding:
    id_, session, seq = (value if type(value) is int else 0 for value in row[:3])
    return Finding(id_, session, seq, reason, repr(row).encode())
