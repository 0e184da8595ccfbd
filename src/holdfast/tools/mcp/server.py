"""One server: started when somebody needs it, owned by one task that enters and leaves the connection, tried again after a failure, later
each time. Callers wait for answers in tasks of their own, and none of them can hold up or break the connection.
"""

import asyncio
import importlib
import secrets
from collections.abc import Awaitable
from contextlib import AsyncExitStack, suppress
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import structlog

from holdfast.config import BadConfig
from holdfast.config import mcp as settings_
from holdfast.config.mcp import McpServer
from holdfast.core import mcp
from holdfast.core.elicitation import Given, Request
from holdfast.core.errors import HoldfastError
from holdfast.core.mcp import Offer
from holdfast.ports.tools import ToolContext
from holdfast.tools.mcp import ground as grounds
from holdfast.tools.mcp.errors import Lost, NotSent, ServerError
from holdfast.tools.mcp.ground import Ground, Running

if TYPE_CHECKING:
    from holdfast.tools.mcp.link import Answer, Link

# After so long without a word, a server is asked for a sign of life before it is sent a call: one that died meanwhile got nothing.
REST_S, PROBE_S = 15.0, 5.0
# Changes come in bursts.
RELIST_S, LONGEST_RELIST_S, LIST_S = 1.0, 60.0, 20.0
# Until a server has taken the word that a call is over; one that has not by then is ended.
CANCEL_S = 1.0
# Within the time that a stop has for everything it disconnects.
CLOSE_S = 2.5
# A call waits so long until a server that failed may be tried again. Then it fails.
SHORT_S = 3.0
ENDED = "it ended"

T = TypeVar("T")
log = structlog.get_logger()


class Phase(StrEnum):
    """`ending`: what is left of a connection is being cleared away."""

    RESTING = "not started"
    STARTING = "starting"
    RUNNING = "running"
    ENDING = "ending"
    FAILED = "failed"
    CLOSED = "closed"


class Late(Lost):
    """It was given as long as it may take, and was told to stop."""


class State(msgspec.Struct, frozen=True, kw_only=True):
    """`why`: it failed."""

    phase: Phase = Phase.RESTING
    why: str = ""


