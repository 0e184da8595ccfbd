"""Deleting a session, as people and the processes that serve it see it (A28)."""

import asyncio
from pathlib import Path

import pytest

from holdfast.core.errors import Deleted
from holdfast.core.events import SessionChanged
from holdfast.core.retention import Limits
from holdfast.core.sessions import Session
from holdfast.core.turns import Outcome, TurnState
from holdfast.gateway.settings import Settings
from holdfast.store import SqliteStore
from tests.gateway import web
from tests.gateway.gateways import Life, home
from tests.gateway.sse import reading
from tests.gateway.web import World


def delete(life: Life, session_id: str) -> None:
    life.do(life.gateway.delete_session(session_id, by="owner"))


def gone(life: Life, session_id: str) -> bool:
    """Whether nothing of it can be read any more, and nothing is left to remove."""
    try:
        life.do(life.store.session(session_id))
    except Deleted:
        return not life.do(life.store.purge(now=0, steps=1))
    return False


def test_deleting_stops_the_turn_and_drops_what_it_would_have_said(tmp_path: Path) -> None:
    """A28, A21, P3"""
    with home(tmp_path) as here:
        life = here.start()
        session = life.under_way("say:half|call:stubborn")
        delete(life, session.session_id)
        assert here.edge.count(f"deed of {session.session_id} ended") == 1
        life.until(lambda: life.session(session.session_id).turn_state is TurnState.ENDED, within_s=5.0)
        assert life.do(life.store.session(session.session_id)).deleted
        life.pass_s(30)
        assert here.told() == []


def test_what_waits_is_refused_and_told_once_and_the_next_message_starts_a_new_session(tmp_path: Path) -> None:
    """A20, A28, P1: over a death of the process, too."""
    with home(tmp_path) as here:
        life = here.start()
        session = life.under_way("hang")
        life.write("and this?")
        delete(life, session.session_id)
        life.die()
        life = here.start()
        expected = "This message was not answered, because the conversation was deleted first. Send it again:\n\n> and this?"
        life.until(lambda: here.told() == [expected])
        life.pass_s(60)
        assert here.told() == [expected] and here.texts == ["hang"]
        fresh = life.say("hello")
        assert fresh.session_id != session.session_id and here.replies() == ["re: hello"]
        assert fresh.generation == session.generation + 1


def test_a_turn_that_was_interrupted_when_its_session_was_deleted_is_not_resumed(tmp_path: Path) -> None:
    """A28, R0"""
    with home(tmp_path) as here:
        session = here.start().cut()
        life = here.start(auto_resume=False)
        life.until(lambda: life.session(session.session_id).left)
        delete(life, session.session_id)
        life.until(lambda: life.session(session.session_id).turn_state is TurnState.ENDED)
        life.die()
        life = here.start()
        life.pass_s(30)
        assert len(here.heard) == 1


