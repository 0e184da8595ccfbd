"""What Slack's events mean, what is sent to it, and what its answers mean: with the real SDK parts in front of the wire."""

from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest
from slack_sdk.signature import SignatureVerifier

from holdfast.core import pacing
from holdfast.core.chat_errors import Limited, LoggedOut, MessageGone, Muted, PlaceGone, ThreadGone, Unreadable, Unsigned
from holdfast.core.errors import NotFound, Refused, Unavailable
from holdfast.core.events import Button
from holdfast.core.inbound import Click, Echo, Edit, Message, Presence, RemoteFile, Removal, Source
from holdfast.core.markdown import read as markdown
from holdfast.core.places import Anchor, Place
from holdfast.core.rich import Rich
from holdfast.platforms.slack import reading, rendering
from holdfast.platforms.slack.errors import Answer, Unanswered, Unscoped
from holdfast.platforms.slack.platform import CAPABILITIES, Slack
from holdfast.platforms.slack.reading import Me
from holdfast.ports.platforms import OutFile, Outgoing
from tests.fakes.slack import SlackServer
from tests.fakes.slack.hooking import SECRET
from tests.fakes.slack.server import APP_TOKEN, BOT_TOKEN, Refusal
from tests.platforms.rigs import until

pytestmark = pytest.mark.anyio
ME = Me(user="UBOT", bot="BBOT")
HERE = Place(platform="slack", chat="D1")


def update(kind: str = "events_api", **payload: Any) -> list[Any]:
    return list(reading.read(msgspec.json.encode({"type": kind, "envelope_id": "e1", "payload": payload}), ME))


def said(text: str = "", *, channel: str = "D1", kind: str = "im", **fields: Any) -> list[Any]:
    event = {"type": "message", "user": "U7", "text": text, "ts": "3.0", "channel": channel, "channel_type": kind, **fields}
    return update(event=event)


def one(*given: Any, **named: Any) -> Message:
    [found] = said(*given, **named)
    assert isinstance(found, Message)
    return found


def in_channel(text: str, **fields: Any) -> Message:
    return one(text, channel="C1", kind="channel", **fields)


# what people do


def test_a_message_names_its_sender_chat_and_anchor() -> None:
    assert one("hello") == Message(key="D1|3.0", source=Source(chat="D1", user="U7"), text="hello", anchor=Anchor("3.0"), addressed=True)


@pytest.mark.parametrize(
    ("channel", "kind", "fields", "chat_type", "thread"),
    [
        ("D1", "im", {}, "dm", None),
        ("D1", "im", {"thread_ts": "2.0"}, "dm", "2.0"),
        ("G1", "mpim", {}, "group", None),
        ("G1", "mpim", {"thread_ts": "2.0"}, "group", "2.0"),
        ("C1", "channel", {}, "channel", "3.0"),
        ("C1", "group", {"thread_ts": "2.0"}, "channel", "2.0"),
        ("D1", None, {}, "dm", None),
        ("C1", None, {}, "channel", "3.0"),
    ],
)
def test_in_a_channel_every_conversation_is_a_thread_and_elsewhere_only_what_people_made_one(
    channel: str, kind: Any, fields: dict[str, Any], chat_type: str, thread: str | None
) -> None:
    """C11"""
    found = one("hello", channel=channel, kind=kind, **fields)
    assert (found.source.chat_type, found.source.thread, found.anchor.thread or None) == (chat_type, thread, thread)


