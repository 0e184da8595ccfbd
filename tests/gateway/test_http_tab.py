"""One stream for a whole tab: sessions with their ids, the list, the status; nothing twice, nothing left out (P7)."""

import asyncio
from pathlib import Path

import pytest

from holdfast.web.stream import Timing
from tests.gateway import web
from tests.gateway.sse import reading_path
from tests.gateway.web import World


async def test_a_tab_hears_its_session_and_the_list_on_one_connection(served: World) -> None:
    open_one, other = await served.new_session(title="Open"), await served.new_session(title="Other")
    cursor = (await served.view(open_one))["cursor"]
    async with reading_path(served, f"/api/events?session={open_one}&after={cursor}&list=0&status=1") as reader:
        opened = await reader.next()
        assert opened is not None and (opened.name, opened.id) == ("stream.opened", "")
        assert opened.data["sessions"] == [{"session_id": open_one, "log": cursor.rpartition(".")[0], "cursor": cursor}]
        await served.post(open_one, "hello")
        events = await reader.until("turn.ended")
        own = [event for event in events if event.id]
        assert [event.seq for event in own] == list(range(own[0].seq, own[0].seq + len(own))), "without gaps"
        assert {event.name for event in events if not event.id} <= {"status", "list.changed"}
        await served.post(other, "elsewhere")
        while True:
            changed = await reader.until("list.changed")
            row = changed[-1].data["session"]
            if row["session_id"] == other and row["excerpt"] == "elsewhere" and row["state"] == "idle":
                break
        assert not [event for event in changed if event.id], "no event of a session that it did not ask for"
        rev = changed[-1].data["rev"]
    await served.say(other, "while away")
    async with reading_path(served, f"/api/events?list={rev}") as reader:
        missed = (await reader.until("list.changed"))[-1].data["session"]
        assert (missed["session_id"], missed["excerpt"]) == (other, "while away")
    async with reading_path(served, "/api/events?list=nonsense") as reader:
        assert (await reader.until("list.reset"))[-1].data["rev"]


async def test_a_tab_comes_back_with_its_cursor_and_misses_nothing(served: World) -> None:
    session_id = await served.new_session()
    async with reading_path(served, f"/api/events?session={session_id}") as reader:
        await served.post(session_id, "lines ahoy")
        first = [event for event in await reader.until("tool.started") if event.id]
    async with reading_path(served, f"/api/events?session={session_id}&after={first[-1].id}") as reader:
        rest = [event for event in await reader.until("turn.ended") if event.id]
    assert [event.seq for event in first + rest] == list(range(1, len(first + rest) + 1))


async def test_a_session_that_is_gone_ends_for_itself_and_the_tab_goes_on(served: World) -> None:
    session_id = await served.new_session()
    async with reading_path(served, f"/api/events?session=s_none&session={session_id}&list=0") as reader:
        ended = (await reader.until("end"))[-1]
        assert ended.data == {"reason": "not_found", "session_id": "s_none"}
        await served.client.delete(f"/api/sessions/{session_id}")
        events = await reader.until("end")
        assert events[-1].data == {"reason": "deleted", "session_id": session_id}
        if not any(event.name == "list.removed" for event in events):
            events = await reader.until("list.removed")
        await served.new_session(title="Later")
        assert (await reader.until("list.changed"))[-1].data["session"]["title"] == "Later"


async def test_too_many_sessions_are_refused(served: World) -> None:
    assert (await served.client.get("/api/events?" + "&".join(["session=s"] * 5))).status_code == 400


async def test_signing_out_ends_the_stream_of_a_tab(served: World) -> None:
    async with reading_path(served, "/api/events?list=0") as reader:
        await reader.until("stream.opened")
        served.access.use_token("another-token-of-this-test")
        assert (await reader.until("end"))[-1].data == {"reason": "signed_out"}


@pytest.mark.parametrize("deleted", [False, True])
async def test_a_tab_that_shows_no_session_leaves_at_once_when_the_process_sends_it_away(tmp_path: Path, deleted: bool) -> None:
    """A hand-over does not wait for a heartbeat of a tab that has nothing to pass on, also where its session was deleted."""
    async with web.world(tmp_path, timing=Timing(heartbeat_s=3600)) as world, web.serving(world):
        shown = f"&session={await world.new_session()}" if deleted else ""
        async with reading_path(world, f"/api/events?list=0{shown}") as reader:
            await reader.until("stream.opened")
            if deleted:
                await world.client.delete(f"/api/sessions/{shown.partition('=')[2]}")
                await reader.until("end")
            await asyncio.wait_for(world.gateway.feed.send_away("handover"), 10)
            assert (await reader.until("end"))[-1].data == {"reason": "handover"}
