"""The server that our tests talk to is one that Discord's own SDK takes for Discord."""

import asyncio
import warnings
from collections.abc import AsyncIterator
from typing import Any

import pytest
import yarl

from tests.fakes.discord import DiscordServer
from tests.fakes.discord.server import TOKEN
from tests.platforms.rigs import until

with warnings.catch_warnings():  # It loads a module of sounds that newer Pythons have no more.
    warnings.simplefilter("ignore", DeprecationWarning)
    import discord
    from discord.gateway import DiscordWebSocket
    from discord.http import Route

pytestmark = pytest.mark.anyio


class Client(discord.Client):
    def __init__(self) -> None:
        super().__init__(intents=discord.Intents(guilds=True, messages=True, message_content=True))
        self.heard: asyncio.Queue[Any] = asyncio.Queue()

    async def on_message(self, message: discord.Message) -> None:
        if message.author != self.user:
            self.heard.put_nowait(message)


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[DiscordServer]:
    async with DiscordServer() as made:
        monkeypatch.setattr(Route, "BASE", f"{made.base_url}/api/v10")
        monkeypatch.setattr(DiscordWebSocket, "DEFAULT_GATEWAY", yarl.URL(made.gateway.url))
        yield made


async def test_the_sdk_logs_in_hears_sends_edits_reads_back_and_resumes(server: DiscordServer) -> None:
    chat = server.private("100")
    client = Client()
    running = asyncio.ensure_future(client.start(TOKEN))
    try:
        async with asyncio.timeout(60):
            await until(client.is_ready)
            said = server.say(chat, "hello", user="100")
            heard = await client.heard.get()
            assert (heard.content, heard.author.display_name, type(heard.channel)) == ("hello", "Person 100", discord.DMChannel)
            quiet = discord.AllowedMentions.none()
            sent = [await heard.channel.send("hi", nonce="k1", reference=heard, allowed_mentions=quiet) for _ in range(2)]
            assert sent[0].id == sent[1].id and server.texts(chat) == ["hi"]
            await sent[0].edit(content="changed", allowed_mentions=quiet)
            after = discord.Object(int(said["id"]) - 1)
            assert [message.content async for message in heard.channel.history(after=after)] == ["hello", "changed"]
            server.gateway.hang_up()
            await until(lambda: server.gateway.entered == ["identify", "resume"])
            server.say(chat, "still there?", user="100")
            assert (await client.heard.get()).content == "still there?"
    finally:
        await client.close()
        await asyncio.wait({running})
