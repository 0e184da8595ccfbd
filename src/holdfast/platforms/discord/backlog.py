"""What was written while no session could have told us: read from the history of every channel that we know of."""

import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from enum import Enum
from typing import Any, NamedTuple

import msgspec
import structlog

from holdfast.core.chat_errors import Limited, LoggedOut
from holdfast.core.errors import Refused, Unavailable
from holdfast.platforms.discord import snowflakes
from holdfast.platforms.discord.channels import Channels
from holdfast.platforms.discord.cursor import OVERLAP_S, Cursor
from holdfast.platforms.discord.events import THREADS, Event, stored
from holdfast.platforms.discord.reads import Reads

PAGE = 100
GUILDS = 200
# Whose private chat is opened to look into it: somebody whom the operator named may have written there for the first time.
MOST_OPENED = 20
# After so many failures in a row it is Discord that fails, and not a channel.
MOST_FAILURES = 5
# For so long it is tried to read what Discord fails to give.
MOST_TRIED_S = 3600.0
# Channels with messages of their own, and those with threads only (forums).
_TEXT, _FORUMS = (0, 2, 5, 13, *THREADS), (15, 16)

log = structlog.get_logger()


class _Kind(Enum):
    PRIVATE = "private chat"
    SHARED = "channel"
    ARCHIVED = "archived threads of a channel"
    SERVER = "server"
    SERVERS = "list of servers"


class _Part(NamedTuple):
    """What is read as a whole, or not yet. `after`: the id of the newest message that is known."""

    kind: _Kind
    id: str
    after: int


class Backlog:
    """`people`: who is allowed by name."""

    def __init__(self, reads: Reads, channels: Channels, people: tuple[str, ...]) -> None:
        self._reads, self._channels, self._people = reads, channels, people
        self._left: list[_Part] = []
        self._failing_since: float | None = None

    async def private(self, known: tuple[str, ...]) -> tuple[str, ...]:
        """All private chats that can be known. Raises `Unavailable`, `LoggedOut`."""
        found = list(known)
        for user in self._people[:MOST_OPENED]:
            try:
                found.append((await self._reads.open_private(user))["id"])
            except LoggedOut:
                raise
            except Refused as error:
                log.info("a private chat cannot be opened", user=user, error=str(error))
        return tuple(dict.fromkeys(found))

    async def since(self, at: Cursor, meanwhile: Callable[[], Awaitable[None]]) -> AsyncIterator[tuple[bytes, ...]]:
        """Page by page, in the order of each channel; who spoke last comes first. What Discord fails to give is left for `rest`.
        `meanwhile` is called often, because it may take long. Raises `Limited` for the whole account, `LoggedOut`, and what `meanwhile`
        raises.
        """
        after = snowflakes.earlier(at.seen, OVERLAP_S)
        private = [_Part(_Kind.PRIVATE, channel, after) for channel in reversed(at.direct)]
        async for page in self._read((*private, _Part(_Kind.SERVERS, "", after)), meanwhile):
            yield page

    async def rest(self, meanwhile: Callable[[], Awaitable[None]]) -> AsyncIterator[tuple[bytes, ...]]:
        """Tries again what was left."""
        async for page in self._read(self._left, meanwhile):
            yield page

    def settled(self) -> bool:
        """Whether nothing is left to read. What has failed for too long is given up."""
        if self._left:
            now = time.monotonic()
            self._failing_since = now if self._failing_since is None else self._failing_since
            if now - self._failing_since < MOST_TRIED_S:
                return False
            log.error("what was written in some channels is given up", left=[f"{part.kind.value} {part.id}" for part in self._left])
        self._left, self._failing_since = [], None
        return True

    async def _read(self, parts: Iterable[_Part], meanwhile: Callable[[], Awaitable[None]]) -> AsyncIterator[tuple[bytes, ...]]:
        """One part that cannot be read holds up no other (P8)."""
        waiting, failed, in_a_row = deque(parts), list[_Part](), 0
        while waiting and in_a_row < MOST_FAILURES:
            part = waiting.popleft()
            await meanwhile()
            try:
                if part.kind in (_Kind.PRIVATE, _Kind.SHARED):
                    async for page in self._channel(part):
                        yield page
                else:
                    waiting.extendleft(reversed(await self._within(part)))
                in_a_row = 0
            except LoggedOut:
                raise
            except Refused as error:  # We cannot see into it, or it has no threads.
                log.info("the history of a channel cannot be read", part=part.kind.value, id=part.id, error=str(error))
            except Unavailable as error:
                if isinstance(error, Limited) and error.account:
                    raise
                log.warning("the history of a channel is read later", part=part.kind.value, id=part.id, error=str(error))
                failed.append(part)
                in_a_row += 1
        self._left = [*waiting, *failed]

    async def _within(self, part: _Part) -> list[_Part]:
        match part.kind:
            case _Kind.SERVERS:
                return [_Part(_Kind.SERVER, guild, part.after) for guild in await self._guilds()]
            case _Kind.SERVER:
                listed = list(await self._reads.get(f"/guilds/{part.id}/channels"))
                threads = list((await self._reads.get(f"/guilds/{part.id}/threads/active"))["threads"])
                archived = [_Part(_Kind.ARCHIVED, one["id"], part.after) for one in listed if one["type"] in (*_TEXT, *_FORUMS)]
                return [*self._written_in((*listed, *threads), part.after), *archived]
            case _:
                # A thread goes to rest an hour after its last word. Those that did so last come first, and a page of them is enough.
                found = await self._reads.get(f"/channels/{part.id}/threads/archived/public", limit=str(PAGE))
                return self._written_in(found["threads"], part.after)

    def _written_in(self, channels: Iterable[dict[str, Any]], after: int) -> list[_Part]:
        """Those in which something was written since."""
        found: list[_Part] = []
        for one in channels:
            self._channels.learn(one)
            if one["type"] in _TEXT and snowflakes.number(one.get("last_message_id")) > after:
                found.append(_Part(_Kind.SHARED, one["id"], after))
        return found

    async def _guilds(self) -> list[str]:
        found: list[str] = []
        while True:
            query = {"after": found[-1]} if found else {}
            page = await self._reads.get("/users/@me/guilds", limit=str(GUILDS), **query)
            found.extend(guild["id"] for guild in page)
            if len(page) < GUILDS:
                return found

    async def _channel(self, part: _Part) -> AsyncIterator[tuple[bytes, ...]]:
        after = part.after
        while True:
            page = await self._reads.get(f"/channels/{part.id}/messages", after=str(after), limit=str(PAGE))
            where = await self._channels.where(part.id, private=part.kind is _Kind.PRIVATE)
            ordered = sorted(page, key=lambda message: snowflakes.number(message["id"]))
            if ordered:
                yield tuple(stored(_late(message, where)) for message in ordered)
            if len(page) < PAGE:
                return
            after = snowflakes.number(ordered[-1]["id"])


def _late(message: dict[str, Any], where: Any) -> Event:
    return Event("MESSAGE_CREATE", msgspec.Raw(msgspec.json.encode(message)), where, late=True)
