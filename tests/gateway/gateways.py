"""The whole gateway over several lives of its process, in simulated time: a real store in a folder, an agent that does what its messages
say, a chat that outlives them all. A test reads like a story; time passes only where the story says so.
"""

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable, Coroutine, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import apsw
from structlog.testing import capture_logs

from holdfast.agents.demo import DemoAgent
from holdfast.api import conversation
from holdfast.api.views import SessionView
from holdfast.core.busy import Mode
from holdfast.core.content import bytes_part, outline
from holdfast.core.delivery import key
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.events import Logged
from holdfast.core.lifecycle import GatewayState
from holdfast.core.live import Manners
from holdfast.core.messages import Message, Turn
from holdfast.core.processes import Matches
from holdfast.core.redaction import NO_SECRETS, Secrets
from holdfast.core.rights import Policy
from holdfast.core.sessions import Session
from holdfast.core.spools import Contents
from holdfast.core.transcript import Transcript
from holdfast.gateway.agents import Agents
from holdfast.gateway.edges import Edges
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.host import Host
from holdfast.gateway.settings import Settings
from holdfast.gateway.toolbox import Toolbox
from holdfast.ports.agents import Agent, AgentProcesses, AgentRequest, TurnFace
from holdfast.ports.blobs import Files
from holdfast.ports.owners import Owner
from holdfast.ports.platforms import Batch, Outgoing, Platform, Receipt
from holdfast.ports.process import Restarts
from holdfast.ports.store import Store
from holdfast.ports.titles import Titler
from holdfast.ports.tools import Tool, ToolContext, ToolResult, ToolServers
from holdfast.process.system import RandomIds
from holdfast.spool import FolderSpool, Run
from holdfast.store import SqliteStore, reads
from holdfast.store.sqlite.connection import connect, fetch
from holdfast.store.sqlite.tx import SqliteTx
from holdfast.tools.plain import PlainTool
from holdfast.tools.processes import Processes
from holdfast.web.frames import encode
from tests.conformance.backends import empty_database
from tests.fakes.agents_sim import Failure, steps
from tests.fakes.agents_steps import StepAgent
from tests.fakes.clock import SimClock
from tests.fakes.keepers import Machine, SimKeepers, nowhere
from tests.fakes.loop import Crash, SimLoop
from tests.fakes.platform import ACCOUNT, NAME, Chat, ChatServer, Sent, Shelf, Update, rendered, session_key
from tests.fakes.spool import at_once
from tests.sim.lines import SimLines

T = TypeVar("T")
ANN = "ann"
STEPS = "steps:"
PATIENCE_S = 120.0
STEP_S = 0.05
NO_MATCHES = Matches()