def test_a_session_deleted_while_a_start_decides_about_it_holds_up_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A28, P8"""
    read = SqliteStore.undecided

    async def undecided(store: SqliteStore) -> list[Session]:
        found = await read(store)
        for session in found:
            await store.delete_session(session.session_id, by="owner", until=2**40, at=1)
        return found

    with home(tmp_path) as here:
        life = here.start()
        session = life.say("hello")
        life.do(life.store.mark_pending(session.session_key, at=1))
        life.die()
        monkeypatch.setattr(SqliteStore, "undecided", undecided)
        life = here.start()
        life.say("and you?", chat="bob", sender="bob")
        assert life.do(life.store.session(session.session_id)).deleted
        assert not life.gateway.broken.is_set()


def test_a_deleted_session_is_removed_when_its_time_is_over_and_not_before(tmp_path: Path) -> None:
    """A28"""
    with home(tmp_path) as here:
        life = here.start(undo_delete_s=120.0)
        session = life.say("words that go")
        delete(life, session.session_id)
        life.pass_s(100)
        assert not gone(life, session.session_id)
        life.until(lambda: gone(life, session.session_id), within_s=40)


def test_the_files_of_a_session_go_with_its_content_and_no_others_do(tmp_path: Path) -> None:
    """A28: also when they could not be removed at first, and over a death between the two."""
    with home(tmp_path) as here:
        life = here.start(undo_delete_s=120.0)
        session, other = life.say("words that go"), life.say("words that stay", chat="bob", sender="bob")
        here.edge.kept = [session.session_id, other.session_id, "unknown"]
        delete(life, session.session_id)
        life.pass_s(100)
        assert here.edge.kept == [session.session_id, other.session_id, "unknown"]
        here.edge.fails = {"deed forgets"}
        life.until(lambda: here.edge.count(f"deed forgets {session.session_id}") > 0, within_s=120)
        life.die()
        here.edge.fails = set()
        life = here.start(undo_delete_s=120.0)
        life.until(lambda: here.edge.kept == [other.session_id, "unknown"], within_s=120)
        assert not life.gateway.broken.is_set()


def test_a_message_delivered_again_after_its_session_is_gone_starts_no_turn(tmp_path: Path) -> None:
    """P1, P6"""
    with home(tmp_path) as here:
        life = here.start(undo_delete_s=10.0)
        update = here.write("once")
        life.until(lambda: here.replies())
        session = life.session()
        delete(life, session.session_id)
        for wait_s in (1, 60):  # While it can be brought back, and after.
            life.pass_s(wait_s)
            life.stop()
            here.server.confirmed.clear()
            life = here.start(undo_delete_s=10.0)
            life.until(lambda: update.dedup_key in here.server.confirmed)
            life.pass_s(1)
            assert here.texts == ["once"] and len(here.told()) == 1
        assert gone(life, session.session_id)
        assert life.say("twice").session_id != session.session_id


def test_an_undo_brings_the_conversation_back_and_what_was_owed_is_delivered(tmp_path: Path) -> None:
    """A28, P4"""
    with home(tmp_path) as here:
        life = here.start(chats=False)
        page = life.open_page()
        life.post(page, "hello")
        life.rest(page)
        delete(life, page)
        before = life.do(life.store.records(page, after=0, limit=100))
        assert life.do(life.gateway.undelete_session(page, by="owner")).session_id == page
        assert life.answers(page) == ["re: hello"] and len(before) == life.session(page).seq - 2
        life.post(page, "and on")
        life.rest(page)
        assert life.answers(page) == ["re: hello", "re: and on"]


@pytest.mark.parametrize("when", ["before the purge", "in the middle of it", "after it"])
def test_a_purge_goes_on_after_a_death(tmp_path: Path, when: str) -> None:
    """A28: whoever serves next does the rest."""
    with home(tmp_path) as here:
        life = here.start(undo_delete_s=10.0)
        session = life.say("words that go")
        delete(life, session.session_id)
        if when != "before the purge":
            steps = 1 if when == "in the middle of it" else 100
            life.do(life.store.purge(now=life.clock.now() + 11_000, steps=steps))
        life.die()
        here.later(60)
        life = here.start()
        life.until(lambda: gone(life, session.session_id), within_s=20)
        assert life.say("hello").session_id != session.session_id


async def test_delete_over_http_and_what_is_said_afterwards(world: World) -> None:
    """A28"""
    session_id = await world.new_session(title="Secret")
    await world.say(session_id, "hello")
    answer = await world.client.delete(f"/api/sessions/{session_id}")
    assert answer.status_code == 200
    assert answer.json() == {
        "session_id": session_id,
        "deleted_at": "2027-01-15T08:00:00.123Z",
        "undo_until": "2027-01-15T08:10:00.123Z",
    }
    world.clock.pass_s(60)
    assert (await world.client.delete(f"/api/sessions/{session_id}")).json() == answer.json()
    sentence = f"The session '{session_id}' was deleted. It can still be brought back: `holdfast delete --undo {session_id}`."
    for refused in (
        await world.client.get(f"/api/sessions/{session_id}"),
        await world.client.get(f"/api/sessions/{session_id}/events"),
        await world.client.patch(f"/api/sessions/{session_id}", json={"title": "x"}),
        await world.post(session_id, "more"),
        await world.client.post(f"/api/sessions/{session_id}/stop"),
        await world.client.post(f"/api/sessions/{session_id}/resume"),
    ):
        assert (refused.status_code, refused.json()["error"]) == (410, {"code": "deleted", "message": sentence})
    assert (await world.client.get("/api/sessions")).json()["sessions"] == []
    listed = (await world.client.get("/api/sessions?state=deleted")).json()["sessions"]
    assert [session["session_id"] for session in listed] == [session_id]
    back = await world.client.post(f"/api/sessions/{session_id}/undelete")
    assert back.status_code == 200 and back.json()["title"] == "Secret"
    assert [message["text"] for message in (await world.view(session_id))["messages"]] == ["hello", "hello"]
    await world.client.delete(f"/api/sessions/{session_id}")
    while await world.gateway.store.purge(now=world.clock.now() + 600_000, steps=100):
        pass
    for refused in (
        await world.client.get(f"/api/sessions/{session_id}"),
        await world.client.post(f"/api/sessions/{session_id}/undelete"),
        await world.client.delete(f"/api/sessions/{session_id}"),
    ):
        message = f"The session '{session_id}' was deleted. Its content is gone."
        assert (refused.status_code, refused.json()["error"]) == (410, {"code": "deleted", "message": message})


async def test_readers_of_a_deleted_session_are_told_and_their_streams_end(served: World) -> None:
    """A28, P7"""
    session_id = await served.new_session()
    async with reading(served, session_id) as reader, reading(served, session_id) as other:
        await reader.until("session.created")
        await served.client.delete(f"/api/sessions/{session_id}")
        for one in (reader, other):
            events = await one.until("end")
            assert [event.name for event in events][-2:] == ["session.deleted", "end"]
            assert events[-1].data == {"reason": "deleted"}
            assert events[-2].data == {"at": "2027-01-15T08:00:00.123Z", "by": "owner", "purge_at": "2027-01-15T08:10:00.123Z", "why": None}
            assert await one.next() is None


async def test_a_session_deleted_while_it_is_answered_answers_no_more(tmp_path: Path) -> None:
    """A28, P3: at a moment nobody chose."""
    async with web.world(tmp_path, settings=Settings(undo_delete_s=0.0)) as world:
        for _ in range(20):
            session_id = await world.new_session()
            await world.post(session_id, "count 20")
            await world.client.delete(f"/api/sessions/{session_id}")

        async def over() -> bool:
            return not await world.gateway.store.open_turns(apart_from=0) and (await world.gateway.counts()).inbox == 0

        await world.until(over)
        assert (await world.gateway.counts()).sessions == 0
        assert world.gateway.tally.turns[Outcome.FAILED] == 0


async def test_a_purge_lets_others_write_between_its_steps(tmp_path: Path) -> None:
    """P8"""
    async with web.world(tmp_path) as world:
        long, other = await world.new_session(), await world.new_session()
        for _ in range(3):
            await world.say(long, "count 1000")
        await world.client.delete(f"/api/sessions/{long}")
        store, now = world.gateway.store, world.clock.now() + 600_000

        async def purge() -> int:
            calls = 1
            while await store.purge(now=now, steps=1):
                calls += 1
            return calls

        purging = asyncio.ensure_future(purge())
        said = 0
        while not purging.done():
            assert (await world.post(other, "hello")).status_code in (202, 429)
            said += 1
        assert await purging > 5 and said > 2


def test_what_is_kept_too_long_is_removed_on_record_and_can_be_brought_back(tmp_path: Path) -> None:
    with home(tmp_path) as here:
        life = here.start(retention=Limits(days=0.01), undo_delete_s=120.0)
        old = life.say("old words").session_id
        life.do(life.store.change_session(life.say("precious", chat="bob").session_id, SessionChanged(pinned=True), at=0))
        life.pass_s(800)
        fresh = life.say("hello").session_id
        assert fresh == old  # It was used again before its time.
        life.pass_s(864 + 60)
        assert life.do(life.store.session(old)).deleted
        [entry] = here.logged("session removed by retention")
        assert here.edge.count(f"deed of {old} ended") == 1
        assert (entry["session"], entry["why"]) == (old, "no message in it for 0.01 days")
        life.do(life.gateway.undelete_session(old, by="owner"))
        life.pass_s(300)
        assert life.answers(old) == ["re: old words", "re: hello"]
        assert life.session("bob").state == "idle"


def test_when_all_take_too_much_room_the_oldest_goes_and_the_room_is_free_again(tmp_path: Path) -> None:
    with home(tmp_path) as here:
        life = here.start()
        for chat in ("ann", "bob", "cat"):
            life.say("x" * 300_000, chat=chat)
        used = life.do(life.store.usage()).bytes
        oldest, others = life.session("ann").session_id, [life.session(chat).session_id for chat in ("bob", "cat")]
        life.stop()
        here.later(2 * 3600)
        life = here.start(retention=Limits(max_mb=0.75 * used / 1e6), undo_delete_s=10.0)
        life.until(lambda: gone(life, oldest), within_s=180)
        life.pass_s(180)
        assert not any(life.do(life.store.session(other)).deleted for other in others)
        assert life.do(life.store.usage()).bytes < 0.75 * used
        assert [entry["session"] for entry in here.logged("session removed by retention")] == [oldest]


def test_without_a_limit_nothing_is_removed(tmp_path: Path) -> None:
    with home(tmp_path) as here:
        life = here.start()
        old = life.say("old words").session_id
        life.stop()
        here.later(400 * 24 * 3600)
        life = here.start()
        life.pass_s(130)
        assert life.session().session_id == old and not here.logged("session removed by retention")
