"""The composition root: every part built whole from its ports, started in order, closed in reverse."""

import asyncio
import errno
import os
import signal
import socket
import sys
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import structlog

from holdfast import __version__
from holdfast.agents.demo import DemoAgent
from holdfast.config import Config, make_token, prepare_home, read_token, reset_policies
from holdfast.core.errors import HoldfastError, Refused, StoreFull, Unavailable
from holdfast.core.lifecycle import GatewayState
from holdfast.gateway.gateway import Gateway, Settings
from holdfast.gateway.tasks import Tasks
from holdfast.ports import Owner
from holdfast.process import logs, system
from holdfast.process.locks import OwnerLock, OwnerLocks, ServingLock
from holdfast.process.server import Server, address, listen
from holdfast.process.status import StatusFile
from holdfast.process.wakeups import Wakeups
from holdfast.store import SqliteStore, open_store
from holdfast.tools.terminal import Terminal
from holdfast.web.access import Access
from holdfast.web.app import build_app
from holdfast.web.frames import encode

EXIT_DONE, EXIT_FAILED, EXIT_CONFIG = 0, 1, 78
OWNERS_S = 1.0
TOKEN_S = 0.5

log = structlog.get_logger()


def serve(config: Config) -> int:
    """Serves until it is told to stop; the process's exit code."""
    os.umask(0o077)
    system.raise_file_limit()
    prepare_home(config.home)
    logs.set_up(level=config.log_level, form=config.log_format)
    status = StatusFile(config.home)
    try:
        return _run_loop(_serve(config, status))
    except (Refused, Unavailable) as error:
        print(f"holdfast: {error}", file=sys.stderr)
        return EXIT_CONFIG if isinstance(error, Refused) else EXIT_FAILED
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        print(f"holdfast: {StoreFull()}", file=sys.stderr)
        return EXIT_FAILED


