"""A database of an earlier schema is brought up to date, with everything that is in it (A3)."""

import asyncio
from pathlib import Path
from typing import Any

import apsw
import pytest

from holdfast.core import events as e
from holdfast.core.errors import Refused
from holdfast.core.transcript import Transcript
from holdfast.core.turns import Outcome, TurnState
from holdfast.ports.owners import Pause
from holdfast.ports.store import Store
from holdfast.store import open_store
from holdfast.store.projection import DERIVED
from holdfast.store.queries import RECORDS
from holdfast.store.sqlite.connection import OLDEST_PREDECESSOR, SCHEMA_VERSION, check_predecessor, connect, fetch, migrate
from holdfast.store.sqlite.store import DATABASE
from holdfast.store.sqlite.tx import rebuild
from tests.conformance.backends import SqliteBackend, quick_place
from tests.conformance.steps import (
    CUT,
    NOW,
    append,
    kinds,
    new_owner,
    new_session,
    owed,
    pauses,
    question,
    rested,
    running,
    say,
    start,
    text,
)

pytestmark = pytest.mark.anyio

# Every schema before this one, as it was.
SCHEMAS = {version: Path(__file__).with_name(f"schema_{version}.sql").read_text() for version in range(1, SCHEMA_VERSION)}
# Tables that have grown since.
GROWN = {
    version: ({"session"} if version < 7 else set())
    | ({"question", "inbox"} if version < 6 else set())
    | ({"head", "owner"} if version < 4 else set())
    for version in SCHEMAS
}
# By table and column, as they were: what they are now.
BECAME = {
    ("head", "left"): "stays",
    ("inbox", "message_id"): "cause_id",
    ("outbox", "id"): "row_number() OVER (ORDER BY session, seq)",
}
# How rows were written before they had an epoch.
INSERT = "INSERT INTO event (session, seq, turn, attempt, position, kind, at, body, checksum) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"

every_schema = pytest.mark.parametrize("version", SCHEMAS)


async def live(store: Store) -> None:
    """A bit of everything an earlier version knew."""
    await rested(store, "idle")
    await new_session(store, "queued")
    await say(store, "queued", "still waits", key="k1", message_id="m1")
    await append(store, await running(store, "runs", "t2"), text("half"), text(" of it", 4))
    await append(store, await running(store, "cut", "t3"), CUT)
    await append(store, await running(store, "waits", "t4"), question("q1", NOW + 10**6))
    await new_session(store, "suspended")
    await store.change_session("suspended", e.SessionChanged(suspended=True, title="t"), at=NOW)
    turn = await running(store, "owes", "t5", key="agent:main:chat:dm:1")
    written = e.MessageWritten(message_id="a", role="assistant", content="answer", delivery_id="d1")
    await append(store, turn, written, e.TurnEnded(outcome=Outcome.COMPLETED))


def tables(db: apsw.Connection) -> list[str]:
    """Those that say something, as far as the schema has them."""
    known = {row[0] for row in fetch(db, "SELECT name FROM sqlite_schema WHERE type = 'table'")}
    return [table for table in ("event", *DERIVED, "owner") if table in known]


def make_old(new: Path, old: Path, version: int) -> None:
    """The same rows in a database of an earlier schema."""
    source, target = connect(new / DATABASE), connect(old / DATABASE)
    target.execute(SCHEMAS[version])
    target.pragma("user_version", version)
    for table in tables(target):
        names = [column[1] for column in fetch(target, f"PRAGMA table_info({table})")]
        rows = fetch(source, f"SELECT {', '.join(BECAME.get((table, name), name) for name in names)} FROM {table}")
        if table == "event" and "epoch" not in names:
            rows = [(id_, *row[:-1], e.checksum(*row[:-1])) for id_, *row in rows]
        target.executemany(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})", rows)
    source.close()
    target.close()


