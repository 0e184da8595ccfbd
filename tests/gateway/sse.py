"""A reader of event streams over a plain socket, which sees every byte."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from tests.gateway.web import TOKEN, WAIT_S, World


class Event(NamedTuple):
    id: str
    name: str
    data: dict[str, Any]

    @property
    def seq(self) -> int:
        return int(self.id.rpartition(".")[2])


def parse(block: bytes) -> Event | None:
    """One server-sent event, strictly; None for a comment."""
    fields: dict[str, str] = {}
    for line in block.decode().split("\n"):
        name, _, value = line.partition(": ")
        if name.startswith(":"):
            return None
        assert name in ("id", "event", "data") and name not in fields, block
        fields[name] = value
    data = json.loads(fields["data"], object_pairs_hook=unambiguous)
    assert isinstance(data, dict)
    return Event(fields.get("id", ""), fields["event"], data)


def unambiguous(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    assert len(found) == len(pairs), f"a name came twice: {pairs}"
    return found


class Reader:
    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self.status = 0
        self.headers: dict[str, str] = {}
        self.raw = b""
        self._rest = b""
        self.comments = 0
        self.closed = False

    async def begin(self) -> None:
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        self.status = int(head[0].split(" ")[1])
        self.headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}

    async def chunk(self) -> bool:
        """False at the end of the stream."""
        try:
            size = int(await self._reader.readuntil(b"\r\n"), 16)
            chunk = (await self._reader.readexactly(size + 2))[:-2]
        except (asyncio.IncompleteReadError, ConnectionError):
            size = 0
            chunk = b""
        self.raw += chunk
        self._rest += chunk
        self.closed = size == 0
        return not self.closed

    async def next(self) -> Event | None:
        """None at the end of the stream."""
        async with asyncio.timeout(WAIT_S):
            while True:
                block, found, rest = self._rest.partition(b"\n\n")
                if found:
                    self._rest = rest
                    event = parse(block)
                    if event is not None:
                        return event
                    self.comments += 1
                elif not await self.chunk():
                    return None

    async def until(self, *names: str) -> list[Event]:
        """Everything up to the first event of one of these names."""
        events: list[Event] = []
        while (event := await self.next()) is not None:
            events.append(event)
            if event.name in names:
                break
        return events

    async def take(self, count: int, *, end: str = "end") -> list[Event]:
        """So many events, or up to one that is called `end`."""
        events: list[Event] = []
        while len(events) < count and (event := await self.next()) is not None:
            events.append(event)
            if event.name == end:
                break
        return events


@asynccontextmanager
async def reading(
    world: World,
    session_id: str,
    *,
    after: str | None = None,
    last_event_id: str | None = None,
    receive_buffer: int | None = None,
    cookie: str | None = None,
) -> AsyncIterator[Reader]:
    query = "" if after is None else f"?after={after}"
    path = f"/api/sessions/{session_id}/events{query}"
    async with reading_path(world, path, last_event_id=last_event_id, receive_buffer=receive_buffer, cookie=cookie) as reader:
        yield reader


@asynccontextmanager
async def reading_path(
    world: World, path: str, *, last_event_id: str | None = None, receive_buffer: int | None = None, cookie: str | None = None
) -> AsyncIterator[Reader]:
    lines = [f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{world.port}"]
    lines.append(f"Authorization: Bearer {TOKEN}" if cookie is None else f"Cookie: holdfast={cookie}")
    if last_event_id is not None:
        lines.append(f"Last-Event-ID: {last_event_id}")
    connection = world.connect(receive_buffer)
    reader, writer = await asyncio.open_connection(sock=connection, limit=2**16 if receive_buffer else 2**22)
    try:
        writer.write("\r\n".join([*lines, "", ""]).encode())
        made = Reader(reader)
        await made.begin()
        yield made
    finally:
        writer.transport.abort()
