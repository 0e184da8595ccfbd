"""The whole gateway in one process, with its web application: a real store, a small agent, and every answer held against the OpenAPI
document."""

import asyncio
import json
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.api.status import JournalStatus, Status
from holdfast.blobs import FOLDER, Blobs, Folder
from holdfast.gateway.agents import Agents
from holdfast.gateway.edges import Edges
from holdfast.gateway.editors import Editors
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.host import Host
from holdfast.gateway.series import Series
from holdfast.gateway.settings import Settings
from holdfast.gateway.toolbox import Toolbox
from holdfast.ports.keepers import Keepers
from holdfast.ports.owners import Owner
from holdfast.ports.upkeep import Commits
from holdfast.process.server import Server, listen
from holdfast.process.system import RandomIds
from holdfast.spool import FolderSpool
from holdfast.store import SqliteStore
from holdfast.store.lines import Lines
from holdfast.store.sqlite.connection import connect, reader
from holdfast.store.sqlite.threads import Threads
from holdfast.web.access import Access
from holdfast.web.app import Process, build_app
from holdfast.web.frames import encode
from holdfast.web.stream import Timing
from tests.conformance.backends import empty_database
from tests.fakes.agents import Printer, WordAgent
from tests.fakes.platform import NAME, Chat, ChatServer
from tests.gateway.gateways import Wire

T = TypeVar("T")
TOKEN = "the-token-of-this-test"
WAIT_S = 60.0
MAX_UPLOAD = 1_000_000


class Hands:
    """A clock whose hands are moved by the test."""

    def __init__(self) -> None:
        self.wall_ms = 1_800_000_000_123
        self.elapsed_s = 1000.0

    def now(self) -> int:
        return self.wall_ms

    def monotonic(self) -> float:
        return self.elapsed_s

    def offset_s(self, at: int) -> int:
        return 0

    def pass_s(self, seconds: float) -> None:
        self.wall_ms += int(seconds * 1000)
        self.elapsed_s += seconds


class OnlyWeLive:
    def __init__(self, name: str) -> None:
        self._name = name

    def alive(self, name: str) -> bool:
        return name == self._name


class Weather:
    """The way to the disk, on which something may be wrong: then everything that is asked of the store fails with it."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self.fault: Exception | None = None

    async def write(self, run: Callable[..., T], *arguments: Any, when_full: bool = False, waits: bool = True) -> T:
        if self.fault is not None:
            raise self.fault
        return await self._lines.write(run, *arguments, when_full=when_full, waits=waits)

    async def read(self, run: Callable[..., T], *arguments: Any) -> T:
        if self.fault is not None:
            raise self.fault
        return await self._lines.read(run, *arguments)

    def subscribe(self, heard: Callable[[], None]) -> Callable[[], None]:
        return self._lines.subscribe(heard)

    @property
    def degraded(self) -> str | None:
        return str(self.fault) if self.fault is not None else self._lines.degraded

    @property
    def commits(self) -> Commits:
        return self._lines.commits

    async def writable(self) -> None:
        await self._lines.writable()

    async def aclose(self) -> None:
        await self._lines.aclose()


class Checked:
    """Holds each answer against the document: an operation gives no status that it does not name, and an error has one shape."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._paths: list[tuple[re.Pattern[str], dict[str, Any]]] = []
        self.seen: set[tuple[str, str, int]] = set()
        self.violations: list[str] = []
        self.strict = True

    def know(self, document: dict[str, Any]) -> None:
        for path, methods in document["paths"].items():
            self._paths.append((re.compile(re.sub(r"{\w+}", "[^/]+", path)), {"path": path} | methods))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        status, body = 0, b""

        async def listening(message: Message) -> None:
            nonlocal status, body
            if message["type"] == "http.response.start":
                status = message["status"]
            elif status >= 400:
                body += message["body"]
            await send(message)

        await self._app(scope, receive, listening)
        if scope["type"] == "http" and status:
            self._judge(scope["method"], scope["path"], status, body)

    def _judge(self, method: str, path: str, status: int, body: bytes) -> None:
        what = f"{method} {path} -> {status} {body[:200]!r}"
        if path == "/healthz" and status == 503 and body == b"not ok\n":
            body = b'{"error": {"code": "-", "message": "-"}}'  # The one failure that is told without a word more.
        page = status == 404 and not path.startswith("/api/") and body.startswith(b"<!doctype html>")
        if status >= 400 and method != "HEAD" and not page:
            error = json.loads(body)["error"]
            if path.startswith("/v1/") and {"type", "param"} <= set(error):  # The shape of OpenAI's errors.
                error = {name: value for name, value in error.items() if name != "param" and not (name == "type" and value)}
            if set(error) != {"code", "message"} or not all(isinstance(value, str) and value for value in error.values()):
                self.violations.append(f"not the shape of an error: {what}")
        known = next((methods for pattern, methods in self._paths if pattern.fullmatch(path)), None)
        operation = known.get("get" if method == "HEAD" else method.lower()) if known else None
        if method == "HEAD" and operation and "text/event-stream" in operation["responses"]["200"].get("content", ()):
            operation = None
        if known and operation:
            self.seen.add((method, known["path"], status))
            if str(status) not in operation["responses"] and self.strict:
                self.violations.append(f"not in the document: {what}")
        elif status not in (200, 304, 400, 403, 404, 405, 421, 401, 429):
            self.violations.append(f"no answer for what is not there: {what}")