def contents(home: Path) -> dict[str, list[Any]]:
    db = connect(home / DATABASE)
    try:
        columns = "session, seq, turn, attempt, position, kind, at, body, checksum"
        found = {"event": fetch(db, f"SELECT id, {columns} FROM event ORDER BY id")}
        found["outbox"] = fetch(db, "SELECT delivery_id, session, seq, state, tries, retry_at, receipt, error FROM outbox ORDER BY 1")
        return found | {table: fetch(db, f"SELECT * FROM {table} ORDER BY 1, 2") for table in tables(db) if table not in found}
    finally:
        db.close()


@every_schema
async def test_nothing_is_lost_when_an_earlier_database_is_opened_and_what_is_new_has_its_defaults(version: int) -> None:
    """A3"""
    with quick_place() as new, quick_place() as old:
        async with SqliteBackend(new).opened() as store:
            await live(store)
        make_old(new, old, version)
        before = contents(old)
        store = await open_store(old, now=lambda: NOW, reserve_bytes=4096)
        try:
            after = contents(old)
            for table, rows in before.items():
                if not rows:
                    continue
                width = len(rows[0])
                assert [row[:width] for row in after[table]] == rows
                assert (table in GROWN[version]) == (len(after[table][0]) > width)
            for session in (await store.sessions(limit=100)).sessions:
                assert (session.left, session.rule, session.why, session.current) == (False, None, None, True)
            assert (await store.session("cut")).resume_pending and not (await store.session("idle")).resume_pending
            assert await store.pause(now=0) is None and await store.pauses(since=0, now=NOW) == []
            await goes_on(store)
        finally:
            await store.aclose()


async def goes_on(store: Store) -> None:
    """What an earlier version left is found and can be worked with."""
    assert {session.session_id for session in await store.open_turns(apart_from=0)} == {"runs", "cut"}
    assert [session.session_id for session in await store.undecided()] == ["waits"]
    assert [session.session_id for session in (await store.sessions(limit=9, state="suspended")).sessions] == ["suspended"]
    assert [delivery.delivery_id for delivery in await owed(store)] == ["d1"]
    assert (await say(store, "queued", "still waits", key="k1")).duplicate
    owner = await new_owner(store, "the next life")
    assert await store.record_start(owner, at=NOW) == 0
    assert await store.last_end(apart_from=owner)
    assert "text" not in kinds(await store.records("runs", after=0, limit=100))
    session = await store.session("runs")
    cut = [e.TurnInterrupted(reason="crash", restarts=1, written=10), e.TurnLeft(rule="R7", why="w")]
    await store.take_turn("runs", owner=owner, turn_id="t2", epoch=session.epoch, events=cut, at=NOW)
    await say(store, "runs")
    turn = await start(store, "runs", "t6", owner=owner)
    await append(store, turn, e.TurnAlive(), e.TurnEnded(outcome=Outcome.COMPLETED))
    assert (await store.session("runs")).turn_state is TurnState.ENDED
    moved = await store.reset("idle", fresh=("new", "l"), by="ann", dedup_key=None, at=NOW)
    assert moved.changed


# Since schema 3 a home can be paused, since schema 8 every pause is on record.
@pytest.mark.parametrize("version", [version for version in SCHEMAS if 3 <= version < 8])
async def test_a_pause_that_holds_during_an_upgrade_is_the_first_in_the_record_of_pauses(version: int) -> None:
    """C21, P8"""
    with quick_place() as home:
        db = connect(home / DATABASE)
        db.execute(SCHEMAS[version])
        db.pragma("user_version", version)
        db.execute("INSERT INTO pause VALUES (1, 'ada', ?, ?)", (NOW - 100, NOW + 100))
        store = await open_store(home, now=lambda: NOW, reserve_bytes=4096)
        try:
            assert await store.pause(now=NOW) == Pause("ada", since=NOW - 100, until=NOW + 100)
            assert await pauses(store) == [("ada", NOW - 100, None, True)]
            db.execute("DELETE FROM pause")  # The program of the old schema still serves, and ends it.
            assert await pauses(store) == [("ada", NOW - 100, None, False)]
        finally:
            await store.aclose()
            db.close()


