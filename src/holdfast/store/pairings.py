"""Strangers with a pairing code, and those whom an operator let in."""

from holdfast.core.pairing import DENIED_MS, LIFE_MS, MOST_WRONG, Pending
from holdfast.ports.pairings import Paired
from holdfast.store import queries as q
from holdfast.store.tx import Tx


def put_pairing(tx: Tx, pending: Pending) -> None:
    tx.write(q.PAIRINGS_FORGET, DENIED_MS, pending.made_at - 2 * LIFE_MS)
    row = (pending.platform, pending.user, pending.name, pending.salt, pending.digest, pending.made_at)
    tx.write(q.PAIRING_PUT, *row, int(pending.told), int(pending.denied))


def pairings(tx: Tx, platform: str | None) -> list[Pending]:
    return [
        Pending(platform=found, user=user, name=name, salt=salt, digest=digest, made_at=made_at, told=bool(told), denied=bool(denied))
        for found, user, name, salt, digest, made_at, told, denied in tx.query(q.PAIRINGS)
        if platform in (None, found)
    ]


def pair(tx: Tx, platform: str, user: str, name: str, at: int) -> None:
    tx.write(q.PAIR, platform, user, name, at)
    tx.write(q.PAIRING_GONE, platform, user)


def unpair(tx: Tx, platform: str, user: str) -> bool:
    return tx.execute(q.UNPAIR, platform, user) > 0


def paired(tx: Tx, platform: str | None) -> list[Paired]:
    rows = tx.query(q.PAIRED)
    return [Paired(platform=found, user=user, name=name, at=at) for found, user, name, at in rows if platform in (None, found)]


def is_paired(tx: Tx, platform: str, user: str) -> bool:
    return bool(tx.query(q.IS_PAIRED, platform, user))


def note_wrong_code(tx: Tx, at: int) -> None:
    tx.write(q.WRONG_CODE, at)
    tx.write(q.WRONG_CODES_FORGET, MOST_WRONG)


def wrong_codes(tx: Tx) -> list[int]:
    return [at for (at,) in tx.query(q.WRONG_CODES, MOST_WRONG)]