class World:
    """One gateway and what a test needs of it."""

    gateway: Gateway
    blobs: Blobs
    series: Series
    app: Checked
    access: Access
    client: httpx.AsyncClient
    weather: Weather
    document: dict[str, Any]

    def __init__(self, home: Path) -> None:
        self.home = home
        self.blobs_folder = Folder(home / FOLDER, leave_free=0)
        self.clock, self.agent, self.printer = Hands(), WordAgent(), Printer()
        self.stops = self.restarts = 0
        self.refusal: Exception | None = None
        self.anchors: tuple[str, str, str] | None = None
        self.listener = listen("127.0.0.1", 0)
        self.port: int = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def stop(self) -> None:
        self.stops += 1

    async def restart(self) -> dict[str, Any]:
        """What the process does about it, which is none of the gateway's business."""
        if self.refusal is not None:
            raise self.refusal
        await self.gateway.counts()  # Nothing is handed over that cannot be read.
        self.restarts += 1
        return {"mode": "hand_over", "pid": 2, "version": "0"}

    async def status(self) -> Status:
        counts, paused = await self.gateway.counts(), self.gateway.pausing.paused
        return Status(
            pid=1, process_started_at=1, boot_id="b", started_at="", version="0", gateway_state=self.gateway.state, since="", why=None,
            url=self.url, public_url=None, running_turns=counts.running, retiring=[], inbox=counts.inbox, outbox=counts.outbox,
            suspended=counts.suspended, pending=counts.pending, safe_mode=self.gateway.safe_mode, platforms=[], chats=[],
            home="", owner="us",
            paused_by=paused.holder if paused else None, paused_until="" if paused else None, supervisor="plain", agent="words",
            models=[], degraded=None, stop_timeout_s=30.0, sandbox=None, mcp=[],
            journal=JournalStatus(files=0, bytes=0, late=0),
        )  # fmt: skip

    def browser(self, **headers: str) -> httpx.AsyncClient:
        """A client without a credential."""
        return httpx.AsyncClient(transport=httpx.ASGITransport(app=self.app), base_url=self.url, headers=headers, timeout=WAIT_S)

    async def new_session(self, **fields: Any) -> str:
        answer = await self.client.post("/api/sessions", json=fields)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["session_id"])

    async def post(self, session_id: str, text: str, **fields: Any) -> httpx.Response:
        return await self.client.post(f"/api/sessions/{session_id}/messages", json={"text": text, **fields})

    async def view(self, session_id: str) -> dict[str, Any]:
        answer = await self.client.get(f"/api/sessions/{session_id}")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    async def until(self, condition: Callable[[], Awaitable[T | None]]) -> T:
        """Looks again after each commit."""
        news = asyncio.Event()
        forget = self.gateway.store.subscribe(news.set)
        try:
            async with asyncio.timeout(WAIT_S):
                while not (found := await condition()):
                    await news.wait()
                    news.clear()
                return found
        finally:
            forget()

    async def until_state(self, session_id: str, state: str) -> dict[str, Any]:
        async def reached() -> dict[str, Any] | None:
            view = await self.view(session_id)
            return view if view["state"] == state and (state != "idle" or not view["queued"]) else None

        return await self.until(reached)

    async def say(self, session_id: str, text: str) -> dict[str, Any]:
        """The session once the turn of this message has ended."""
        answer = await self.post(session_id, text)
        assert answer.status_code == 202, answer.text

        async def ended() -> dict[str, Any] | None:
            view = await self.view(session_id)
            mine = [message for message in view["messages"] if message["id"] == answer.json()["message_id"]]
            turns = {turn["id"]: turn for turn in view["turns"]}
            return view if mine and mine[0]["turn_id"] and turns[mine[0]["turn_id"]]["state"] == "ended" else None

        return await self.until(ended)

    def connect(self, receive_buffer: int | None = None) -> socket.socket:
        connection = socket.socket()
        if receive_buffer is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        connection.connect(("127.0.0.1", self.port))
        connection.setblocking(False)
        return connection


