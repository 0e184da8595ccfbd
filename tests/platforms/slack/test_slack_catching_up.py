"""What people wrote on Slack while nobody was there, for longer than Slack repeats it."""

import asyncio
import time
from collections.abc import AsyncIterator

import msgspec
import pytest
from slack_sdk.signature import SignatureVerifier

from holdfast.core.chat_errors import LoggedOut
from holdfast.core.errors import Unavailable
from holdfast.core.inbound import Message
from holdfast.platforms.slack import catching_up
from holdfast.platforms.slack.backlog import Backlog
from holdfast.platforms.slack.history import History
from holdfast.platforms.slack.platform import Slack
from holdfast.platforms.slack.wire import Wire
from holdfast.ports.platforms import Batch
from tests.fakes.slack import SlackServer
from tests.fakes.slack.hooking import SECRET
from tests.fakes.slack.server import BOT_TOKEN, Refusal
from tests.platforms.rigs import PATIENCE_S

pytestmark = pytest.mark.anyio
LONG_AGO, THEN = "1600000000.000000", "1600000001.000000"


def left(*names: str, ago_s: float = 3600.0) -> str:
    """The cursor of a process that ended some time ago, and had heard something in these chats and threads a moment before."""
    at = time.time() - ago_s
    return msgspec.json.encode({"at": at, "left": {name: [f"{at:.6f}", ""] for name in names}}).decode()


def texts(bot: Slack, batch: Batch) -> list[str]:
    return [said.text for update in batch.updates for said in bot.read(update) if isinstance(said, Message)]


async def heard(bot: Slack, received: AsyncIterator[Batch], last: str) -> list[str]:
    """Everything up to a message."""
    found: list[str] = []
    async with asyncio.timeout(PATIENCE_S):
        while last not in found:
            found += texts(bot, await anext(received))
    return found


def is_complete(cursor: str | None) -> bool:
    """Whether everything has been asked for that came before the cursor."""
    return cursor is not None and bool(time.time() - msgspec.json.decode(cursor)["at"] < 600)


async def test_replies_in_a_thread_that_began_during_an_absence_come_after_what_began_it(server: SlackServer, bot: Slack) -> None:
    """P1"""
    root = server.say("C1", "<@UBOT> first", user="U7")
    server.say("C1", "also this", user="U7", thread_ts=root["ts"])
    server.pending.clear()
    received = bot.receive(left("C1"))
    assert await heard(bot, received, "also this") == ["first", "also this"]
    await received.aclose()  # type: ignore[attr-defined]


async def test_what_began_a_thread_long_ago_is_not_said_again_with_its_replies(server: SlackServer, bot: Slack) -> None:
    """P6: Slack shows it with the replies, and nobody may have answered it."""
    server.said.append({"type": "message", "user": "U7", "text": "<@UBOT> long ago", "ts": LONG_AGO, "channel": "C1"})
    server.say("C1", "now", user="U7", thread_ts=LONG_AGO)
    server.pending.clear()
    received = bot.receive(left(f"C1|{LONG_AGO}"))
    assert await heard(bot, received, "now") == ["now"]
    await received.aclose()  # type: ignore[attr-defined]


async def test_replies_that_were_heard_before_the_absence_are_not_asked_for(server: SlackServer, bot: Slack) -> None:
    """P6: the newest message of a chat may be old, and is asked for again each time."""
    said = {"type": "message", "user": "U7", "channel": "C1"}
    server.said += [{**said, "text": "first", "ts": LONG_AGO}, {**said, "text": "heard", "ts": THEN, "thread_ts": LONG_AGO}]
    known = {"at": time.time() - 3600, "left": {"C1": [LONG_AGO, "channel"]}}
    received = bot.receive(msgspec.json.encode(known).decode())
    assert await heard(bot, received, "first") == ["first"]
    while not is_complete((batch := await anext(received)).cursor):
        assert texts(bot, batch) == []
    assert not [method for method, _ in server.asked if method == "conversations.replies"]
    await received.aclose()  # type: ignore[attr-defined]


@pytest.mark.parametrize("thread", [None, LONG_AGO])
async def test_however_much_came_all_of_it_is_asked_for_in_its_order(server: SlackServer, bot: Slack, thread: str | None) -> None:
    """P1: a page at a time, whichever end of it Slack shows first."""
    for number in range(1010):
        server.say("C1", f"{number}", user="U7", **({"thread_ts": thread} if thread else {}))
    server.pending.clear()
    received = bot.receive(left(f"C1|{thread}" if thread else "C1"))
    assert await heard(bot, received, "1009") == [f"{number}" for number in range(1010)]
    await received.aclose()  # type: ignore[attr-defined]


async def test_all_chats_are_listed_however_many_there_are(server: SlackServer) -> None:
    """P1: somebody may have written in any of them."""
    for number in range(450):
        server.say(f"D{number}", "hello", user="U7")
    wire = Wire(BOT_TOKEN, base_url=server.base_url)
    assert [chat["id"] for chat in await History(wire.ask).chats()] == [f"D{number}" for number in range(450)]
    await wire.aclose()


