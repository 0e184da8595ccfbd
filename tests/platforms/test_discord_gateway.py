"""Discord's gateway: sessions are resumed from what is stored, and where Discord has forgotten one, the history makes it good."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import msgspec
import pytest

from holdfast.core.chat_errors import LoggedOut, Unreadable
from holdfast.core.errors import Unavailable
from holdfast.platforms.discord import cursor as cursors
from holdfast.platforms.discord.cursor import MOST_DIRECT, Cursor
from holdfast.platforms.discord.platform import Discord
from holdfast.ports.platforms import Batch
from tests.fakes.discord import DiscordServer
from tests.fakes.discord.server import TOKEN, Refusal
from tests.platforms.discord_rig import QUICKLY
from tests.platforms.rigs import PATIENCE_S, until

pytestmark = pytest.mark.anyio
ANN = "100"


@pytest.fixture
async def server() -> AsyncIterator[DiscordServer]:
    async with DiscordServer() as made:
        made.channel("500")
        made.private(ANN)
        yield made


class Reader:
    """Reads an account as intake does. `cursor`: what is stored."""

    def __init__(self, bot: Discord, cursor: str | None) -> None:
        self.bot, self.cursor = bot, cursor
        self.heard: list[str] = []
        self.batches = bot.receive(cursor)

    async def next(self) -> Batch:
        async with asyncio.timeout(PATIENCE_S):
            batch = await anext(self.batches)
        self.cursor = batch.cursor or self.cursor
        self.heard += [one.text for update in batch.updates for one in self.bot.read(update) if hasattr(one, "text")]
        return batch

    async def begun(self) -> None:
        """What was missed has been read."""
        await self.next()
        while self.at.gap:
            await self.next()

    async def until_heard(self, *texts: str) -> None:
        while self.heard[-len(texts) :] != list(texts):
            await self.next()

    @property
    def at(self) -> Cursor:
        return cursors.read(self.cursor)


@asynccontextmanager
async def reading(server: DiscordServer, cursor: str | None = None, **settings: Any) -> AsyncIterator[Reader]:
    bot = Discord(TOKEN, base_url=server.base_url, pace=QUICKLY, **settings)
    try:
        await bot.connect()
        reader = Reader(bot, cursor)
        async with aclosing(reader.batches):
            yield reader
    finally:
        await bot.aclose()


async def test_a_session_is_resumed_by_the_next_process_and_tells_what_it_missed(server: DiscordServer) -> None:
    """P1: the cursor is the store's; what was received and not stored is told again."""
    async with reading(server) as first:
        await first.begun()
        server.say(server.private(ANN), "one", user=ANN)
        await first.until_heard("one")
        kept = first.cursor
        server.say(server.private(ANN), "two", user=ANN)
        await first.until_heard("two")
    server.say(server.private(ANN), "three", user=ANN)
    async with reading(server, kept) as second:
        await second.until_heard("two", "three")
    assert server.gateway.entered == ["identify", "resume"]
    assert set(server.gateway.closes) == {4000}


async def test_what_a_forgotten_session_would_have_told_is_read_from_the_history(server: DiscordServer) -> None:
    """P1: of private chats, channels, threads, and threads that have gone to rest; in the order of each."""
    async with reading(server) as first:
        await first.begun()
        server.say(server.private(ANN), "before", user=ANN)
        await first.until_heard("before")
    server.gateway.forget()
    server.channel("77000", parent="500")
    server.channel("78000", parent="500")
    for number in range(130):
        server.say(server.private(ANN), f"private {number}", user=ANN)
    for channel in ("500", "77000", "78000"):
        server.say(channel, f"in {channel}", user=ANN)
    server.channels["78000"]["archived"] = True
    async with reading(server, first.cursor) as second:
        await second.begun()
        server.say(server.private(ANN), "live", user=ANN)
        await second.until_heard("live")
        heard = [text for text in second.heard if text != "before"]
        assert [text for text in heard if text.startswith("private")] == [f"private {number}" for number in range(130)]
        assert sorted(text for text in heard if text.startswith("in ")) == ["in 500", "in 77000", "in 78000"]
    assert server.gateway.entered == ["identify", "refused", "identify"]