class Server:
    """`offer`: what is offered of it, as it last listed its tools."""

    def __init__(self, name: str, settings: McpServer, ground: Ground) -> None:
        self.name, self.settings, self._ground = name, settings, ground
        self.state = State()
        self.offer = Offer()
        self.began = 0.0
        self.failures = 0
        self._link: Link | None = None
        self._task: asyncio.Task[None] | None = None
        self._wanted, self._news, self._settled = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._changed, self._lost, self._closing = False, "", False
        self._retry_at = self._heard_at = self._listed_at = 0.0
        # Calls that wait for an answer, and those of them for which a person is asked something.
        self._open: dict[asyncio.Task[Answer | ServerError], ToolContext] = {}
        self._asking: set[asyncio.Task[Answer | ServerError]] = set()

    # for those who need it

    def want(self) -> None:
        """Starts it, unless it runs or has to be left alone for a while."""
        due = self.state.phase is Phase.RESTING or (self.state.phase is Phase.FAILED and self._now >= self._retry_at)
        if self._closing or not due:
            return
        self.began = self._now
        self._become(Phase.STARTING)
        if self._task is None:
            self._task = self._ground.spawn(self._own(), name=f"MCP server {self.name}")
        self._wanted.set()

    def deadline(self, patience_s: float) -> float:
        """Until when to wait for it: a start that is under way has used some of that."""
        return (self.began if self.state.phase is Phase.STARTING else self._now) + patience_s

    async def prepare(self, until: float, *, insist: bool) -> None:
        """Waits until it runs, but not longer than that; if it fails, only where somebody insists."""
        with suppress(TimeoutError):
            async with asyncio.timeout_at(until):
                while not self.running and not self._closing:
                    tried = self.began
                    self.want()
                    await self._settled.wait()
                    if self.state.phase is not Phase.FAILED:
                        continue
                    if not insist and (self.began > tried or self._now < self._retry_at):
                        return
                    await asyncio.sleep(max(0.0, self._retry_at - self._now))

    @property
    def running(self) -> bool:
        return self.state.phase is Phase.RUNNING

    async def call(self, tool: str, arguments: dict[str, Any], context: ToolContext) -> "Answer":
        """Raises `NotSent`, `Lost`, or `ServerError` where the server answered and did not do it."""
        link = await self._proven()
        answer = await self._ask(link, tool, arguments, context)
        if isinstance(answer, NotSent):  # It forgot us, or was away for a moment: nobody did anything.
            self._drop(link, str(answer))
            answer = await self._ask(await self._ready(), tool, arguments, context)
        if isinstance(answer, ServerError):
            raise answer
        return answer

    async def close(self) -> None:
        """Ends it."""
        self._closing = True
        self._news.set()
        self._wanted.set()
        if self._task is not None:
            if self.running:
                await asyncio.wait({self._task}, timeout=CLOSE_S)
            self._task.cancel()  # What it has started ends all the same.
            await asyncio.wait({self._task}, timeout=CLOSE_S)
        self._become(Phase.CLOSED)

    # a call

    async def _ask(self, link: "Link", tool: str, arguments: dict[str, Any], context: ToolContext) -> "Answer | ServerError":
        heard, writing = asyncio.Event(), asyncio.Lock()

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            self._heard_at = self._now
            heard.set()
            share = f"{progress:g} of {total:g}" if total else ""
            words = ": ".join(each for each in (share, (message or "")[:500]) if each)
            if words and not writing.locked():  # What comes faster than it can be kept is not shown.
                async with writing:
                    await context.output(f"{words}\n")

        calling = link.call(tool, arguments, key=context.key, progress=hear, answers=context.answers)
        asking = self._ground.spawn(_outcome(calling), name=f"call of {tool}")
        self._open[asking] = context
        try:
            await self._wait(asking, heard)
        except (asyncio.CancelledError, Late):
            await self._give_up(asking, link)
            raise
        finally:
            del self._open[asking]
        self._heard_at = self._now
        return asking.result()

    async def _proven(self) -> "Link":
        """A connection of which somebody has heard lately. Nothing was sent before that, so nothing is unknown if there is none. A server
        that works on a call may be too busy for a sign of life, and ending it would lose that call.
        """
        link = await self._ready()
        if self._open or self._now - self._heard_at < REST_S:
            return link
        probing = self._ground.spawn(_outcome(link.probe()), name=f"sign of life of {self.name}")
        await asyncio.wait({probing}, timeout=PROBE_S)
        if probing.done() and not isinstance(probing.result(), ServerError):
            self._heard_at = self._now
            return link
        probing.cancel()
        self._drop(link, str(probing.result()) if probing.done() and not probing.cancelled() else "it gave no sign of life")
        return await self._ready()

    async def _ready(self) -> "Link":
        while True:
            wait_s = self._retry_at - self._now
            if self._link is not None and self.running:
                return self._link
            if self._closing:
                raise NotSent("Holdfast is stopping")
            if self.state.phase is Phase.FAILED and wait_s > SHORT_S:
                raise NotSent(f"{self.state.why}. It is tried again in {wait_s:.0f} s")
            if self.state.phase is Phase.FAILED:
                await asyncio.sleep(max(0.0, wait_s))
            began = self.began
            self.want()
            await self._settled.wait()
            if self.state.phase is Phase.FAILED and self.began > began:  # It was tried for this call.
                raise NotSent(self.state.why)

    async def _elicit(self, request: Request) -> Given | None:
        """The server asks the user while a call runs, and does not say for which. With calls of several conversations open nobody can
        tell whom to ask. The question is over when the call is.
        """
        if len({context.session_id for context in self._open.values()}) != 1:
            raise ServerError("It is not known for which conversation this is asked.")
        call, context = next(iter(self._open.items()))
        if context.ask is None or call in self._asking:
            raise ServerError("Nobody can be asked this now: another question is open, or nobody is there.")
        asked = self._ground.spawn(_answered(context.ask(request)), name=f"question of {self.name}")
        self._asking.add(call)
        try:
            await asyncio.wait({asked, call}, return_when=asyncio.FIRST_COMPLETED)
            return asked.result() if asked.done() and not asked.cancelled() else None
        finally:
            self._asking.discard(call)
            self._heard_at = self._now
            asked.cancel()

    async def _wait(self, asking: "asyncio.Task[Answer | ServerError]", heard: asyncio.Event) -> None:
        """Until the answer is there. Every word of progress gives it more time, up to a limit."""
        latest = self._now + max(self._ground.longest_s, self.settings.timeout_s)
        until = self._now + self.settings.timeout_s
        while not asking.done():
            await asyncio.wait({asking}, timeout=max(0.0, min(until, latest) - self._now))
            if asking in self._asking:  # Nobody counts how long a person takes.
                until = latest = self._now + self.settings.timeout_s
            elif heard.is_set():
                heard.clear()
                until = self._heard_at + self.settings.timeout_s
            if not asking.done() and self._now >= min(until, latest):
                raise Late(f"it did not answer within {self.settings.timeout_s:g} s and was told to stop")

    async def _give_up(self, asking: "asyncio.Task[Answer | ServerError]", link: "Link") -> None:
        """The library tells the server. One that does not even take that is of no use to anybody else."""
        asking.cancel()
        _, stuck = await asyncio.wait({asking}, timeout=CANCEL_S)
        if stuck:
            self._drop(link, "it does not take what it is sent")

    def _drop(self, link: "Link", why: str) -> None:
        if self._link is link:
            self._link, self._lost = None, why
            self._become(Phase.ENDING, why)
            self._news.set()

    # its owner

    async def _own(self) -> None:
        while not self._closing:
            await self._wanted.wait()
            self._wanted.clear()
            if self._closing:
                return
            began, why = self._now, ""
            try:
                why = await self._live()
            except Exception as error:  # The boundary to a program and a library that are not ours.
                why = _why(error)
            self._link = None
            self.failures = mcp.failures_after(self.failures, lived_s=self._now - began)
            self._retry_at = self._now + mcp.wait_s(self.failures)
            if not self._closing:
                log.warning("MCP server ended", server=self.name, why=why, failures=self.failures)
            self._become(Phase.FAILED if self.failures else Phase.RESTING, self._ground.secrets.text(why))

    async def _live(self) -> str:
        """One life of it. Gives why it ended."""
        self._lost, self._changed = "", False
        self._news.clear()
        running: Running | None = None
        access = settings_.access(self.settings, self._ground.home, self._ground.environment)
        self._ground.secrets.know(access.secrets)
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(self.settings.start_timeout_s):
                    library = await asyncio.to_thread(importlib.import_module, "holdfast.tools.mcp.link")
                    if access.words:
                        running = await grounds.start(self._ground, self.name, self.settings, access, mark=secrets.token_hex(8))
                        stack.push_async_callback(grounds.end, self._ground, running)
                        transport = library.over_pipes(running.program, self.name, self._end)
                    else:
                        transport = library.over_http(access.url, access.headers)
                    link: Link = await stack.enter_async_context(library.connected(transport, self._change, self._elicit))
                    await self._list(link)
                self._link, self._heard_at = link, self._now
                self._become(Phase.RUNNING)
                log.info("MCP server runs", server=self.name, software=mcp.visible(link.software), tools=len(self.offer.tools))
                following = self._ground.spawn(link.follow(), name=f"changes of {self.name}")
                stack.callback(following.cancel)
                try:
                    await self._watch(link)
                finally:
                    self._drop(link, self._lost)
        except TimeoutError:
            raise ServerError(_said(f"it did not start within {self.settings.start_timeout_s:g} s", running)) from None
        except ServerError as error:
            raise ServerError(_said(str(error), running)) from error
        return _said("", running) if self._lost == ENDED else self._lost

    async def _watch(self, link: "Link") -> None:
        """Until the connection is over. Lists the tools again when they may have changed."""
        wait_s = RELIST_S / 2
        while not self._closing and not self._lost:
            await self._news.wait()
            self._news.clear()
            if self._changed and not self._lost and not self._closing:
                # One that changes all the time is looked at less and less often.
                quiet = self._now - self._listed_at > 2 * LONGEST_RELIST_S
                wait_s = RELIST_S if quiet else min(2 * wait_s, LONGEST_RELIST_S)
                if await self._over_within(wait_s):
                    return
                self._changed = False
                await self._list_again(link)

    async def _list_again(self, link: "Link") -> None:
        """One that works on a call may answer only when that is over: it is asked again later."""
        try:
            async with asyncio.timeout(LIST_S):
                await self._list(link)
        except TimeoutError:
            if not self._open:
                raise ServerError(f"it did not list its tools within {LIST_S:g} s") from None
            self._change()

    async def _over_within(self, seconds: float) -> bool:
        """Whether the connection is over by then."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not self._closing and not self._lost:
                    await self._news.wait()
                    self._news.clear()
        return self._closing or bool(self._lost)

    async def _list(self, link: "Link") -> None:
        offer = mcp.offer(await link.tools(), self.settings.tools)
        if offer.left_out:
            log.warning("tools of an MCP server are not offered", server=self.name, tools=offer.left_out)
        before, now = self.offer.tools, offer.tools
        if changed := sorted(name for name in now.keys() & before.keys() if now[name].version != before[name].version):
            log.warning("tools of an MCP server are described differently", server=self.name, tools=changed)
        self.offer, self._listed_at = offer, self._now

    def _change(self) -> None:
        self._changed = True
        self._news.set()

    def _end(self) -> None:
        """Its program said its last word."""
        self._lost = self._lost or ENDED
        self._news.set()
        if self._link is not None:
            self._drop(self._link, self._lost)

    def _become(self, phase: Phase, why: str = "") -> None:
        self.state = State(phase=phase, why=mcp.visible(why))
        if phase in (Phase.STARTING, Phase.ENDING):
            self._settled.clear()
        else:
            self._settled.set()

    @property
    def _now(self) -> float:
        return asyncio.get_running_loop().time()


async def _outcome(work: Awaitable[T]) -> T | ServerError:
    try:
        return await work
    except ServerError as error:
        return error


async def _answered(asking: Awaitable[Given | None]) -> Given | None:
    try:
        return await asking
    except HoldfastError:
        return None  # The turn is over.


def _said(why: str, running: Running | None) -> str:
    """With what its program said last."""
    words = running.program.last_words if running is not None else ""
    return ": ".join(each for each in (why, words) if each) or ENDED


def _why(error: Exception) -> str:
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    match error:
        case ModuleNotFoundError():
            return f'the package {error.name} is not installed; install the extra with `pip install "holdfast[mcp]"`'
        case ServerError() | BadConfig() | OSError():
            return str(error)
        case TimeoutError():
            return "it does not answer"
        case _:
            return f"{type(error).__name__}: {error}"