class Edge:
    """Where the process ends and others begin: what happened there, in order, and what goes wrong. `looks` is called at each place."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.hangs: set[str] = set()
        self.fails: set[str] = set()
        self.kept: list[str] = []
        self.looks: Callable[[str], None] = lambda place: None
        self.place = "the yard"
        self._gates: dict[str, asyncio.Event] = {}

    async def at(self, place: str) -> None:
        self.saw(place)
        if place in self.hangs:
            await asyncio.Event().wait()
        if place in self.fails:
            raise RuntimeError(f"{place}: as it was told")

    def gate(self, name: str) -> asyncio.Event:
        """What an agent waits for that is told `until:name`."""
        return self._gates.setdefault(name, asyncio.Event())

    def saw(self, place: str) -> None:
        self.seen.append(place)
        self.looks(place)

    def count(self, place: str) -> int:
        return self.seen.count(place)


class ScriptAgent:
    """Does what its message says, step by step: `say:hello|call:deed 3|careful:deed 3|ask:name|fail|hang|nothing`, `do:TOOL JSON` for calls
    with other arguments, `steer` to wait for words that steer. Attempts are parted by ` / `: the first does the first part, and so on; the
    last part is for all that come after. Other words it says back. What begins with `steps:` is the script of a `StepAgent`; `count` and
    `run` are the demo agent's.
    """

    name = "script"

    def __init__(self, heard: list[AgentRequest], edge: Edge | None = None) -> None:
        self._heard, self._edge = heard, edge or Edge()
        self._steps, self._demo = StepAgent(), DemoAgent()

    async def aclose(self) -> None:
        await self._edge.at("agent closed")

    async def run(self, request: AgentRequest, turn: TurnFace) -> None:
        self._heard.append(request)
        try:
            await self._follow(request, turn)
        except asyncio.CancelledError as error:
            self._edge.saw(f"interrupted: {error}")
            raise

    async def _follow(self, request: AgentRequest, turn: TurnFace) -> None:
        if request.text.startswith(STEPS):
            return await self._steps.run(request, turn)
        if request.text.startswith(("count ", "run ")):
            return await self._demo.run(request, turn)
        attempts = request.text.split(" / ")
        for number, (word, rest) in enumerate(steps(attempts[min(request.attempt, len(attempts)) - 1]), 1):
            call_id = f"{request.turn_id}.{number}"
            match word:
                case "say":
                    await turn.say(rest)
                case "call":
                    name, _, arguments = rest.partition(" ")
                    await turn.call(call_id, name, {"command": arguments})
                case "do":
                    name, _, given = rest.partition(" ")
                    await turn.say((await turn.call(call_id, name, json.loads(given))).text)
                case "steer":  # Until something comes that is meant for this turn.
                    while not (taken := await turn.taken()):  # noqa: ASYNC110 - an agent looks between its steps.
                        await asyncio.sleep(0.1)
                    await turn.say(f"took {taken[0].text}")
                case "careful":
                    name, _, arguments = rest.partition(" ")
                    await turn.call(call_id, name, {"command": arguments}, careful=True)
                case "ask":
                    await turn.say(f"told {outline((await turn.ask(call_id, rest)).content)}")
                case "sleep":
                    await asyncio.sleep(float(rest))
                case "until":
                    await self._edge.gate(rest).wait()
                case "fail":
                    raise Failure("as it was told")
                case "half":  # Half of a character, as models send it, in every place where an agent can put one.
                    await turn.say("\ud83d then")
                    await turn.think("\ud83d")
                    await turn.call(call_id, "deed", {"command": "0", "\ud83d": ["\ud83d", 2**70]})
                    raise Failure("with \ud83d")
                case "hang":
                    await asyncio.Event().wait()
                case "nothing":
                    pass
                case _:
                    await turn.say(f"re: {request.text}")


class Deed(PlainTool):
    """A tool that takes its time in silence, and is known outside to have done its work."""

    name = "deed"
    declared: Effect = Effect.UNSAFE

    def __init__(self, done: list[str], edge: Edge) -> None:
        self._done, self._edge = done, edge

    def effect(self, arguments: dict[str, Any]) -> Effect:
        return self.declared

    def confined(self, arguments: dict[str, Any]) -> bool:
        return True

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        await asyncio.sleep(float(arguments["command"] or 0))
        self._done.append(context.call_id)
        return ToolResult(ToolOutcome.DONE, "done")

    async def reap(self, lives: Callable[[str], bool]) -> int:
        await self._edge.at(f"{self.name} reaped")
        return 0

    async def end_session(self, session_id: str) -> int:
        self._edge.saw(f"{self.name} of {session_id} ended")
        return 0

    async def kept(self) -> list[str]:
        return list(self._edge.kept)

    async def forget(self, session_id: str) -> None:
        self._edge.saw(f"{self.name} forgets {session_id}")
        if f"{self.name} forgets" in self._edge.fails:
            raise PermissionError("as it was told")
        self._edge.kept.remove(session_id)


class Launch(Deed):
    """Nothing keeps it within bounds, so a person has to approve it. It works at the edge's `place`."""

    name = "launch"

    def confined(self, arguments: dict[str, Any]) -> bool:
        return False

    def place(self, session_id: str, folder: str | None) -> str:
        return self._edge.place


