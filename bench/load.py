"""Load clients on raw sockets: readers of event streams that cost little, and requests over connections that stay open."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, TypeVar, cast

import msgspec

T = TypeVar("T")
KEEP_S = 3.0  # Shorter than the server keeps an idle connection.
OPEN_S = 30.0
WAIT_S = 120.0


class Address(msgspec.Struct, frozen=True):
    host: str
    port: int
    token: str

    def head(self, method: str, path: str, more: str = "") -> bytes:
        lines = f"{method} {path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\nAuthorization: Bearer {self.token}\r\n{more}\r\n"
        return lines.encode()


class Broken(Exception):
    """A stream that ended, skipped an event or was refused, though nobody asked for it."""


class Stream(asyncio.Protocol):
    """One event stream: takes the HTTP layer off and gives the rest to `_body`."""

    def __init__(self, address: Address, session_id: str, *, after: str = "0") -> None:
        self.session_id = session_id
        self.failure: str | None = None
        self._request = address.head("GET", f"/api/sessions/{session_id}/events?after={after}")
        self._transport: asyncio.Transport | None = None
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._buffer = b""
        self._leaving = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by inheritance.
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer + data if self._buffer else data
        if not self._opened.done():
            head, end, buffer = buffer.partition(b"\r\n\r\n")
            if not end:
                self._buffer = head
                return
            if not head.startswith(b"HTTP/1.1 200"):
                self._fail(f"the server said {head.splitlines()[0].decode()}")
                return
            self._opened.set_result(None)
        place = 0
        while True:
            line = buffer.find(b"\r\n", place)
            if line < 0:
                break
            size = int(buffer[place:line], 16)
            end_of_chunk = line + 2 + size
            if len(buffer) < end_of_chunk + 2:
                break
            if size == 0:
                self._fail("the server ended the stream")
                return
            self._body(buffer[line + 2 : end_of_chunk])
            place = end_of_chunk + 2
        self._buffer = buffer[place:]

    def connection_lost(self, error: Exception | None) -> None:
        if not self._leaving and not self._done.done():
            self._fail("the connection was lost")

    def _body(self, data: bytes) -> None:
        raise NotImplementedError

    def _fail(self, why: str) -> None:
        self.failure = self.failure or why
        for future in (self._opened, self._done):
            if not future.done():
                future.set_exception(Broken(f"{self.session_id}: {why}"))
                future.exception()  # Whoever waits for it hears of it; nobody has to.

    async def opened(self) -> None:
        await asyncio.wait_for(asyncio.shield(self._opened), OPEN_S)

    async def done(self) -> None:
        """Returns when the stream has seen what it was opened for."""
        await asyncio.wait_for(asyncio.shield(self._done), WAIT_S)

    def close(self) -> None:
        self._leaving = True
        if self._transport is not None:
            self._transport.close()


class Reader(Stream):
    """Looks at every event: it must come in order, and none may be left out. `heard` is told the name and the data of each."""

    def __init__(
        self, address: Address, session_id: str, heard: Callable[[bytes, bytes], None] = lambda name, data: None, *, after: str = "0"
    ) -> None:
        super().__init__(address, session_id, after=after)
        self.heard = heard
        self.seq = int(after.rpartition(".")[2])
        self.count = 0
        self._half = b""
        self._waiting: list[tuple[bytes, asyncio.Future[float]]] = []

    def _body(self, data: bytes) -> None:
        *blocks, self._half = (self._half + data).split(b"\n\n")
        for block in blocks:
            fields = dict(line.split(b": ", 1) for line in block.split(b"\n") if b": " in line)
            name = fields.get(b"event")
            if name is None:
                continue  # A heartbeat.
            if name == b"end":
                self._fail(f"it was cut off: {fields[b'data'].decode()}")
                return
            seq = int(fields[b"id"].rpartition(b".")[2])
            if seq != self.seq + 1:
                self._fail(f"event {seq} came after {self.seq}")
            self.seq = seq
            self.count += 1
            self.heard(name, fields[b"data"])
            if self._waiting:
                self._tell(name)

    def _tell(self, name: bytes) -> None:
        now = time.perf_counter()
        for wanted, future in self._waiting:
            if wanted == name and not future.done():
                future.set_result(now)
        self._waiting = [each for each in self._waiting if not each[1].done()]

    def next(self, name: bytes) -> "asyncio.Future[float]":
        """When (perf_counter) the next event of this name comes. Ask before you do what makes it come."""
        future: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._waiting.append((name, future))
        return future

    def _fail(self, why: str) -> None:
        super()._fail(why)
        for _, future in self._waiting:
            if not future.done():
                future.set_exception(Broken(f"{self.session_id}: {why}"))


class Counter(Stream):
    """Only counts events of one name, as fast as Python can, and is done after so many."""

    def __init__(self, address: Address, session_id: str, name: bytes, wanted: int) -> None:
        super().__init__(address, session_id)
        self.count, self.first_at, self.last_at = 0, 0.0, 0.0
        self._pattern, self._wanted, self._tail = b"event: %b\n" % name, wanted, b""

    def _body(self, data: bytes) -> None:
        data = self._tail + data
        found = data.count(self._pattern)
        self._tail = data[1 - len(self._pattern) :]
        if found:
            self.last_at = time.perf_counter()
            self.first_at = self.first_at or self.last_at
            self.count += found
            if self.count >= self._wanted and not self._done.done():
                self._done.set_result(None)


S = TypeVar("S", bound=Stream)


@asynccontextmanager
async def attached(address: Address, streams: Iterable[S]) -> AsyncIterator[list[S]]:
    """Streams that are connected and answered; closed at the end."""
    loop = asyncio.get_running_loop()
    streams = list(streams)
    async with AsyncExitStack() as closing:
        for some in batches(streams, 100):
            await asyncio.gather(*(loop.create_connection(lambda stream=stream: stream, address.host, address.port) for stream in some))  # type: ignore[misc]
            for stream in some:
                closing.callback(stream.close)
            await asyncio.gather(*(stream.opened() for stream in some))
        yield streams


def batches(items: Sequence[T], size: int) -> Iterable[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


class Api:
    """Requests over connections that stay open, as many as there are requests at once; or, where it `keeps` none, over one each."""

    def __init__(self, address: Address, *, keeps: bool = True) -> None:
        self._address, self.keeps = address, keeps
        self._idle: list[tuple[float, asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def __aenter__(self) -> "Api":
        return self

    async def __aexit__(self, *exc: object) -> None:
        for _, _, writer in self._idle:
            writer.close()

    async def request(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        reader, writer = await self._connection()
        content = b"" if body is None else msgspec.json.encode(body)
        more = f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n" if body is not None else ""
        try:
            writer.write(self._address.head(method, path, more) + content)
            head = await reader.readuntil(b"\r\n\r\n")
            fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n") if b": " in line)
            answer = await reader.readexactly(int(fields[b"content-length"]))
        except BaseException:
            writer.close()
            raise
        if self.keeps and fields.get(b"connection") != b"close":
            self._idle.append((time.monotonic(), reader, writer))
        else:
            writer.close()
        return int(head[9:12]), answer

    async def _connection(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        while self._idle:
            since, reader, writer = self._idle.pop()
            if time.monotonic() - since < KEEP_S and not reader.at_eof() and reader.exception() is None:
                return reader, writer
            writer.close()
        return await asyncio.open_connection(self._address.host, self._address.port)

    async def new_session(self) -> str:
        status, answer = await self.request("POST", "/api/sessions", {})
        assert status == 201, answer
        return str(msgspec.json.decode(answer)["session_id"])

    async def new_sessions(self, count: int) -> list[str]:
        ids: list[str] = []
        for some in batches(range(count), 20):
            ids += await asyncio.gather(*(self.new_session() for _ in some))
        return ids

    async def post(self, session_id: str, text: str) -> float:
        """Posts a message; the milliseconds until it was accepted."""
        began = time.perf_counter()
        status, answer = await self.request("POST", f"/api/sessions/{session_id}/messages", {"text": text})
        assert status == 202, answer
        return 1000 * (time.perf_counter() - began)