@pytest.mark.parametrize(
    ("text", "fields", "addressed", "heard"),
    [
        ("hello", {}, False, "hello"),
        ("<@UBOT> hello", {}, True, "hello"),
        ("<@UBOT|holdfast>: hello", {}, True, "hello"),
        ("hey <@UBOT> hi", {}, True, "hey @UBOT hi"),
        ("<@UBOT>", {}, True, "@UBOT"),
        ("<@U8> hello", {}, False, "@U8 hello"),
        ("<@UBOT> !stop", {}, True, "/stop"),
        ("!stop", {}, True, "/stop"),
        ("!important", {}, False, "!important"),
        ("yes", {"thread_ts": "2.0", "parent_user_id": "UBOT"}, True, "yes"),
        ("yes", {"thread_ts": "2.0", "parent_user_id": "U8"}, False, "yes"),
    ],
)
def test_in_a_channel_a_mention_a_command_or_an_answer_to_ours_is_addressed_to_us(
    text: str, fields: dict[str, Any], addressed: bool, heard: str
) -> None:
    found = in_channel(text, **fields)
    assert (found.addressed, found.text) == (addressed, heard)
    assert found.reply_to == ("2.0" if fields.get("parent_user_id") == "UBOT" else None)
    assert found.follows == ("thread_ts" in fields)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("a &lt; b &amp;&amp; c &gt; d &amp;lt;", "a < b && c > d &lt;"),
        ("see <https://x.y/z>", "see https://x.y/z"),
        ("see <https://x.y/z|the page>", "see the page (https://x.y/z)"),
        ("see <http://x.y|x.y>", "see http://x.y"),
        ("in <#C1|general> with <@U8|bob> and <!here> and <!subteam^S1|@team>", "in #general with @bob and @here and @team"),
    ],
)
def test_slacks_own_marks_are_read_as_people_read_them(text: str, read: str) -> None:
    assert one(text).text == read


def test_a_mention_that_is_told_as_two_events_has_one_key() -> None:
    """P1: whichever comes first, and whether or not both are subscribed to."""
    event = {"user": "U7", "text": "<@UBOT> hi", "ts": "3.0", "channel": "C1"}
    [mention] = update(event={**event, "type": "app_mention"})
    [message] = update(event={**event, "type": "message", "channel_type": "channel"})
    assert mention == message and mention.key == "C1|3.0"


def test_files_and_shared_messages_come_with_their_message() -> None:
    file = {"id": "F1", "name": "a.pdf", "mimetype": "application/pdf", "size": 5}
    shared = [{"is_share": True, "text": "their &lt;words&gt;"}]
    found = one("look", subtype="file_share", files=[file, {"id": "F2", "mode": "tombstone"}], attachments=shared)
    assert found.files == (RemoteFile(id="F1", name="a.pdf", media_type="application/pdf", size=5),)
    assert found.quote == "their <words>"


def test_our_own_messages_come_back_with_their_key_and_those_of_other_bots_mean_nothing() -> None:
    metadata = {"event_type": "holdfast_reply", "event_payload": {"id": "k1"}}
    assert said("ours", user="UBOT", bot_id="BBOT", metadata=metadata) == [Echo(message="3.0", chat="D1", key="k1")]
    assert said("ours", user="UBOT", bot_id="BBOT") == [Echo(message="3.0", chat="D1")]
    assert said("theirs", bot_id="BOTHER") == []
    assert said("", subtype="channel_join") == [] and said("") == []


def changed(message: dict[str, Any], before: dict[str, Any]) -> list[Any]:
    return said(subtype="message_changed", message=message, previous_message=before)


def test_edits_are_those_of_people_and_previews_of_links_are_none() -> None:
    before = {"user": "U7", "text": "old", "ts": "3.0"}
    edited = {**before, "text": "new", "edited": {"user": "U7", "ts": "9.0"}}
    source = Source(chat="D1", user="U7")
    assert changed(edited, before) == [Edit(key="D1|3.0", version="9.0", source=source, text="new")]
    assert changed({**edited, "attachments": [{}]}, edited) == []
    assert changed({**before, "attachments": [{}]}, before) == []
    assert changed({**edited, "user": "UBOT", "bot_id": "BBOT"}, before) == []


def test_deletions_are_told_also_where_replies_stay() -> None:
    before = {"user": "U7", "text": "old", "ts": "3.0"}
    gone = Removal(key="D1|3.0", source=Source(chat="D1", user="U7"))
    assert said(subtype="message_deleted", deleted_ts="3.0", previous_message=before) == [gone]
    assert changed({"subtype": "tombstone", "ts": "3.0", "user": "USLACKBOT"}, before) == [gone]
    assert said(subtype="message_deleted", deleted_ts="3.0", previous_message={**before, "user": "UBOT"}) == []


