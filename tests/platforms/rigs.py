"""What the conformance suite needs of a platform: the far side of its wire, and a gateway on this side.

A rig is a server (a fake at the level of the wire, or a real one) with people at it. `platform` makes a new connection, as another process
would. Chats are named by the tests: "ann" and "bob" are private chats of these people, "team" is a group of both.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from holdfast.blobs import Blobs, Folder
from holdfast.core.capabilities import Capabilities
from holdfast.core.live import Manners
from holdfast.core.restarts import By, Request
from holdfast.core.rights import Policy
from holdfast.gateway.agents import Agents
from holdfast.gateway.edges import Edges
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.host import Host
from holdfast.gateway.settings import Settings
from holdfast.gateway.toolbox import Toolbox
from holdfast.ports.agents import AgentRequest
from holdfast.ports.owners import Owner
from holdfast.ports.platforms import Platform
from holdfast.process.restart_note import RestartNote
from holdfast.process.system import RandomIds, SystemClock
from holdfast.spool import FolderSpool
from holdfast.store import open_store
from holdfast.web.frames import encode
from tests.fakes.platform import UNHURRIED
from tests.gateway.gateways import Deed, Edge, Launch, ScriptAgent

ANN, BOB, TEAM = "ann", "bob", "team"
PATIENCE_S = 60.0


def hurried(can: Capabilities) -> Capabilities:
    """As a platform, without the time it takes to keep to its rates: those have tests of their own."""
    return msgspec.structs.replace(can, rates=msgspec.structs.replace(UNHURRIED, edit_every_s=(0.3, 0.3)))


class Seen(NamedTuple):
    """A message of ours as people see it now. `name`: the platform's. `reply_to`: what `say` gave of the message it replies to."""

    name: str
    text: str
    buttons: tuple[str, ...] = ()
    reply_to: Any = None
    thread: str | None = None
    file: str | None = None


class Door(Protocol):
    """How a gateway gets to a platform. `platform` makes a connection, also in another process. `user`: the id of a person, as
    configurations name it.
    """

    @property
    def name(self) -> str: ...

    @property
    def platform(self) -> Callable[[], Platform]: ...

    def user(self, name: str) -> str: ...


class Rig(Door, Protocol):
    def key(self, chat: str) -> str:
        """The session key of a private chat."""

    async def say(self, text: str, *, chat: str = ANN, who: str = ANN, addressed: bool = True, thread: str | None = None) -> Any:
        """Somebody writes. Gives what the other methods name the message by."""

    async def again(self, said: Any) -> None:
        """The same message is delivered once more."""

    async def edit(self, said: Any, text: str) -> None: ...

    def hold(self) -> bool:
        """What people do is kept back from now on; false if this wire always keeps their order."""

    def release(self) -> None:
        """It is delivered, the last first."""

    async def garbage(self) -> None:
        """Something is delivered that nobody can read."""

    async def press(self, seen: Seen, label: str, *, who: str = ANN, late: bool = False) -> None:
        """`late`: the platform no longer takes an answer to the click."""

    async def attach(self, data: bytes, *, name: str, media_type: str, text: str = "") -> Any:
        """Ann sends a file."""

    async def shown(self, chat: str = ANN) -> list[Seen]:
        """What stands in a chat, in its order."""

    def next_send(self, *faults: str) -> None:
        """What becomes of the next sends: "" (all well), "lost" (the connection breaks before anything is done), "cut" (it is done, and
        the connection breaks), "failed" (the server fails and has done nothing), "limited" (too fast, with a time to wait of a second),
        "slowly" (too fast, without one).
        """

    def close(self, chat: str) -> None:
        """Nothing of ours arrives there any more."""

    def open(self, chat: str) -> None: ...

    async def mute(self, chat: str) -> None:
        """We may read there and not write."""

    async def unmute(self, chat: str) -> None: ...

    def revoke(self) -> None:
        """Our credentials are not accepted any more."""

    def restore(self) -> None: ...

    def is_reply(self, seen: Seen, said: Any) -> bool:
        """It stands where an answer to that message belongs on this platform."""


class Life:
    """A gateway on this side of the wire."""

    def __init__(self, gateway: Gateway, platform: Platform) -> None:
        self.gateway, self.store, self.platform = gateway, gateway.store, platform


class Place:
    """A home, over the lives of several processes. `heard`: every request an agent was given; `asked`: every restart that was asked for.
    `lives`: how many it has had.
    """

    def __init__(self, folder: Path, rig: Door, *, lives: int = 0) -> None:
        self.folder, self.rig = folder, rig
        self.heard: list[AgentRequest] = []
        self.edge = Edge()
        self.done: list[str] = []
        self.asked: list[Request] = []
        self.alive: set[str] = set()
        self._lives = lives

    @property
    def texts(self) -> list[str]:
        return [request.text for request in self.heard]

    @asynccontextmanager
    async def life(self, *, ends: str = "shutdown_timeout", by: By | None = None, **settings: Any) -> AsyncIterator[Life]:
        """A process from its start to its orderly end, for this reason and by the wish of somebody."""
        self._lives += 1
        name, rig, clock = f"life-{self._lives}", self.rig, SystemClock()
        policy = Policy(users=frozenset({rig.user(ANN), rig.user(BOB)}))
        chosen = {"policies": {rig.name: policy}, "manners": Manners(still_working_s=0), **settings}
        async with AsyncExitStack() as closing:
            store = await open_store(self.folder, now=clock.now)
            closing.push_async_callback(store.aclose)
            owner = await store.register_owner(Owner(name=name, pid=1, started_at=clock.now(), boot_id="b"))
            platform = rig.platform()
            gateway = Gateway(
                store=store,
                host=Host(
                    clock=clock,
                    ids=RandomIds(),
                    liveness=_Alive(self.alive),
                    owner=owner,
                    name=name,
                ),
                edges=Edges(
                    agents=Agents(ScriptAgent(self.heard, self.edge)),
                    tools=Toolbox({tool.name: tool(self.done, self.edge) for tool in (Deed, Launch)}),
                    platforms={rig.name: platform},
                    files=Blobs(folder=Folder(self.folder / "blobs"), rows=store, clock=clock, ids=RandomIds()),
                    restarts=RestartNote(self.folder, cuts=True, begin=self.asked.append, now=clock.now),
                    spool=FolderSpool(self.folder),
                    encode=encode,
                ),
                settings=Settings(**chosen),
            )
            self.alive.add(name)
            closing.callback(self.alive.discard, name)
            await gateway.start()
            gateway.lifecycle.serve()
            closing.push_async_callback(gateway.stop, reason=ends, by=by)
            yield Life(gateway, platform)


class _Alive:
    def __init__(self, names: set[str]) -> None:
        self._names = names

    def alive(self, name: str) -> bool:
        return name in self._names


async def until(holds: Callable[[], Any], *, within_s: float = PATIENCE_S) -> None:
    """Looks again and again; a condition may be awaited."""
    async with asyncio.timeout(within_s):
        while True:
            found = holds()
            if asyncio.iscoroutine(found):
                found = await found
            if found:
                return
            await asyncio.sleep(0.02)