async def test_a_kill_while_the_history_is_read_loses_nothing_and_costs_no_login(server: DiscordServer) -> None:
    """P1"""
    async with reading(server) as first:
        await first.begun()
        server.say(server.private(ANN), "before", user=ANN)
        await first.until_heard("before")
    server.gateway.forget()
    server.say(server.private(ANN), "missed", user=ANN)
    async with reading(server, first.cursor) as killed:
        await killed.next()
    server.say(server.private(ANN), "later", user=ANN)
    async with reading(server, killed.cursor) as second:
        await second.until_heard("later")
        assert "missed" in second.heard
    assert server.gateway.entered == ["identify", "refused", "identify", "resume"]


async def test_a_channel_that_cannot_be_read_holds_up_nobody_and_is_read_later(server: DiscordServer) -> None:
    """P8, P1: the gap stays open until then, also for the next process."""
    async with reading(server) as first:
        await first.begun()
    server.gateway.forget()
    server.failing.add("500")
    server.say("500", "missed", user=ANN)
    async with reading(server, first.cursor, people=(ANN,)) as second:
        await second.next()
        server.say(server.private(ANN), "live", user=ANN)
        await second.until_heard("live")
    async with reading(server, second.cursor) as third:
        await third.next()
        server.say(server.private(ANN), "still live", user=ANN)
        await third.until_heard("still live")
        assert third.at.gap and "missed" not in second.heard + third.heard
        server.failing.clear()
        await third.until_heard("missed")
        await third.begun()
        assert not third.at.gap


async def test_many_channels_that_cannot_be_read_do_not_hide_the_others(server: DiscordServer) -> None:
    """P8: after a few of them the rest is read later, and before them."""
    async with reading(server) as first:
        await first.begun()
    server.gateway.forget()
    known = tuple(server.private(str(user)) for user in range(300, 330))
    server.failing.update(known[3:])
    server.say(known[0], "missed", user="300")
    async with reading(server, str(msgspec.structs.replace(first.at, direct=known))) as second:
        await second.until_heard("missed")
        assert second.at.gap


