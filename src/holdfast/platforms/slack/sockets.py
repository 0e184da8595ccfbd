"""Socket Mode, read by a loop of our own. The SDK's loop closes a connection before it opens the next, hands envelopes to tasks that may
overtake each other, and can stay deaf after a reconnect; this one opens the next connection first, gives each frame as it came, and notices
silence by its own pings.
"""

import asyncio
from typing import NamedTuple

import msgspec
from aiohttp import ClientWebSocketResponse, WSMessage, WSMsgType
from slack_sdk.socket_mode.response import SocketModeResponse

from holdfast.core.errors import Unavailable
from holdfast.platforms.slack.wire import Wire

CLOSED = (WSMsgType.CLOSE, WSMsgType.CLOSING, WSMsgType.CLOSED, WSMsgType.ERROR)
AGAIN_S = 1.0
CLOSE_S = 2.0


class Ticket(NamedTuple):
    """By which an envelope is acknowledged, over the connection that brought it."""

    socket: ClientWebSocketResponse
    envelope_id: str


class Frame(NamedTuple):
    body: bytes
    ticket: Ticket | None


class _Head(msgspec.Struct, frozen=True):
    """What the connection itself has to know of a frame."""

    type: str = ""
    envelope_id: str | None = None
    reason: str = ""


class Sockets:
    """The connections of one process: one, or two for as long as the older is about to end."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._receiving: dict[ClientWebSocketResponse, asyncio.Future[WSMessage]] = {}
        self._replaced: set[ClientWebSocketResponse] = set()

    async def open(self) -> None:
        socket = await self._wire.socket()
        self._receiving[socket] = asyncio.ensure_future(socket.receive())

    async def next(self, within_s: float) -> Frame | None:
        """The next thing that was sent to us; None if nothing was. Raises `Unavailable` when no connection is left."""
        if not self._receiving:
            raise Unavailable("There is no connection to Slack.", retry_after_s=AGAIN_S)
        done, _ = await asyncio.wait(self._receiving.values(), timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
        for socket, receiving in list(self._receiving.items()):
            if receiving in done:
                return await self._take(socket, receiving.result())
        return None

    async def _take(self, socket: ClientWebSocketResponse, message: WSMessage) -> Frame | None:
        if message.type in CLOSED:
            await self._leave(socket)
            return None
        self._receiving[socket] = asyncio.ensure_future(socket.receive())
        if message.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
            return None
        body = message.data.encode() if isinstance(message.data, str) else bytes(message.data)
        try:
            head = msgspec.json.decode(body, type=_Head)
        except msgspec.DecodeError:
            return Frame(body, None)
        if head.type == "disconnect":
            await self._replace(socket, head.reason)
        return Frame(body, Ticket(socket, head.envelope_id)) if head.envelope_id is not None else None

    async def _replace(self, socket: ClientWebSocketResponse, reason: str) -> None:
        """Slack ends connections every few hours, and says so before it does, once or twice. What it has already sent is still read."""
        if reason == "too_many_websockets":
            raise Unavailable("Too many programs are connected to this Slack app. Stop one of them.", retry_after_s=30.0)
        if socket not in self._replaced:
            await self.open()
            self._replaced.add(socket)
        if reason != "warning":
            await self._leave(socket)

    async def _leave(self, socket: ClientWebSocketResponse) -> None:
        self._receiving.pop(socket).cancel()
        self._replaced.discard(socket)
        await _close(socket)
        if not self._receiving:
            raise Unavailable("The connection to Slack broke.", retry_after_s=AGAIN_S)

    async def acknowledge(self, ticket: Ticket) -> None:
        """One that cannot be acknowledged any more is told again, and known by its key."""
        if not ticket.socket.closed:
            try:
                await ticket.socket.send_json(SocketModeResponse(ticket.envelope_id).to_dict())
            except (ConnectionError, RuntimeError):
                return

    async def aclose(self) -> None:
        receiving, self._receiving = self._receiving, {}
        self._replaced.clear()
        for socket, future in receiving.items():
            future.cancel()
            await _close(socket)


async def _close(socket: ClientWebSocketResponse) -> None:
    try:
        await asyncio.wait_for(socket.close(), CLOSE_S)
    except TimeoutError:
        return
