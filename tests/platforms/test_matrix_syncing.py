"""What a sync leaves out, from a small server that leaves out as much as it is told to. A real one is in `test_matrix.py`."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from holdfast.core.inbound import Message
from holdfast.platforms.matrix import syncing
from holdfast.platforms.matrix.platform import Matrix
from holdfast.ports.platforms import Batch

pytestmark = pytest.mark.anyio
BOT, ANN = "@bot:here", "@ann:here"
PAGE = 3


class Rooms:
    """Events count over all rooms, and their number is the token. `failing`: rooms whose history is not given; `asked`: how often it was
    asked for.
    """

    def __init__(self) -> None:
        self.said: list[tuple[str, dict[str, Any]]] = []
        self.failing: set[str] = set()
        self.asked = 0

    def say(self, room: str, *texts: str) -> None:
        for text in texts:
            content = {"msgtype": "m.text", "body": text, "m.mentions": {"user_ids": [BOT]}}
            event = {"type": "m.room.message", "event_id": f"${len(self.said)}", "sender": ANN, "origin_server_ts": 1, "content": content}
            self.said.append((room, event))

    async def answer(self, request: web.Request) -> web.Response:
        path = request.path.removeprefix("/_matrix/client/v3/")
        if path == "account/whoami":
            return web.json_response({"user_id": BOT})
        if path == "sync":
            return web.json_response(await self._sync(int(request.query.get("since", "0"))))
        if path.endswith("/messages"):
            return self._history(path.split("/")[1], request.query)
        if path.endswith("/joined_members"):
            return web.json_response({"joined": {BOT: {}, ANN: {}, "@bob:here": {}}})
        return web.json_response({"errcode": "M_NOT_FOUND"}, status=404)

    async def _sync(self, since: int) -> dict[str, Any]:
        await asyncio.sleep(0.01)
        join: dict[str, Any] = {}
        for room in {room for room, _ in self.said[since:]}:
            numbers = [number for number in range(since, len(self.said)) if self.said[number][0] == room]
            shown = numbers[-PAGE:]
            timeline = {"events": [self.said[number][1] for number in shown], "limited": shown != numbers, "prev_batch": str(shown[0])}
            join[room] = {"timeline": timeline}
        return {"next_batch": str(len(self.said)), "rooms": {"join": join}}

    def _history(self, room: str, query: Any) -> web.Response:
        self.asked += 1
        if room in self.failing:
            return web.json_response({"errcode": "M_UNKNOWN"}, status=500)
        numbers = [number for number in range(int(query["to"]), int(query["from"])) if self.said[number][0] == room][-PAGE:]
        end = {"end": str(numbers[0])} if numbers else {}
        return web.json_response({"chunk": [self.said[number][1] for number in reversed(numbers)], **end})


@pytest.fixture
async def rooms() -> AsyncIterator[tuple[Rooms, str]]:
    made = Rooms()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", made.answer)
    server = TestServer(app)
    await server.start_server()
    try:
        yield made, str(server.make_url("/")).rstrip("/")
    finally:
        await server.close()


class Reader:
    """`heard`: the messages of each room, in the order in which they came."""

    def __init__(self, url: str) -> None:
        self.platform = Matrix(url, "token", page=PAGE, poll_s=0.05)
        self.heard: dict[str, list[str]] = {}
        self.refused = 0

    async def take(self, batches: Any) -> Batch:
        batch: Batch = await anext(batches)
        for update in batch.updates:
            if syncing.GAP.encode() in update:
                self.refused += 1
                continue
            for one in self.platform.read(update):
                if isinstance(one, Message):
                    self.heard.setdefault(one.source.chat, []).append(one.text)
        return batch


async def test_what_is_written_behind_a_gap_waits_for_it_and_other_rooms_do_not(
    rooms: tuple[Rooms, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """P1, P8: also where a second gap opens behind the first. No token is given before everything was read."""
    monkeypatch.setattr(syncing, "GAP_AGAIN_S", 0.1)
    server, url = rooms
    reader = Reader(url)
    first, second = [f"{number}" for number in range(8)], [f"again {number}" for number in range(5)]
    server.say("!a:here", *first)
    server.failing.add("!a:here")
    await reader.platform.connect()
    try:
        async with asyncio.timeout(10), aclosing(reader.platform.receive("0")) as batches:
            assert (await reader.take(batches)).cursor is None
            server.say("!a:here", *second)
            server.say("!b:here", "elsewhere")
            while "!b:here" not in reader.heard:
                assert (await reader.take(batches)).cursor is None
            server.say("!a:here", "last")
            while server.asked < 4:
                assert (await reader.take(batches)).cursor is None
            assert reader.heard == {"!b:here": ["elsewhere"]}
            server.failing.clear()
            batch = await reader.take(batches)
            while batch.cursor is None:
                batch = await reader.take(batches)
            assert reader.heard["!a:here"] == [*first, *second, "last"]
            assert batch.cursor == str(len(server.said)) and reader.refused == 0
    finally:
        await reader.platform.aclose()


async def test_a_gap_that_stays_open_for_too_long_is_told_and_holds_up_its_room_no_longer(
    rooms: tuple[Rooms, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """P8"""
    monkeypatch.setattr(syncing, "GAP_AGAIN_S", 0.1)
    monkeypatch.setattr(syncing, "MOST_GAP_S", 0.3)
    server, url = rooms
    reader = Reader(url)
    server.say("!a:here", *(f"{number}" for number in range(8)))
    server.failing.add("!a:here")
    await reader.platform.connect()
    try:
        async with asyncio.timeout(10), aclosing(reader.platform.receive("0")) as batches:
            while (await reader.take(batches)).cursor is None:
                pass
            assert reader.heard == {"!a:here": ["5", "6", "7"]} and reader.refused == 1
    finally:
        await reader.platform.aclose()


async def test_a_room_whose_history_is_given_again_is_read_though_another_one_fails_all_the_time(
    rooms: tuple[Rooms, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """P8: a room that is due at every look takes no other room's turn."""
    monkeypatch.setattr(syncing, "GAP_AGAIN_S", 0.0)
    server, url = rooms
    reader = Reader(url)
    texts = [f"{number}" for number in range(8)]
    server.failing |= {"!a:here", "!b:here"}
    server.say("!a:here", *texts)
    await reader.platform.connect()
    try:
        async with asyncio.timeout(10), aclosing(reader.platform.receive("0")) as batches:
            await reader.take(batches)
            server.say("!b:here", *texts)
            while server.asked < 4:
                await reader.take(batches)
            server.failing.remove("!b:here")
            while "!b:here" not in reader.heard:
                await reader.take(batches)
            assert reader.heard == {"!b:here": texts}
    finally:
        await reader.platform.aclose()
