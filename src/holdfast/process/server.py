"""The HTTP server of this process: a socket we bind ourselves, an app, and an end that we decide."""

import asyncio
import contextlib
import errno
import gc
import socket
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn

from holdfast.config import BadConfig
from holdfast.core.errors import Held
from holdfast.process.connections import Config, Connections

BACKLOG = 2048
MOST = 10_000
# Descriptors that no connection may take: for the store, the tools of running turns, a hand-over, and the files of attachments.
KEPT, KEPT_PART, BLOBS_PART = 96, 4, 4
LEAST = 16
GONE_AFTER_MS = 60_000
# The date in answers has seconds. At an end, what is being answered has some time to go out.
TICK_S = 1.0
GRACE_S, GONE_S = 2.0, 0.005
# Thresholds of Python's garbage collector, the youngest generation first. With its own, reading long conversations makes it look through
# everything again and again, for up to 100 ms each time, in which nobody is answered.
COLLECTED_AFTER = 5000, 3, 100


class PortTaken(Held):
    code = "port_taken"

    def __init__(self, host: str, port: int) -> None:
        super().__init__(f"Port {port} on {host} is taken by another program. Choose another with --port (0 takes a free one).")


class NoSuchAddress(Held):
    """A machine may get its address a moment after its start, so this is worth another try."""

    code = "no_such_address"

    def __init__(self, host: str) -> None:
        super().__init__(f"This machine has no address {host} to listen on. Wait until it has, or choose another with --host.")


def most_connections(files: int) -> int:
    """How many connections a process with so many open files may have at once."""
    return max(LEAST, files - _kept(files))


def most_blobs(files: int) -> int:
    """How many attachments such a process may write and read at once. Slow clients hold them, so they get a part of what is kept."""
    return _kept(files) // BLOBS_PART


def _kept(files: int) -> int:
    return max(KEPT, files // KEPT_PART)


def listen(host: str, port: int) -> socket.socket:
    """Bound and listening, so that the address that is shown already answers."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # The connection of a reader that vanished is closed in a minute, not in hours.
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, GONE_AFTER_MS)
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise PortTaken(host, port) from error
        if error.errno == errno.EADDRNOTAVAIL:
            raise NoSuchAddress(host) from error
        raise BadConfig(f"Cannot listen on {host}, port {port}: {error.strerror}.") from error
    listener.setblocking(False)
    return listener


def address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class Server:
    """uvicorn without its signals: stopping is the gateway's decision. `most`: connections at once."""

    def __init__(self, app: Callable[..., Any], listener: socket.socket, *, most: int = MOST) -> None:
        self._app, self._listener = app, listener
        self._retiring = False
        self._uvicorn = _Quiet(
            Config(
                self._answer,
                connections=Connections(most),
                backlog=min(BACKLOG, max(LEAST, most // 6)),  # As many may be accepted before any of them is counted.
                interface="asgi3",
                lifespan="off",
                ws="none",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,  # `trusted_proxies` decides; uvicorn would believe everybody on this machine.
                timeout_keep_alive=5,
            )
        )

    async def run(self) -> None:
        # What was loaded is never garbage: looking through all of it would delay every client by 40 ms.
        gc.freeze()
        gc.set_threshold(*COLLECTED_AFTER)
        gc.enable()
        await self._uvicorn.serve(sockets=[self._listener])

    async def started(self) -> None:
        await self._uvicorn.listening.wait()

    async def _answer(self, scope: dict[str, Any], receive: Callable[..., Any], send: Callable[..., Any]) -> None:
        await self._app(scope, receive, _last_of_its_connection(send) if self._retiring else send)

    async def retire(self) -> None:
        """Accepts no more connections; those in the queue are the successor's. Every answer is the last one of its connection."""
        if self._retiring:
            return
        loop = asyncio.get_running_loop()
        self._retiring = True
        servers = self._uvicorn.servers
        if isinstance(loop, asyncio.SelectorEventLoop):
            # Closing at once would lose connections that were accepted in the same pass of the loop.
            for server in servers:
                for listening in server.sockets:
                    loop.remove_reader(listening.fileno())
            await asyncio.sleep(0.01)
        for server in servers:
            server.close()

    @property
    def connections(self) -> int:
        return len(self._uvicorn.server_state.connections)

    def stop(self) -> None:
        self._uvicorn.end()


def _last_of_its_connection(send: Callable[..., Any]) -> Callable[..., Any]:
    async def send_and_close(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", []), (b"connection", b"close")]}
        await send(message)

    return send_and_close


class _Quiet(uvicorn.Server):
    """Without its signals, and without its sleeps: it would look ten times a second whether it is to stop, and then wait for a tenth."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening, self._ending = asyncio.Event(), asyncio.Event()

    def end(self) -> None:
        self.should_exit = True
        self._ending.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()

    async def main_loop(self) -> None:
        while not await self.on_tick(0):  # Which sets the date that answers carry.
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), TICK_S)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        for listening in sockets or []:
            listening.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._all_gone(), GRACE_S)
        for task in self.server_state.tasks:
            task.cancel()

    async def _all_gone(self) -> None:
        while self.server_state.connections or self.server_state.tasks:  # noqa: ASYNC110 - uvicorn has sets and no event.
            await asyncio.sleep(GONE_S)
