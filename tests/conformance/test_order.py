"""Which numbers an engine with many writers may give out: those of one session rise with its log, the records of one session key rise in
the order of their commits, and between the keys there is no order at all. Nothing that is read may depend on more than that (P4, P7).
"""

import random
from typing import Any

import apsw
import pytest

from holdfast.core import events as e
from holdfast.core.delivery import DUE, DeliveryState
from holdfast.core.events import checksum
from holdfast.core.plans.start import StartedTurn
from holdfast.ports.store import Store
from holdfast.store.sqlite.connection import fetch
from holdfast.store.sqlite.tx import rebuild
from tests.conformance.backends import COLUMNS, SqliteBackend, quick_place
from tests.conformance.steps import ENDED, NOW, append, new_owner, running, say, start, text

pytestmark = pytest.mark.anyio

ANN, BOB, PAGE = "agent:main:test:dm:ann", "agent:main:test:dm:bob", "agent:main:web:page:p"
SESSIONS = {"a1": ANN, "a2": ANN, "b1": BOB, "b2": BOB, "p": PAGE}


async def write(store: Store, turn: StartedTurn, name: str) -> StartedTurn:
    return await append(store, turn, e.MessageWritten(message_id=name, role="assistant", content=name, delivery_id=name))


async def converse(store: Store) -> None:
    """Five conversations of three keys, all at once: pieces, replies that are owed, answers that are shown while they grow, and waiting
    messages.
    """
    owner = await new_owner(store)
    turns = {name: await running(store, name, f"{name}.t", key=key, owner=owner) for name, key in SESSIONS.items()}
    for name in ("a1", "b1"):
        opened = e.DeliveryOpened(delivery_id=f"{name}.live", turn_id=f"{name}.t", owner=owner)
        assert await store.open_delivery(name, opened, at=NOW)
        arrived = e.DeliveryChanged(delivery_id=f"{name}.live", state=DeliveryState.LIVE, tries=1, receipt=name)
        assert await store.record_delivery(name, arrived, expect=DeliveryState.SENDING, at=NOW)
    for number in range(4):
        for name in SESSIONS:
            turns[name] = await append(store, turns[name], text("x", number))
        for name in ("a2", "b1", "a1", "b2") if number % 2 else ("b2", "a1"):
            turns[name] = await write(store, turns[name], f"{name}.{number}")
    for name in ("a2", "b2", "p"):
        await append(store, turns[name], text("y", 4), ENDED)
        await say(store, name, f"more for {name}", message_id=f"{name}.m")
    await store.resume_session("a1", by="owner", dedup_key=None, at=NOW)
    await start(store, "p", "p.t2", owner=owner)


async def seen(store: Store) -> dict[str, Any]:
    """What those who ask are given, key by key and session by session."""
    owed = await store.deliveries(states=DUE, now=2**50, limit=100)
    found: dict[str, Any] = {key: [each.delivery_id for each in owed if each.session_key == key] for key in SESSIONS.values()}
    for key in (ANN, BOB, PAGE):
        conversations = await store.conversations(key, limit=10)
        current = await store.current_session(key)
        found[f"of {key}"] = [(number, each.session_id) for number, each in conversations], current and current.session_id
    for name in SESSIONS:
        session = await store.session(name)
        transcript = await store.transcript(session)
        found[name] = (session, [(message.id, message.text) for message in transcript.messages], list(transcript.queued))
        answer = (await store.delivery(f"{name}.3") or await store.delivery(f"{name}.2"))[:1]
        before = answer[0].seq if answer else 2**62
        found[f"shown of {name}"] = (
            await store.live_messages(name, f"{name}.t", before=before),
            await store.live_messages(name, f"{name}.t"),
        )
    found["open"] = {each.session_id for each in await store.open_turns(apart_from=0)}
    found["waiting"] = set(await store.waiting_lanes(limit=10))
    return found


def renumber(db: apsw.Connection, chance: random.Random) -> None:
    """Gives every session and every event another number, as many writers might have, and makes the catalog from that log."""
    keys = dict(fetch(db, "SELECT id, session_key FROM session"))
    numbers = iter(sorted(chance.sample(range(1, 1000), len(keys))))
    waiting = {key: sorted(number for number, of in keys.items() if of == key) for key in keys.values()}
    renamed: dict[int, int] = {}
    while any(waiting.values()):
        key = chance.choice([key for key, left in waiting.items() if left])
        renamed[waiting[key].pop(0)] = next(numbers)
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in fetch(db, f"SELECT {', '.join(COLUMNS)} FROM event ORDER BY id")]
    left = {session: [row for row in rows if row["session"] == session] for session in keys}
    records = {key: [row for row in rows if keys[row["session"]] == key and not row["stream"]] for key in keys.values()}
    db.execute("DELETE FROM event")
    for number in sorted(chance.sample(range(1, 10_000), len(rows))):
        free = [events for session, events in left.items() if events and (events[0]["stream"] or events[0] is records[keys[session]][0])]
        row = chance.choice(free).pop(0)
        if not row["stream"]:
            records[keys[row["session"]]].pop(0)
        row |= {"id": number, "session": renamed[row["session"]]}
        row["checksum"] = checksum(**{name: row[name] for name in COLUMNS if name not in ("id", "checksum")})
        marks = ", ".join("?" * len(COLUMNS))
        db.execute(f"INSERT INTO event ({', '.join(COLUMNS)}) VALUES ({marks})", tuple(row[name] for name in COLUMNS))
    rebuild(db)


async def test_nothing_that_is_read_depends_on_the_order_between_session_keys_or_on_that_of_pieces() -> None:
    """P4, P7: what an engine with many writers keeps is enough for replies, conversations and the catalog."""
    with quick_place() as place:
        backend = SqliteBackend(place)
        async with backend.opened() as store:
            await converse(store)
            first = await seen(store)
        assert first[ANN] == ["a1.0", "a2.1", "a1.1", "a1.2", "a2.3", "a1.3", "a2.m.refused"]
        orders = set()
        for seed in range(25):
            with backend.raw() as db, db:
                renumber(db, random.Random(seed))
                orders.add(tuple(row[0] for row in fetch(db, "SELECT seq FROM event ORDER BY id")))
            async with backend.opened() as store:
                assert await seen(store) == first, f"seed {seed}"
        assert len(orders) > 20


async def test_updates_of_one_account_keep_the_order_of_their_commits() -> None:
    """P1: the row of the account is written before any of them gets its number, so that another writer waits for it."""
    with quick_place() as place:
        async with SqliteBackend(place).opened() as store:
            await store.take_updates("test:1", [b"one"], cursor=None, at=NOW)
            await store.take_updates("test:1", [b"two", b"three"], cursor="c", at=NOW)
            await store.take_updates("test:1", [b"four"], cursor=None, at=NOW)
            assert [update.body for update in await store.updates("test:1", limit=9)] == [b"one", b"two", b"three", b"four"]
            assert await store.cursor("test:1") == "c"
