"""An event loop in simulated time: a wait costs nothing, nothing real is reachable, and a death leaves everything where it lies.

The clock moves only when there is nothing else to do. A loop that has nothing scheduled at all would wait for ever: that
is reported as a deadlock. Threads, sockets, processes and name look-ups raise, so that a leak to the real world is loud.
"""

import asyncio
import contextlib
import itertools
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar
from typing import Any, NoReturn

# Which process a task belongs to, where a loop has more than one.
PROCESS: ContextVar[str | None] = ContextVar("process", default=None)
CLOSINGS = 9


class Crash(SystemExit):
    """The simulated process is dead. An asyncio loop lets a SystemExit out; it catches every other exception somewhere."""


class SimTask(asyncio.Task[Any]):
    """Sets of tasks (asyncio.wait keeps them in sets) are ordered by creation, not by addresses in memory."""

    _numbers = itertools.count(1)

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self._number = next(self._numbers)
        super().__init__(*arguments, **named)

    def __hash__(self) -> int:
        return self._number

    def __eq__(self, other: object) -> bool:
        return self is other


class _Selector:
    """Stands where a loop waits for the world: the time that would pass has passed."""

    def __init__(self, start: float) -> None:
        self.now = start

    def select(self, timeout: float | None) -> tuple[()]:
        if timeout is None:
            raise RuntimeError("deadlock: nothing is scheduled and nothing can come")
        self.now += max(0.0, timeout)
        return ()


class SimLoop(asyncio.BaseEventLoop):
    _ready: deque[asyncio.Handle]
    _scheduled: list[asyncio.TimerHandle]

    def __init__(self, *, start: float = 0.0) -> None:
        super().__init__()
        self._selector = _Selector(start)
        # Must exceed the distance of two floats at any time of the clock, or a timer is never due and the loop spins.
        self._clock_resolution = 1e-6
        self.dead = False
        self._killed: set[str] = set()
        self._tasks: list[Any] = []
        self.set_task_factory(_create_task)

    def time(self) -> float:
        return self._selector.now

    # how a process dies

    def die(self) -> None:
        """Nothing that is scheduled happens any more; control leaves the loop with `Crash`. To be followed by `await never()`.

        Raising in the middle of a coroutine would run its `finally` blocks; a killed process runs none.
        """
        for handle in [*self._ready, *self._scheduled]:
            handle.cancel()
        super().call_soon(_crash)
        self.dead = True

    def kill(self, process: str) -> None:
        """One of several processes dies, and the others live on. What is under way in it must go on with `await never()`."""
        self._killed.add(process)
        for handle in [*self._ready, *self._scheduled]:
            if self._is_killed(handle._context):  # type: ignore[attr-defined]
                handle.cancel()

    def _is_killed(self, context: Context | None) -> bool:
        process = PROCESS.get() if context is None else context.get(PROCESS)
        return process is not None and process in self._killed

    def bury(self) -> None:
        """Ends what the dead left behind, in silence. To be called when nothing can be confused by it any more."""
        self.dead = True
        asyncio._set_running_loop(self)  # For what a `finally` may ask for on its way.
        try:
            for task in self._tasks:
                if task.done():
                    continue
                task._log_destroy_pending = False
                work = task.get_coro()
                if work is not None:
                    _close(work)
        finally:
            asyncio._set_running_loop(None)
        self._tasks.clear()
        self._ready.clear()
        self._scheduled.clear()
        self.close()

    def call_soon(self, callback: Callable[..., Any], *arguments: Any, context: Any = None) -> asyncio.Handle:  # type: ignore[override]
        if self.dead or (self._killed and self._is_killed(context)):
            return asyncio.Handle(callback, arguments, self, context)
        return super().call_soon(callback, *arguments, context=context)

    def call_at(self, when: float, callback: Callable[..., Any], *arguments: Any, context: Any = None) -> asyncio.TimerHandle:  # type: ignore[override]
        if self.dead or (self._killed and self._is_killed(context)):
            return asyncio.TimerHandle(when, callback, arguments, self, context)
        return super().call_at(when, callback, *arguments, context=context)

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        if not self.dead:
            raise AssertionError(f"the event loop was told of {context}") from context.get("exception")

    # nothing real

    def _process_events(self, event_list: object) -> None: ...

    def _write_to_self(self) -> NoReturn:
        raise AssertionError("something woke the simulated loop from another thread")

    def _asyncgen_finalizer_hook(self, agen: Any) -> None:
        """A dead process finishes nothing."""
        if not self.dead:
            raise AssertionError(f"{agen} was left open")

    def call_soon_threadsafe(self, *arguments: Any, **named: Any) -> NoReturn:  # type: ignore[override]
        raise AssertionError("a thread in simulated time")

    def run_in_executor(self, *arguments: Any, **named: Any) -> NoReturn:  # type: ignore[override]
        raise AssertionError("a thread in simulated time")

    async def getaddrinfo(self, *arguments: Any, **named: Any) -> NoReturn:
        raise AssertionError("the network in simulated time")

    async def subprocess_shell(self, *arguments: Any, **named: Any) -> NoReturn:
        raise AssertionError("a process in simulated time")

    async def subprocess_exec(self, *arguments: Any, **named: Any) -> NoReturn:
        raise AssertionError("a process in simulated time")


def _create_task(loop: Any, work: Any, **named: Any) -> Any:
    task = SimTask(work, loop=loop, **named)
    loop._tasks.append(task)
    return task


def _close(work: Any) -> None:
    """One that waits for something on its way out is closed there once more."""
    for _ in range(CLOSINGS):
        with contextlib.suppress(RuntimeError):
            work.close()
            return


def _crash() -> NoReturn:
    raise Crash


async def never() -> NoReturn:
    """What a coroutine of a dead process waits for."""
    await asyncio.get_running_loop().create_future()
    raise AssertionError("the dead went on")


def run(loop: SimLoop, work: Coroutine[Any, Any, None]) -> bool:
    """Runs to the end or to a crash; whether it reached the end."""
    try:
        loop.run_until_complete(work)
    except Crash:
        loop.dead = True
        return False
    return True
