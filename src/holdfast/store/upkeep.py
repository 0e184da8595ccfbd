"""The writes that keep the store itself: who lives, how lives ended, the search index, pruning."""

from collections.abc import Iterator, Sequence

import msgspec

from holdfast.core import events as e
from holdfast.core.busy import Mode
from holdfast.core.content import outline
from holdfast.core.shutdowns import Shutdown, joined
from holdfast.core.turns import OPEN
from holdfast.ports.owners import Owner, Pause
from holdfast.store import queries as q
from holdfast.store import reads
from holdfast.store.log import number, read, salvage
from holdfast.store.tx import Tx

PRUNED_AT_ONCE = 10_000
STARTS_KEPT = 20
# More than a day of them, should somebody pause every ten minutes.
PAUSES_KEPT = 150
# Indexing a megabyte takes a fifth of a second, in which nothing else can be written.
SEARCHABLE_CHARS = 64 * 1024
INDEXED_AT_ONCE = 128 * 1024


def register_owner(tx: Tx, owner: Owner) -> int:
    rows = tx.query(q.OWNER_REGISTER, owner.name, owner.pid, owner.started_at, owner.boot_id, owner.socket)
    return int(rows[0][0])


def record_start(tx: Tx, owner: int, at: int, version: str | None) -> int:
    tx.execute(q.START_ADD, owner, at, owner, version)
    tx.execute(q.STARTS_KEEP, STARTS_KEPT)
    return reads.unclean_starts(tx, owner)


def record_sound(tx: Tx, owner: int) -> None:
    tx.execute(q.START_SOUND, owner)


def record_drain(tx: Tx, owner: int, reason: str) -> None:
    tx.execute(q.OWNER_DRAINS, reason, owner)


def tell_owners(tx: Tx, stop: Shutdown, by: int | None) -> None:
    for id_, told in tx.query(q.OWNERS_TOLD, by):
        whole = msgspec.json.encode(joined(reads.stop_in(told), stop)).decode()
        tx.execute(q.OWNER_TELL, whole, id_)


def record_end(tx: Tx, owner: int, ended: bool, handed_over: bool, at: int) -> None:
    if ended:
        tx.execute(q.START_HANDED if handed_over else q.START_ENDED, at, owner)
    else:
        tx.execute(q.START_GOES_ON, owner)


def record_stop(tx: Tx, owners: Sequence[int], reason: str) -> None:
    for owner in owners:
        tx.execute(q.OWNER_STOPPED, reason, owner)
        tx.execute(q.START_STOPPED, owner)


def set_pause(tx: Tx, pause: Pause | None, at: int) -> None:
    tx.execute(q.PAUSED_ADD)  # An older program that serves next to this one has begun it.
    tx.execute(q.PAUSED_OVER, at, at, at)
    tx.execute(q.PAUSE_END)
    if pause is not None:
        tx.execute(q.PAUSE_BEGIN, pause.holder, pause.since, pause.until)
        tx.execute(q.PAUSED_BEGIN, pause.since, pause.holder, pause.until)
    tx.execute(q.PAUSED_KEEP, PAUSES_KEPT - 1)


def sign_out(tx: Tx, sign_in: str, until: int, now: int) -> None:
    tx.execute(q.SIGN_INS_FORGET, now)
    tx.execute(q.SIGN_OUT, sign_in, until)


def forget_owner(tx: Tx, owner: int) -> None:
    # A lease is held by open turns alone, and those have an index.
    tx.execute(q.OWNER_FORGET, owner, owner)


def index_search(tx: Tx, limit: int) -> bool:
    """Off the write path: messages become searchable a moment after they are stored, a long one by its beginning. How far the index has
    come is known for each session; the mark only says which of them to look at. Pieces have no words of their own.
    """
    mark = tx.query(q.SEARCH_MARK)[0][0]
    touched = tx.sessions_since(mark, limit, records=True)
    room = INDEXED_AT_ONCE
    for session in touched.sessions:
        room -= _index_session(tx, session, room)
        if room <= 0:
            return True  # The rest comes next time.
    if touched.mark > mark:
        tx.execute(q.SEARCH_MARK_SET, touched.mark)
    return touched.more


def _index_session(tx: Tx, session: int, room: int) -> int:
    """At least one text, if there is one, and no more than there is room for. Gives how many characters went into the index."""
    rows = tx.query(q.INDEXED, session)
    if not rows:
        return 0  # Damage has changed whose event it is.
    last, after = rows[0]
    came, used = last, 0
    for seq, event, text in _texts(tx, session, after, last):
        if used >= room:
            came = seq - 1
            break
        if isinstance(event, e.MessageEdited):
            _forget_words(tx, session, event, seq)
        tx.index(session, seq, text[:SEARCHABLE_CHARS])
        used += len(text[:SEARCHABLE_CHARS])
    tx.execute(q.INDEXED_SET, session, came)
    return used


def _forget_words(tx: Tx, session: int, edited: e.MessageEdited, seq: int) -> None:
    """What the message said before is no longer found."""
    after = edited.since - 1
    while rows := tx.page(q.SAID_BETWEEN, session, after, seq):
        for item in read(tx, rows, {session: ""}, []):
            if getattr(item.event, "message_id", None) == edited.message_id:
                tx.unindex(session, item.seq, item.seq)
        after = rows[-1][2]


def _texts(tx: Tx, session: int, after: int, last: int) -> Iterator[tuple[int, e.Event, str]]:
    try:
        rows = tx.query(q.SEARCHED, session, after, last)
    except tx.unreadable:  # The index alone may still be whole.
        places = tx.query(q.RECORD_PLACES, session, after, last)
        rows = [(item.seq, item.kind, item.body) for item in read(tx, salvage(tx, places), {session: ""}, [])]
    for seq, kind, body in rows:
        event = e.decode(kind, body) if isinstance(body, bytes) else None
        text = _words(event)
        if event is not None and isinstance(text, str) and text:
            yield seq, event, text


def _words(event: e.Event | None) -> object:
    """Of a message that waits, the record of its turn is found; one that steers a turn has no other than its own."""
    match event:
        case e.MessageWritten() | e.MessageEdited() | e.QuestionAnswered() | e.MessageAccepted(mode=Mode.STEER):
            return outline(event.content)
        case _:
            return getattr(event, "title", None)


def prune_session(tx: Tx, session_id: str, at: int) -> tuple[int, bool]:
    """Drops stream events of a session at rest, a page of them; the record of it makes readers with an old cursor start from a snapshot.
    Gives how many went, and whether more are there."""
    head = tx.head(number(tx, session_id))
    if head.state in OPEN:
        return 0, False
    pruned = tx.query(q.PRUNED_SEQ, head.session)[0][0]
    first_kept = tx.query(q.FIRST_PIECE_KEPT, head.session, pruned, head.seq, PRUNED_AT_ONCE)
    through = first_kept[0][0] - 1 if first_kept else head.seq
    gone = tx.execute(q.PIECES_REMOVE, head.session, pruned, through)
    tx.append(head, e.JournalPruned(through=through), at, in_turn=False)
    return gone, bool(first_kept)