@asynccontextmanager
async def world(
    home: Path,
    *,
    life: str = "us",
    static: Path | None = None,
    settings: Settings | None = None,
    timing: Timing | None = None,
    chats: ChatServer | None = None,
    keepers: Keepers | None = None,
) -> AsyncIterator[World]:
    """`life` names the process: one of another name finds the turns of those before it dead. `chats`: it is connected to this one.
    `keepers`: of background processes.
    """
    made = World(home)
    async with AsyncExitStack() as closing:
        closing.callback(made.listener.close)
        path = home / "holdfast.db"
        if not path.exists():
            path.write_bytes(empty_database())
        weather = Weather(Threads(open_writer=lambda: connect(path), open_reader=reader(path), reserve=None))
        made.weather = weather
        store = SqliteStore(weather, now=made.clock.now)
        closing.push_async_callback(store.aclose)
        owner = await store.register_owner(Owner(name=life, pid=1, started_at=1, boot_id="b"))
        made.blobs = blobs = Blobs(folder=made.blobs_folder, rows=store, clock=made.clock, ids=RandomIds())
        made.gateway = Gateway(
            store=store,
            host=Host(
                clock=made.clock,
                ids=RandomIds(),
                liveness=OnlyWeLive(life),
                owner=owner,
                name=life,
            ),
            edges=Edges(
                agents=Agents(made.agent),
                tools=Toolbox({"printer": made.printer}),
                platforms={NAME: Chat(chats, faults=Wire())} if chats else {},
                files=blobs,
                spool=FolderSpool(home),
                keepers=keepers,
                encode=encode,
            ),
            settings=settings,
        )
        made.series = Series(made.gateway, clock=made.clock, memory=lambda: 50_000_000)
        made.access = Access(TOKEN, clock=made.clock, port=made.port, hosts=("chat.example.org",))
        made.access.end_sign_ins(await store.signed_out(now=made.clock.now()))
        made.app = Checked(
            build_app(
                made.gateway,
                Process(status=made.status, series=made.series, request_stop=made.stop, request_restart=made.restart),
                blobs=made.blobs,
                max_upload_bytes=MAX_UPLOAD,
                access=made.access,
                editors=Editors(RandomIds(), used=False),
                static=static,
                timing=timing or Timing(),
            )
        )
        made.client = made.browser(Authorization=f"Bearer {TOKEN}")
        closing.push_async_callback(made.client.aclose)
        made.document = (await made.client.get("/api/openapi.json")).json()
        made.app.know(made.document)
        await made.gateway.start()
        try:
            yield made
        finally:
            weather.fault = None
            made.agent.released.set()
            made.printer.released.set()
            await made.gateway.stop()
        assert not made.app.violations, made.app.violations


async def ask(app: ASGIApp, scope: Scope, *parts: bytes) -> tuple[int, bytes]:
    """An answer to a request that no proper client would make."""
    status, body = 0, b""
    waiting = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    waiting.append({"type": "http.request", "body": b"", "more_body": False})

    async def receive() -> Message:
        return waiting.pop(0) if waiting else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        nonlocal status, body
        status = message.get("status", status)
        body += message.get("body", b"")

    await app(scope, receive, send)
    return status, body


async def eventually(condition: Callable[[], bool]) -> None:
    """For what tells nobody when it changes."""
    async with asyncio.timeout(WAIT_S):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.002)


@asynccontextmanager
async def serving(made: World, **bounds: int) -> AsyncIterator[World]:
    """The same over a real server on a loopback port."""
    server = Server(made.app, made.listener, **bounds)
    running = asyncio.get_running_loop().create_task(server.run())
    await server.started()
    try:
        yield made
    finally:
        server.stop()
        await running
