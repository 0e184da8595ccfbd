"""The composition root: every part built whole from its ports, started in order, closed in reverse."""

import asyncio
import errno
import os
import sys
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import structlog
from starlette.types import ASGIApp

from holdfast import processes
from holdfast.agents.making import Ground as AgentGround
from holdfast.agents.making import Making
from holdfast.blobs import FOLDER, Blobs, Folder
from holdfast.config import (
    LOG,
    Config,
    choices,
    drain_window_s,
    known_secrets,
    most_upload_bytes,
    public_origin,
    stop_deadline_s,
    trusted_networks,
)
from holdfast.config.agents import unread_instructions
from holdfast.core import exits
from holdfast.core.errors import Refused, StoreFull, Unavailable
from holdfast.core.lifecycle import GatewayState
from holdfast.core.redaction import Secrets
from holdfast.core.shutdowns import Shutdown
from holdfast.gateway.agents import Agents
from holdfast.gateway.edges import Edges
from holdfast.gateway.editors import Editors
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.host import Host
from holdfast.gateway.series import Series
from holdfast.gateway.tasks import Tasks
from holdfast.gateway.toolbox import Toolbox
from holdfast.keeper import KeeperProcesses
from holdfast.keeper.keepers import AGENTS
from holdfast.keeper.launching import Launcher
from holdfast.locks import OwnerLock, OwnerLocks
from holdfast.platforms import choice as platforms
from holdfast.ports.owners import Owner
from holdfast.process import cleanup, credentials, logs, orphans, stop_requests, system
from holdfast.process import place as places
from holdfast.process.console import Console
from holdfast.process.deadline import Deadline
from holdfast.process.foreground import Foreground
from holdfast.process.handover import Inheritance
from holdfast.process.place import Place
from holdfast.process.predecessor import Predecessor, inherited
from holdfast.process.restart_note import RestartNote
from holdfast.process.restart_requests import RestartRequests
from holdfast.process.restarting import Restarting
from holdfast.process.server import Server, address, most_blobs, most_connections
from holdfast.process.serving import ServingProcess
from holdfast.process.settings import settings
from holdfast.process.status import StatusReport
from holdfast.process.stop_requests import Ends, StopRequests
from holdfast.process.supervisor import Kind, Supervisor, kind_of
from holdfast.process.this_process import ThisProcess
from holdfast.process.wakeups import Wakeups
from holdfast.spool import FolderSpool
from holdfast.store import SqliteStore, open_store
from holdfast.store.sqlite.connection import check_predecessor
from holdfast.tools.confinement import Confinement
from holdfast.tools.making import Ground as ToolGround
from holdfast.tools.making import Making as Tools
from holdfast.tools.workspaces import Workspaces
from holdfast.web.access import Access
from holdfast.web.app import Process, build_app
from holdfast.web.frames import encode

if TYPE_CHECKING:
    from holdfast.agents.acp import KeptAgents

T = TypeVar("T")
OWNERS_S = 1.0
QUIET = "warning"

log = structlog.get_logger()


def serve(config: Config, *, lock: OwnerLock | None, as_typed: Callable[[str], str], shows_log: bool) -> int:
    """Serves until this process, or its last successor, is told to stop; returns the exit code. `lock` is this process's own; None if it is
    started to take over. `as_typed` puts hints as they are typed here. `shows_log`: the log is wanted at a terminal, too.
    """
    watched = sys.stderr.isatty() and kind_of(os.environ, os.getpid()) is Kind.PLAIN
    console = Console(watched=watched, as_typed=as_typed)
    shown = QUIET if watched and not shows_log else config.log_level
    known = Secrets()
    written = logs.set_up(config.home / LOG, level=config.log_level, shown=shown, form=config.log_format, secrets=known)
    try:
        return _serve_and_stay(config, lock, console, known)
    finally:
        written.close()


def _serve_and_stay(config: Config, lock: OwnerLock | None, console: Console, known: Secrets) -> int:
    predecessor = _predecessor()
    stop_requests.end_at_once_when_signalled(config.home)
    try:
        left = _run_loop(_serve(config, lock, predecessor, console, known))
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
    return left.stay() if isinstance(left, Foreground) else left


def decline(why: str) -> None:
    """Tells the process that wanted this one as its successor why it cannot be."""
    if predecessor := _predecessor():
        predecessor.failed(why)


def _predecessor() -> Predecessor | None:
    found = inherited(os.environ)
    return Predecessor(found) if found else None


