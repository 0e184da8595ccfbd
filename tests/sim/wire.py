"""The far side of a chat platform in a simulated world, and the wire to it.

A platform here states what the real one states and counts a text as the real one does; what goes over its wire is made up. It remembers
every request that reached it, because what it saw is what a world is judged by.
"""

import random
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

from holdfast.core.capabilities import Capabilities
from holdfast.core.chat_errors import LoggedOut, PlaceGone
from holdfast.core.places import Place
from holdfast.core.rich import Rich
from holdfast.platforms.discord.platform import Discord
from holdfast.platforms.matrix.platform import Matrix
from holdfast.platforms.slack.platform import Slack
from holdfast.platforms.telegram.platform import Telegram
from holdfast.ports.platforms import Account, Batch, Outgoing, Platform, Receipt
from tests.fakes.platform import Chat, ChatServer, Sent, Update
from tests.fakes.tools import Faults

# The server knows a key for longer than it promises.
KNOWN_FOR = 5
# So many of what waits may overtake each other.
OVERTAKE = 3
# As often as this it says that there is nothing, while there is nothing.
SAYS_NOTHING = 20
Spell = tuple[float, float]  # From when until when.


class Nature(NamedTuple):
    """Which platform it is like. `by_cursor`: what is confirmed, a cursor says; otherwise each update is acknowledged by itself, and they
    may overtake each other.
    """

    name: str
    capabilities: Capabilities
    size: Callable[[Rich], int]
    by_cursor: bool = True

    @property
    def settles(self) -> bool:
        """Whether it can be known what arrived."""
        can = self.capabilities
        return bool(can.finds or can.key_lasts_s or can.echoes_s)


@cache
def natures() -> Mapping[str, Nature]:
    """Of the platforms that Holdfast speaks."""
    made: dict[str, tuple[Platform, bool]] = {
        "telegram": (Telegram("1:token"), True),
        "slack": (Slack("xoxb-token", app_token="xapp-token"), False),
        "discord": (Discord("token"), True),
        "matrix": (Matrix("http://localhost", "token"), True),
    }
    return {name: Nature(name, one.capabilities, one.size, by_cursor) for name, (one, by_cursor) in made.items()}


class Troubles(NamedTuple):
    """`gone`: chats that are closed to us for a while. `revoked`: when our credentials are not accepted."""

    gone: Mapping[str, Spell] = {}
    revoked: tuple[Spell, ...] = ()


class Request:
    """One that reached the server. `answered`: the process that made it was told that it was done. `refused`: what it was told instead, at
    `answered_at`.
    """

    def __init__(self, process: str, at: float, what: str, place: Place, key: str) -> None:
        self.process, self.at, self.what, self.place, self.key = process, at, what, place, key
        self.answered, self.answered_at = False, at
        self.refused: Exception | None = None


class FarSide(ChatServer):
    """`now`: the time of the world."""

    def __init__(self, *, nature: Nature | None, troubles: Troubles, now: Callable[[], float], chance: random.Random, **named: Any) -> None:
        if nature is not None:
            named |= {"capabilities": nature.capabilities, "by_cursor": nature.by_cursor}
        super().__init__(**named)
        self.nature, self.troubles, self.chance, self._now = nature, troubles, chance, now
        self.requests: list[Request] = []
        self.garbage: list[bytes] = []
        self._put_at: dict[str, float] = {}

    @property
    def settles(self) -> bool:
        return self.nature.settles if self.nature is not None else self.reconciles

    def throw(self) -> Update:
        """Something comes that nobody can read."""
        body = b"?" * (1 + len(self.garbage))
        self.garbage.append(body)
        return self.deliver(body)

    @contextmanager
    def asked(self, process: str, what: str, place: Place, key: str) -> Iterator[None]:
        """Notes a request, and what the process was told, if anything."""
        made = Request(process, self._now(), what, place, key)
        self.requests.append(made)
        try:
            self.look(None if what == "find" else place)
            yield
            made.answered = True
        except Exception as error:
            made.refused, made.answered_at = error, self._now()
            raise

    def look(self, place: Place | None = None) -> None:
        """What is the matter now: with the account, and with a chat."""
        now = self._now()
        self.gone = {chat for chat, (begin, end) in self.troubles.gone.items() if begin <= now < end}
        if any(begin <= now < end for begin, end in self.troubles.revoked):
            raise LoggedOut("The platform does not accept the token.")
        if place is not None and place.chat in self.gone:
            raise PlaceGone("The chat is gone.")

    def put(self, message: Outgoing) -> Sent:
        sent = super().put(message)
        self._put_at.setdefault(sent.name, self._now())
        return sent

    def known(self, key: str) -> Sent | None:
        lasts_s = KNOWN_FOR * self.capabilities.key_lasts_s
        return next((one for one in self.sent if one.key == key and self._now() - self._put_at[one.name] < lasts_s), None)


