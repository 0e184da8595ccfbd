"""The composition root: every part built whole from its ports, started in order, closed in reverse."""

import asyncio
import contextlib
import errno
import os
import socket
import sys
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeVar

import structlog

from holdfast.agents.demo import DemoAgent
from holdfast.blobs import FOLDER, Blobs, Folder
from holdfast.config import (
    LOG,
    Config,
    drain_window_s,
    make_token,
    prepare_home,
    public_origin,
    read_token,
    reset_policies,
    stop_deadline_s,
    trusted_networks,
)
from holdfast.core import exits
from holdfast.core.errors import Refused, StoreFull, Unavailable
from holdfast.core.lifecycle import GatewayState
from holdfast.core.restarts import By
from holdfast.core.retention import Limits
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.settings import Settings
from holdfast.gateway.tasks import Tasks
from holdfast.locks import OwnerLock, OwnerLocks, ServingLock
from holdfast.ports.owners import Owner
from holdfast.process import cleanup, handover, logs, stop_requests, system
from holdfast.process.console import Console
from holdfast.process.report import Report
from holdfast.process.restart_note import RestartNote
from holdfast.process.server import Server, address, listen, most_connections
from holdfast.process.serving import ServingProcess
from holdfast.process.supervisor import Kind, Supervisor, kind_of
from holdfast.process.wakeups import Wakeups
from holdfast.store import SqliteStore, open_store
from holdfast.store.sqlite.connection import check_beside
from holdfast.tools.terminal import Terminal
from holdfast.web.access import Access
from holdfast.web.app import build_app
from holdfast.web.frames import encode

T = TypeVar("T")
OWNERS_S = 1.0
CREDENTIALS_S = 0.5
QUIET = "warning"

log = structlog.get_logger()


def serve(config: Config, *, as_typed: Callable[[str], str], shows_log: bool) -> int:
    """Serves until it is told to stop, or until its last successor is; the process's exit code. `as_typed` puts hints as they are typed
    here. `shows_log`: the log is wanted at a terminal, too.
    """
    os.umask(0o077)
    prepare_home(config.home)
    watched = sys.stderr.isatty() and kind_of(os.environ, os.getpid()) is Kind.PLAIN
    console = Console(watched=watched, as_typed=as_typed)
    shown = QUIET if watched and not shows_log else config.log_level
    written = logs.set_up(config.home / LOG, level=config.log_level, shown=shown, form=config.log_format)
    try:
        return _serve_and_stay(config, console)
    finally:
        written.close()


def _serve_and_stay(config: Config, console: Console) -> int:
    inherited = handover.inherited(os.environ)
    predecessor = handover.Predecessor(inherited) if inherited else None
    stop_requests.end_at_once_when_signalled(config.home)
    try:
        serving, code = _run_loop(_serve(config, predecessor, console))
    except (Refused, Unavailable) as error:
        if predecessor is not None:
            predecessor.failed(str(error))
        console.failed(error)
        return exits.refused(error)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        console.failed(StoreFull())
        return exits.FAILED
    return serving.foreground.stay() if serving.foreground is not None else code


def decline(why: str) -> None:
    """Tells the process that wanted this one as its successor why it cannot be."""
    if inherited := handover.inherited(os.environ):
        handover.Predecessor(inherited).failed(why)


