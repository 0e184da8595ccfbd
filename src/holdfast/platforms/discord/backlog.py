"""What was written while no session could have told us: read from the history of every channel that we know of."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec
import structlog

from holdfast.core.errors import Refused
from holdfast.platforms.discord import snowflakes
from holdfast.platforms.discord.channels import Channels
from holdfast.platforms.discord.cursor import OVERLAP_S, Cursor
from holdfast.platforms.discord.events import THREADS, Event, stored
from holdfast.platforms.discord.reads import Reads

PAGE = 100
GUILDS = 200
# Whose private chat is opened to look into it: somebody whom the operator named may have written there for the first time.
MOST_OPENED = 20
# Channels with messages of their own, and those with threads only (forums).
_TEXT, _FORUMS = (0, 2, 5, 13, *THREADS), (15, 16)

log = structlog.get_logger()


class Backlog:
    """`people`: who is allowed by name."""

    def __init__(self, reads: Reads, channels: Channels, people: tuple[str, ...]) -> None:
        self._reads, self._channels, self._people = reads, channels, people

    async def private(self, known: tuple[str, ...]) -> tuple[str, ...]:
        """All private chats that can be known. Raises `Unavailable`, `LoggedOut`."""
        found = list(known)
        for user in self._people[:MOST_OPENED]:
            try:
                found.append((await self._reads.open_private(user))["id"])
            except Refused as error:
                log.info("a private chat cannot be opened", user=user, error=str(error))
        return tuple(dict.fromkeys(found))

    async def since(self, at: Cursor, meanwhile: Callable[[], Awaitable[None]]) -> AsyncIterator[tuple[bytes, ...]]:
        """Page by page, in the order of each channel; who spoke last comes first. `meanwhile` is called often, because it may take long.
        Raises `Unavailable`, `LoggedOut`, and what `meanwhile` raises.
        """
        after = snowflakes.earlier(at.seen, OVERLAP_S)
        for channel in reversed(at.direct):
            await meanwhile()
            async for page in self._channel(channel, after, private=True):
                yield page
        for guild in await self._guilds():
            for channel in await self._written_in(guild, after, meanwhile):
                await meanwhile()
                async for page in self._channel(channel, after, private=False):
                    yield page

    async def _guilds(self) -> list[str]:
        found: list[str] = []
        while True:
            query = {"after": found[-1]} if found else {}
            page = await self._reads.get("/users/@me/guilds", limit=str(GUILDS), **query)
            found.extend(guild["id"] for guild in page)
            if len(page) < GUILDS:
                return found

    async def _written_in(self, guild: str, after: int, meanwhile: Callable[[], Awaitable[None]]) -> list[str]:
        """The channels and threads of a server in which something was written since."""
        try:
            listed = list(await self._reads.get(f"/guilds/{guild}/channels"))
            threads = list((await self._reads.get(f"/guilds/{guild}/threads/active"))["threads"])
        except Refused as error:
            log.warning("a server cannot be read", guild=guild, error=str(error))
            return []
        for channel in listed:
            if channel["type"] in (*_TEXT, *_FORUMS):
                await meanwhile()
                threads.extend(await self._archived(channel["id"]))
        for channel in (*listed, *threads):
            self._channels.learn(channel)
        return [one["id"] for one in (*listed, *threads) if one["type"] in _TEXT and snowflakes.number(one.get("last_message_id")) > after]

    async def _archived(self, channel: str) -> list[dict[str, Any]]:
        """A thread goes to rest an hour after its last word. Those that did so last come first, and a page of them is enough."""
        try:
            return list((await self._reads.get(f"/channels/{channel}/threads/archived/public", limit=str(PAGE)))["threads"])
        except Refused:
            return []  # A channel that we cannot see into, or that has no threads.

    async def _channel(self, channel: str, after: int, *, private: bool) -> AsyncIterator[tuple[bytes, ...]]:
        while True:
            try:
                page = await self._reads.get(f"/channels/{channel}/messages", after=str(after), limit=str(PAGE))
            except Refused as error:
                log.info("the history of a channel cannot be read", channel=channel, error=str(error))
                return
            where = await self._channels.where(channel, private=private)
            ordered = sorted(page, key=lambda message: snowflakes.number(message["id"]))
            if ordered:
                yield tuple(stored(_late(message, where)) for message in ordered)
            if len(page) < PAGE:
                return
            after = snowflakes.number(ordered[-1]["id"])


def _late(message: dict[str, Any], where: Any) -> Event:
    return Event("MESSAGE_CREATE", msgspec.Raw(msgspec.json.encode(message)), where, late=True)