def _run_loop(work: Coroutine[Any, Any, int]) -> int:
    """On uvloop where there is one: a fifth faster, and its server loses no connection when it closes."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(work)
    return uvloop.run(work)


class Process:
    """What this process tells of itself."""

    def __init__(self, config: Config, status: StatusFile, url: str) -> None:
        self._config, self._file, self.url = config, status, url
        self.started_at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self.gateway: Gateway | None = None
        self.owner: str | None = None  # Its lock in the home folder proves that this process lives.
        self._counts = {"inbox": 0, "outbox": 0, "suspended": 0, "pending": 0}

    async def status(self) -> dict[str, Any]:
        if self.gateway is not None:
            counts = await self.gateway.counts()
            self._counts = {name: getattr(counts, name) for name in self._counts}
        return self.snapshot()

    def snapshot(self, state: GatewayState | None = None) -> dict[str, Any]:
        gateway = self.gateway
        return {
            "pid": os.getpid(),
            "process_started_at": system.process_start(),
            "started_at": self.started_at,
            "version": __version__,
            "gateway_state": state or (gateway.state if gateway else GatewayState.STARTING),
            "url": self.url,
            "running_turns": gateway.lanes.running if gateway else 0,
            "retiring": [],
            **self._counts,
            "safe_mode": gateway.safe_mode if gateway else False,
            "platforms": sorted(gateway.platforms) if gateway else [],
            "home": str(self._config.home),
            "owner": self.owner,
            "agent": gateway.agent.name if gateway else None,
            "degraded": gateway.store.degraded if gateway else None,
        }

    def write(self, state: GatewayState) -> None:
        try:
            self._file.write(self.snapshot(state))
        except OSError as error:
            log.error("status file cannot be written", error=str(error))


async def _serve(config: Config, status: StatusFile) -> int:
    clock, ids = system.SystemClock(), system.RandomIds()
    async with AsyncExitStack() as closing:
        serving = ServingLock(config.home)
        closing.callback(serving.release)
        listener = listen(config.host, config.port)
        closing.callback(listener.close)
        process = Process(config, status, address(listener))
        process.write(GatewayState.STARTING)
        try:
            return await _run(config, process, listener, closing, clock, ids)
        except HoldfastError:
            process.write(GatewayState.STARTUP_FAILED)
            raise


async def _run(
    config: Config,
    process: Process,
    listener: socket.socket,
    closing: AsyncExitStack,
    clock: system.SystemClock,
    ids: system.RandomIds,
) -> int:
    name = ids.new("o")
    locks = OwnerLocks(config.home)
    lock = OwnerLock(config.home, name)
    process.owner = name
    closing.callback(lock.release)
    locks.sweep()
    store = await open_store(config.home, now=clock.now)
    closing.push_async_callback(store.aclose)
    wakeups = Wakeups(config.home / "run", name, lambda: gateway.hint())
    closing.callback(wakeups.close)
    owner = await store.register_owner(
        Owner(name=name, pid=os.getpid(), started_at=system.process_start(), boot_id=system.boot_id(), socket=wakeups.path)
    )
    gateway = Gateway(
        store=store,
        clock=clock,
        ids=ids,
        liveness=locks,
        owner=owner,
        agent=DemoAgent(),
        tools={"terminal": Terminal(home=config.home, owner=name, folder=Path.cwd(), environment=dict(os.environ))},
        platforms={},
        encode=encode,
        settings=_settings(config),
        on_state=process.write,
    )
    process.gateway = gateway
    closing.callback(store.subscribe(wakeups.send))
    stopping = asyncio.Event()
    token = read_token(config.home) or make_token(config.home)
    access = Access(token, clock=clock, port=listener.getsockname()[1], hosts=config.allowed_hosts)
    server = Server(build_app(gateway, access=access, status=process.status, request_stop=stopping.set), listener)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    tasks = Tasks()
    closing.push_async_callback(tasks.aclose)
    await gateway.start()
    tasks.spawn(_know_peers(store, locks, wakeups), name="peers")
    tasks.spawn(_follow_token(config.home, access), name="token")
    serving = tasks.spawn(server.run(), name="http")
    await server.started()
    _say(process.url, access.new_code(), config)
    stop = tasks.spawn(stopping.wait(), name="stop")
    broken = tasks.spawn(gateway.broken.wait(), name="broken")
    await asyncio.wait({serving, stop, broken}, return_when=asyncio.FIRST_COMPLETED)
    failed = serving.done() or broken.done()
    await gateway.stop(reason="shutdown_timeout")
    server.stop()
    await asyncio.wait({serving}, timeout=5)
    return EXIT_FAILED if failed else EXIT_DONE


async def _know_peers(store: SqliteStore, locks: OwnerLocks, wakeups: Wakeups) -> None:
    """Whom to wake after a commit: the other living processes of this home."""
    while True:
        try:
            wakeups.know([owner.socket for owner in await store.owners() if owner.socket and locks.alive(owner.name)])
        except Unavailable as error:
            log.warning("peers are not known", error=str(error))
        await asyncio.sleep(OWNERS_S)


async def _follow_token(home: Path, access: Access) -> None:
    """A token that was replaced counts within a second, and the old one no more."""
    known = read_token(home)
    while True:
        await asyncio.sleep(TOKEN_S)
        try:
            found = read_token(home)
        except Refused as error:
            log.warning("the token cannot be read", error=str(error))
            continue
        if found and found != known:
            access.use_token(found)
            known = found


def _settings(config: Config) -> Settings:
    return Settings(
        profile=config.profile,
        turn_idle_timeout_s=config.turn_idle_timeout_s,
        drain_timeout_s=config.drain_timeout_s,
        max_waiting=config.max_waiting,
        resumes_at_once=config.resumes_at_once,
        auto_resume=config.auto_resume,
        resume_window_s=config.resume_window_s,
        crash_policy=config.crash_policy,
        crash_window_s=config.crash_window_s,
        resets=reset_policies(config),
        keep_streams_s=config.keep_streams_s,
    )


def _say(url: str, code: str, config: Config) -> None:
    print(f"Holdfast {__version__} serves the demo agent. Try to break it.\n", flush=False)
    print(f"  open  {url}/#code={code}")
    print("        (the code works once, within five minutes; `holdfast token` prints the lasting one)")
    print(f"  home  {config.home}")
    print("  stop  Ctrl-C, or `holdfast stop`\n", flush=True)