class Look(Deed):
    """A pure tool. It never ends when it is told to look `slow` for the first time."""

    name = "look"
    schema = {"type": "object", "properties": {"word": {"type": "string", "maxLength": 5}}, "required": ["word"]}  # noqa: RUF012
    declared: Effect = Effect.PURE

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        word = arguments["word"]
        self._edge.saw(f"look {word} begins")
        if word == "slow" and self._edge.count("look slow begins") == 1:
            await asyncio.Event().wait()
        await asyncio.sleep(0.001)
        return ToolResult(ToolOutcome.DONE, f"saw {word}")


class Camera(Deed):
    """Gives a picture of which nobody has stored the bytes."""

    name = "camera"
    declared: Effect = Effect.PURE

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        self._edge.saw("camera used")
        return ToolResult(ToolOutcome.DONE, (bytes_part(blob="f" * 64, size=1, media_type="image/png", name="f.png"),))


class Stubborn(Deed):
    """Does not end, whoever asks."""

    name = "stubborn"

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                continue


class Shell(Deed):
    """Prints what it is told; `hang` never ends, and `fail` fails."""

    name = "terminal"

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        command = arguments["command"]
        await context.output(f"{command}\n")
        if command == "hang":
            await asyncio.Event().wait()
        return ToolResult(ToolOutcome.FAILED if command == "fail" else ToolOutcome.DONE, f"{command}\n")


class Line(Chat):
    """A connection to the chat that is seen at the edge. What was taken over the wire is seen once it was confirmed."""

    def __init__(self, server: ChatServer, edge: Edge) -> None:
        super().__init__(server, faults=Wire())
        self._edge = edge

    async def send(self, message: Outgoing) -> Receipt:
        await self._edge.at("sending")
        receipt = await super().send(message)
        self._edge.saw(f"sent {rendered(message.text)}")
        return receipt

    async def acknowledge(self, batch: Batch) -> None:
        await super().acknowledge(batch)
        for number in batch.ticket:
            self._edge.saw(f"took {self._server.updates[number].text}")

    async def aclose(self) -> None:
        await self._edge.at("platform closed")
        await super().aclose()


class Wire:
    """A wire on which nothing goes wrong (`fakes.tools.Faults`)."""

    async def at(self, place: str) -> None: ...

    async def pause(self) -> None:
        await asyncio.sleep(0.001)

    async def poll(self) -> None:
        await asyncio.sleep(0.2)

    async def hang(self) -> None:
        await asyncio.sleep(1000.0)


def _connect(path: Path) -> apsw.Connection:
    db = connect(path)
    db.execute("PRAGMA synchronous = OFF")  # Processes die here, not machines.
    return db