@every_schema
async def test_an_upgraded_catalog_is_the_one_its_log_gives(version: int) -> None:
    """Apart from what was not written down by row and is only used to order them: which message a turn answers, when an attempt began."""
    with quick_place() as new, quick_place() as old:
        async with SqliteBackend(new).opened() as store:
            await live(store)
        make_old(new, old, version)
        db = connect(old / DATABASE)
        migrate(db)
        db.execute("UPDATE head SET asked_seq = 0")
        db.execute("UPDATE session SET attempt_at = 0")
        upgraded = {table: fetch(db, f"SELECT * FROM {table} ORDER BY 1, 2") for table in DERIVED}
        with db:
            rebuild(db)
        db.execute("UPDATE head SET asked_seq = 0")
        db.execute("UPDATE session SET attempt_at = 0")
        assert {table: fetch(db, f"SELECT * FROM {table} ORDER BY 1, 2") for table in DERIVED} == upgraded
        db.close()


# What the first version wrote, field by field, and nothing that came later.
FIRST_WORDS: tuple[tuple[str | None, int, int, str, bytes], ...] = (
    (None, 0, 0, "session.created", b'{"session_id":"s1","session_key":"agent:main:chat:dm:7","log":"l1"}'),
    (None, 0, 0, "message.accepted", b'{"message_id":"m1","text":"hello"}'),
    ("t1", 1, 0, "turn.started", b'{"generation":1,"attempt":1,"cause":"message","message_ids":["m1"],"owner":1,"epoch":1}'),
    ("t1", 1, 1, "message.written", b'{"message_id":"m1","role":"user","text":"hello"}'),
    (None, 0, 0, "stop.requested", b'{"turn_id":"t1","by":"ann"}'),
    ("t1", 1, 2, "turn.ended", b'{"outcome":"cancelled"}'),
    (None, 0, 0, "message.accepted", b'{"message_id":"m2","text":"again"}'),
    ("t2", 1, 0, "turn.started", b'{"generation":2,"attempt":1,"cause":"message","message_ids":["m2"],"owner":1,"epoch":2}'),
    ("t2", 1, 1, "message.written", b'{"message_id":"m2","role":"user","text":"again"}'),
    ("t2", 1, 2, "turn.interrupted", b'{"reason":"crash","restarts":1}'),
)


@every_schema
async def test_records_that_lack_what_came_later_load_with_the_defaults(version: int) -> None:
    """A3: the log of an old home as its program wrote it, word for word, and rows that name no flag at all."""
    with quick_place() as home:
        db = connect(home / DATABASE)
        db.execute(SCHEMAS[version])
        db.pragma("user_version", version)
        for seq, (turn, attempt, position, kind, body) in enumerate(FIRST_WORDS[:1], 1):
            db.execute(
                INSERT, (1, seq, turn, attempt, position, kind, NOW, body, e.checksum(1, seq, turn, attempt, position, kind, NOW, body))
            )
        db.execute("INSERT INTO session (id, session_id, session_key, log, created_at) VALUES (1, 's1', 'agent:main:chat:dm:7', 'l1', 1)")
        db.execute("INSERT INTO head (session, seq, state, epoch, attempt, position, turn_seq, stop) VALUES (1, 1, 'none', 0, 0, 0, 0, 0)")
        db.execute("INSERT INTO lane VALUES ('agent:main:chat:dm:7', 1, 0)")
        migrate(db)
        await has_defaults(home)
        for seq, (turn, attempt, position, kind, body) in enumerate(FIRST_WORDS[1:], 2):
            db.execute(
                INSERT, (1, seq, turn, attempt, position, kind, NOW, body, e.checksum(1, seq, turn, attempt, position, kind, NOW, body))
            )
        with db:
            rebuild(db)
        db.close()
        store = await open_store(home, now=lambda: NOW, reserve_bytes=4096)
        try:
            session = await store.session("s1")
            assert (session.resume_pending, session.resume_reason, session.interrupted_restarts) == (True, "crash", 1)
            assert (session.suspended, session.stop_requested, session.left, session.rule) == (False, False, False, None)
            shown = Transcript().extend(await store.events("s1", after=0, limit=100))
            assert [turn.outcome for turn in shown.turns] == [Outcome.CANCELLED, None]
            assert shown.messages[-1].text == "Interrupted by a crash before anything was written."
        finally:
            await store.aclose()


