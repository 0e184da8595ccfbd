"""The event stream over a real server: whoever reads, from wherever, however often, sees the same (P7)."""

import asyncio
import itertools
import socket
from pathlib import Path

import httpx

from holdfast.web.stream import Timing
from tests.gateway import web
from tests.gateway.sse import Event, Reader, reading
from tests.gateway.web import TOKEN, World, eventually

LONG = 500  # Longer than a page of the catch-up.


async def whole(world: World, session_id: str, *, after: str | None = None, last_event_id: str | None = None) -> list[Event]:
    """What a reader gets of a session at rest."""
    last = int((await world.view(session_id))["cursor"].rpartition(".")[2])
    async with reading(world, session_id, after=after, last_event_id=last_event_id) as reader:
        events: list[Event] = []
        while not events or events[-1].seq < last:
            event = await reader.next()
            assert event is not None
            events.append(event)
        return events


async def test_the_stream_tells_the_life_of_a_turn_in_order(served: World) -> None:
    session_id = await served.new_session(title="Told")
    async with reading(served, session_id) as reader:
        assert (reader.status, reader.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
        assert (reader.headers["cache-control"], reader.headers["x-accel-buffering"]) == ("no-store", "no")
        await served.post(session_id, "lines ahoy", client_id="by|me")
        events = await reader.until("turn.ended")
    assert [event.name for event in events] == [
        "session.created", "message.accepted", "turn.started", "message.written", "text", "reasoning", "tool.started", "tool.output",
        "tool.finished", "message.written", "turn.ended",
    ]  # fmt: skip
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    told = {event.name: event.data for event in events}
    at = "2027-01-15T08:00:00.123Z"
    assert told["session.created"] == {
        "at": at, "session_id": session_id, "session_key": f"agent:main:web:page:{session_id}", "title": "Told", "auto_reset_reason": None,
        "folder": None,
    }  # fmt: skip
    message_id = told["message.accepted"]["message_id"]
    assert told["message.accepted"] == {
        "at": at, "message_id": message_id, "text": "lines ahoy", "mode": "queue", "sender": "owner", "sender_name": "", "anchor": None,
        "client_id": "by|me",
    }  # fmt: skip
    turn = {"at": at, "turn_id": told["turn.started"]["turn_id"], "attempt": 1}
    assert told["turn.started"] == turn | {
        "position": 0, "generation": 1, "cause": "message", "causes": [message_id], "trial": False,
        "model": None, "day": None, "sender": None,
    }  # fmt: skip
    assert told["text"] == turn | {"position": 2, "step": 0, "text": "ahoy", "offset": 0}
    assert told["tool.finished"] == turn | {
        "position": 6, "call_id": f"{turn['turn_id']}.1", "outcome": "done", "result": "ahoy", "used": None,
    }  # fmt: skip
    assert told["turn.ended"] == turn | {
        "position": 8, "outcome": "completed", "error": None, "rule": None, "why": None, "unread_results": False, "still_pending": False,
        "considered": [],
    }  # fmt: skip


async def test_a_reader_that_reconnects_at_every_possible_cursor_sees_what_one_that_stayed_saw(served: World) -> None:
    """P7."""
    session_id = await served.new_session()
    async with reading(served, session_id) as stayed:
        await served.say(session_id, "count 20")
        await served.say(session_id, "lines a line\nand another")
        await served.post(session_id, "ask Well?")
        await served.until_state(session_id, "waiting")
        await served.say(session_id, "well")
        seen = await stayed.take(int((await served.view(session_id))["cursor"].rpartition(".")[2]))
    assert [event.seq for event in seen] == list(range(1, len(seen) + 1))
    assert len(seen) > 40
    assert await whole(served, session_id, after="0") == seen
    for index, event in enumerate(seen[:-1]):
        cursor = {"last_event_id": event.id} if index % 2 else {"after": event.id}
        assert await whole(served, session_id, **cursor) == seen[index + 1 :]


async def test_a_reader_that_reconnects_during_a_turn_misses_nothing_and_sees_nothing_twice(served: World) -> None:
    """P7."""
    session_id = await served.new_session()
    async with reading(served, session_id) as stayed:
        await served.post(session_id, f"count {4 * LONG}")
        seen: list[Event] = []
        cursor = "0"
        while not seen or seen[-1].name != "turn.ended":
            async with reading(served, session_id, after=cursor) as reader:
                seen += await reader.take(1 + len(seen) % 97, end="turn.ended")
            cursor = seen[-1].id
        assert seen == await stayed.take(len(seen))


async def test_a_message_and_a_command_carry_the_client_id_under_which_they_were_sent(served: World) -> None:
    """P7: a page that reads its own message before the response to its request knows it again."""
    session_id = await served.new_session()
    async with reading(served, session_id) as reader:
        await served.post(session_id, "/status", client_id="c1")
        await served.post(session_id, "hello", client_id="c2")
        await served.post(session_id, "hello")
        events = await reader.until("turn.ended") + await reader.until("turn.ended")
    carried = [(event.name, event.data["text"], event.data["client_id"]) for event in events if "client_id" in event.data]
    assert carried[0] == ("message.written", "/status", "c1")
    assert carried[1:] == [("message.accepted", "hello", "c2"), ("message.accepted", "hello", None)]


async def test_last_event_id_beats_the_query_and_an_empty_one_does_not_count(served: World) -> None:
    session_id = await served.new_session()
    await served.say(session_id, "hello")
    seen = await whole(served, session_id)
    assert await whole(served, session_id, after=seen[0].id, last_event_id=seen[2].id) == seen[3:]
    assert await whole(served, session_id, after=seen[0].id, last_event_id="") == seen[1:]
    assert await whole(served, session_id, after="") == seen


async def test_a_cursor_that_leads_nowhere_gets_a_snapshot_and_then_what_follows(served: World) -> None:
    """P7."""
    session_id, other = await served.new_session(), await served.new_session()
    await served.say(session_id, "hello")
    own = (await whole(served, session_id))[-1].id
    log = own.rpartition(".")[0]
    cursors = {
        "nonsense": "unreadable", "-1": "unreadable", f"{log}.": "unreadable", ".5": "unreadable", f"{log}.{'9' * 400}": "unreadable",
        f"{log}.-1": "unreadable", f"{log}.1.2": "foreign", "%00": "unreadable", "1": "unreadable",
        (await whole(served, other))[0].id: "foreign", f"{log}.999999": "future",
    }  # fmt: skip
    for number, (cursor, because) in enumerate(cursors.items()):
        async with reading(served, session_id, after=cursor) as reader:
            (snapshot,) = await reader.take(1)
            view = await served.view(session_id)
            assert (snapshot.name, snapshot.id, snapshot.data) == ("snapshot", view["cursor"], view | {"because": because}), cursor
            await served.client.patch(f"/api/sessions/{session_id}", json={"title": f"try {number}"})
            (after,) = await reader.take(1)
            assert (after.name, after.data["title"], after.seq) == ("session.changed", f"try {number}", snapshot.seq + 1)


async def test_where_pieces_were_pruned_a_snapshot_says_so_and_elsewhere_nothing_changes(served: World) -> None:
    """P7."""
    session_id = await served.new_session()
    await served.say(session_id, "count 10")
    before = await whole(served, session_id)
    served.clock.pass_s(3600)
    assert await served.gateway.store.prune_streams(before=served.clock.now(), at=served.clock.now(), limit=10)
    view = await served.view(session_id)
    lost = [event.id for event in before if any(later.name in ("text", "reasoning") for later in before[event.seq :])]
    assert len(lost) > 10
    for cursor in ("0", *lost):
        seq = int(cursor.rpartition(".")[2])
        there = list(itertools.takewhile(lambda event: event.name not in ("text", "reasoning"), before[seq:]))
        async with reading(served, session_id, after=cursor) as reader:
            *first, snapshot = await reader.take(len(there) + 1)
            assert first == there
            assert (snapshot.name, snapshot.id, snapshot.data) == ("snapshot", view["cursor"], view | {"because": "pruned"})
    for event in before[len(lost) :]:
        after = await whole(served, session_id, after=event.id)
        assert after[:-1] == before[event.seq :] and after[-1].name == "journal.pruned"


async def test_an_event_that_was_damaged_on_disk_stands_in_its_place_and_takes_nothing_with_it(served: World) -> None:
    """P7, P8: one bad event does not take the session down."""
    session_id = await served.new_session()
    await served.say(session_id, "hello")
    before = await whole(served, session_id)
    await served.weather.write(lambda tx: tx.execute("UPDATE event SET body = 'x' WHERE seq = 3"))
    after = await whole(served, session_id)
    assert (after[2].name, after[2].data["at"]) == ("damaged", None) and after[2].data["reason"]
    assert after[:2] + after[3:] == before[:2] + before[3:]


async def test_two_hundred_readers_all_get_everything(served: World) -> None:
    session_id = await served.new_session()

    async def read(number: int) -> bytes:
        async with reading(served, session_id) as reader:
            connected.append(number)
            while b"event: turn.ended" not in reader.raw and await reader.chunk():
                pass
            return reader.raw

    connected: list[int] = []
    async with asyncio.TaskGroup() as group:
        readers = [group.create_task(read(number)) for number in range(200)]
        await eventually(lambda: len(connected) == 200)
        await served.post(session_id, "count 200")
    first = readers[0].result()
    assert first.count(b"\nevent: text\n") == 100 and first.count(b"\nevent: reasoning\n") == 100
    assert all(reader.result() == first for reader in readers)
    await eventually(lambda: served.gateway.feed.readers == 0)


async def read_what_comes(reader: Reader) -> list[Event]:
    events: list[Event] = []
    while (event := await reader.next()) is not None:
        events.append(event)
    return events


async def test_a_slow_reader_is_cut_off_and_goes_on_by_its_cursor_and_does_not_slow_the_turn(served: World) -> None:
    """P7."""
    served.listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 64 * 1024)
    session_id = await served.new_session()
    async with reading(served, session_id) as quick, reading(served, session_id, receive_buffer=64 * 1024) as slow:
        quickly = asyncio.create_task(quick.until("turn.ended"))
        await served.say(session_id, "lines " + "x" * 1_000_000)
        await quickly
        await served.say(session_id, "hello")
        seen = await read_what_comes(slow)
        assert (seen.pop().name, slow.closed) == ("end", True)
    everything = await whole(served, session_id)
    assert seen == everything[: len(seen)] and len(seen) < len(everything)
    assert await whole(served, session_id, after=seen[-1].id if seen else "0") == everything[len(seen) :]