class Home:
    """What outlives a process: the folder, the chat, the tools' deeds, time. `heard` is every request an agent was given."""

    def __init__(self, folder: Path, logs: list[MutableMapping[str, Any]]) -> None:
        self.path, self.logs = folder / "holdfast.db", logs
        self.server = ChatServer(reconciles=True, by_cursor=False)
        self.heard: list[AgentRequest] = []
        self.done: list[str] = []
        self.edge = Edge()
        self.alive: set[str] = set()
        self.elapsed = 0.0
        self.lives: list[Life] = []
        self.restarts: Restarts | None = None
        self.secrets: Secrets = NO_SECRETS
        self.spool_run: Run = at_once
        self.machine: Machine | None = None  # What runs in the background, for tests that have it.
        self.tool_servers: ToolServers | None = None
        self.line: type[Line] = Line
        self.shelf: Callable[[Store], Files] = Shelf
        self.agent: Callable[[Life], Agent] = lambda life: ScriptAgent(self.heard, self.edge)
        self.agents: dict[str, Agent] = {}
        self.titler: Titler | None = None
        self.agent_processes: Callable[[Life], AgentProcesses | None] = lambda life: None  # Asked for after the agent.
        self.more_tools: Callable[[Life], Sequence[Tool]] = lambda life: ()
        self.path.write_bytes(empty_database())

    def start(
        self,
        *,
        chats: bool = True,
        jump_ms: int = 0,
        jumps: Sequence[tuple[float, int]] = (),
        offset_s: int = 0,
        beside: "Life | None" = None,
        boot: str = "b",
        **settings: Any,
    ) -> "Life":
        """The next process, with these settings. `jump_ms`: the wall clock was moved while nobody looked; `jumps`: it will be, so many
        seconds after the home was made. `beside`: that other process goes on, and time passes in both. `boot`: which start of
        the machine it belongs to.
        """
        name, jumps = f"life-{len(self.lives) + 1}", ((0.0, jump_ms), *jumps)
        settings = {"policies": {NAME: self.policy()}, "manners": Manners(stream=False, still_working_s=0), **settings}
        life = Life(self, name, Settings(**settings), chats=chats, jumps=jumps, offset_s=offset_s, beside=beside, boot=boot)
        self.lives.append(life)
        life.begin()
        return life

    def policy(self) -> Policy:
        """Everybody may talk whom the server does not ban in this moment."""
        return Policy(everybody=True, blocked=self.server.banned, admins=self.server.operators)  # type: ignore[arg-type]

    def tools(self) -> dict[str, Tool]:
        return {tool.name: tool(self.done, self.edge) for tool in (Deed, Launch, Look, Camera, Stubborn, Shell)}

    def later(self, seconds: float) -> None:
        """Time in which no process runs."""
        self.elapsed += seconds

    def write(self, text: str, *, chat: str = ANN, sender: str = ANN) -> Update:
        """A person writes, whether or not anyone is there to read it."""
        return self.server.write(chat, sender, text)

    def sent(self, chat: str = ANN) -> list[Sent]:
        return [sent for sent in self.server.sent if sent.session_key == session_key(chat)]

    def told(self, chat: str = ANN) -> list[str]:
        """What a chat was sent, in order."""
        return [sent.text for sent in self.sent(chat)]

    def replies(self, chat: str = ANN) -> list[str]:
        """What the agent said of it, without the words of the gateway itself."""
        db = _connect(self.path)
        try:
            rows = fetch(db, "SELECT delivery_id, part FROM outbox WHERE delivery_id LIKE '%.answer'")
        finally:
            db.close()
        answers = {key(delivery_id, part) for delivery_id, part in rows}
        return [sent.text for sent in self.sent(chat) if sent.key in answers]

    @property
    def texts(self) -> list[str]:
        """What agents were asked, in order."""
        return [request.text for request in self.heard]

    @property
    def note(self) -> str | None:
        """What the agent that was asked last was told beside it."""
        return self.heard[-1].note

    def on_disk(self, session_id: str) -> Session:
        """As another process would find it in this moment."""
        db = _connect(self.path)
        try:
            return reads.session(SqliteTx(db), session_id)
        finally:
            db.close()

    def records_on_disk(self, session_id: str) -> list[str]:
        """The kinds of the records that another process would find in this moment, in order."""
        db = _connect(self.path)
        try:
            return [item.kind for item in reads.events(SqliteTx(db), session_id, 0, 1000, True)[0]]
        finally:
            db.close()

    def drain_on_disk(self, name: str) -> str | None:
        """The reason of the stop that a process has on record."""
        db = _connect(self.path)
        try:
            return next(owner.draining for owner in reads.owners(SqliteTx(db)) if owner.name == name)
        finally:
            db.close()

    def logged(self, event: str) -> list[MutableMapping[str, Any]]:
        return [entry for entry in self.logs if entry["event"] == event]

    def rules(self, session_id: str) -> list[str]:
        """The rules that the log names for a session, in order."""
        return [entry["rule"] for entry in self.logs if entry["event"] == "recovery" and entry["session"] == session_id]


STORY_COMMITS = 400


class Story:
    """One conversation, over the death of its process after so many commits."""

    def __init__(self, home: "Home", commits: int) -> None:
        self._home, self._commits, self.died = home, commits, False
        self.life = home.start()
        self.page = self.life.open_page()
        self.life.commits = 0

    def until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            self.life.pass_s(0.0003)
            if not self.died and self.life.commits >= self._commits:
                self.life.die()
                self.life, self.died = self._home.start(), True