CLICK = {
    "type": "block_actions",
    "trigger_id": "t1",
    "user": {"id": "U7", "name": "ann"},
    "channel": {"id": "C1"},
    "message": {"ts": "3.0", "thread_ts": "2.0"},
    "actions": [{"action_id": "holdfast-0", "value": "q_1 0"}],
}


def test_clicks_and_commands_are_the_same_by_socket_and_over_http() -> None:
    click = Click(id="t1", source=Source(chat="C1", user="U7", chat_type="channel", thread="2.0", name="ann"), data="q_1 0", message="3.0")
    assert update("interactive", **CLICK) == [click]
    assert list(reading.read(urlencode({"payload": msgspec.json.encode(CLICK).decode()}).encode(), ME)) == [click]
    form = {
        "command": "/holdfast",
        "text": "stop",
        "channel_id": "D1",
        "channel_name": "directmessage",
        "user_id": "U7",
        "trigger_id": "t2",
    }
    [stop] = update("slash_commands", **form)
    assert stop == Message(key="D1|t2", source=Source(chat="D1", user="U7"), text="/stop")
    assert list(reading.read(urlencode(form).encode(), ME)) == [stop]
    [asked] = update("slash_commands", **{**form, "text": ""})
    [told] = update("slash_commands", **{**form, "text": "what is new?"})
    assert (asked.text, told.text) == ("/help", "what is new?")


def test_being_let_in_and_shut_out_is_told() -> None:
    assert update(event={"type": "member_joined_channel", "user": "UBOT", "channel": "C1"}) == [Presence(chat="C1", there=True)]
    assert update(event={"type": "member_joined_channel", "user": "U7", "channel": "C1"}) == []
    [left] = update(event={"type": "channel_left", "channel": "C1"})
    assert not left.there
    assert update(event={"type": "something_of_next_year"}) == [] and update("next_year") == []


@pytest.mark.parametrize("body", [b"[]", b"{}", b"nonsense", b'{"type": "events_api", "payload": 7}', b"\xff", b"payload=7", b""])
def test_what_is_nothing_of_slacks_raises_and_nothing_else_happens(body: bytes) -> None:
    with pytest.raises((Unreadable, msgspec.DecodeError, TypeError, KeyError, UnicodeDecodeError)):
        reading.read(body, ME)


# what is sent


def test_formatting_is_blocks_whose_words_nobody_reads_for_marks() -> None:
    [block] = rendering.blocks(markdown("a **b** `c`\n```py\nx < *y*\n```\n> said\n\n[l](https://x.y) [no](javascript:1)"))
    assert block["type"] == "rich_text"
    kinds = [element["type"] for element in block["elements"]]
    assert kinds == [
        "rich_text_section",
        "rich_text_preformatted",
        "rich_text_section",
        "rich_text_quote",
        "rich_text_section",
    ] or kinds == [
        "rich_text_section",
        "rich_text_preformatted",
        "rich_text_quote",
        "rich_text_section",
    ]
    pieces = [piece for element in block["elements"] for piece in element["elements"]]
    assert {"type": "text", "text": "b", "style": {"bold": True}} in pieces
    assert {"type": "text", "text": "c", "style": {"code": True}} in pieces
    assert {"type": "text", "text": "x < *y*"} in pieces
    assert {"type": "link", "text": "l", "url": "https://x.y"} in pieces
    assert not any(piece["type"] == "link" and "javascript" in piece["url"] for piece in pieces)


@pytest.mark.parametrize("writing", [1, 2, 5, 20, 100])
def test_edits_of_all_answers_together_stay_below_what_slack_takes(writing: int) -> None:
    """Fifty a minute, for the whole workspace; final texts need some of them."""
    assert 60 * writing / pacing.edit_every_s(CAPABILITIES.rates, shared=True, writing=writing) <= 25


def out(text: str = "hello", *, place: Place = HERE, key: str = "k", **more: Any) -> Outgoing:
    return Outgoing(place=place, key=key, text=Rich(text), **more)


