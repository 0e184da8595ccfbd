"""The other ends of the chat platforms of a soak: people who write in private chats, and what they see there. Telegram, Slack and Discord
are servers at the level of the wire, in this process; Matrix is a real homeserver, where one is installed.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

from tests.fakes.discord import DiscordServer
from tests.fakes.discord import server as discord
from tests.fakes.discord.markdown import seen as seen_in_discord
from tests.fakes.matrix import Homeserver, Person
from tests.fakes.matrix.homeserver import PYTHON as HOMESERVER
from tests.fakes.slack import SlackServer
from tests.fakes.slack import server as slack
from tests.fakes.telegram import TelegramServer
from tests.fakes.telegram import server as telegram
from tests.fakes.telegram.flood import Flood

CHATS = 3
# As Discord limits what is done in a channel.
DISCORD_BUCKET = (5, 5.0)


class End(Protocol):
    """`settings`: what a gateway needs to reach it, as variables. `labels`: it cannot be asked what
    arrived, so a message that may be a repeat says so.
    """

    name: str
    chats: list[str]
    settings: dict[str, str]
    labels: bool

    async def say(self, chat: str, text: str) -> None: ...

    async def shown(self, chat: str) -> list[str]:
        """What the bot wrote there, as it stands now."""


class Telegram:
    name, labels = "telegram", True

    def __init__(self, server: TelegramServer) -> None:
        self._server, self.chats = server, [str(100 + number) for number in range(CHATS)]
        self.settings = {
            "HOLDFAST_TELEGRAM_TOKEN": telegram.TOKEN,
            "HOLDFAST_TELEGRAM_BASE_URL": server.base_url,
            "HOLDFAST_TELEGRAM_ALLOWED_USERS": ",".join(self.chats),
        }

    async def say(self, chat: str, text: str) -> None:
        self._server.say(int(chat), text)

    async def shown(self, chat: str) -> list[str]:
        return self._server.texts(int(chat))


class Slack:
    name, labels = "slack", False

    def __init__(self, server: SlackServer) -> None:
        self._server, self.chats = server, [f"D{100 + number}" for number in range(CHATS)]
        self.settings = {
            "HOLDFAST_SLACK_BOT_TOKEN": slack.BOT_TOKEN,
            "HOLDFAST_SLACK_APP_TOKEN": slack.APP_TOKEN,
            "HOLDFAST_SLACK_BASE_URL": server.base_url,
            "HOLDFAST_SLACK_ALLOWED_USERS": ",".join(f"U{chat}" for chat in self.chats),
        }

    async def say(self, chat: str, text: str) -> None:
        self._server.say(chat, text, user=f"U{chat}")

    async def shown(self, chat: str) -> list[str]:
        return self._server.texts(chat)


class Discord:
    name, labels = "discord", False

    def __init__(self, server: DiscordServer) -> None:
        self._server, self.chats = server, [str(100 + number) for number in range(CHATS)]
        self.settings = {
            "HOLDFAST_DISCORD_TOKEN": discord.TOKEN,
            "HOLDFAST_DISCORD_BASE_URL": server.base_url,
            "HOLDFAST_DISCORD_ALLOWED_USERS": ",".join(self.chats),
        }

    async def say(self, chat: str, text: str) -> None:
        self._server.say(self._server.private(chat), text, user=chat)

    async def shown(self, chat: str) -> list[str]:
        return [seen_in_discord(text) for text in self._server.texts(self._server.private(chat))]


class Matrix:
    """Its people wait for the homeserver in threads of their own."""

    name, labels = "matrix", False

    def __init__(self, homeserver: Homeserver) -> None:
        self._bot = homeserver.register("holdfast")
        self._people = {f"person{number}": homeserver.register(f"person{number}") for number in range(CHATS)}
        self.chats = list(self._people)
        since = self._bot.token_now()
        self._rooms = {name: person.make_room(self._bot, direct=True) for name, person in self._people.items()}
        self._looking = {name: asyncio.Lock() for name in self._people}
        self.settings = {
            "HOLDFAST_MATRIX_HOMESERVER": homeserver.url,
            "HOLDFAST_MATRIX_TOKEN": self._bot.token,
            "HOLDFAST_MATRIX_SINCE": since,
            "HOLDFAST_MATRIX_MESSAGES_PER_S": "100",
            "HOLDFAST_MATRIX_BURST": "1000",
            "HOLDFAST_MATRIX_ALLOWED_USERS": ",".join(person.user for person in self._people.values()),
        }

    async def say(self, chat: str, text: str) -> None:
        await asyncio.to_thread(self._people[chat].say, self._rooms[chat], text)

    async def shown(self, chat: str) -> list[str]:
        async with self._looking[chat]:
            return await asyncio.to_thread(self._look, self._people[chat], self._rooms[chat])

    def _look(self, person: Person, room: str) -> list[str]:
        person.look()
        return [one.text for one in person.shown(room, self._bot.user)]


def missing(names: Collection[str]) -> list[str]:
    """A sentence for each platform that has no part in a soak of these: only what Matrix needs may not be there."""
    return [] if Matrix.name in names else [f"{Matrix.name} has no part in this soak: no homeserver is installed in .venv-homeserver"]


@asynccontextmanager
async def ends() -> AsyncIterator[list[End]]:
    """All of them. Without an installed homeserver there is no Matrix. The homeserver has a folder elsewhere: at the end of a soak
    everything that runs in the soak's own folder is killed, and people look at their chats after that.
    """
    async with TelegramServer(flood=Flood()) as telegram, SlackServer() as slack, DiscordServer() as discord:
        discord.buckets = DISCORD_BUCKET
        found: list[End] = [Telegram(telegram), Slack(slack), Discord(discord)]
        if not HOMESERVER.exists():
            yield found
            return
        with tempfile.TemporaryDirectory(prefix="homeserver-") as folder:
            homeserver = await asyncio.to_thread(Homeserver(Path(folder)).__enter__)
            try:
                yield [*found, await asyncio.to_thread(Matrix, homeserver)]
            finally:
                await asyncio.to_thread(homeserver.__exit__, None, None, None)