def with_a_death_after_each_commit(folder: Path, tell: Callable[[Story, "Home"], None], *, at_least: int) -> None:
    """Tells a story again and again, each time with a death one commit later, until the story is over before it."""
    for commits in range(1, STORY_COMMITS):
        place = folder / str(commits)
        place.mkdir()
        with home(place) as made:
            story = Story(made, commits)
            tell(story, made)
            story.life.stop()
            if not story.died:
                assert commits > at_least
                return
    raise AssertionError("the story never came to its end")


class Life:
    """One process. It moves only inside its methods: between them everything of it stands still, so that it can die at any moment."""

    gateway: Gateway

    def __init__(
        self,
        home: Home,
        name: str,
        settings: Settings,
        *,
        chats: bool,
        jumps: tuple[tuple[float, int], ...],
        offset_s: int,
        beside: "Life | None",
        boot: str,
    ) -> None:
        self.home, self.name, self._settings, self._chats, self._boot = home, name, settings, chats, boot
        self._born: float = home.elapsed if beside is None else beside._born
        self.loop: SimLoop = SimLoop() if beside is None else beside.loop
        self.clock = _Clock(elapsed=lambda: self._born + self.loop.time(), monotonic=self.loop.time, jumps=jumps, offset_s=offset_s)
        # Each time it told of its state: what it was, and how many turns ran.
        self.states: list[tuple[GatewayState, int]] = []
        self.commits = 0
        self.failing: Exception | None = None  # Why nothing can be stored or read.
        self.away_until = 0.0  # Until when another program has the database.
        self.dies: tuple[str, int] | None = None  # Before or after which commit.
        self.steps: list[str] = []  # Those of its stop, as they began.
        self._db = _connect(home.path)
        asked = itertools.count()  # The store answers in the order in which it is asked: no two answers fall into the same moment.
        lines = SimLines(
            self._db,
            loop=self.loop,
            delay=lambda: 0.0005 + 1e-9 * next(asked),
            fails=lambda full: self.failing,
            committed=lambda: self._commit("after"),
            committing=lambda: self._commit("before"),
            away=lambda: self.away_until - self.loop.time(),
        )
        self.store = SqliteStore(lines, now=self.clock.now)
        self.keepers: SimKeepers | None = None

    def _commit(self, moment: str) -> None:
        """Dies there and then if it is to: nothing more of it happens, and whoever moves it hears of a `Crash`."""
        self.commits += moment == "before"
        if self.dies == (moment, self.commits):
            self.die()
            self.loop.die()
            if moment == "before":
                raise Crash

    def begin(self) -> None:
        self.home.alive.add(self.name)
        self.do(self._begin())

    async def _begin(self) -> None:
        owner = await self.store.register_owner(Owner(name=self.name, pid=1, started_at=self.clock.now(), boot_id=self._boot))
        edge = self.home.edge
        platforms: dict[str, Platform] = {NAME: self.home.line(self.home.server, edge)} if self._chats else {}
        self.gateway = Gateway(
            store=self.store,
            host=Host(
                clock=self.clock,
                ids=RandomIds(),
                liveness=_Alive(self.home),
                owner=owner,
                name=self.name,
                secrets=self.home.secrets,
            ),
            edges=Edges(
                agents=Agents(self.home.agent(self), self.home.agents),
                tools=Toolbox(
                    self.home.tools() | {tool.name: tool for tool in self.home.more_tools(self)} | self._background(owner),
                    self.home.tool_servers,
                ),
                titler=self.home.titler,
                platforms=platforms,
                files=self.home.shelf(self.store),
                restarts=self.home.restarts,
                spool=FolderSpool(self.home.path.parent, run=self.home.spool_run),
                keepers=self.keepers,
                agent_processes=self.home.agent_processes(self),
                encode=encode,
                on_step=self.steps.append,
            ),
            settings=self._settings,
        )
        self.gateway.subscribe(lambda state: self.states.append((state, self.gateway.runner.running)))
        await self.gateway.start()
        self.gateway.lifecycle.serve()

    def _background(self, owner: int) -> dict[str, Tool]:
        """The tool for processes that outlive this one, and what keeps them."""
        if self.home.machine is None:
            return {}
        self.keepers = SimKeepers(self.home.machine, elapsed=lambda: self._born + self.loop.time(), faults=Wire(), boot=self._boot)
        tool = Processes(
            records=self.store,
            keepers=self.keepers,
            surroundings=nowhere(),
            clock=self.clock,
            owner=owner,
            most=5,
            most_bytes=1 << 20,
        )
        return {tool.name: tool}

    # how it moves and ends

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        found: T = self.loop.run_until_complete(work)
        self.home.elapsed = self._born + self.loop.time()
        return found

    def pass_s(self, seconds: float) -> None:
        self.do(asyncio.sleep(seconds))

    def until(self, holds: Callable[[], Any], *, within_s: float = PATIENCE_S) -> None:
        """Lets time pass until it holds."""
        until = self.loop.time() + within_s
        while not holds():
            assert self.loop.time() < until, f"not within {within_s} s: told {self.home.server.sent}, asked {self.home.texts}"
            self.pass_s(STEP_S)

    def die(self) -> None:
        """As by kill -9: nothing of it is run any more, no `finally` and no close."""
        self.home.alive.discard(self.name)
        self._db.close()

    def lock_database(self, seconds: float) -> None:
        """Another program has the database for so long."""
        self.away_until = self.loop.time() + seconds

    def spools(self) -> dict[str, Contents]:
        """What lies in the spools of the home in this moment, by their names."""
        spool = FolderSpool(self.home.path.parent)
        return {file.name: spool.read_now(file) for file in spool.look().files}

    def stop(self, reason: str = "shutdown_timeout") -> None:
        """An orderly end, as by a signal."""
        self.do(self.gateway.stop(reason=reason))
        self.die()

    # what people do with it

    def write(self, text: str, *, chat: str = ANN, sender: str = ANN) -> Session:
        """A person writes, and it has arrived. Gives the session the chat is in then."""
        update = self.home.write(text, chat=chat, sender=sender)
        self.arrived(update)
        return self.session(chat)

    def arrived(self, update: Update) -> None:
        """Waits until an update is part of its conversation, or refused."""
        self.until(lambda: update.dedup_key in self.home.server.confirmed and not self.do(self.store.updates(f"{NAME}:{ACCOUNT}", limit=1)))

    def say(self, text: str, *, chat: str = ANN, sender: str = ANN) -> Session:
        """The same, and everything it led to has come to rest."""
        self.write(text, chat=chat, sender=sender)
        return self.rest(chat)

    def cut(self, text: str = "say:half|hang", *, chat: str = ANN, sender: str = ANN) -> Session:
        """A person writes, the agent is at it, and the process dies."""
        session = self.under_way(text, chat=chat, sender=sender)
        self.die()
        return session

    def under_way(self, text: str = "say:half|hang", *, chat: str = ANN, sender: str = ANN) -> Session:
        """A person writes, and the agent is at it until something ends it."""
        asked = self.home.texts.count(text)
        self.write(text, chat=chat, sender=sender)
        self.until(lambda: self.home.texts.count(text) > asked)
        self.pass_s(1.0)
        return self.session(chat)

    def open_page(self) -> str:
        return self.do(self.gateway.create_session()).session_id

    def post(self, session_id: str, text: str, *, client_id: str | None = None) -> str:
        """Words on a page; gives the session they went to."""
        return self.do(self.gateway.post(session_id, text, client_id=client_id)).session_id

    def steer(self, session_id: str, text: str) -> str:
        """Words on a page that are meant for the turn that runs."""
        return self.do(self.gateway.post(session_id, text, client_id=None, mode=Mode.STEER)).session_id

    def resume_all(self) -> None:
        """The operator's word."""

        async def ask() -> None:
            self.gateway.resume_all()

        self.do(ask())

    def rest(self, name: str = ANN) -> Session:
        """Waits until nothing runs, nothing waits in the inbox and nothing is owed there."""

        def at_rest() -> bool:
            session = self.session(name)
            return session.state == "waiting" or (not session.queued and (session.state == "idle" or session.left))

        self.until(lambda: at_rest() and self._settled())
        return self.session(name)

    def _settled(self) -> bool:
        return not self._chats or self.do(self.store.counts()).outbox == 0

    # what is to be seen of it

    def session(self, name: str = ANN) -> Session:
        """By its id, or the one a chat is in now."""
        if name.startswith("s_"):
            return self.do(self.store.session(name))
        found = self.do(self.store.current_session(session_key(name)))
        assert found is not None, f"{name} has no session"
        return found

    def id_of(self, chat: str) -> str:
        """Of the session a chat is in now, also when the process is gone."""
        db = _connect(self.home.path)
        try:
            found = reads.current_session(SqliteTx(db), session_key(chat))
        finally:
            db.close()
        assert found is not None, f"{chat} has no session"
        return found.session_id

    def transcript(self, name: str = ANN) -> Transcript:
        """As of now, read from its beginning: it changes no more, whatever happens next."""

        async def look(session_id: str) -> Transcript:
            store, session = self.gateway.store, await self.gateway.session(session_id)
            found = await store.transcript(session)
            if found.seq != session.seq:
                session = await store.session(session_id)
            while found.seq < session.seq:
                page = await store.events(session_id, after=found.seq, limit=1000)
                found.extend(item for item in page if item.seq <= session.seq)
            return found

        return self.do(look(self.session(name).session_id))

    def view(self, session_id: str) -> SessionView:
        """As a reader gets it."""

        async def look() -> SessionView:
            async with self.gateway.view(session_id) as (session, transcript):
                return conversation.session(session, transcript)

        return self.do(look())

    def turn(self, name: str = ANN) -> Turn:
        return self.transcript(name).turns[-1]

    def outcomes(self, name: str = ANN) -> list[str | None]:
        return [turn.outcome for turn in self.transcript(name).turns]

    def answers(self, name: str = ANN) -> list[str]:
        return [message.text for message in self.transcript(name).messages if message.role == "assistant"]

    def notices(self, name: str = ANN) -> list[str]:
        """What the gateway itself has said in a conversation."""
        return [message.text for message in self.transcript(name).messages if message.role == "notice"]

    def cuts(self, name: str = ANN) -> list[Message]:
        return [message for message in self.transcript(name).messages if message.role == "interruption"]

    def events(self, name: str = ANN) -> list[Logged]:
        return self.do(self.store.events(self.session(name).session_id, after=0, limit=1000))

    def decided(self, rule: str, decision: str | None, name: str = ANN) -> None:
        """The rule is in the log, on the session, on its newest turn, in the count, and in words on the row that tells of the cut."""
        session = self.session(name)
        assert self.home.rules(session.session_id)[-1:] == [rule]
        assert (session.rule, self.turn(name).rule) == (rule, rule)
        assert self.gateway.tally.rules[rule] >= 1
        if decision is not None:
            row = self.cuts(name)[-1]
            assert row.rule == rule
            assert (row.decision or "").startswith(f"{decision}: rule {rule}, "), row.decision


class _Clock(SimClock):
    def __init__(self, *, offset_s: int, **named: Any) -> None:
        super().__init__(**named)
        self._offset_s = offset_s

    def offset_s(self, at: int) -> int:
        return self._offset_s


class _Alive:
    def __init__(self, home: Home) -> None:
        self._home = home

    def alive(self, name: str) -> bool:
        return name in self._home.alive


@contextmanager
def home(folder: Path) -> Iterator[Home]:
    """A home in which nothing has happened yet. Whatever happens there, no task of the gateway may fail."""
    with capture_logs() as logs:
        made = Home(folder, logs)
        try:
            yield made
        finally:
            for loop in dict.fromkeys(life.loop for life in made.lives):
                loop.bury()
    assert not [entry for entry in logs if entry["event"] == "task failed"]


async def eventually(store: Store, holds: Callable[[], Awaitable[Any]]) -> None:
    """In real time: looks again after each commit."""
    news = asyncio.Event()
    forget = store.subscribe(news.set)
    try:
        async with asyncio.timeout(60):
            while not await holds():
                await news.wait()
                news.clear()
    finally:
        forget()