class SimChat(Chat):
    """The connection of one process."""

    def __init__(self, server: FarSide, *, faults: Faults, process: str) -> None:
        super().__init__(server, faults=faults)
        self._far, self._process, self._faults = server, process, faults

    async def connect(self) -> Account:
        self._far.look()
        return await super().connect()

    def receive(self, cursor: str | None) -> AsyncIterator[Batch]:
        return _Updates(self._far, self._faults, int(cursor or 0))

    def size(self, text: Rich) -> int:
        return self._far.nature.size(text) if self._far.nature is not None else super().size(text)

    async def send(self, message: Outgoing) -> Receipt:
        with self._far.asked(self._process, "send", message.place, message.key):
            return await super().send(message)

    async def edit(self, target: str, message: Outgoing) -> None:
        with self._far.asked(self._process, "edit", message.place, target):
            await super().edit(target, message)

    async def remove(self, place: Place, target: str) -> None:
        with self._far.asked(self._process, "remove", place, target):
            await super().remove(place, target)

    async def find(self, key: str, place: Place) -> Receipt | None:
        with self._far.asked(self._process, "find", place, key):
            return await super().find(key, place)


class _Updates:
    """What waits is handed over in order, some of it together, or out of order where each is confirmed by itself; and now and then what was
    handed over already comes again.
    """

    def __init__(self, server: FarSide, faults: Faults, cursor: int) -> None:
        self._server, self._faults = server, faults
        self._at = cursor if server.by_cursor else 0
        self._handed: set[int] = set()
        self._idle = 0
        server.confirmed |= {update.dedup_key for update in server.updates[: self._at]}  # The next reader starts there and gets the rest.

    def __aiter__(self) -> "_Updates":
        return self

    async def __anext__(self) -> Batch:
        server = self._server
        while True:
            await self._faults.poll()
            server.look()
            if self._handed and server.repeats():
                return Batch(updates=(server.updates[server.chance.choice(sorted(self._handed))].body,), ticket=())
            taken = self._taken()
            if taken:
                self._handed.update(taken)
                bodies = tuple(server.updates[number].body for number in taken)
                return Batch(updates=bodies, cursor=str(taken[-1] + 1) if server.by_cursor else None, ticket=taken)
            self._idle += 1
            if server.nature is not None and self._idle % SAYS_NOTHING == 1:
                return Batch(ticket=())

    def _taken(self) -> tuple[int, ...]:
        server, numbers = self._server, range(self._at, len(self._server.updates))
        waiting = [number for number in numbers if number not in self._handed]
        if not server.by_cursor:
            waiting = [number for number in waiting if server.updates[number].dedup_key not in server.confirmed]
        if server.nature is None:
            return tuple(waiting[:1])
        if server.by_cursor:
            return tuple(waiting[: server.chance.choice((1, 1, 2, 3))])
        return (server.chance.choice(waiting[:OVERTAKE]),) if waiting else ()
