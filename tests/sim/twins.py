"""Two processes on one home: a second gateway on the same store, started while the first lives, by itself or because the first hands over
to it. Either may be killed; the other goes on.

They share one connection to the disk, as two processes share a file; each has lines, tasks and memory of its own. A kill takes nothing
from the disk: what a process had written, the operating system has.
"""

import asyncio
import contextvars
from typing import Any

from holdfast.core.errors import NotNow, Unavailable
from holdfast.gateway.gateway import Gateway
from tests.fakes.loop import PROCESS, never
from tests.fakes.power import Mode
from tests.sim.world import Life, Span, World


class TwinWorld(World):
    """`second_at_s`: when the second process starts. A death is that of the one process that comes to its point."""

    def __init__(self, seed: int, *, second_at_s: float, **named: Any) -> None:
        super().__init__(seed, **named)
        self.second_at_s = second_at_s

    def new_life(self) -> Life:
        return TwinLife(self, len(self.lives), self.second_at_s)


class HandOverWorld(World):
    """`hands_over_at_s`: when the process of each life hands over to another one."""

    def __init__(self, seed: int, *, hands_over_at_s: float, **named: Any) -> None:
        super().__init__(seed, **named)
        self.hands_over_at_s = hands_over_at_s

    def new_life(self) -> Life:
        return HandOverLife(self, len(self.lives), self.hands_over_at_s)


class Process:
    """`ready` once it could start, which it does when it is `told` to; `serving` once it has started."""

    def __init__(self, life: "TwinLife", name: str, *, waits: bool = False) -> None:
        self.name = name
        self.context = contextvars.copy_context()
        self.context.run(PROCESS.set, name)
        self.ready, self.told = False, not waits
        self.serving: tuple[Gateway, Span] | None = None
        life.world.alive.add(name)
        life.loop.create_task(self._start(life), context=self.context)

    async def _start(self, life: "TwinLife") -> None:
        try:
            gateway, span = await life.build(self.name)
            self.ready = True
            await life.until(lambda: self.told)
            await gateway.start()
        except Unavailable:  # It cannot start, and exits.
            return life.kill(self.name)
        gateway.lifecycle.serve()
        self.serving = gateway, span


class TwinLife(Life):
    def __init__(self, world: World, number: int, second_at_s: float) -> None:
        super().__init__(world, number)
        self._second_at_s = second_at_s
        self._doomed: str | None = None
        self._processes: list[Process] = []

    def run(self, vfs: str) -> bool:
        finished = super().run(vfs)
        self.world.alive -= {process.name for process in self._processes}
        return finished

    # One of them dies, and the disk keeps everything.

    def _dies(self, place: str) -> Mode | None:
        self.points += 1
        if self._death is not None and self._death.point == self.points and (name := PROCESS.get()) is not None:
            self.world.died_at.append(f"{name} {place} (point {self.points})")
            self._doomed = name
        return None

    def _committed(self) -> None:
        super()._committed()
        self._kill()

    async def at(self, place: str) -> None:
        await super().at(place)
        if self._doomed is not None and self._doomed == PROCESS.get():
            self._kill()
            await never()

    def _kill(self) -> None:
        if (name := self._doomed) is not None:
            self._doomed = None
            self.kill(name)

    def kill(self, name: str) -> None:
        self.loop.kill(name)
        self.world.alive.discard(name)
        for span in self.world.spans:
            if span.name == name:
                span.until_id = self.last_id()

    # its life

    async def _live(self, name: str) -> None:
        self._processes.append(Process(self, name))
        await self.until(lambda: self._served_by() is not None or not self.world.alive)
        attending = self.loop.create_task(self._attend())
        await asyncio.sleep(self._second_at_s)
        self._processes.append(Process(self, f"{name}-twin"))
        await self.until(lambda: all(process.serving or process.name not in self.world.alive for process in self._processes))
        await self._until_quiet()
        attending.cancel()
        for process in self._processes:
            if process.serving is not None and process.name in self.world.alive:
                await self._take_down(process, *process.serving)
        self.db.close()

    def _served_by(self) -> Process | None:
        return next((process for process in self._processes if process.serving and self._lives(process)), None)

    def _lives(self, process: Process) -> bool:
        return process.name in self.world.alive

    async def _attend(self) -> None:
        """People talk to the process that serves; when it dies, to the other one."""
        talked_to: Process | None = None
        while True:
            serves = self._served_by()
            if serves is not None and serves is not talked_to and serves.serving is not None:
                for task in self.outside:  # Their connections to the other one are gone, with everything behind them.
                    task.cancel()
                self.outside.clear()
                self.gateway, self.span = serves.serving
                serves.context.run(self._invite)
                talked_to = serves
            await asyncio.sleep(0.05)

    async def _take_down(self, process: Process, gateway: Gateway, span: Span) -> None:
        """In order, unless it is killed even now."""
        ending = self.loop.create_task(self._end(gateway, span), context=process.context)
        await self.until(lambda: ending.done() or process.name not in self.world.alive)
        self.world.alive.discard(process.name)

    async def _end(self, gateway: Gateway, span: Span) -> None:
        if gateway is self.gateway:
            await self._send_away()
        span.stopping = True
        await gateway.stop(reason=self.left_for or "shutdown_timeout")
        await gateway.store.aclose()
        span.until_id, span.orderly = self.last_id(), True


