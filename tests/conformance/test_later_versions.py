"""Two versions on one home: kinds of events that this one does not know, and rows that an older one does not write."""

import contextlib
from pathlib import Path

import pytest

from holdfast.core import events as e
from holdfast.core.plans.start import StartedTurn
from holdfast.core.sessions import Lease
from holdfast.core.turns import TurnState
from holdfast.ports.owners import Pause
from holdfast.ports.store import Store
from holdfast.store import open_store
from holdfast.store.sqlite.connection import connect, fetch
from tests.conformance.backends import NOW, Backend, SqliteBackend, quick_place
from tests.conformance.steps import ENDED, append, kinds, new_owner, new_session, pauses, running, say, start, text, whole_log

pytestmark = pytest.mark.anyio


class Noted(e.Event, frozen=True):
    """A record of a later version."""

    kind = "later.noted"
    what: str
    dedup_key: str | None = None


class Hummed(e.Event, frozen=True):
    """A piece of a later version."""

    kind = "later.hummed"
    stream = True
    tune: str


def unknown(kind: type[e.Event]) -> e.Unknown:
    return e.Unknown(name=kind.kind)


async def test_a_predecessor_reads_folds_and_retires_while_its_successor_writes_what_it_does_not_know(backend: Backend) -> None:
    """P7: no damage and no quarantine; what both know stays readable, and the catalog is the one the log gives."""
    async with backend.opened() as predecessor, backend.opened() as successor:
        old, new = await new_owner(predecessor, "old"), await new_owner(successor, "new")
        mine = await running(predecessor, "s1", "t1", owner=old)
        await running(successor, "s2", "t2", owner=new)
        theirs = await append(
            successor, await _lease(successor, "s2", new), Noted(what="x"), Hummed(tune="la"), text("known"), text("!", 5)
        )
        assert [item.event for item in await whole_log(predecessor, "s2")][-4:-2] == [unknown(Noted), unknown(Hummed)]
        assert kinds(await predecessor.records("s2", after=0, limit=100))[-1] == "later.noted"
        assert "later.hummed" not in kinds(await predecessor.records("s2", after=0, limit=100))
        shown = await predecessor.transcript(await predecessor.session("s2"))
        assert shown.messages[-1].text == "known!"
        await append(predecessor, mine, ENDED)
        await append(successor, theirs, Noted(what="y", dedup_key="k"), ENDED)
        assert [item.event for item in await whole_log(predecessor, "s2")].count(unknown(Noted)) == 2
        assert (await predecessor.session("s2")).turn_state is TurnState.ENDED
        await predecessor.record_end(old)
    assert backend.quarantine() == []
    before = backend.catalog()
    backend.rebuild()
    assert backend.catalog() == before


async def _lease(store: Store, session_id: str, owner: int) -> StartedTurn:
    session = await store.session(session_id)
    return StartedTurn(Lease(session_id, owner, session.epoch), session.turn_id or "", session.attempt, session.position)


async def test_pieces_of_a_later_version_are_pruned_and_its_records_stay(backend: Backend) -> None:
    async with backend.opened() as store:
        turn = await running(store)
        await append(store, turn, Hummed(tune="la"), Noted(what="x"), Hummed(tune="li"), ENDED)
        assert await store.prune_streams(before=NOW + 1, at=NOW, limit=10) == 2
        left = [item.event for item in await whole_log(store)]
        assert unknown(Noted) in left and unknown(Hummed) not in left
    assert backend.quarantine() == []


async def test_a_session_with_records_of_a_later_version_is_purged_with_them(backend: Backend) -> None:
    async with backend.opened() as store:
        await append(store, await running(store), Noted(what="secret"), ENDED)
        await store.delete_session("s1", by="ann", until=NOW, at=NOW)
        assert not await store.purge(now=NOW, steps=100)
    before = backend.catalog()
    backend.rebuild()
    assert backend.catalog() == before
    async with backend.opened() as store:
        assert (await store.usage()).removing == 0


@pytest.mark.parametrize("column", ["kind", "body", "epoch", "stream"])
async def test_an_unknown_event_that_was_changed_on_disk_is_damage_like_any_other(backend: Backend, column: str) -> None:
    async with backend.opened() as store:
        await append(store, await running(store), Noted(what="x"), ENDED)
        seq = (await store.session("s1")).seq - 1
        backend.change_byte("s1", seq, column)
        assert isinstance((await whole_log(store))[seq - 1].event, e.Damaged)
        assert backend.quarantine() == [("s1", seq)]


