"""The course of one process: it starts, serves, perhaps hands over to a successor, lets its turns end, and exits before a deadline."""

import asyncio
from collections.abc import Callable

from holdfast import __version__, tool_processes
from holdfast.config import LOG
from holdfast.core.errors import Unavailable
from holdfast.core.exits import End, Ending
from holdfast.core.lifecycle import GatewayState
from holdfast.core.restarts import By
from holdfast.core.shutdowns import RESTARTED, STOPPED, Shutdown
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.tasks import heard
from holdfast.keeper.keepers import end_all
from holdfast.locks import OWNERS
from holdfast.process import stop_marker
from holdfast.process.deadline import Deadline
from holdfast.process.foreground import Foreground
from holdfast.process.handover import Successor
from holdfast.process.place import Place
from holdfast.process.predecessor import Predecessor
from holdfast.process.restarting import Restarting
from holdfast.process.server import Server
from holdfast.process.status import StatusReport
from holdfast.process.stop_requests import Ends, StopRequests, others
from holdfast.process.this_process import ThisProcess
from holdfast.process.watchdog import Watchdog

CONNECTIONS_S = 6.0
HTTP_S = 5.0
LOOK_S = 0.05


class ServingProcess:
    def __init__(
        self,
        this: ThisProcess,
        place: Place,
        gateway: Gateway,
        server: Server,
        deadline: Deadline,
        stops: StopRequests,
        ends: Ends,
        status: StatusReport,
        restarting: Restarting,
        predecessor: Predecessor | None,
    ) -> None:
        self._this, self._place, self._gateway, self._server, self._deadline = this, place, gateway, server, deadline
        self._stops, self._ends, self._status, self._restarting, self._predecessor = stops, ends, status, restarting, predecessor

    async def run(self, *, on_serving: Callable[[], None]) -> Foreground | int:
        """Returns at the end of this process: its exit code; or, if a successor serves and a terminal still waits for this process, the
        foreground process that it becomes.
        """
        watchdog = Watchdog(
            asyncio.get_running_loop(),
            self._this.supervisor,
            self._deadline,
            beats=self._this.home / OWNERS / self._this.name,
            log=self._this.home / LOG,
            last_words=self._last_words,
            code=lambda: self._ends.ending.code,
        )
        watchdog.start()
        self._stops.listen()
        try:
            if self._predecessor is not None:
                await self._until_called(self._predecessor)
            serving = await self._begin()
            on_serving()
            await self._until_end(serving)
            if await self._restarting.finished():
                await self._retire()
            await self._close(serving)
            return self._what_is_left()
        finally:
            watchdog.close()

    # how it begins

    async def _until_called(self, predecessor: Predecessor) -> None:
        """Returns when this process is to take over. Whether it may is decided by the lock (`handover`)."""
        alive, before = self._this.locks.alive, predecessor.inherited.owner
        ready = predecessor.ready(Successor(process=self._this.id, version=__version__), alive)
        await self._this.tasks.until(self._this.tasks.spawn(ready, name="go"), self._ends.asked)
        owner = next((owner for owner in await self._gateway.store.owners() if owner.name == before), None)
        # An old process that was stopped and then died has handed over to nobody.
        stopped = owner is not None and (owner.draining is not None or owner.told is not None)
        if self._ends.asked.is_set() or (stopped and not alive(before)):
            raise Unavailable("Holdfast was asked to stop, so this new process does not begin to serve.")

    async def _begin(self) -> "asyncio.Task[None]":
        tasks = self._this.tasks
        await self._gateway.start()
        serving = tasks.spawn(self._server.run(), name="http")
        await self._server.started()
        if self._predecessor is not None:
            await self._predecessor.serving(self._this.locks.alive)
            self._place.lock.sign()
        self._status.claim()
        tasks.spawn(self._status.follow(), name="status file")
        tasks.spawn(self._tell_manager(), name="service manager")
        tasks.spawn(self._restarting.follow(), name="restarts")
        self._gateway.lifecycle.serve()
        return serving

    async def _tell_manager(self) -> None:
        if self._predecessor is not None:
            await self._predecessor.announced()
        self._this.supervisor.ready()

    # how it ends

    async def _until_end(self, serving: "asyncio.Task[None]") -> None:
        broken = self._this.tasks.spawn(self._gateway.broken.wait(), name="broken")
        over = self._this.tasks.spawn(self._ends.over.wait(), name="end")
        await asyncio.wait({serving, over, broken}, return_when=asyncio.FIRST_COMPLETED)
        if not self._ends.over.is_set():
            self._stops.end(End.BROKEN, "a part of it failed")

    async def _retire(self) -> None:
        """The turns of this process end here, unless it is told to stop; its clients go over to the successor."""
        await self._server.retire()
        idle = self._this.tasks.spawn(self._gateway.hand_over.retire(), name="retire")
        await asyncio.sleep(0)  # It has begun to retire, even if it is to stop at once.
        asked, clock = self._ends.asked, self._this.clock
        await self._this.tasks.until(idle, asked)
        idle.cancel()
        deadline = clock.monotonic() + CONNECTIONS_S
        while self._server.connections and clock.monotonic() < deadline and not asked.is_set():
            await heard(asked, LOOK_S)
        self._stops.look_once_more()

    async def _close(self, serving: "asyncio.Task[None]") -> None:
        stops, ends, succeeded = self._stops, self._ends, self._ends.ending.succeeded
        self._deadline.set(self._this.stop_timeout_s)
        if not succeeded:
            self._this.supervisor.stopping(self._this.stop_timeout_s)
            if not ends.asked.is_set():
                await stops.pass_on(Shutdown(why=ends.ending.why or "", planned=False))
        await stops.passed_on()
        end = ends.ending.end
        await self._gateway.stop(reason=RESTARTED if end is End.RESTART else STOPPED, by=_by(ends.ending), for_good=ends.ending.for_good)
        self._deadline.at_step("http")
        self._server.stop()
        await asyncio.wait({serving}, timeout=HTTP_S)
        if not succeeded:
            self._deadline.at_step("other processes")
            while others(self._this.home, self._this.id):  # noqa: ASYNC110 - a lock of another process has no event.
                await asyncio.sleep(LOOK_S)
        if end is End.RESTART and ends.ending.end is End.STOP:  # The operator changed their mind while it ended.
            await self._gateway.announcements.stopped_instead()
            await asyncio.to_thread(end_all, self._this.home)
        stop_marker.clear(self._this.home, self._this.id)

    def _what_is_left(self) -> Foreground | int:
        ends, reader = self._ends, self._place.exit_pipe.reader
        self._place.exit_pipe.tell(ends.ending.code)
        if ends.ending.succeeded and reader is not None:
            name = f"foreground-{self._this.name}"
            return Foreground(self._this.home, self._this.id, name, reader, self._stops.signals, ends.ending.shutdown)
        return ends.ending.code

    def _last_words(self) -> None:
        """At the deadline: commands of tools must not outlive this process, and an operator's stop stays one (C18)."""
        self._stops.take_in_pending()
        if self._stops.signals.forced:
            self._stops.signals.end_by_force(self._ends.ending.code)
        tool_processes.kill(self._this.home, lambda owner: owner == self._this.name)
        if self._ends.ending.for_good:
            end_all(self._this.home)
        self._status.show(GatewayState.STOPPED)


def _by(ending: Ending) -> By:
    """Who is said to have ended it."""
    if ending.end is End.BROKEN:
        return By.FAULT
    return By.OPERATOR if ending.announced else By.SERVICE