async def test_a_message_goes_to_its_thread_with_its_key(server: SlackServer, bot: Slack) -> None:
    """C11, P4"""
    where = Place(platform="slack", chat="C1", chat_type="channel", thread="2.0", reply_to="3.0")
    receipt = await bot.send(out(place=where))
    [shown] = server.ours("C1")
    assert (shown["ts"], shown["thread_ts"], shown["metadata"]["event_payload"]) == (receipt.message, "2.0", {"id": "k"})
    assert await bot.find("k", where) == receipt
    assert await bot.find("another", where) is None
    assert await bot.find("k", Place(platform="slack", chat="C1", chat_type="channel")) is None


async def test_a_message_is_found_behind_hundreds_of_others(server: SlackServer, bot: Slack) -> None:
    receipt = await bot.send(out())
    for number in range(450):
        server.say("D1", f"message {number}", user="U7")
    assert await bot.find("k", HERE) == receipt


async def test_where_a_message_can_never_be_found_slack_says_so(server: SlackServer, bot: Slack) -> None:
    """P4: a thread of more than a thousand messages, and a chat that the bot is no longer in. A failing server may tell later."""
    thread = server.say("C1", "begin", user="U7")["ts"]
    for number in range(1001):
        server.say("C1", f"message {number}", user="U7", thread_ts=thread)
    with pytest.raises(Refused, match="too long"):
        await bot.find("k", Place(platform="slack", chat="C1", chat_type="channel", thread=thread))
    server.faults["conversations.history"].append(500)
    with pytest.raises(Unavailable):
        await bot.find("k", HERE)
    server.gone.add("D1")
    with pytest.raises(PlaceGone):
        await bot.find("k", HERE)


async def test_blocks_that_slack_refuses_are_sent_as_words_alone(server: SlackServer, bot: Slack) -> None:
    """Whatever the formatting, the words arrive."""
    server.faults["chat.postMessage"].append(Refusal("invalid_blocks"))
    await bot.send(out("a < b & *c*"))
    server.faults["chat.update"].append(Refusal("msg_blocks_too_long"))
    assert server.texts("D1") == ["a < b & *c*"]
    await bot.edit(server.ours("D1")[0]["ts"], out("d"))
    assert server.texts("D1") == ["d"]


async def test_buttons_stand_below_the_words_and_go_with_an_edit(server: SlackServer, bot: Slack) -> None:
    receipt = await bot.send(out(buttons=(Button("yes", "q 0"), Button("no" * 50, "q 1"))))
    [shown] = server.ours("D1")
    assert [button["value"] for button in shown["blocks"][1]["elements"]] == ["q 0", "q 1"]
    await bot.edit(receipt.message, out())
    assert len(shown["blocks"]) == 1


async def test_a_file_is_uploaded_unseen_and_then_named_in_one_message(server: SlackServer, bot: Slack) -> None:
    """P4: only the last request shows anything, and it carries the key."""
    receipt = await bot.send(out("", file=OutFile(name="<f>.bin", media_type="x/y", data=b"bytes")))
    assert server.files["F1"]["data"] == b"bytes"
    assert server.ours("D1")[0]["text"] == "<https://acme.example/files/F1|&lt;f&gt;.bin>"
    assert await bot.find("k", HERE) == receipt
    for method, fault in (("files.getUploadURLExternal", 500), ("files.completeUploadExternal", "cut"), ("files.info", 500)):
        server.faults[method].append(fault)
        with pytest.raises(Unavailable):
            await bot.send(out("", file=OutFile(name="f", media_type="x/y", data=b"bytes")))
    assert len(server.ours("D1")) == 1


async def test_a_file_for_which_the_app_lacks_the_scope_is_refused_and_nothing_else_is(server: SlackServer, bot: Slack) -> None:
    """P8: an account that cannot send files still sends words."""
    server.faults["files.getUploadURLExternal"].append(Refusal("missing_scope", needed="files:write"))
    with pytest.raises(Refused, match="lacks files:write") as found:
        await bot.send(out("", file=OutFile(name="f", media_type="x/y", data=b"bytes")))
    assert not isinstance(found.value, LoggedOut)