async def test_a_reader_that_takes_nothing_at_all_is_given_up(tmp_path: Path) -> None:
    async with web.world(tmp_path, timing=Timing(send_timeout_s=0.05)) as world:
        world.listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 64 * 1024)
        async with web.serving(world):
            session_id = await world.new_session()
            await world.say(session_id, "lines " + "x" * 1_000_000)
            async with reading(world, session_id, receive_buffer=64 * 1024):
                assert world.gateway.feed.readers == 1
                await eventually(lambda: world.gateway.feed.readers == 0)


async def test_a_reader_that_leaves_is_forgotten_and_stops_nothing(served: World) -> None:
    """Disconnecting means nothing: stopping is a command."""
    session_id = await served.new_session()
    async with reading(served, session_id) as reader:
        await served.post(session_id, "hold")
        await reader.until("text")
        assert served.gateway.feed.readers == 1
    await eventually(lambda: served.gateway.feed.readers == 0)
    assert (await served.view(session_id))["state"] == "running"
    served.agent.released.set()
    assert (await served.until_state(session_id, "idle"))["turns"][0]["outcome"] == "completed"


async def test_when_the_gateway_stops_every_reader_gets_the_last_events_and_an_end(served: World) -> None:
    session_id = await served.new_session()
    async with reading(served, session_id) as reader, reading(served, session_id) as other:
        await served.post(session_id, "hold")
        await reader.until("text")
        await served.gateway.stop()
        last = await reader.until("end")
        assert [event.name for event in last] == ["message.written", "turn.interrupted", "end"]
        assert last[-1].data == {"reason": "shutdown"} and last[-1].id == ""
        assert await reader.next() is None and reader.closed
        assert (await other.until("end"))[-1].data == {"reason": "shutdown"}
    async with reading(served, session_id, after=last[-2].id) as late:
        assert [event.name for event in await late.until("end")] == ["end"]


