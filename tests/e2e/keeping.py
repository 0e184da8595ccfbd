"""`python -m tests.e2e.keeping HOME`: a gateway with the demo agent and background processes and nothing else. Each line that it reads is a
request, `SESSION TEXT`; it answers with the conversation, as JSON, once that is at rest. Without a text it only looks, and without a
session it makes one.

The gateway is a process of its own. On SIGUSR1 it is killed with SIGKILL, that is said, and the next one starts: at once, because all its
modules are loaded.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

import msgspec
import structlog

from holdfast import processes
from holdfast.agents.demo import DemoAgent
from holdfast.api import conversation
from holdfast.core.policy import parse_all
from holdfast.gateway.agents import Agents
from holdfast.gateway.edges import Edges
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.host import Host
from holdfast.gateway.settings import Settings
from holdfast.gateway.toolbox import Toolbox
from holdfast.keeper import KeeperProcesses
from holdfast.keeper.launching import Launcher
from holdfast.locks import OwnerLock, OwnerLocks
from holdfast.ports.owners import Owner
from holdfast.process.system import RandomIds, SystemClock
from holdfast.sandbox import Mode, Sandbox
from holdfast.spool import FolderSpool
from holdfast.store import open_store
from holdfast.tools.confinement import Confinement
from holdfast.tools.processes import Processes
from holdfast.tools.surroundings import Surroundings
from holdfast.tools.workspaces import Workspaces
from tests.fakes.platform import Shelf

REST_S = 0.02


async def main(home: Path) -> None:
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    clock, this = SystemClock(), processes.this_process()
    lock = OwnerLock(home, RandomIds().new("o"), this)
    store = await open_store(home, now=clock.now)
    owner = await store.register_owner(Owner(name=lock.name, pid=this.pid, started_at=this.started_at, boot_id=this.boot_id))
    keepers = KeeperProcesses(home, Launcher(os.environ))
    surroundings = Surroundings(
        workspaces=Workspaces(home, folder=home.parent, shared=True),
        confinement=Confinement(lambda: Sandbox(mode=Mode.NONE, network=True, hidden=home)),
        environment=os.environ,
    )
    tool = Processes(records=store, keepers=keepers, surroundings=surroundings, clock=clock, owner=owner, most=100, most_bytes=1 << 24)
    gateway = Gateway(
        store=store,
        host=Host(
            clock=clock,
            ids=RandomIds(),
            liveness=OwnerLocks(home),
            owner=owner,
            name=lock.name,
        ),
        edges=Edges(
            agents=Agents(DemoAgent()),
            tools=Toolbox({tool.name: tool}),
            platforms={},
            files=Shelf(store),
            spool=FolderSpool(home),
            keepers=keepers,
            encode=lambda logged: b"",
        ),
        settings=Settings(policy=parse_all(allow=["processes"], ask=[], deny=[]), resume_window_s=-1),
    )
    await gateway.start()
    while line := await asyncio.to_thread(sys.stdin.readline):
        session_id, _, text = line.rstrip("\n").partition(" ")
        session_id = session_id or (await gateway.create_session()).session_id
        if text:
            await gateway.post(session_id, text, client_id=None)
        while (await gateway.session(session_id)).state != "idle":  # noqa: ASYNC110 - as anybody outside would look.
            await asyncio.sleep(REST_S)
        async with gateway.view(session_id) as (session, transcript):
            print(msgspec.json.encode(conversation.session(session, transcript)).decode(), flush=True)


def lives(home: Path) -> None:
    """One after the other, until SIGTERM."""
    awaited = {signal.SIGUSR1, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    while True:
        child = os.fork()
        if not child:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, awaited)
            asyncio.run(main(home))
            os._exit(0)
        heard = signal.sigwait(awaited)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        print("killed", flush=True)
        if heard == signal.SIGTERM:
            return


if __name__ == "__main__":
    lives(Path(sys.argv[1]))