async def test_a_chat_that_cannot_be_read_silences_no_other_and_the_cursor_waits_for_it(server: SlackServer, bot: Slack) -> None:
    """P8, P1"""
    server.unreadable.add("D1")
    for channel in ("D1", "D2"):
        server.say(channel, f"while away in {channel}", user="U7")
    server.pending.clear()
    received = bot.receive(left("D1", "D2"))
    assert await heard(bot, received, "while away in D2") == ["while away in D2"]
    server.say("D3", "now", user="U8")
    cursors: list[str | None] = []
    found: list[str] = []
    while "now" not in found:
        batch = await anext(received)
        cursors.append(batch.cursor)
        found += texts(bot, batch)
    assert not any(map(is_complete, cursors))
    server.unreadable.clear()
    assert await heard(bot, received, "while away in D1") == ["while away in D1"]
    server.say("D3", "later", user="U8")
    assert is_complete((await anext(received)).cursor)
    await received.aclose()  # type: ignore[attr-defined]


@pytest.mark.parametrize("method", ["conversations.history", "users.conversations"])
async def test_with_a_token_that_was_revoked_nothing_counts_as_read(server: SlackServer, bot: Slack, method: str) -> None:
    """P1"""
    server.faults[method].append(Refusal("token_revoked"))
    with pytest.raises(LoggedOut):
        await anext(bot.receive(left("D1")))


@pytest.mark.parametrize("refusal", ["missing_scope", "channel_not_found"])
async def test_a_chat_that_the_app_may_not_read_is_passed_over(server: SlackServer, bot: Slack, refusal: str) -> None:
    """P8"""
    server.say("D2", "while away", user="U7")
    server.pending.clear()
    for method in ("conversations.history", "users.conversations"):
        server.faults[method].append(Refusal(refusal))
    received = bot.receive(left("D1", "D2"))
    await heard(bot, received, "while away")
    await received.aclose()  # type: ignore[attr-defined]


async def test_over_http_what_was_refused_while_nothing_could_be_stored_is_asked_for(server: SlackServer) -> None:
    """P1: Slack repeats what was refused for some minutes only."""
    bot = Slack(BOT_TOKEN, signing_secret=SECRET, base_url=server.base_url, absence_s=0.1)
    await bot.connect()
    received = bot.receive(left("D1"))
    stored = (await anext(received)).cursor
    said = server.say("D1", "refused", user="U7")
    body = msgspec.json.encode({"type": "event_callback", "event": {**said, "channel_type": "im"}})
    stamp = str(int(time.time()))
    signature = SignatureVerifier(SECRET).generate_signature(timestamp=stamp, body=body)
    bot.hooked({"x-slack-request-timestamp": stamp, "x-slack-signature": str(signature)}, body)
    await asyncio.sleep(0.2)  # For so long the store is away.
    with pytest.raises(Unavailable, match="Nothing could be stored"):
        await anext(received)
    again = bot.receive(stored)
    assert await heard(bot, again, "refused") == ["refused"]
    await again.aclose()  # type: ignore[attr-defined]
    await bot.aclose()


async def test_over_http_a_check_of_the_tokens_that_fails_does_not_begin_the_catching_up_again(
    server: SlackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P1, P8: and it is made at its own pace, however often something else is asked for."""
    monkeypatch.setattr(catching_up, "AGAIN_S", 0.05)
    monkeypatch.setattr(catching_up, "MOST_S", 0.05)
    server.unreadable.add("D1")
    server.say("D1", "while away", user="U7")
    bot = Slack(BOT_TOKEN, signing_secret=SECRET, base_url=server.base_url, beat_s=0.5)
    await bot.connect()
    server.asked.clear()
    server.faults["auth.test"].extend([503, 503])
    received = bot.receive(left("D1"))
    while server.faults["auth.test"]:
        await anext(received)
    asked = [method for method, _ in server.asked]
    assert asked.count("conversations.history") > asked.count("auth.test")
    server.unreadable.clear()
    assert await heard(bot, received, "while away") == ["while away"]
    await received.aclose()  # type: ignore[attr-defined]
    await bot.aclose()


def test_a_cursor_that_cannot_be_read_asks_for_a_day_and_not_for_everything() -> None:
    """P6: what was asked long ago is not answered now."""
    now = 2_000_000_000.0
    for cursor in ("nonsense", "[]", '{"at": "x"}'):
        backlog = Backlog(cursor, now)
        assert backlog.was_away and now - 25 * 3600 < float(backlog.heard_until) < now - 23 * 3600


async def test_a_channel_that_the_app_was_removed_from_keeps_no_gap_open(server: SlackServer, bot: Slack) -> None:
    """P1"""
    server.muted.add("C1")
    received = bot.receive(left("C1"))
    complete = False
    async with asyncio.timeout(30):
        while not complete:
            server.say("D3", "still here", user="U8")
            complete = is_complete((await anext(received)).cursor)