async def test_a_file_of_theirs_is_fetched_with_the_token_and_one_that_is_gone_is_refused(server: SlackServer, bot: Slack) -> None:
    server.files["F9"] = {"id": "F9", "data": b"bytes"}
    assert b"".join([data async for data in bot.fetch(RemoteFile(id="F9", name="a"))]) == b"bytes"
    with pytest.raises(Refused):
        [_ async for _ in bot.fetch(RemoteFile(id="F8", name="a"))]


@pytest.mark.parametrize(
    "url", ["https://docs.example/a", "https://slack.com.example/a", "http://files.slack.com/a", "https://notslack.com/a"]
)
async def test_the_token_is_shown_to_nobody_but_slack(server: SlackServer, bot: Slack, url: str) -> None:
    """DESIGN 11: a file of another service is only named in Slack."""
    server.files["F9"] = {"id": "F9", "url_private": url}
    with pytest.raises(Refused, match="file_is_elsewhere"):
        [_ async for _ in bot.fetch(RemoteFile(id="F9", name="a"))]


async def test_an_edit_that_came_too_fast_speaks_for_all_edits_and_a_message_only_for_its_channel(server: SlackServer, bot: Slack) -> None:
    """PLATFORMS 2: limits are per method and workspace; a message's is per channel."""
    receipt = await bot.send(out("one"))
    for method, edits in (("chat.update", True), ("chat.postMessage", False)):
        server.faults[method].append(Refusal("ratelimited", status=429, retry_after=35))
        with pytest.raises(Limited) as found:
            await (bot.edit(receipt.message, out("two")) if edits else bot.send(out("two")))
        assert (found.value.edits, found.value.retry_after_s) == (edits, 35)


async def test_an_edit_of_what_is_gone_says_so_and_removing_it_again_is_a_success(server: SlackServer, bot: Slack) -> None:
    receipt = await bot.send(out("one"))
    await bot.edit(receipt.message, out("two"))
    await bot.edit(receipt.message, out("two"))
    assert server.texts("D1") == ["two"]
    await bot.remove(HERE, receipt.message)
    await bot.remove(HERE, receipt.message)
    with pytest.raises(MessageGone):
        await bot.edit(receipt.message, out("three"))