async def test_a_cursor_from_before_a_restart_is_good_after_it(tmp_path: Path) -> None:
    """P7: the sequence does not begin anew with the process."""
    async with web.world(tmp_path) as world, web.serving(world):
        session_id = await world.new_session()
        await world.say(session_id, "hello")
        before = await whole(world, session_id)
    async with web.world(tmp_path, life="another") as world, web.serving(world):
        async with reading(world, session_id, after=before[-1].id) as reader:
            await world.post(session_id, "hello again")
            after = await reader.until("turn.ended")
        assert [event.seq for event in after] == list(range(len(before) + 1, len(before) + len(after) + 1))
        assert await whole(world, session_id) == before + after


async def test_while_nothing_happens_the_heart_beats(tmp_path: Path) -> None:
    async with web.world(tmp_path, timing=Timing(heartbeat_s=0.01)) as world, web.serving(world):
        session_id = await world.new_session()
        async with reading(world, session_id) as reader:
            await reader.take(1)
            while reader.raw.count(b":\n\n") < 3:
                assert await reader.chunk()
            await world.post(session_id, "hello")
            assert (await reader.until("turn.ended"))[-1].seq == 7
            assert reader.comments >= 3


TEXTS = ("a\u2028b\u2029c\u0085d", 'quote " and \\ and \t', "\U0001f980 crab", "é\x00\x1c\x7f", "\r\n\r\nevent: end\n")


async def test_no_text_breaks_a_frame_even_for_readers_that_split_lines_too_eagerly(served: World) -> None:
    """F8: some readers take U+2028 and its like for the end of a line."""
    for text in TEXTS:
        session_id = await served.new_session()
        await served.say(session_id, f"lines {text}")
        events = await whole(served, session_id)
        assert [event.data["text"] for event in events if event.name in ("text", "reasoning", "tool.output")] == [text] * 3
        assert [event.data["text"] for event in events if event.name == "message.written"][-1] == text
        lines = []
        async with httpx.AsyncClient(base_url=served.url, headers={"Authorization": f"Bearer {TOKEN}"}) as client:
            async with client.stream("GET", f"/api/sessions/{session_id}/events?after=nonsense") as answer:
                async for line in answer.aiter_lines():
                    lines.append(line)
                    if not line:
                        break
        assert [line.partition(":")[0] for line in lines] == ["id", "event", "data", ""]


async def test_a_stream_of_a_session_that_is_not_there_is_refused_before_it_begins(served: World) -> None:
    async with reading(served, "s_none") as reader:
        assert (reader.status, reader.headers["content-type"]) == (404, "application/json")
    assert served.gateway.feed.readers == 0
    assert (await served.client.head(f"/api/sessions/{await served.new_session()}/events")).status_code == 405