async def has_defaults(home: Path) -> None:
    store = await open_store(home, now=lambda: NOW, reserve_bytes=4096)
    try:
        session = await store.session("s1")
        assert (session.resume_pending, session.resume_reason, session.last_resume_marked_at, session.suspended) == (
            False,
            None,
            None,
            False,
        )
        assert (session.was_auto_reset, session.interrupted_restarts, session.queued, session.current) == (False, 0, 0, True)
    finally:
        await store.aclose()


def shape(sql: str | None) -> str:
    return " ".join((sql or "").split())


@every_schema
async def test_an_upgraded_schema_is_the_one_of_a_fresh_database(version: int) -> None:
    """Columns in their order, and every index word for word: a query finds a partial index by its words."""
    with quick_place() as fresh, quick_place() as old:
        found = []
        for home in (fresh, old):
            db = connect(home / DATABASE)
            if home == old:
                db.execute(SCHEMAS[version])
                db.pragma("user_version", version)
            migrate(db)
            assert db.pragma("user_version") == SCHEMA_VERSION
            tables = [row[0] for row in fetch(db, "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")]
            indexes = fetch(db, "SELECT name, tbl_name, sql FROM sqlite_schema WHERE type = 'index' ORDER BY name")
            found.append(
                (
                    {table: fetch(db, f"PRAGMA table_xinfo({table})") for table in tables},
                    [(name, table, shape(sql)) for name, table, sql in indexes],
                    fetch(db, "SELECT name, CASE name WHEN 'identity' THEN typeof(value) ELSE value END FROM meta ORDER BY name"),
                )
            )
            db.close()
        assert found[0] == found[1]
        assert any(sql.endswith(f"WHERE {RECORDS}") for _, _, sql in found[1][1])


@every_schema
async def test_two_processes_that_upgrade_at_once_upgrade_once(version: int) -> None:
    with quick_place() as home:
        db = connect(home / DATABASE)
        db.execute(SCHEMAS[version])
        db.pragma("user_version", version)
        db.close()

        def upgrade() -> None:
            other = connect(home / DATABASE)
            migrate(other)
            other.close()

        await asyncio.gather(*(asyncio.to_thread(upgrade) for _ in range(4)))
        db = connect(home / DATABASE)
        assert db.pragma("user_version") == SCHEMA_VERSION
        db.close()


async def test_an_upgrade_that_fails_leaves_the_earlier_database_as_it_was() -> None:
    with quick_place() as home:
        db = connect(home / DATABASE)
        db.execute(SCHEMAS[1])
        db.execute("DROP INDEX event_record")  # Not what the next step expects to find.
        db.execute(INSERT, (1, 1, None, 0, 0, "session.created", NOW, b"{}", 0))
        db.pragma("user_version", 1)
        with pytest.raises(Exception, match="event_record"):
            migrate(db)
        assert db.pragma("user_version") == 1 and not db.in_transaction
        assert len(fetch(db, "SELECT * FROM event")) == 1
        assert "start" not in [row[0] for row in fetch(db, "SELECT name FROM sqlite_schema WHERE type = 'table'")]
        db.close()


@pytest.mark.parametrize("version", range(OLDEST_PREDECESSOR))
def test_a_program_that_could_not_live_with_the_schema_is_told_to_stop_first(version: int) -> None:
    """C25: nothing was changed under it."""
    with pytest.raises(Refused, match="holdfast stop"):
        check_predecessor(version)
