"""What a client may cost before, and after, it has shown who it is: headers, time and connections are bounded, over real sockets."""

import asyncio
import gc
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any

import pytest

from holdfast.process import connections
from holdfast.process.server import most_blobs, most_connections
from holdfast.web import bodies
from tests.gateway import sse, web
from tests.gateway.web import TOKEN, WAIT_S, World

pytestmark = pytest.mark.anyio


class Client:
    """A connection that sends what no library would."""

    def __init__(self, world: World, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.world, self._reader, self._writer = world, reader, writer

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def request(self, path: str = "/healthz", *headers: str, method: str = "GET", body: bytes = b"") -> None:
        lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{self.world.port}", *headers, "", ""]
        await self.send("\r\n".join(lines).encode() + body)

    async def answer(self) -> tuple[int, bytes]:
        async with asyncio.timeout(WAIT_S):
            head = (await self._reader.readuntil(b"\r\n\r\n")).decode()
            fields = {name.lower(): value for name, _, value in (line.partition(": ") for line in head.split("\r\n")[1:])}
            self.fields = fields
            return int(head.split()[1]), await self._reader.readexactly(int(fields.get("content-length", 0)))

    async def error(self) -> tuple[int, str]:
        status, body = await self.answer()
        return status, json.loads(body)["error"]["code"]

    async def closed(self) -> bytes:
        """What still comes until the other side closes."""
        async with asyncio.timeout(WAIT_S):
            try:
                return await self._reader.read()
            except ConnectionError:
                return b""

    def close(self) -> None:
        self._writer.transport.abort()


@asynccontextmanager
async def connected(world: World) -> AsyncIterator[Client]:
    reader, writer = await asyncio.open_connection("127.0.0.1", world.port)
    client = Client(world, reader, writer)
    try:
        yield client
    finally:
        client.close()


@contextmanager
def patched(where: Any, **values: float) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in values.items():
            patch.setattr(where, name, value)
        yield


# headers


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/api/status", [f"X-{n}: y" for n in range(100)]),
        ("/api/status", ["X-Long: " + "y" * 65536]),
        ("/api/status", [f"X-{n}: " + "y" * 2000 for n in range(40)]),
        ("/api/status?" + "q" * 65536, []),
        ("/" + "p" * 65536, []),
        ("/healthz", [f"X-{n}: y" for n in range(100)]),
    ],
    ids=["many", "one long", "together", "query", "path", "open path"],
)
async def test_a_head_that_is_too_large_is_refused_before_anyone_asks_who_sends_it(served: World, path: str, headers: list[str]) -> None:
    """DESIGN 11: 64 KiB and 100 headers."""
    async with connected(served) as client:
        await client.request(path, *headers)
        assert await client.error() == (431, "head_too_large")
        assert "content-security-policy" in client.fields


async def test_a_head_just_within_the_bounds_is_heard(served: World) -> None:
    async with connected(served) as client:
        await client.request("/healthz", *(f"X-{n}: y" for n in range(99)))
        assert (await client.answer())[0] == 200
        await client.request("/healthz", "X-Long: " + "y" * 65000)
        assert (await client.answer())[0] == 200


@pytest.mark.parametrize(
    "begin", [b"GET /healthz HTTP/1.1\r\nX-Long: ", b"GET /", b"GET /healthz HTTP/1.1\r\n"], ids=["header", "path", "headers"]
)
async def test_a_head_that_never_ends_is_refused_while_it_comes(served: World, begin: bytes) -> None:
    """DESIGN 11: nobody can make the server keep more than a few hundred KiB of it."""
    piece = b"X-y: z\r\n" * 2000 if begin.endswith(b"\r\n") else b"y" * 16000
    async with connected(served) as client:
        await client.send(begin)
        sent = 0
        with pytest.raises((ConnectionError, TimeoutError)):
            async with asyncio.timeout(WAIT_S):
                while sent < 50_000_000:
                    await client.send(piece)
                    sent += len(piece)
        assert sent < 20_000_000  # What fits into the buffers of the two sockets.


async def test_a_head_that_drips_in_is_told_so_in_the_end_and_one_that_never_begins_is_closed(served: World) -> None:
    with patched(connections, HEAD_S=0.5):
        async with connected(served) as dripping, connected(served) as silent:
            await dripping.send(b"GET /healthz HTTP/1.1\r\nHost: ")
            assert await dripping.error() == (408, "too_slow")
            assert await dripping.closed() == await silent.closed() == b""


async def test_the_time_for_a_head_starts_over_with_each_request_of_a_connection(served: World) -> None:
    with patched(connections, HEAD_S=0.5):
        async with connected(served) as client:
            await client.request()
            assert (await client.answer())[0] == 200
            await client.send(b"GET /healthz HT")
            assert await client.error() == (408, "too_slow")


# bodies


async def test_a_body_that_drips_in_has_a_deadline(served: World) -> None:
    """DESIGN 11: also where each piece comes in time."""
    session_id = await served.new_session()
    with patched(bodies, BODY_S=0.5):
        async with connected(served) as client:
            headers = [f"Authorization: Bearer {TOKEN}", "Content-Type: application/json", "Content-Length: 100000"]
            await client.request(f"/api/sessions/{session_id}/messages", *headers, method="POST", body=b'{"text": "')

            async def drip() -> None:
                while True:
                    await client.send(b"x")
                    await asyncio.sleep(0.01)

            dripping = asyncio.get_running_loop().create_task(drip())
            assert await client.error() == (408, "too_slow")
            dripping.cancel()
            assert client.fields["connection"] == "close"
    assert (await served.view(session_id))["messages"] == []