def _run_loop(work: Coroutine[Any, Any, T]) -> T:
    """On uvloop where there is one: a fifth faster, and its server loses no connection when it closes."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(work)
    return uvloop.run(work)


async def _serve(
    config: Config, lock: OwnerLock | None, predecessor: Predecessor | None, console: Console, known: Secrets
) -> Foreground | int:
    handed = predecessor.inherited if predecessor else None
    if handed is not None:
        check_predecessor(handed.schema)
    async with AsyncExitStack() as closing:
        known.know(known_secrets.known(config, os.environ))
        this = _this_process(config, lock, handed, known, closing)
        place = places.take(config, handed, closing)
        # The file is the predecessor's until this process serves.
        opening = StatusReport(this, url=address(place.listener), public_url=public_origin(config), file_is_ours=predecessor is None)
        opening.show(GatewayState.STARTING)
        try:
            return await _build_and_run(config, this, place, opening, predecessor, console, closing)
        except Refused:  # What may work later is tried again, also by a start-up script that looks at this state.
            opening.show(GatewayState.STARTUP_FAILED)
            raise


def _this_process(
    config: Config, lock: OwnerLock | None, handed: Inheritance | None, known: Secrets, closing: AsyncExitStack
) -> ThisProcess:
    process, clock = processes.this_process(), system.SystemClock()
    lock = lock or OwnerLock(config.home, system.RandomIds().new("o"), process, after=handed.owner if handed else None)
    closing.callback(lock.release)
    return ThisProcess(
        home=config.home,
        id=process,
        name=lock.name,
        started_at=clock.now(),
        supervisor=Supervisor(os.environ, os.getpid()),
        stop_timeout_s=stop_deadline_s(config),
        clock=clock,
        locks=OwnerLocks(config.home),
        tasks=Tasks(),
        secrets=known,
    )


async def _build_and_run(
    config: Config,
    this: ThisProcess,
    place: Place,
    opening: StatusReport,
    predecessor: Predecessor | None,
    console: Console,
    closing: AsyncExitStack,
) -> Foreground | int:
    cleanup.sweep(config.home, this.locks, now=this.clock.now())
    store = await _open_store(config, this, predecessor, closing)
    wakeups = Wakeups(config.home / "run", this.name)
    closing.callback(wakeups.close)
    closing.push_async_callback(this.tasks.aclose)
    owner = await store.register_owner(
        Owner(name=this.name, pid=this.id.pid, started_at=this.id.started_at, boot_id=this.id.boot_id, socket=wakeups.path)
    )
    deadline, restart_requests, ends = Deadline(), RestartRequests(), Ends()
    files = system.raise_file_limit()
    folder = Folder(config.home / FOLDER)
    blobs = Blobs(folder=folder, rows=store, clock=this.clock, ids=system.RandomIds(), most_open=most_blobs(files), secrets=this.secrets)
    keepers = KeeperProcesses(config.home, Launcher(os.environ))
    editors = Editors(system.RandomIds(), used=config.tools.editor_files)
    tools = _tools(config, this, store, blobs, owner, keepers, editors)
    gateway = _make_gateway(config, this, store, blobs, owner, deadline, restart_requests, tools, keepers)
    status = opening.with_gateway(gateway, ends, lambda: tools.confinement.known, lambda: tools.servers.shown if tools.servers else ())
    stops = StopRequests(
        this,
        deadline,
        store,
        owner,
        ends,
        hurry=gateway.lifecycle.hurry,
        show=lambda: status.show(gateway.state),
        on_hup=restart_requests.by_service if this.supervisor.kind is not Kind.PLAIN else None,
    )
    access = await credentials.access(config, this, store, port=place.listener.getsockname()[1])
    app = _make_app(config, this, gateway, blobs, access, editors, status, stops, restart_requests)
    server = Server(app, place.listener, most=most_connections(files))
    restarting = Restarting(this, place, gateway, store, server, stops, ends, status, restart_requests)
    if predecessor is not None:  # The processor is its clients' when it takes over, and until then its predecessor's.
        await tools.confinement.found()
    serving = ServingProcess(this, place, gateway, server, deadline, stops, ends, status, restarting, predecessor)

    def say_where() -> None:
        if predecessor is None:  # What a supervisor keeps is read by others, too, so it gets no code.
            code = access.new_code() if this.supervisor.kind is Kind.PLAIN else None
            agent = next(iter(choices(config)), "")
            console.serving(public_origin(config) or status.url, config.home, config.home / LOG, agent=agent, code=code)
        this.tasks.spawn(_say_which_sandbox(tools.confinement, chosen=config.tools.sandbox), name="sandbox")

    wakeups.listen(gateway.hint)
    closing.callback(store.subscribe(wakeups.send))
    gateway.subscribe(status.show)
    gateway.subscribe(lambda state: console.moved(state, answers=gateway.runner.running, window_s=drain_window_s(config)))
    this.tasks.spawn(_know_peers(store, this.locks, wakeups), name="peers")
    this.tasks.spawn(blobs.keep(), name="blobs")
    if this.supervisor.kind is Kind.CONTAINER:
        this.tasks.spawn(orphans.reap(), name="orphans")
    left = await serving.run(on_serving=say_where)
    if not ends.ending.succeeded:
        await _say_how_it_ended(config, console, gateway)
    return left


async def _open_store(config: Config, this: ThisProcess, predecessor: Predecessor | None, closing: AsyncExitStack) -> SqliteStore:
    expected = predecessor.inherited.database if predecessor else None
    store = await open_store(config.home, now=this.clock.now, expected=expected, secrets=this.secrets)
    closing.push_async_callback(store.aclose)
    return store


def _make_gateway(
    config: Config,
    this: ThisProcess,
    store: SqliteStore,
    blobs: Blobs,
    owner: int,
    deadline: Deadline,
    restart_requests: RestartRequests,
    tools: Tools,
    keepers: KeeperProcesses,
) -> Gateway:
    kept = _kept_agents(config, this)
    agents = _agents(config, this, blobs, tools.workspaces, kept)
    agent = agents.default()
    return Gateway(
        store=store,
        host=Host(
            clock=this.clock,
            ids=system.RandomIds(),
            liveness=this.locks,
            owner=owner,
            name=this.name,
            secrets=this.secrets,
        ),
        edges=Edges(
            agents=Agents(agent, agents.named(agent)),
            tools=Toolbox(tools.tools(agents.transcriber), tools.servers),
            titler=agents.titler(),
            platforms=platforms.make(config),
            files=blobs,
            restarts=RestartNote(config.home, cuts=this.supervisor.restarts_us, begin=restart_requests.by_chat, now=this.clock.now),
            spool=FolderSpool(config.home),
            keepers=keepers,
            agent_processes=kept,
            encode=encode,
            check_folder=tools.workspaces.check,
            on_step=deadline.at_step,
        ),
        settings=settings(config, platforms.policies(config)),
    )


def _tools(
    config: Config, this: ThisProcess, store: SqliteStore, blobs: Blobs, owner: int, keepers: KeeperProcesses, editors: Editors
) -> Tools:
    ground = ToolGround(
        home=config.home,
        owner=owner,
        name=this.name,
        environment=os.environ,
        store=store,
        keepers=keepers,
        clock=this.clock,
        ids=system.RandomIds(),
        secrets=this.secrets,
        put=blobs.put,
        read=blobs.read,
        spawn=this.tasks.spawn,
        buffers=editors if editors.used else None,
    )
    return Tools(config, ground)


def _kept_agents(config: Config, this: ThisProcess) -> "KeptAgents | None":
    """The processes of agents that are other programs, if any are configured, or were: theirs may still run."""
    configured = config.agent.acp or any(named.acp for named in config.agents.values())
    if not configured and not (config.home / AGENTS).is_dir():
        return None
    from holdfast.agents.acp import KeptAgents

    keepers = KeeperProcesses(config.home, Launcher(os.environ), folder=AGENTS)
    return KeptAgents(keepers, clock=this.clock, idle_s=config.agent.acp_idle_s)


def _agents(config: Config, this: ThisProcess, blobs: Blobs, workspaces: Workspaces, kept: "KeptAgents | None") -> Making:
    ground = AgentGround(
        home=config.home,
        environment=os.environ,
        modules=Path.cwd(),
        folder=workspaces.folder,
        work=workspaces.open,
        read=blobs.read,
        clock=this.clock,
        secrets=this.secrets,
        ids=system.RandomIds(),
        kept=kept,
    )
    for problem in unread_instructions(config.agent, config.agents, config.home):
        log.warning(f"the model gets Holdfast's own instructions: {problem}")
    return Making(config, ground)


async def _say_which_sandbox(confinement: Confinement, *, chosen: str) -> None:
    found = await confinement.found()
    if found.confines or chosen == found.mode:
        log.info(f"commands run with {found.words}", gaps=" ".join(found.gaps))
    else:
        log.warning("no sandbox for commands: those of a model ask first", why=" ".join(found.missing))


def _make_app(
    config: Config,
    this: ThisProcess,
    gateway: Gateway,
    blobs: Blobs,
    access: Access,
    editors: Editors,
    status: StatusReport,
    stops: StopRequests,
    restart_requests: RestartRequests,
) -> ASGIApp:
    series = Series(gateway, clock=this.clock, memory=system.memory_bytes)
    this.tasks.spawn(series.run(), name="series")
    process = Process(
        status=status.status,
        series=series,
        request_stop=lambda: stops.stop(Shutdown(why="asked over HTTP", planned=True)),
        request_restart=restart_requests.by_operator,
    )
    return build_app(
        gateway,
        process,
        blobs=blobs,
        max_upload_bytes=most_upload_bytes(config),
        access=access,
        editors=editors,
        trusted_proxies=trusted_networks(config),
        secrets=this.secrets,
    )


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