async def test_what_cannot_be_read_for_too_long_is_given_up(server: DiscordServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """P8: else every later start would read the history from there again."""
    monkeypatch.setattr("holdfast.platforms.discord.backlog.MOST_TRIED_S", 0.5)
    server.failing.add("500")
    server.say("500", "missed", user=ANN)
    async with reading(server) as reader:
        await reader.begun()
        assert not reader.at.gap and reader.heard == []


@pytest.mark.parametrize("route", ["GET messages", "GET guilds", "GET channels", "GET active", "GET public", "POST channels"])
async def test_a_token_that_is_revoked_while_the_history_is_read_closes_no_gap(server: DiscordServer, route: str) -> None:
    """P1: it is not a channel that cannot be read."""
    async with reading(server) as first:
        await first.begun()
        server.say(server.private(ANN), "before", user=ANN)
        await first.until_heard("before")
    server.gateway.forget()
    server.say("500", "missed", user=ANN)
    server.faults[route].append(Refusal(401, 0, "401: Unauthorized"))
    async with reading(server, first.cursor, people=(ANN,)) as second:
        with pytest.raises(LoggedOut):
            await second.until_heard("never said")
    async with reading(server, second.cursor) as third:
        await third.until_heard("missed")


async def test_an_account_that_is_read_for_the_first_time_begins_with_what_was_just_written(server: DiscordServer) -> None:
    """Whoever set it up has written to it, and waits for an answer."""
    old = server.say(server.private("300"), "long ago", user="300")
    old["id"] = str(int(old["id"]) - (3600 * 1000 << 22))
    server.say(server.private("300"), "hello there", user="300")
    async with reading(server, people=("300",)) as reader:
        await reader.until_heard("hello there")
        assert "long ago" not in reader.heard


async def test_a_long_history_is_read_without_losing_the_connection(server: DiscordServer) -> None:
    async with reading(server) as first:
        await first.begun()
    server.gateway.forget()
    server.gateway.heartbeat_ms = 100
    known = tuple(server.private(str(user)) for user in range(300, 400))
    server.say(known[50], "missed", user="350")
    async with reading(server, str(msgspec.structs.replace(first.at, direct=known))) as second:
        await second.begun()
        assert "missed" in second.heard
    assert server.gateway.beats >= 1 and server.gateway.entered == ["identify", "refused", "identify"]


async def test_somebody_who_is_allowed_by_name_may_write_for_the_first_time_while_nobody_listens(server: DiscordServer) -> None:
    """P1: private chats are listed nowhere."""
    async with reading(server, people=("300",)) as first:
        await first.begun()
    server.gateway.forget()
    server.say(server.private("300"), "hello?", user="300")
    async with reading(server, first.cursor, people=("300",)) as second:
        await second.until_heard("hello?")


@pytest.mark.parametrize("trouble", ["hang up", "reconnect", "silence"])
async def test_a_connection_that_ends_is_resumed_at_once(server: DiscordServer, trouble: str) -> None:
    server.gateway.heartbeat_ms = 200
    async with reading(server) as reader:
        await reader.begun()
        match trouble:
            case "hang up":
                server.gateway.hang_up()
            case "reconnect":
                server.gateway.ask_to_reconnect()
            case "silence":
                server.gateway.silent = True
        server.say("500", "still there?", user=ANN)
        await reader.until_heard("still there?")
        while "resume" not in server.gateway.entered:
            await reader.next()
    assert server.gateway.entered[:2] == ["identify", "resume"]


async def test_heartbeats_are_sent_while_nothing_happens(server: DiscordServer) -> None:
    server.gateway.heartbeat_ms = 200
    async with reading(server) as reader:
        await reader.begun()
        waiting = asyncio.ensure_future(reader.until_heard("hello"))
        await until(lambda: server.gateway.beats >= 3)
        server.say("500", "hello", user=ANN)
        await waiting
    assert server.gateway.entered == ["identify"]


async def test_a_connection_that_ends_again_and_again_is_tried_more_and_more_slowly(server: DiscordServer) -> None:
    waits = []
    async with reading(server) as reader:
        await reader.begun()
        cursor = reader.cursor
    bot = Discord(TOKEN, base_url=server.base_url, pace=QUICKLY)
    for _ in range(4):
        server.gateway.url = "ws://127.0.0.1:9"
        broken = str(msgspec.structs.replace(cursors.read(cursor), url="ws://127.0.0.1:9"))
        with pytest.raises(Unavailable) as caught:
            await anext(bot.receive(broken))
        waits.append(caught.value.retry_after_s)
    await bot.aclose()
    assert waits[0] < 3 and all(later > 1.01 * earlier for earlier, later in zip(waits, waits[2:], strict=False))


@pytest.mark.parametrize(
    ("code", "words"), [(4004, "does not accept the bot's token"), (4014, "Message Content Intent"), (4011, "more servers")]
)
async def test_what_an_operator_has_to_change_is_said(server: DiscordServer, code: int, words: str) -> None:
    async with reading(server) as reader:
        await reader.begun()
        server.gateway.hang_up(code)
        with pytest.raises(LoggedOut, match=words):
            await reader.next()


async def test_the_words_of_all_messages_are_asked_for_only_where_that_is_switched_on(server: DiscordServer) -> None:
    """A session tells what it was begun for, so another one is begun once it is switched on; nothing is lost in between."""
    server.gateway.content = False
    async with reading(server) as first:
        await first.begun()
    server.gateway.content = True
    server.say("500", "in between", user=ANN)
    async with reading(server, first.cursor) as second:
        await second.until_heard("in between")
    assert server.gateway.entered == ["identify", "identify"]


async def test_the_last_logins_of_a_day_are_not_spent(server: DiscordServer) -> None:
    """Beyond the last one Discord takes the token away."""
    server.gateway.remaining = 20
    async with reading(server) as reader:
        with pytest.raises(Unavailable, match="20 more logins"):
            await reader.next()
    assert server.gateway.entered == []


async def test_what_is_written_in_a_channel_that_cannot_be_looked_up_now_waits_in_order_and_holds_up_nobody(
    server: DiscordServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P1, P8: nobody may take a thread for a channel. No cursor hides what waits, and the session goes on."""
    monkeypatch.setattr("holdfast.platforms.discord.unplaced.AGAIN_S", 0.2)
    async with reading(server) as reader:
        await reader.begun()
        server.channel("77000", parent="500")
        server.failing.add("77000")
        stored = reader.cursor
        server.say("77000", "one", user=ANN)
        server.say("77000", "two", user=ANN)
        server.say("500", "elsewhere", user=ANN)
        await reader.until_heard("elsewhere")
        assert reader.cursor == stored and reader.heard == ["elsewhere"]
        server.failing.clear()
        server.say("500", "and on", user=ANN)
        while reader.cursor == stored:
            await reader.next()
        assert [text for text in reader.heard if text in ("one", "two")] == ["one", "two"]
    assert server.gateway.entered == ["identify"]


@pytest.mark.parametrize("ends", ["killed", "hung up on"])
async def test_what_waits_for_its_channel_is_told_again_to_whoever_reads_on(
    server: DiscordServer, ends: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P1"""
    monkeypatch.setattr("holdfast.platforms.discord.unplaced.AGAIN_S", 0.2)
    async with reading(server) as first:
        await first.begun()
        server.channel("77000", parent="500")
        server.failing.add("77000")
        server.say("77000", "in a thread", user=ANN)
        server.say("500", "elsewhere", user=ANN)
        await first.until_heard("elsewhere")
        if ends == "hung up on":
            server.gateway.hang_up()
            server.failing.clear()
            while "in a thread" not in first.heard:
                await first.next()
            return
    server.failing.clear()
    async with reading(server, first.cursor) as second:
        while "in a thread" not in second.heard:
            await second.next()


async def test_what_waits_for_its_channel_for_too_long_is_passed_on_for_an_operator_to_see(
    server: DiscordServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P8: nothing is read by a guess."""
    for name, seconds in (("AGAIN_S", 0.1), ("MOST_TRIED_S", 0.3)):
        monkeypatch.setattr(f"holdfast.platforms.discord.unplaced.{name}", seconds)
    async with reading(server) as reader:
        await reader.begun()
        server.channel("77000", parent="500")
        server.failing.add("77000")
        server.say("77000", "in a thread", user=ANN)
        with pytest.raises(Unreadable, match="where it happened"):
            while True:
                await reader.next()


async def test_what_waits_for_its_channel_is_passed_on_in_time_however_often_the_connection_ends(
    server: DiscordServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P8: a channel that Discord never describes does not hold the cursor back for ever."""
    for name, seconds in (("AGAIN_S", 0.05), ("MOST_TRIED_S", 1.0)):
        monkeypatch.setattr(f"holdfast.platforms.discord.unplaced.{name}", seconds)
    async with reading(server) as reader:
        await reader.begun()
        server.channel("77000", parent="500")
        server.failing.add("77000")
        server.say("77000", "in a thread", user=ANN)
        talk = asyncio.create_task(_talk(server))
        hung_up_at = time.monotonic()
        with pytest.raises(Unreadable, match="where it happened"):
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    await reader.next()
                    if time.monotonic() - hung_up_at > 0.3:
                        server.gateway.hang_up()
                        hung_up_at = time.monotonic()
        talk.cancel()


async def _talk(server: DiscordServer) -> None:
    for number in itertools.count():
        server.say("500", f"{number}", user=ANN)
        await asyncio.sleep(0.05)


async def test_a_channel_that_may_not_be_looked_at_is_a_place_like_any_other(server: DiscordServer) -> None:
    async with reading(server) as reader:
        await reader.begun()
        server.faults["GET 600"].append(Refusal(403, 50001, "Missing Access"))
        server.say(server.channel("600"), "hello", user=ANN)
        await reader.until_heard("hello")


def test_private_chats_are_remembered_in_the_order_in_which_they_spoke() -> None:
    at = Cursor(seen=5)
    for channel in ("a", "b", "a"):
        at = at.saw(7, channel)
    assert (at.direct, at.seen) == (("b", "a"), 7)
    for number in range(MOST_DIRECT):
        at = at.saw(8, str(number))
    assert len(at.direct) == MOST_DIRECT and "a" not in at.direct
    assert cursors.read(str(at)) == at
    assert msgspec.structs.replace(at, gap=True).saw(99).seen == 8  # What comes after a gap must not hide it.


async def test_channels_that_the_bot_may_not_see_do_not_keep_a_gap_open(server: DiscordServer) -> None:
    """P1: a server lists all its channels, also those of which the bot may read nothing."""
    async with reading(server) as first:
        await first.begun()
    server.gateway.forget()
    for channel in ("600", "601", "602", "603", "604", "605", "700"):
        server.channel(channel)
        server.say(channel, "missed", user=ANN)
    server.hidden |= {"600", "601", "602", "603", "604", "605"}
    async with reading(server, first.cursor) as second:
        await second.until_heard("missed")
        await second.begun()
        assert not second.at.gap


async def test_what_is_said_where_the_bot_may_not_look_is_heard(server: DiscordServer) -> None:
    """P1: Discord tells of it all the same."""
    async with reading(server) as first:
        await first.begun()
        server.channel("800")
        server.hidden.add("800")
        server.say("800", "hi <@900>", user=ANN)
        while not first.heard:
            await first.next()