async def test_a_large_body_has_more_time_while_it_comes_at_a_fair_rate(served: World) -> None:
    session_id = await served.new_session()
    body = json.dumps({"text": "x" * 400_000}).encode()
    with patched(bodies, BODY_S=1.0, LEAST_RATE=100_000):
        async with connected(served) as client:
            headers = [f"Authorization: Bearer {TOKEN}", "Content-Type: application/json", f"Content-Length: {len(body)}"]
            await client.request(f"/api/sessions/{session_id}/messages", *headers, method="POST")
            for start in range(0, len(body), 50_000):
                await client.send(body[start : start + 50_000])
                await asyncio.sleep(0.15)  # Altogether longer than a small body would have.
            assert (await client.answer())[0] == 202


async def test_a_client_refused_before_its_body_was_read_does_not_keep_the_connection_by_sending_more(served: World) -> None:
    with patched(connections, LINGER_S=0.5):
        async with connected(served) as client:
            await client.request("/api/sessions", "Content-Type: application/json", "Content-Length: 100000", method="POST")
            assert await client.error() == (401, "not_signed_in")

            async def drip() -> None:
                while True:
                    await client.send(b"x")
                    await asyncio.sleep(0.01)

            dripping = asyncio.get_running_loop().create_task(drip())
            await client.closed()
            await asyncio.wait({dripping}, timeout=WAIT_S)
            assert isinstance(dripping.exception(), ConnectionError)


async def test_a_refused_request_whose_body_comes_late_leaves_the_connection_good(served: World) -> None:
    async with connected(served) as client:
        await client.request("/api/sessions", "Content-Type: application/json", "Content-Length: 2", method="POST")
        assert await client.error() == (401, "not_signed_in")
        await client.send(b"{}")
        await client.request()
        assert await client.answer() == (200, b"ok\n")


async def test_a_trailer_that_never_ends_closes_the_connection(served: World) -> None:
    session_id = await served.new_session()
    async with connected(served) as client:
        headers = [f"Authorization: Bearer {TOKEN}", "Content-Type: application/json", "Transfer-Encoding: chunked"]
        await client.request(f"/api/sessions/{session_id}/messages", *headers, method="POST", body=b"2\r\n{}\r\n0\r\nX-Long: ")
        sent = 0
        with pytest.raises(ConnectionError):
            async with asyncio.timeout(WAIT_S):
                while sent < 50_000_000:
                    await client.send(b"y" * 16000)
                    sent += 16000
        assert sent < 20_000_000


# connections


async def test_beyond_the_bound_the_connection_that_was_idle_for_longest_gives_way(world: World) -> None:
    """Connections that are only held keep nobody out."""
    async with web.serving(world, most=3):
        async with connected(world) as first, connected(world) as second, connected(world) as third:
            for client in (second, third, first):
                await client.request()
                assert (await client.answer())[0] == 200
            async with connected(world) as fourth:
                await fourth.request()
                assert (await fourth.answer())[0] == 200
                assert await second.closed() == b""
                for client in (first, third, fourth):
                    await client.request()
                    assert (await client.answer())[0] == 200


async def test_where_every_connection_is_at_work_a_further_one_is_told_so_and_served_once_there_is_room(world: World) -> None:
    async with web.serving(world, most=2):
        session_id = await world.new_session()
        async with sse.reading(world, session_id) as reader, sse.reading(world, session_id):
            async with connected(world) as client:
                await client.request()
                assert await client.error() == (503, "too_many_connections")
                assert client.fields["retry-after"] == "5" and "content-security-policy" in client.fields
                assert await client.closed() == b""
            await reader.take(1)
            await world.post(session_id, "hello")
            assert (await reader.take(1))[0].name == "message.accepted"

        async def served() -> bool:
            async with connected(world) as client:
                await client.request()
                return (await client.answer())[0] == 200

        async with asyncio.timeout(WAIT_S):
            while not await served():
                pass


async def test_a_flood_of_refused_connections_is_not_heard_out(world: World) -> None:
    async with web.serving(world, most=1):
        session_id = await world.new_session()
        async with sse.reading(world, session_id) as reader:
            async with AsyncExitStack() as flood:
                clients = [await flood.enter_async_context(connected(world)) for _ in range(200)]
                assert [await client.closed() for client in clients] == [b""] * 200  # Not one of them said a word.
            assert [event.name for event in await reader.take(1)] == ["session.created"]


def test_room_is_kept_for_the_store_for_tools_and_for_a_hand_over() -> None:
    assert {files: most_connections(files) for files in (64, 200, 256, 1024, 20_000)} == {
        64: 16,
        200: 104,
        256: 160,
        1024: 768,
        20_000: 15_000,
    }
    assert {files: most_blobs(files) for files in (64, 200, 1024, 20_000)} == {64: 24, 200: 24, 1024: 64, 20_000: 1250}


async def test_garbage_is_collected_while_it_serves(world: World) -> None:
    """A start loads everything without looking for garbage."""
    before = gc.get_threshold()
    gc.disable()
    try:
        async with web.serving(world):
            assert gc.isenabled()
    finally:
        gc.enable()
        gc.set_threshold(*before)


async def test_what_grows_is_not_looked_through_as_a_whole(world: World) -> None:
    """P8: a new process reads long conversations; nobody else waits while all that it knows is looked through for garbage."""
    before = gc.get_threshold()
    collected: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        collected.append(info["generation"])

    try:
        async with web.serving(world):
            gc.callbacks.append(note)
            grown = [[number] for number in range(200_000)]
        assert len(grown) and 0 in collected and 2 not in collected
    finally:
        gc.callbacks.remove(note)
        gc.set_threshold(*before)