class HandOverLife(TwinLife):
    """The second process is the successor of the first, in the order that `process/handover.py` keeps."""

    async def _live(self, name: str) -> None:
        old = Process(self, name)
        self._processes.append(old)
        await self.until(lambda: old.serving is not None or not self._lives(old))
        attending = self.loop.create_task(self._attend())
        await self.until(lambda: not self._lives(old) or self.left_for is not None, patience_s=self._second_at_s)
        handing_over = None
        if old.serving is not None and self._lives(old) and self.left_for is None:
            new = Process(self, f"{name}-successor", waits=True)
            self._processes.append(new)
            handing_over = self.loop.create_task(self._hand_over(old.serving, old, new), context=old.context)
            watching = self.loop.create_task(self._watch(old, new))
        await self._until_quiet()
        if handing_over is not None:
            handing_over.cancel()
            watching.cancel()
        attending.cancel()
        for process in self._processes:
            if process.serving is not None and self._lives(process):
                await self._take_down(process, *process.serving)
        self.db.close()

    async def _until_quiet(self) -> None:
        """Where nobody lives any more, another life begins."""
        await self.until(lambda: self._served_by() is not None or not self.world.alive)
        if not self.world.alive:
            self.leave("crash")
        await super()._until_quiet()

    def _unsettled(self) -> dict[str, Any]:
        if not self.world.alive:
            self.leave("crash")
        retiring = [process.name for process in self._processes if self._lives(process) and process is not self._served_by()]
        return super()._unsettled() | ({"processes that end": retiring} if retiring else {})

    def _served_by(self) -> Process | None:
        """The newest."""
        return next((process for process in reversed(self._processes) if process.serving and self._lives(process)), None)

    async def _hand_over(self, serving: tuple[Gateway, Span], old: Process, new: Process) -> None:
        """What the old process does, as long as it lives."""
        gateway, span = serving
        try:
            gateway.hand_over.begin()
        except NotNow:
            return self.kill(new.name)
        await self.until(lambda: new.ready or not self._lives(new))
        if self._lives(new):
            span.giving_way = True
            await gateway.hand_over.give_way()
            new.told = span.gave_way = True
        await self.until(lambda: new.serving is not None or not self._lives(new))
        if not self._lives(new):
            span.gave_way = False
            await gateway.hand_over.take_back()
            span.giving_way = False
            return
        await gateway.hand_over.retire()
        await self._end(gateway, span)
        self.world.alive.discard(old.name)

    async def _watch(self, old: Process, new: Process) -> None:
        """One that was never told to start ends with the one that would have told it."""
        await self.until(lambda: not self._lives(old) or new.told)
        if not new.told:
            self.kill(new.name)
