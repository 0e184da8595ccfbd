"""The server: HTTP by hand, because it must be able to break off anywhere."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator, Callable, Mapping
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from typing import Any

import msgspec

from tests.fakes.models import anthropic, chat, responses
from tests.fakes.models.script import Reply, Script
from tests.fakes.models.speaking import Refused, Speech, encoded

WRONG_KEY = "Incorrect API key provided"
SPEECHES: Mapping[str, Speech] = {"chat": chat, "responses": responses, "anthropic": anthropic}


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A request as it came. `connection`: its number, to see which were kept."""

    number: int
    connection: int
    wire: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """A recording as it came."""

    headers: dict[str, str]
    fields: dict[str, str]
    file_name: str | None
    media_type: str
    recording: bytes


class _Reader(asyncio.StreamReader):
    """`gone`: the other side has closed the connection."""

    def __init__(self) -> None:
        super().__init__(limit=2**24)
        self.gone = asyncio.Event()

    def feed_eof(self) -> None:
        super().feed_eof()
        self.gone.set()

    def set_exception(self, exc: Exception) -> None:
        super().set_exception(exc)
        self.gone.set()


class ModelServer:
    """Speaks every wire, by path. `requests`: what it was asked, `heard`: the recordings it was given. `sent`: the events of its
    streams, also of those that it broke off. `closed`: how many connections are closed.
    """

    def __init__(self, script: Script | Callable[[Asked], Reply], *, record: Path | None = None) -> None:
        self.requests: list[Asked] = []
        self.heard: list[Heard] = []
        self.sent: list[list[bytes]] = []
        self.connections = 0
        self.closed = 0
        self._script = script
        self._record = record
        self._changed = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def start(self, port: int = 0) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: asyncio.StreamReaderProtocol(_Reader(), self._meet), "127.0.0.1", port)

    @property
    def port(self) -> int:
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def url(self) -> str:
        """The address of chat completions and Responses. Anthropic's clients add the version themselves: `root`."""
        return f"{self.root}/v1"

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def until(self, condition: Callable[["ModelServer"], bool]) -> None:
        """Waits until something that it counts is so."""
        async with self._changed:
            await self._changed.wait_for(lambda: condition(self))

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None and isinstance(reader, _Reader)
        self._tasks.add(task)
        self.connections += 1
        try:
            await self._converse(reader, writer, self.connections)
        except (ConnectionError, asyncio.CancelledError):  # Cancelled by `stop`, and nothing is left to do.
            pass
        finally:
            self._tasks.discard(task)
            writer.close()
            async with self._changed:
                self.closed += 1
                self._changed.notify_all()

    async def _converse(self, reader: _Reader, writer: asyncio.StreamWriter, connection: int) -> None:
        while True:
            try:
                first = await reader.readexactly(1)
                if not first.isalpha():  # Not HTTP, as when somebody wants to speak TLS.
                    return await _answer(writer, 400, b"{}")
                head = (first + await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            except asyncio.IncompleteReadError:
                return
            line, *fields = head.strip().split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            path = line.split(" ")[1].partition("?")[0]
            wire = next((name for name, speech in SPEECHES.items() if speech.path == path), "")
            if not wire:
                await _answer(writer, *self._other(path, headers, body))
                continue
            asked = Asked(
                number=len(self.requests), connection=connection, wire=wire, path=path, headers=headers, body=msgspec.json.decode(body)
            )
            await self._take(asked)
            gone = asyncio.create_task(reader.gone.wait())
            sending = asyncio.create_task(self._reply(writer, asked))
            await asyncio.wait((gone, sending), return_when=asyncio.FIRST_COMPLETED)
            left = not sending.done()
            for each in (gone, sending):
                each.cancel()
            done = await asyncio.gather(gone, sending, return_exceptions=True)
            if left or done[1] is not True:
                return

    def _other(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        """What is no request to a model: status and body."""
        if isinstance(self._script, Script) and path == "/v1/audio/transcriptions" and self._script.transcripts:
            return self._hear(headers, body, self._script.transcripts)
        if not isinstance(self._script, Script) or path != "/v1/models" or not self._script.models:
            return 404, encoded_error("No such path.")
        if not self._takes(headers):
            return 401, encoded_error(WRONG_KEY, "authentication_error")
        return 200, msgspec.json.encode({"object": "list", "data": [{"id": name, "object": "model"} for name in self._script.models]})

    def _hear(self, headers: dict[str, str], body: bytes, transcripts: tuple[str | int | dict[str, Any], ...]) -> tuple[int, bytes]:
        if not self._takes(headers):
            return 401, encoded_error(WRONG_KEY, "authentication_error")
        message = message_from_bytes(b"Content-Type: " + headers["content-type"].encode() + b"\r\n\r\n" + body)
        parts = {str(part.get_param("name", header="content-disposition")): part for part in message.walk() if not part.is_multipart()}
        file = parts.pop("file")
        said = transcripts[min(len(self.heard), len(transcripts) - 1)]
        self.heard.append(
            Heard(
                headers=headers,
                fields={name: _bytes(part).decode() for name, part in parts.items()},
                file_name=file.get_filename(),
                media_type=file.get_content_type(),
                recording=_bytes(file),
            )
        )
        if isinstance(said, int):
            return said, encoded_error("No.", "x")
        return 200, msgspec.json.encode(said if isinstance(said, dict) else {"text": said})

    def _takes(self, headers: Mapping[str, str]) -> bool:
        """Whether the key is the right one."""
        given = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
        return not isinstance(self._script, Script) or self._script.key in (None, given)

    async def _take(self, asked: Asked) -> None:
        if self._record is not None:
            with self._record.open("ab") as file:
                file.write(msgspec.json.encode(asked) + b"\n")
        async with self._changed:
            self.requests.append(asked)
            self._changed.notify_all()

    def _chosen(self, asked: Asked, speech: Speech) -> Reply:
        if not isinstance(self._script, Script):
            return self._script(asked)
        speech.check(asked.body)
        if self._script.models and asked.body["model"] not in self._script.models:
            raise Refused(404, {"error": {"message": f"The model {asked.body['model']} does not exist", "type": "not_found_error"}})
        if self._script.window is not None and len(msgspec.json.encode(asked.body)) > self._script.window:
            raise speech.too_long()
        place = asked.number if self._script.by == "order" else speech.steps(asked.body)
        return self._script.replies[min(place, len(self._script.replies) - 1)]

    async def _reply(self, writer: asyncio.StreamWriter, asked: Asked) -> bool:
        """Whether the connection stays open."""
        speech = SPEECHES[asked.wire]
        if not self._takes(asked.headers):
            await _answer(writer, 401, encoded_error(WRONG_KEY, "authentication_error"))
            return True
        try:
            reply = self._chosen(asked, speech)
        except Refused as refused:
            await _answer(writer, refused.status, msgspec.json.encode(refused.error))
            return True
        if reply.drop:
            if reply.then == "hang":
                await asyncio.get_running_loop().create_future()
            return False
        if reply.status != 200 or reply.body is not None:
            body = reply.body.encode() if reply.body is not None else msgspec.json.encode(reply.error)
            content_type = reply.content_type if reply.body is not None else "application/json"
            if reply.then == "half":  # The length that was told is never reached.
                await _answer(writer, reply.status, body, headers=reply.headers | {"Content-Length": str(len(body) + 9)})
                return False
            await _answer(writer, reply.status, body, headers=reply.headers, content_type=content_type, drip=reply.drip)
            return not reply.leave
        return await self._stream(writer, reply, speech, asked.number)

    async def _stream(self, writer: asyncio.StreamWriter, reply: Reply, speech: Speech, number: int) -> bool:
        events = speech.events(reply, number) if reply.events is None else [encoded(each, _type(each)) for each in reply.events]
        head = {"Content-Type": reply.content_type, "Transfer-Encoding": "chunked", **reply.headers}
        writer.write(_head(200, head))
        async with self._changed:
            self.sent.append(events)
            self._changed.notify_all()
        for event in events[: reply.stop_after]:
            if reply.delay_s:
                await asyncio.sleep(reply.delay_s)
            size = reply.drip or len(event)
            for start in range(0, len(event), size):
                piece = event[start : start + size]
                writer.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                await writer.drain()
                if reply.drip:
                    await asyncio.sleep(0)
        if reply.then == "hang":
            await asyncio.get_running_loop().create_future()
        if reply.then == "reset":
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
            return False
        if reply.then == "close":
            writer.write(b"0\r\n\r\n")
            await writer.drain()
        return reply.then == "close" and not reply.leave


async def _answer(
    writer: asyncio.StreamWriter,
    status: int,
    body: bytes,
    *,
    headers: Mapping[str, str] = {},
    content_type: str = "application/json",
    drip: int = 0,
) -> None:
    writer.write(_head(status, {"Content-Type": content_type, "Content-Length": str(len(body)), **headers}))
    for start in range(0, len(body), drip or max(1, len(body))):
        writer.write(body[start : start + (drip or len(body))])
        await writer.drain()
        if drip:
            await asyncio.sleep(0.001)


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    return "\r\n".join((f"HTTP/1.1 {status} Status", *(f"{name}: {value}" for name, value in headers.items()), "", "")).encode()


def _type(event: Any) -> str | None:
    """The name under which a server sends an event that has one."""
    return event.get("type") if isinstance(event, dict) else None


def _bytes(part: Message) -> bytes:
    payload = part.get_payload(decode=True)
    assert isinstance(payload, bytes)
    return payload


def encoded_error(words: str, kind: str = "not_found_error") -> bytes:
    return msgspec.json.encode({"error": {"message": words, "type": kind}})


@contextlib.asynccontextmanager
async def serving(*replies: Reply, script: Script | Callable[[Asked], Reply] | None = None) -> AsyncIterator[ModelServer]:
    server = ModelServer(script or Script(replies=replies))
    await server.start()
    try:
        yield server
    finally:
        await server.stop()
