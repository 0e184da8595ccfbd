"""Updates of chat platforms as they came, where each account is read from next, and what is known of its chats."""

from collections.abc import Sequence

from holdfast.core.places import Spot
from holdfast.ports.updates import DeadPlace, StoredUpdate
from holdfast.store import queries as q
from holdfast.store import reads
from holdfast.store.tx import Tx

REFUSED_KEPT = 1000


def take_updates(tx: Tx, account: str, updates: Sequence[bytes], cursor: str | None, at: int) -> None:
    tx.write(q.CURSOR_SET, account, cursor)  # First: with many writers, this is what another one of the same account waits for.
    tx.write_many(q.ARRIVED, [(account, tx.secrets.raw(update), at) for update in updates])


def cursor(tx: Tx, account: str) -> str | None:
    rows = tx.query(q.CURSOR, account)
    return rows[0][0] if rows else None


def updates(tx: Tx, account: str, after: int, limit: int) -> list[StoredUpdate]:
    return [_stored(*row) for row in tx.query(q.WAITING_UPDATES, account, after, reads.bounded(limit))]


def refused_updates(tx: Tx, limit: int) -> list[StoredUpdate]:
    return [_stored(*row) for row in tx.query(q.REFUSED_UPDATES, reads.bounded(limit))]


def _stored(id: int, account: str, body: bytes, at: int, refused: str | None) -> StoredUpdate:
    return StoredUpdate(id=id, account=account, body=body, at=at, refused=refused)


def settle_update(tx: Tx, id: int, refused: str | None) -> None:
    if refused is None:
        tx.write(q.UPDATE_GONE, id)
    else:
        tx.write(q.UPDATE_REFUSED, tx.secrets.text(refused), id)
        tx.write(q.REFUSED_FORGET, REFUSED_KEPT)


def quiet(tx: Tx, account: str, until: int) -> None:
    tx.write(q.QUIET, account, until)


def quiet_until(tx: Tx, account: str) -> int:
    rows = tx.query(q.QUIET_UNTIL, account)
    return int(rows[0][0]) if rows else 0


def close_place(tx: Tx, spot: Spot, why: str, at: int) -> None:
    tx.write(q.PLACE_CLOSE, spot.platform, spot.chat, spot.thread or "", at, why)


def reopen_place(tx: Tx, platform: str, chat: str) -> bool:
    return tx.execute(q.PLACE_OPEN, platform, chat) > 0


def dead_places(tx: Tx) -> list[DeadPlace]:
    rows = tx.query(q.DEAD_PLACES)
    return [DeadPlace(spot=Spot(platform, chat, thread or None), since=since, why=why) for platform, chat, thread, since, why in rows]


def move_chat(tx: Tx, account: str, was: str, now: str) -> bool:
    """A chat that moved before is kept under its first name."""
    kept = tx.query(q.CHAT_KEPT_AS, account, was)
    name = kept[0][0] if kept else was
    if name == now or chat_names(tx, account).get(name) == now:
        return False
    tx.write(q.CHAT_MOVED, account, name, now)
    return True


def chat_names(tx: Tx, account: str) -> dict[str, str]:
    return dict(tx.query(q.CHAT_NAMES, account))