def _run_loop(work: Coroutine[Any, Any, T]) -> T:
    """On uvloop where there is one: a fifth faster, and its server loses no connection when it closes."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(work)
    return uvloop.run(work)


async def _serve(config: Config, predecessor: handover.Predecessor | None, console: Console) -> tuple[ServingProcess, int]:
    async with AsyncExitStack() as closing:
        lock = ServingLock(config.home, inherited=predecessor.inherited.lock if predecessor else None)
        closing.callback(lock.release)
        listener = socket.socket(fileno=predecessor.inherited.listener) if predecessor else listen(config.host, config.port)
        closing.callback(listener.close)
        locks = OwnerLocks(config.home)
        report = Report(config.home, locks, address(listener), kind_of(os.environ, os.getpid()), public_origin(config))
        report.silent = predecessor is not None  # Until it serves, the file is its predecessor's.
        report.moved(GatewayState.STARTING)
        try:
            serving = await _build(config, predecessor, lock, listener, locks, report, closing, console)
            code = await serving.run()
            if serving.succeeded_by is None and report.gateway is not None:
                await _say_how_it_ended(config, console, report.gateway)
            return serving, code
        except Refused:  # What may work later is tried again, also by a start-up script that looks at this state.
            report.moved(GatewayState.STARTUP_FAILED)
            raise


async def _build(
    config: Config,
    predecessor: handover.Predecessor | None,
    lock: ServingLock,
    listener: socket.socket,
    locks: OwnerLocks,
    report: Report,
    closing: AsyncExitStack,
    console: Console,
) -> ServingProcess:
    clock, ids = system.SystemClock(), system.RandomIds()
    supervisor = Supervisor(os.environ, os.getpid())
    name = report.owner = ids.new("o")
    owner_lock = OwnerLock(config.home, name, report.process, after=predecessor.inherited.owner if predecessor else None)
    closing.callback(owner_lock.release)
    cleanup.sweep(config.home, locks, now=clock.now())
    if predecessor is not None:
        check_beside(predecessor.inherited.schema)
    store = await open_store(config.home, now=clock.now, expected=predecessor.inherited.database if predecessor else None)
    closing.push_async_callback(store.aclose)
    wakeups = Wakeups(config.home / "run", name, lambda: report.gateway.hint() if report.gateway else None)
    closing.callback(wakeups.close)
    process = report.process
    owner = await store.register_owner(
        Owner(name=name, pid=process.pid, started_at=process.started_at, boot_id=process.boot_id, socket=wakeups.path)
    )

    gateway = report.gateway = Gateway(
        store=store,
        clock=clock,
        ids=ids,
        liveness=locks,
        owner=owner,
        owner_name=name,
        agent=DemoAgent(),
        tools={"terminal": Terminal(home=config.home, owner=name, folder=Path.cwd(), environment=dict(os.environ))},
        platforms={},
        encode=encode,
        settings=_settings(config),
        restarts=RestartNote(
            config.home, cuts=supervisor.restarts_us, begin=lambda request: serving.restart_for_chat(request), now=clock.now
        ),
        on_step=lambda step: serving.at_step(step),
    )
    gateway.subscribe(report.moved)
    gateway.subscribe(lambda state: console.moved(state, answers=gateway.runner.running, window_s=drain_window_s(config)))
    closing.callback(store.subscribe(wakeups.send))
    token = read_token(config.home) or make_token(config.home)
    access = Access(token, clock=clock, port=listener.getsockname()[1], hosts=config.allowed_hosts, public=public_origin(config))
    access.end_sign_ins(await store.signed_out(now=clock.now()))
    # Requests come only when everything they may ask for is there.
    blobs = Blobs(folder=Folder(config.home / FOLDER), rows=store, clock=clock, ids=ids)
    app = build_app(
        gateway,
        blobs=blobs,
        max_upload_bytes=int(config.max_upload_mb * 1_000_000),
        access=access,
        status=report.status,
        request_stop=lambda: serving.stop("asked over HTTP"),
        request_restart=lambda: serving.restart(By.OPERATOR, "asked over HTTP"),
        trusted_proxies=trusted_networks(config),
    )
    tasks = Tasks()
    closing.push_async_callback(tasks.aclose)

    def say_where() -> None:
        code = access.new_code() if supervisor.kind is Kind.PLAIN else None  # What a supervisor keeps is read by others, too.
        console.serving(public_origin(config) or report.url, config.home, config.home / LOG, code=code)

    serving = ServingProcess(
        home=config.home,
        gateway=gateway,
        owner=owner,
        server=Server(app, listener, most=most_connections(system.raise_file_limit())),
        lock=lock,
        listener=listener.fileno(),
        report=report,
        locks=locks,
        clock=clock,
        supervisor=supervisor,
        predecessor=predecessor,
        stop_timeout_s=stop_deadline_s(config),
        tasks=tasks,
        database=lambda: store.identity,
        on_serving=say_where if predecessor is None else lambda: None,
    )
    tasks.spawn(blobs.keep(), name="blobs")
    tasks.spawn(_know_peers(store, locks, wakeups), name="peers")
    tasks.spawn(_follow_credentials(config.home, access, token, store), name="credentials")
    return serving


async def _say_how_it_ended(config: Config, console: Console, gateway: Gateway) -> None:
    if gateway.broken.is_set():
        console.broken()
    elif console.watched:
        try:
            waiting = (await gateway.store.counts()).inbox
            cut = [session for session in await gateway.store.open_turns(apart_from=0) if not session.left and not session.suspended]
        except Unavailable:
            waiting, cut = 0, []
        console.stopped(answers=len(cut), messages=waiting, resumes=config.auto_resume)


async def _know_peers(store: SqliteStore, locks: OwnerLocks, wakeups: Wakeups) -> None:
    """Whom to wake after a commit: the other living processes of this home."""
    while True:
        try:
            wakeups.know([owner.socket for owner in await store.owners() if owner.socket and locks.alive(owner.name)])
        except Unavailable as error:
            log.warning("peers are not known", error=str(error))
        await asyncio.sleep(OWNERS_S)


async def _follow_credentials(home: Path, access: Access, known: str, store: SqliteStore) -> None:
    """A token that was replaced counts within a second, and the old one no more; a sign-in that ended in another process is over here."""
    while True:
        await asyncio.sleep(CREDENTIALS_S)
        with contextlib.suppress(Unavailable):
            access.end_sign_ins(await store.signed_out(now=access.now()))
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
        drain_timeout_s=drain_window_s(config),
        max_waiting=config.max_waiting,
        resumes_at_once=config.resumes_at_once,
        auto_resume=config.auto_resume,
        resume_window_s=config.resume_window_s,
        stuck_after=config.stuck_after,
        crash_policy=config.crash_policy,
        crash_window_s=config.crash_window_s,
        resets=reset_policies(config),
        keep_streams_s=config.keep_streams_s,
        undo_delete_s=config.undo_delete_s,
        retention=Limits(config.retention_days, config.retention_max_mb),
        home_channels=config.home_channels,
    )
