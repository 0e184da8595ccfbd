"""What this process says about itself: over HTTP, and in `status.json` for those who cannot ask."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence

import msgspec
import structlog

from holdfast import __version__, status_file
from holdfast.api.status import ChatStatus, JournalStatus, McpStatus, Retiring, SandboxStatus, Status
from holdfast.api.times import rfc3339, rfc3339_or_none
from holdfast.core import exits, lifecycle
from holdfast.core.errors import Unavailable
from holdfast.core.exits import Ending
from holdfast.core.lifecycle import GatewayState
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.shipping import Figures
from holdfast.locks import living
from holdfast.ports.upkeep import Counts
from holdfast.process.stop_requests import Ends
from holdfast.process.this_process import ThisProcess
from holdfast.sandbox import Sandbox

LOOK_S = 1.0
FOLLOWED = ("degraded", "retiring", "sandbox", "chats", "mcp")
ENDING = (GatewayState.RETIRING, GatewayState.DRAINING, GatewayState.STOPPING, GatewayState.STOPPED)

log = structlog.get_logger()


class StatusReport:
    """Before there is a gateway, or requests to stop, it says what it can. The file belongs to the process that serves: a successor
    `claims` it when it serves, and the old process `yields` it before.
    """

    def __init__(
        self,
        this: ThisProcess,
        *,
        url: str,
        public_url: str | None,
        gateway: Gateway | None = None,
        ends: Ends | None = None,
        sandbox: Callable[[], Sandbox | None] = lambda: None,
        servers: Callable[[], Sequence[msgspec.Struct]] = lambda: (),
        file_is_ours: bool = True,
        comes_back: bool | None = None,
    ) -> None:
        """`comes_back`: what the file on disk says of that; None: it says nothing yet."""
        self._this, self.url, self._public_url, self._gateway, self._ends = this, url, public_url, gateway, ends
        self._file_is_ours, self._sandbox, self._servers = file_is_ours, sandbox, servers
        self._state, self._since = GatewayState.STARTING, this.started_at
        self._counts, self._journal = Counts(0, 0, 0, 0, 0, 0), Figures()
        self._retiring: list[Retiring] = []
        self._written: Status | None = None
        # Another process's file says that it comes back.
        self._comes_back = comes_back if file_is_ours else True
        self._trouble = ""

    def with_gateway(
        self,
        gateway: Gateway,
        ends: Ends,
        sandbox: Callable[[], Sandbox | None],
        servers: Callable[[], Sequence[msgspec.Struct]],
    ) -> "StatusReport":
        """The same report, now that there is a gateway to tell of. It knows what the file on disk says already. `sandbox`: that of the
        tools, as soon as it is known. `servers`: of tools, as they are now, each with the fields of `McpStatus`.
        """
        return StatusReport(
            self._this,
            url=self.url,
            public_url=self._public_url,
            gateway=gateway,
            ends=ends,
            sandbox=sandbox,
            servers=servers,
            file_is_ours=self._file_is_ours,
            comes_back=self._comes_back,
        )

    async def status(self) -> Status:
        """While the store cannot be read, or no descriptor is left to ask who is alive: what was known last."""
        if self._gateway is not None:
            self._journal = await self._gateway.shipping.figures()
            with contextlib.suppress(Unavailable, OSError):
                self._counts = await self._gateway.counts()
                self._retiring = await self._others(self._gateway)
        return self._snapshot()

    # the file

    def claim(self) -> None:
        """From now on the file is this process's."""
        self._file_is_ours = True
        self.show(self._gateway.state if self._gateway else self._state)

    def yield_file(self) -> None:
        """From now on the file is the successor's."""
        self._file_is_ours = False
        self._comes_back = True

    def show(self, state: GatewayState) -> None:
        """Writes the file, if it is this process's."""
        if state is not self._state:
            self._state, self._since = state, self._this.clock.now()
        if not self._file_is_ours:
            return
        shown = self._snapshot()
        shown.gateway_state = exits.left_behind(state, announced=self._ending.announced)
        # Whether a start-up script brings it back must not depend on when the power fails.
        comes_back = lifecycle.comes_back(shown.gateway_state)
        try:
            status_file.write(self._this.home, msgspec.to_builtins(shown), durable=comes_back is not self._comes_back)
        except OSError as error:
            if str(error) != self._trouble:
                self._trouble = str(error)
                log.error("status file cannot be written", error=self._trouble)
            return
        self._written, self._comes_back, self._trouble = shown, comes_back, ""

    async def follow(self) -> None:
        """Keeps the file true about the store, and about processes that retire, while this one serves."""
        assert self._gateway is not None
        degraded = None
        while self._state not in ENDING:
            with contextlib.suppress(Unavailable, OSError):
                self._retiring = await self._others(self._gateway)
            shown = self._snapshot()
            if shown.degraded != degraded:
                degraded = shown.degraded
                if degraded is None:
                    log.info("the store can be used again")
                else:
                    log.error("the store cannot be used", error=degraded)
            if self._written is None or any(getattr(shown, name) != getattr(self._written, name) for name in FOLLOWED):
                self.show(self._state)
            await asyncio.sleep(LOOK_S)

    # what it says

    @property
    def _ending(self) -> Ending:
        return self._ends.ending if self._ends else Ending()

    async def _others(self, gateway: Gateway) -> list[Retiring]:
        """The processes that still run turns of a home that this one serves. One that is about to take over is not retiring."""
        running = await gateway.store.running_by_owner()
        successors = {found.name for found in living(self._this.home) if found.after == self._this.name}
        return [
            Retiring(**owner.process.fields, running_turns=running.get(owner.id, 0))
            for owner in await gateway.store.owners()
            if owner.name != self._this.name and owner.name not in successors and self._this.locks.alive(owner.name)
        ]

    def _snapshot(self) -> Status:
        gateway = self._gateway
        paused = gateway.pausing.paused if gateway else None
        return Status(
            **self._this.id.fields,
            started_at=rfc3339(self._this.started_at),
            version=__version__,
            gateway_state=self._state,
            since=rfc3339(self._since),
            why=self._ending.why,
            url=self.url,
            public_url=self._public_url,
            running_turns=gateway.runner.running if gateway else 0,
            retiring=self._retiring,
            inbox=self._counts.inbox,
            outbox=self._counts.outbox,
            suspended=self._counts.suspended,
            pending=self._counts.pending,
            safe_mode=gateway.safe_mode if gateway else False,
            paused_by=paused.holder if paused else None,
            paused_until=rfc3339_or_none(paused.until if paused else None),
            platforms=sorted(gateway.platforms) if gateway else [],
            chats=_chats(gateway) if gateway else [],
            home=str(self._this.home),
            supervisor=self._this.supervisor.kind,
            owner=self._this.name,
            agent=gateway.agent.name if gateway else None,
            models=list(gateway.settings.models) if gateway else [],
            degraded=gateway.store.degraded if gateway else None,
            stop_timeout_s=self._this.stop_timeout_s,
            sandbox=_shown(self._sandbox()),
            mcp=[msgspec.convert(server, McpStatus, from_attributes=True) for server in self._servers()],
            journal=JournalStatus(files=self._journal.files, bytes=self._journal.bytes, late=self._journal.late),
        )


def _chats(gateway: Gateway) -> list[ChatStatus]:
    return [
        ChatStatus(
            platform=link.name,
            account=link.account.name if link.account else None,
            problem=link.problem,
            waiting=link.waiting,
            refused=link.refused,
        )
        for link in gateway.links.values()
    ]


def _shown(sandbox: Sandbox | None) -> SandboxStatus | None:
    if sandbox is None:
        return None
    return SandboxStatus(mode=sandbox.mode, network=sandbox.network, gaps=list(sandbox.gaps), missing=list(sandbox.missing))