async def test_positions_count_from_zero_within_each_lease(backend: Backend) -> None:
    """Whoever takes a turn over can write without knowing how far the one before it came."""
    async with backend.opened() as store:
        first = await running(store)
        await append(store, first, text("a"), text("b", 1))
        other = await new_owner(store, "other")
        cut = [e.TurnInterrupted(reason="crash", restarts=1), e.TurnResumed(attempt=2, rule="R9", reason="crash")]
        second = await store.take_turn("s1", owner=other, turn_id="t1", epoch=1, events=cut, at=NOW)
        await append(store, second, text("c", 2), ENDED)
        await say(store)
        await start(store, "s1", "t2", owner=other)
        places = [(item.turn_id, item.epoch, item.position, item.stream) for item in await whole_log(store)]
    assert places[:2] == [(None, 0, 0, False)] * 2
    assert places[2:6] == [("t1", 1, 0, False), ("t1", 1, 1, False), ("t1", 1, 2, True), ("t1", 1, 3, True)]
    assert places[6:11] == [("t1", 2, position, position == 3) for position in range(5)]
    assert places[11:] == [(None, 0, 0, False), ("t2", 3, 0, False), ("t2", 3, 1, False)]
    before = backend.catalog()
    backend.rebuild()
    assert backend.catalog() == before


async def test_rows_of_an_earlier_version_and_of_this_one_stand_in_one_log() -> None:
    """A3: a turn that version 0.1 began is continued by this one."""
    with quick_place() as home:
        backend = SqliteBackend(home)
        async with backend.opened() as store:
            turn = await running(store)
            await append(store, turn, text("a"), e.Reasoning(text="hm"))
        with backend.raw() as db:
            rows = fetch(db, "SELECT id, session, seq, turn, attempt, position, kind, at, body FROM event")
            for id_, *row in rows:
                db.execute("UPDATE event SET epoch = NULL, checksum = ? WHERE id = ?", (e.checksum(*row), id_))
        store = await open_store(home, now=lambda: NOW, reserve_bytes=4096)
        try:
            await append(store, await _lease(store, "s1", turn.lease.owner), text("b", 1))
            found = await whole_log(store)
            assert [(item.epoch, item.position) for item in found if item.turn_id] == [(None, 0), (None, 1), (None, 2), (None, 3), (1, 4)]
            assert not [item for item in found if isinstance(item.event, e.Damaged)]
        finally:
            await store.aclose()
        backend.change_byte("s1", 5, "stream")  # Its checksum does not cover it; its kind says what it must be.
        async with backend.opened() as store:
            assert isinstance((await whole_log(store))[4].event, e.Damaged)


def _as_schema_7(home: Path, *statements: str) -> None:
    """What a program of schema 7 writes: its own words."""
    with contextlib.closing(connect(home / "holdfast.db")) as db:
        for statement in statements:
            db.execute(statement)


async def test_pauses_of_an_older_program_that_serves_next_to_this_one_are_on_record_as_far_as_it_wrote_them_down(tmp_path: Path) -> None:
    """C21, P8: it knows the current pause alone."""
    begin, end = f"INSERT INTO pause VALUES (1, 'old', {NOW - 50}, {NOW + 50})", "DELETE FROM pause"
    store = await open_store(tmp_path, now=lambda: NOW, reserve_bytes=4096)
    _as_schema_7(tmp_path, end, begin)
    assert await pauses(store) == [("old", NOW - 50, None, True)]  # It began one.
    await store.set_pause(Pause("new", NOW + 1, NOW + 100))
    assert await pauses(store) == [("old", NOW - 50, NOW, False), ("new", NOW + 1, None, True)]
    _as_schema_7(tmp_path, end)  # It ended one, and no time is on record.
    await store.set_pause(None)
    assert await pauses(store) == [("old", NOW - 50, NOW, False), ("new", NOW + 1, None, False)]
    await store.aclose()


async def test_a_name_that_an_older_program_accepted_is_kept_though_it_wrote_no_row_of_titles(tmp_path: Path) -> None:
    """It serves on while its successor brings the schema up to date: what it writes is in the log alone."""
    store = await open_store(tmp_path, now=lambda: NOW, reserve_bytes=4096)
    await new_session(store, title="Named by Ann")
    await store.aclose()
    with contextlib.closing(connect(tmp_path / "holdfast.db")) as db:
        db.execute("UPDATE titling SET state = 'due'")
    store = await open_store(tmp_path, now=lambda: NOW, reserve_bytes=4096)
    [found] = await store.open_titles(since=0, limit=10)
    assert not await store.ask_title(found, turn_id="t1", owner=1, at=NOW)
    assert not await store.open_titles(since=0, limit=10)
    assert (await store.session("s1")).title == "Named by Ann"
    await store.aclose()
