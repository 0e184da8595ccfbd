"""The gateway of the fake: sessions that outlive their connections, and replay what was missed."""

import asyncio
import itertools
import json
from typing import Any

from aiohttp import WSMessage, WSMsgType, web

DISPATCH, HEARTBEAT, IDENTIFY, RESUME, RECONNECT, INVALID, HELLO, ACK = 0, 1, 2, 6, 7, 9, 10, 11
MESSAGE_CONTENT = 1 << 15


class Session:
    """`events`: all of them, by their number from 1 on; the first `told` of them have been sent to the `socket` of whoever listens now."""

    def __init__(self, id: str) -> None:
        self.id = id
        self.events: list[dict[str, Any]] = []
        self.socket: web.WebSocketResponse | None = None
        self.told = 0
        self._telling = asyncio.Lock()

    def add(self, kind: str, data: Any) -> None:
        self.events.append({"op": DISPATCH, "t": kind, "s": len(self.events) + 1, "d": data})

    def listen(self, socket: web.WebSocketResponse, *, after: int) -> None:
        self.socket, self.told = socket, after

    async def tell(self) -> None:
        """Everything that has not been told, in order."""
        async with self._telling:
            while (socket := self.socket) is not None and not socket.closed and self.told < len(self.events):
                event = self.events[self.told]
                self.told += 1
                try:
                    await socket.send_str(json.dumps(event))
                except ConnectionError:
                    return


class Gateway:
    """`remaining`: logins that are left. `content`: the bot may read what does not mention it. `silent`: heartbeats are not answered until
    a session is resumed. `entered`: how each connection began. `ready`: what a session begins with, besides its name.
    """

    def __init__(self, token: str, *, ready: dict[str, Any]) -> None:
        self.token, self.content, self.silent = token, True, False
        self._ready = ready
        self.remaining = 1000
        self.heartbeat_ms = 41_250
        self.sessions: dict[str, Session] = {}
        self.entered: list[str] = []
        self.beats = 0
        self.closes: list[int | None] = []
        self.url = ""
        self._numbers = itertools.count(1)
        self._overs: dict[web.WebSocketResponse, asyncio.Future[int]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    # what a test does

    def dispatch(self, kind: str, data: Any) -> None:
        for session in self.sessions.values():
            session.add(kind, data)
            self._later(session.tell())

    def forget(self) -> None:
        """Sessions are over, as after a few minutes without a connection."""
        sockets = [session.socket for session in self.sessions.values()]
        self.sessions.clear()
        for socket in sockets:
            if socket is not None and not socket.closed:
                self._end(socket, 4009)

    def hang_up(self, code: int = 4000) -> None:
        """Connections are closed; sessions stay."""
        for session in self.sessions.values():
            if session.socket is not None and not session.socket.closed:
                self._end(session.socket, code)

    def ask_to_reconnect(self) -> None:
        for session in self.sessions.values():
            if session.socket is not None:
                self._later(session.socket.send_json({"op": RECONNECT, "d": None}))

    @property
    def connected(self) -> int:
        return sum(session.socket is not None and not session.socket.closed for session in self.sessions.values())

    def _end(self, socket: web.WebSocketResponse, code: int) -> None:
        over = self._overs.get(socket)
        if over is not None and not over.done():
            over.set_result(code)

    def _later(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # what a bot does

    async def serve(self, request: web.Request) -> web.WebSocketResponse:
        assert request.query["v"] == "10" and request.query["encoding"] == "json"
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_json({"op": HELLO, "d": {"heartbeat_interval": self.heartbeat_ms}})
        session: Session | None = None
        over: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._overs[socket] = over
        while (message := await _received(socket, over)) is not None:
            asked = json.loads(message.data)
            match asked["op"]:
                case op if op == HEARTBEAT:
                    self.beats += 1
                    if not self.silent:
                        await socket.send_json({"op": ACK})
                case op if op == IDENTIFY:
                    session = await self._identify(socket, asked["d"])
                case op if op == RESUME:
                    session = await self._resume(socket, asked["d"])
        self.closes.append(socket.close_code)
        del self._overs[socket]
        if session is not None:
            if session.socket is socket:
                session.socket = None
            if socket.close_code in (1000, 1001):  # As the real one, it takes that for a farewell.
                self.sessions.pop(session.id, None)
        return socket

    async def _identify(self, socket: web.WebSocketResponse, asked: dict[str, Any]) -> Session | None:
        if asked["token"] != self.token:
            await socket.close(code=4004)
            return None
        if asked["intents"] & MESSAGE_CONTENT and not self.content:
            await socket.close(code=4014)
            return None
        self.entered.append("identify")
        self.remaining -= 1
        session = Session(f"session-{next(self._numbers)}")
        self.sessions[session.id] = session
        session.listen(socket, after=0)
        session.add("READY", {**self._ready, "session_id": session.id, "resume_gateway_url": self.url})
        await session.tell()
        return session

    async def _resume(self, socket: web.WebSocketResponse, asked: dict[str, Any]) -> Session | None:
        if asked["token"] != self.token:
            await socket.close(code=4004)
            return None
        session = self.sessions.get(asked["session_id"])
        if session is None:
            self.entered.append("refused")
            await socket.send_json({"op": INVALID, "d": False})
            return None
        self.entered.append("resume")
        self.silent = False  # Another connection, another machine behind it.
        if session.socket is not None and not session.socket.closed:
            self._end(session.socket, 4000)
        session.add("RESUMED", {})
        session.listen(socket, after=asked["seq"])
        await session.tell()
        return session


async def _received(socket: web.WebSocketResponse, over: "asyncio.Future[int]") -> WSMessage | None:
    """The next message; None once the connection is over. Only its own task closes it."""
    receiving = asyncio.ensure_future(socket.receive())
    waits: list[asyncio.Future[Any]] = [receiving, over]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    if over.done():
        receiving.cancel()
        await asyncio.wait({receiving})
        await socket.close(code=over.result())
        return None
    message = receiving.result()
    return message if message.type in (WSMsgType.TEXT, WSMsgType.BINARY) else None