@pytest.mark.parametrize(
    ("fault", "raised"),
    [
        (Refusal("ratelimited", status=429, retry_after=35), Limited),
        (Refusal("channel_not_found"), PlaceGone),
        (Refusal("not_in_channel"), Muted),
        (Refusal("is_archived"), Muted),
        (Refusal("thread_not_found"), ThreadGone),
        (Refusal("msg_too_long"), Refused),
        (Refusal("token_revoked"), LoggedOut),
        (Refusal("missing_scope", needed="chat:write"), Unscoped),
        (Refusal("internal_error"), Answer),
        (Refusal("fatal_error"), Answer),
        (500, Answer),
        (503, Answer),
        ("cut", Unanswered),
        ("lost", Unanswered),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_each_answer_means_what_has_to_follow(server: SlackServer, bot: Slack, fault: Any, raised: type[Exception]) -> None:
    """P4: surely not sent, or nobody knows: PLATFORMS 5. Nothing is repeated by the SDK."""
    server.faults["chat.postMessage"].append(fault)
    with pytest.raises(raised) as found:
        await bot.send(out())
    assert type(found.value) is raised
    assert isinstance(found.value, Unavailable | Refused) == (raised not in (Answer, Unanswered))
    assert len([method for method, _ in server.asked if method == "chat.postMessage"]) == 1
    if isinstance(found.value, Limited):
        assert found.value.retry_after_s == 35


async def test_a_server_that_cannot_be_reached_was_surely_not_told_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    bot = Slack(BOT_TOKEN, app_token=APP_TOKEN, base_url="http://127.0.0.1:9/api/")
    with pytest.raises(Unavailable) as found:
        await bot.send(out())
    assert BOT_TOKEN not in str(found.value)
    await bot.aclose()


async def test_no_error_and_no_log_holds_a_token(server: SlackServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    server.works = False
    bot = Slack(BOT_TOKEN, app_token=APP_TOKEN, base_url=server.base_url)
    with pytest.raises(LoggedOut) as found:
        await bot.connect()
    with pytest.raises(LoggedOut):
        await anext(bot.receive(None))
    for token in (BOT_TOKEN, APP_TOKEN):
        assert token not in str(found.value) and token not in caplog.text
    await bot.aclose()


# how it is connected


async def test_an_envelope_is_acknowledged_only_when_it_is_stored(server: SlackServer, bot: Slack) -> None:
    """P1: a process that dies before gets it again, under the same key."""
    received = bot.receive(None)
    assert (await anext(received)).updates == ()
    server.say("D1", "one", user="U7")
    batch = await anext(received)
    assert len(batch.updates) == 1 and server.acknowledged == []
    await received.aclose()  # type: ignore[attr-defined]
    again = bot.receive(None)
    second = await anext(again)
    while not second.updates:
        second = await anext(again)
    assert msgspec.json.decode(second.updates[0])["retry_attempt"] == 1
    assert bot.read(second.updates[0]) == bot.read(batch.updates[0])
    await bot.acknowledge(second)
    await until(lambda: len(server.acknowledged) == 1)
    await again.aclose()  # type: ignore[attr-defined]


async def test_the_next_connection_opens_before_the_old_one_ends(server: SlackServer, bot: Slack) -> None:
    """Slack ends connections every few hours. Nothing falls in between, and what the old one still brings is taken."""
    received = bot.receive(None)
    await anext(received)
    server.warn("warning")
    while len(server.sockets) < 2:
        await anext(received)
    for number in range(4):
        server.say("D1", f"{number}", user="U7")
    texts: list[str] = []
    while len(texts) < 4:
        batch = await anext(received)
        texts += [said.text for update in batch.updates for said in bot.read(update) if isinstance(said, Message)]
        await bot.acknowledge(batch)
    assert sorted(texts) == ["0", "1", "2", "3"] and server.opened == 2
    await received.aclose()  # type: ignore[attr-defined]


async def test_a_connection_whose_end_is_announced_twice_is_replaced_once(server: SlackServer, bot: Slack) -> None:
    """Slack allows ten connections to an app."""
    received = bot.receive(None)
    await anext(received)
    old = server.sockets[0]
    server.warn("warning")
    server.warn("refresh_requested")
    while old in server.sockets:
        await anext(received)
    server.say("D1", "hello", user="U7")
    while not (await anext(received)).updates:
        pass
    assert server.opened == 2
    await received.aclose()  # type: ignore[attr-defined]


async def test_a_connection_that_breaks_is_told_of_and_too_many_are_named(server: SlackServer, bot: Slack) -> None:
    received = bot.receive(None)
    await anext(received)
    server.hang_up()
    with pytest.raises(Unavailable, match="broke"):
        while True:
            await anext(received)
    received = bot.receive(None)
    await anext(received)
    server.hang_up("too_many_websockets")
    with pytest.raises(Unavailable, match="Too many programs"):
        while True:
            await anext(received)


async def test_what_came_during_a_long_absence_is_asked_for_in_chats_and_threads(server: SlackServer, bot: Slack) -> None:
    """P1: Slack's own repeats end after some minutes."""
    received = bot.receive(None)
    await anext(received)
    server.say("D1", "before", user="U7")
    root = server.say("C1", "<@UBOT> look", user="U7")
    await bot.send(out(place=Place(platform="slack", chat="C1", chat_type="channel", thread=root["ts"])))
    cursor, heard = None, 0
    while heard < 3:
        batch = await anext(received)
        await bot.acknowledge(batch)
        cursor, heard = batch.cursor or cursor, heard + len(batch.updates)
    await received.aclose()  # type: ignore[attr-defined]
    assert cursor is not None
    server.say("D1", "while away", user="U7")
    server.say("D2", "a new chat", user="U8")
    server.say("C1", "in the thread", user="U7", thread_ts=root["ts"])
    server.pending.clear()  # Nobody tells them again.
    old = msgspec.json.encode({**msgspec.json.decode(cursor), "at": msgspec.json.decode(cursor)["at"] - 3600}).decode()
    texts: list[str] = []
    received = bot.receive(old)
    while not {"while away", "a new chat", "in the thread"} <= set(texts):
        batch = await anext(received)
        texts += [said.text for update in batch.updates for said in bot.read(update) if isinstance(said, Message)]
    assert [text for text in texts if text != "look"].count("in the thread") == 1
    await received.aclose()  # type: ignore[attr-defined]


async def test_what_came_meanwhile_is_asked_for_again_when_slack_wants_a_rest_and_the_cursor_waits_for_it(
    server: SlackServer, bot: Slack
) -> None:
    """P1"""
    server.say("D1", "while away", user="U7")
    server.pending.clear()
    server.faults["conversations.history"].append(Refusal("ratelimited", status=429, retry_after=0))
    received = bot.receive('{"at": 1, "left": {"D1": ["5.0", "im"]}}')
    assert (batch := await anext(received)).updates == () and msgspec.json.decode(str(batch.cursor))["at"] == 1
    assert len((batch := await anext(received)).updates) == 1 and batch.cursor is None
    assert msgspec.json.decode(str((await anext(received)).cursor))["at"] > 1
    await received.aclose()  # type: ignore[attr-defined]


async def test_the_cursor_is_written_when_a_conversation_is_new_and_not_with_every_message(server: SlackServer, bot: Slack) -> None:
    received = bot.receive(None)
    await anext(received)
    written = []
    for channel in ("D1", "D1", "D2", "D1"):
        server.say(channel, "hello", user="U7")
        while not (batch := await anext(received)).updates:
            pass
        written.append(batch.cursor is not None)
    assert written == [True, False, True, False]
    await received.aclose()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "cursor", ["", "nonsense", "{}", '{"at": 1, "left": 7}', '{"at": 1, "left": {"C1": ["1.0", "channel"], "|": ["2", ""]}}']
)
async def test_no_cursor_and_no_event_keeps_the_next_process_from_receiving(server: SlackServer, bot: Slack, cursor: str) -> None:
    """P8"""
    received = bot.receive(cursor)
    server.deliver("events_api", {"type": "event_callback", "event": {"channel": "C1", "ts": "what?", "type": "message"}})
    stored: str | None = cursor
    while not (batch := await anext(received)).ticket:
        stored = batch.cursor or stored
    await received.aclose()  # type: ignore[attr-defined]
    await anext(bot.receive(batch.cursor or stored))


def signed(body: bytes, *, secret: str = SECRET, at: int | None = None) -> dict[str, str]:
    import time

    stamp = str(at or int(time.time()))
    made = SignatureVerifier(secret).generate_signature(timestamp=stamp, body=body)
    assert made is not None
    return {"x-slack-request-timestamp": stamp, "x-slack-signature": made}


async def test_over_http_only_what_slack_signed_in_the_last_minutes_is_taken() -> None:
    bot = Slack(BOT_TOKEN, signing_secret=SECRET)
    body = b'{"type": "event_callback", "event": {}}'
    assert bot.hooked(signed(body), body).updates == (body,)
    assert bot.hooked(signed(b"nonsense"), b"nonsense").updates == (b"nonsense",)
    for headers in (
        {},
        signed(b"other"),
        signed(body, secret="f" * 32),
        signed(body, at=1),
        {**signed(body), "x-slack-request-timestamp": "x"},
    ):
        with pytest.raises(Unsigned):
            bot.hooked(headers, body)
    asked = b'{"type": "url_verification", "challenge": "abc"}'
    answer = bot.hooked(signed(asked), asked)
    assert (answer.updates, answer.reply) == ((), b"abc")


async def test_by_socket_nobody_can_hand_us_updates(bot: Slack) -> None:
    with pytest.raises(NotFound):
        bot.hooked({}, b"{}")


async def test_clicks_are_answered_to_their_person_and_work_is_shown_in_threads(server: SlackServer, bot: Slack) -> None:
    await bot.answer_click(Click(id="t", source=Source(chat="C1", user="U7", thread="2.0"), data="x", message="3.0"), "Done.")
    assert [(told["user"], told["thread_ts"], told["text"]) for told in server.told] == [("U7", "2.0", "Done.")]
    await bot.typing(HERE)
    await bot.typing(Place(platform="slack", chat="C1", thread="2.0"))
    assert len(server.statuses) == 1
