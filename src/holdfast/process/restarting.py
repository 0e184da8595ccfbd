"""Restarts this process: a successor takes over from it; or, where only a supervisor can start one, it ends and is started again."""

import asyncio
import os
import sys
from typing import Any

import structlog

from holdfast import __version__
from holdfast.core.errors import HandOverFailed, HoldfastError, NotNow, StoppedInstead
from holdfast.core.exits import End
from holdfast.gateway.gateway import Gateway
from holdfast.process.handover import Successor, hand_over
from holdfast.process.place import Place
from holdfast.process.restart_requests import RestartRequests, Wanted
from holdfast.process.server import Server
from holdfast.process.status import StatusReport
from holdfast.process.stop_requests import Ends, StopRequests
from holdfast.process.supervisor import Kind
from holdfast.process.this_process import ThisProcess
from holdfast.store import SqliteStore

log = structlog.get_logger()


class Restarting:
    def __init__(
        self,
        this: ThisProcess,
        place: Place,
        gateway: Gateway,
        store: SqliteStore,
        server: Server,
        stops: StopRequests,
        ends: Ends,
        status: StatusReport,
        requests: RestartRequests,
    ) -> None:
        self._this, self._place, self._gateway, self._store = this, place, gateway, store
        self._server, self._stops, self._ends, self._status, self._requests = server, stops, ends, status, requests
        self._handing_over = asyncio.Lock()
        self._successor: Successor | None = None

    async def follow(self) -> None:
        while True:
            self._this.tasks.spawn(self._answer(await self._requests.next()), name="restart")

    async def finished(self) -> bool:
        """Waits for a hand-over that is under way, which a stop ends; whether another process serves now."""
        async with self._handing_over:
            return self._successor is not None

    async def _answer(self, wanted: Wanted) -> None:
        try:
            done = await self._restart(wanted)
        except HoldfastError as error:  # Those who asked are told, if they can be; and it is logged.
            if wanted.outcome is not None and not wanted.outcome.done():
                wanted.outcome.set_exception(error)
        else:
            if wanted.outcome is not None and not wanted.outcome.done():
                wanted.outcome.set_result(done)

    async def _restart(self, wanted: Wanted) -> dict[str, Any]:
        if self._successor is not None and wanted.request is None:  # It has been done, and nobody waits in a chat to be told.
            return _handed_over_to(self._successor)
        request = wanted.request or self._gateway.announcements.request(wanted.by)
        try:
            if self._this.supervisor.restarts_us:
                return self._end_to_restart(wanted.why)
            async with self._handing_over:
                # Those who asked during a hand-over have what they asked for.
                self._successor = self._successor or await self._hand_over(wanted.why)
            return _handed_over_to(self._successor)
        except HoldfastError as error:
            await self._gateway.announcements.failed(request, str(error))
            raise

    def _end_to_restart(self, why: str) -> dict[str, Any]:
        if self._ends.over.is_set() and self._ends.ending.end is not End.RESTART:
            raise NotNow("restart", self._gateway.state)
        self._stops.end(End.RESTART, why)
        return {"mode": "exit", "pid": os.getpid(), "version": __version__}

    async def _hand_over(self, why: str) -> Successor:
        self._gateway.hand_over.begin()
        log.info("hand-over begins", why=why)
        awaited = self._this.supervisor.kind is Kind.PLAIN
        try:
            successor = await hand_over(
                [sys.executable, *sys.orig_argv[1:]],
                self._place.offer(owner=self._this.name, database=self._store.identity, awaited=awaited),
                environment={name: value for name, value in os.environ.items() if name != "WATCHDOG_PID"},
                give_way=self._give_way,
                announce=lambda successor: self._this.supervisor.replaced_by(successor.process.pid),
                given_up=self._ends.asked.is_set,
            )
        except HandOverFailed as error:
            log.error("hand-over failed", error=str(error))
            self._status.claim()
            await self._gateway.hand_over.take_back(to_stop=self._ends.asked.is_set())
            self._status.show(self._gateway.state)
            raise
        self._place.leave()
        await self._server.retire()  # A client that is told of the successor must not be answered by this process again.
        log.info("handed over", to=successor.process.pid, version=successor.version)
        self._stops.handed_over(awaited=self._place.exit_pipe.reader is not None)
        return successor

    async def _give_way(self) -> None:
        """A stop does not wait for it, however long it takes. After it the status file is the successor's."""
        giving_way = self._this.tasks.spawn(self._gateway.hand_over.give_way(), name="give way")
        await self._this.tasks.until(giving_way, self._ends.asked)
        if self._ends.asked.is_set():
            giving_way.cancel()
            await asyncio.wait({giving_way})
            raise StoppedInstead
        self._status.yield_file()


def _handed_over_to(successor: Successor) -> dict[str, Any]:
    return {"mode": "hand_over", "pid": successor.process.pid, "version": successor.version}
