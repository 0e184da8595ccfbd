"""What Telegram's updates mean, what is sent to it, and what its answers mean: with the real SDK part in front of the wire."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from holdfast.core import pacing
from holdfast.core.chat_errors import AnchorGone, Limited, LoggedOut, MessageGone, Muted, PlaceGone, PlaceMoved, ThreadGone, Unreadable
from holdfast.core.errors import NotFound, Refused, Unavailable
from holdfast.core.events import Button
from holdfast.core.inbound import Click, Edit, Message, Move, Presence, RemoteFile, Source
from holdfast.core.markdown import read as markdown
from holdfast.core.pacing import What
from holdfast.core.places import Anchor, Place
from holdfast.core.rich import Rich
from holdfast.platforms.telegram import reading
from holdfast.platforms.telegram.errors import Answer, Unanswered
from holdfast.platforms.telegram.platform import CAPABILITIES, SECRET_HEADER, Telegram
from holdfast.platforms.telegram.reading import Me
from holdfast.platforms.telegram.rendering import MOST_ENTITIES, entities
from holdfast.ports.platforms import OutFile, Outgoing
from tests.fakes.telegram import TelegramServer
from tests.fakes.telegram.flood import Flood
from tests.fakes.telegram.server import TOKEN, Refusal

pytestmark = pytest.mark.anyio
ME = Me(id=4711, username="holdfast_bot")
ANN = {"id": 7, "is_bot": False, "first_name": "Ann", "last_name": "Lee"}
DM, GROUP = {"id": 7, "type": "private"}, {"id": -5, "type": "supergroup", "title": "Team"}
HERE = Place(platform="telegram", chat="7")


def said(text: str = "", *, chat: dict[str, Any] = DM, **fields: Any) -> list[Any]:
    message = {"message_id": 3, "date": 1, "chat": chat, "from": ANN, **({"text": text} if text else {}), **fields}
    return list(reading.read(msgspec.json.encode({"update_id": 1, "message": message}), ME))


def one(*given: Any, **named: Any) -> Message:
    [found] = said(*given, **named)
    assert isinstance(found, Message)
    return found


# what people do


def test_a_message_names_its_sender_chat_and_anchor() -> None:
    assert one("hello") == Message(
        key="7|3", source=Source(chat="7", user="7", name="Ann Lee"), text="hello", anchor=Anchor("3"), addressed=True
    )


@pytest.mark.parametrize(
    ("fields", "thread", "topic"),
    [
        ({"message_thread_id": 9, "is_topic_message": True}, "9", ""),
        ({"message_thread_id": 9}, "", ""),  # A chain of replies in a group without topics.
        ({"direct_messages_topic": {"topic_id": 12}}, "", "12"),
        ({}, "", ""),
    ],
)
def test_topics_are_part_of_the_place(fields: dict[str, Any], thread: str, topic: str) -> None:
    """C11"""
    found = one("hello", chat=GROUP, **fields)
    assert (found.anchor.thread, found.anchor.topic, found.source.thread) == (thread, topic, thread or None)


@pytest.mark.parametrize(
    ("text", "fields", "addressed", "heard"),
    [
        ("hello", {}, False, "hello"),
        ("@holdfast_bot, hello", {"entities": [{"type": "mention", "offset": 0, "length": 13}]}, True, "hello"),
        ("@Holdfast_Bot", {"entities": [{"type": "mention", "offset": 0, "length": 13}]}, True, "@Holdfast_Bot"),
        ("hey @holdfast_bot hi", {"entities": [{"type": "mention", "offset": 4, "length": 13}]}, True, "hey @holdfast_bot hi"),
        ("😀 @holdfast_bot", {"entities": [{"type": "mention", "offset": 3, "length": 13}]}, True, "😀 @holdfast_bot"),
        ("@other hello", {"entities": [{"type": "mention", "offset": 0, "length": 6}]}, False, "@other hello"),
        ("Holdfast hi", {"entities": [{"type": "text_mention", "offset": 0, "length": 8, "user": {"id": 4711}}]}, True, "Holdfast hi"),
        ("/stop", {"entities": [{"type": "bot_command", "offset": 0, "length": 5}]}, True, "/stop"),
        ("/stop@holdfast_bot", {"entities": [{"type": "bot_command", "offset": 0, "length": 18}]}, True, "/stop@holdfast_bot"),
        ("/stop@other", {"entities": [{"type": "bot_command", "offset": 0, "length": 11}]}, False, "/stop@other"),
        ("yes", {"reply_to_message": {"message_id": 2, "from": {"id": 4711}, "text": "sure?"}}, True, "yes"),
        ("yes", {"reply_to_message": {"message_id": 2, "from": {"id": 8}, "text": "sure?"}}, False, "yes"),
    ],
)
def test_in_a_group_a_mention_a_reply_or_a_command_is_addressed_to_us(
    text: str, fields: dict[str, Any], addressed: bool, heard: str
) -> None:
    found = one(text, chat=GROUP, **fields)
    assert (found.addressed, found.text) == (addressed, heard)


@pytest.mark.parametrize(
    ("fields", "quote"),
    [
        ({"reply_to_message": {"message_id": 2, "from": {"id": 8}, "text": "their words"}}, "their words"),
        ({"reply_to_message": {"message_id": 2, "from": {"id": 4711}, "text": "our words"}}, ""),
        ({"reply_to_message": {"message_id": 2, "from": {"id": 4711}, "text": "our words"}, "quote": {"text": "words"}}, "words"),
        ({"reply_to_message": {"message_id": 2, "from": {"id": 8}, "forum_topic_created": {}}}, ""),
    ],
)
def test_a_reply_names_its_message_and_quotes_what_is_not_ours(fields: dict[str, Any], quote: str) -> None:
    found = one("yes", **fields)
    assert (found.reply_to, found.quote) == ("2", quote)


@pytest.mark.parametrize(
    ("fields", "file"),
    [
        (
            {"photo": [{"file_id": "s", "width": 1, "height": 1}, {"file_id": "b", "width": 9, "height": 9, "file_size": 5}]},
            RemoteFile(id="b", name="photo-3.jpg", media_type="image/jpeg", size=5),
        ),
        ({"voice": {"file_id": "v", "mime_type": "audio/ogg"}}, RemoteFile(id="v", name="voice-3.ogg", media_type="audio/ogg")),
        (
            {"document": {"file_id": "d", "file_name": "a.pdf", "mime_type": "application/pdf"}},
            RemoteFile(id="d", name="a.pdf", media_type="application/pdf"),
        ),
        (
            {"animation": {"file_id": "g"}, "document": {"file_id": "g", "file_name": "g.mp4"}},
            RemoteFile(id="g", name="animation-3.mp4", media_type="video/mp4"),
        ),
        ({"sticker": {"file_id": "x"}}, RemoteFile(id="x", name="sticker-3.webp", media_type="image/webp")),
    ],
)
def test_files_are_named_by_what_fetches_them(fields: dict[str, Any], file: RemoteFile) -> None:
    found = one(caption="look", **fields)
    assert (found.files, found.text) == ((file,), "look")


def test_pictures_that_were_sent_together_say_so() -> None:
    assert one(photo=[{"file_id": "s", "width": 1, "height": 1}], media_group_id="g1").album == "g1"


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"location": {"latitude": 1.5, "longitude": 2.5}}, "[Location: 1.5, 2.5]"),
        (
            {"venue": {"title": "Pub", "address": "Road 1", "location": {"latitude": 1.5, "longitude": 2.5}}, "location": {}},
            "[Location: Pub, Road 1: 1.5, 2.5]",
        ),
        ({"contact": {"first_name": "Bob", "phone_number": "+1"}}, "[Contact: Bob, +1]"),
        ({"poll": {"question": "Tea?", "options": [{"text": "yes"}, {"text": "no"}]}}, "[Poll: Tea? (yes, no)]"),
        ({"dice": {"emoji": "🎲", "value": 4}}, "[🎲 4]"),
    ],
)
def test_what_has_no_words_is_told_in_words(fields: dict[str, Any], text: str) -> None:
    assert one(**fields).text == text


@pytest.mark.parametrize("fields", [{"new_chat_members": [ANN]}, {"pinned_message": {}}, {"from": {"id": 4711}, "text": "ours"}])
def test_what_is_not_said_to_us_means_nothing(fields: dict[str, Any]) -> None:
    assert said(chat=GROUP, **fields) == []


def test_a_group_that_becomes_a_supergroup_moves() -> None:
    assert said(chat=GROUP, migrate_to_chat_id=-100) == [Move(was="-5", now="-100")]
    assert said(chat={"id": -100, "type": "supergroup"}, migrate_from_chat_id=-5) == [Move(was="-5", now="-100")]


def update(**fields: Any) -> list[Any]:
    return list(reading.read(msgspec.json.encode({"update_id": 1, **fields}), ME))


def test_edits_clicks_and_being_shut_out_are_told_apart() -> None:
    message = {"message_id": 3, "date": 1, "chat": DM, "from": ANN, "text": "new"}
    source = Source(chat="7", user="7", name="Ann Lee")
    assert update(edited_message={**message, "edit_date": 9}) == [Edit(key="7|3", version="9", source=source, text="new")]
    assert update(callback_query={"id": "c1", "from": ANN, "message": message, "data": "q_1 0"}) == [
        Click(id="c1", source=source, data="q_1 0", message="3")
    ]
    shut = {"chat": DM, "from": ANN, "new_chat_member": {"status": "kicked"}}
    assert update(my_chat_member=shut) == [Presence(chat="7", there=False, why="The bot was blocked.")]
    assert update(my_chat_member={**shut, "new_chat_member": {"status": "member"}}) == [Presence(chat="7", there=True)]
    assert update(something_of_next_year={}) == []


@pytest.mark.parametrize("body", [b"[]", b"{}", b'{"update_id": "x"}', b"nonsense", b'{"update_id": 1, "message": 7}', b"\xff"])
def test_what_is_no_update_raises_and_nothing_else_happens(body: bytes) -> None:
    with pytest.raises((Unreadable, msgspec.DecodeError, TypeError, KeyError, UnicodeDecodeError)):
        reading.read(body, ME)


# what is sent


def test_formatting_is_entities_over_plain_text_in_utf_16_units() -> None:
    found = entities(markdown("😀 **b** `c`\n```py\nx\n```\n[l](https://x.y) [no](javascript:1)"))
    assert found == [
        {"type": "bold", "offset": 3, "length": 1},
        {"type": "code", "offset": 5, "length": 1},
        {"type": "pre", "offset": 7, "length": 1, "language": "py"},
        {"type": "text_link", "offset": 9, "length": 1, "url": "https://x.y"},
    ]
    assert len(entities(markdown("**a** " * 200))) == MOST_ENTITIES


@pytest.fixture
async def server() -> AsyncIterator[TelegramServer]:
    async with TelegramServer() as made:
        yield made


@pytest.fixture
async def bot(server: TelegramServer) -> AsyncIterator[Telegram]:
    made = Telegram(TOKEN, base_url=server.base_url, poll_s=1)
    await made.connect()
    yield made
    await made.aclose()


def out(text: str = "hello", *, place: Place = HERE, **more: Any) -> Outgoing:
    return Outgoing(place=place, key="k", text=Rich(text), **more)


async def test_a_message_goes_to_its_topic_as_a_reply_that_may_have_lost_its_anchor(server: TelegramServer, bot: Telegram) -> None:
    """C11: thread id, direct-messages topic id, reply anchor and permission to fall back, all set."""
    where = Place(platform="telegram", chat="-5", chat_type="group", thread="9", topic="12", reply_to="3")
    await bot.send(out(place=where))
    method, fields = server.asked[-1]
    assert method == "sendMessage"
    assert (fields["chat_id"], fields["message_thread_id"], fields["direct_messages_topic_id"]) == (-5, 9, 12)
    assert fields["reply_parameters"] == {"message_id": 3, "allow_sending_without_reply": True}


async def test_the_general_topic_is_not_named(server: TelegramServer, bot: Telegram) -> None:
    await bot.send(out(place=Place(platform="telegram", chat="-5", chat_type="group", thread="1")))
    assert "message_thread_id" not in server.asked[-1][1]


async def test_buttons_stand_in_a_row_if_they_are_short_and_are_left_out_if_their_data_is_too_long(
    server: TelegramServer, bot: Telegram
) -> None:
    await bot.send(out(buttons=(Button("yes", "q 0"), Button("no", "q 1"))))
    await bot.send(out(buttons=(Button("a long answer that needs room", "q 0"), Button("another long answer", "q 1"))))
    await bot.send(out(buttons=(Button("yes", "q" * 65),)))
    rows = [[[button["text"] for button in row] for row in (shown.markup or {}).get("inline_keyboard", [])] for shown in server.shown]
    assert rows == [[["yes", "no"]], [["a long answer that needs room"], ["another long answer"]], []]


@pytest.mark.parametrize(
    ("media_type", "method"),
    [
        ("image/png", "sendPhoto"),
        ("audio/ogg", "sendVoice"),
        ("audio/mpeg", "sendAudio"),
        ("video/mp4", "sendVideo"),
        ("x/y", "sendDocument"),
    ],
)
async def test_files_are_sent_as_what_they_are(server: TelegramServer, bot: Telegram, media_type: str, method: str) -> None:
    await bot.send(out("", file=OutFile(name="f.bin", media_type=media_type, data=b"bytes")))
    assert server.asked[-1][0] == method
    file = server.shown[-1].file
    assert file is not None and file[1:] == ("f.bin", b"bytes")


async def test_an_edit_of_what_stands_there_already_is_a_success_and_one_of_what_is_gone_is_not(
    server: TelegramServer, bot: Telegram
) -> None:
    receipt = await bot.send(out("one"))
    await bot.edit(receipt.message, out("two"))
    await bot.edit(receipt.message, out("two"))
    assert (server.shown[0].text, server.shown[0].edits) == ("two", ["one"])
    await bot.remove(HERE, receipt.message)
    await bot.remove(HERE, receipt.message)
    with pytest.raises(MessageGone):
        await bot.edit(receipt.message, out("three"))


@pytest.mark.parametrize(
    ("fault", "raised"),
    [
        (Refusal(429, "Too Many Requests: retry after 35", retry_after=35), Limited),
        (Refusal(400, "Bad Request: message thread not found"), ThreadGone),
        (Refusal(400, "Bad Request: TOPIC_CLOSED"), ThreadGone),
        (Refusal(400, "Bad Request: message to be replied not found"), AnchorGone),
        (Refusal(400, "Bad Request: chat not found"), PlaceGone),
        (Refusal(403, "Forbidden: bot was kicked from the supergroup chat"), PlaceGone),
        (Refusal(400, "Bad Request: group chat was upgraded", migrate_to_chat_id=-100), PlaceMoved),
        (Refusal(400, "Bad Request: message is too long"), Refused),
        (Refusal(401, "Unauthorized"), LoggedOut),
        (Refusal(400, "Bad Request: not enough rights to send text messages to the chat"), Muted),
        (Refusal(400, "Bad Request: have no rights to send a message"), Muted),
        (Refusal(400, "Bad Request: CHAT_WRITE_FORBIDDEN"), Muted),
        (Refusal(413, "Request Entity Too Large"), Refused),
        (500, Answer),
        (502, Answer),
        ("cut", Unanswered),
        ("lost", Unanswered),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_each_answer_means_what_has_to_follow(server: TelegramServer, bot: Telegram, fault: Any, raised: type[Exception]) -> None:
    """P4: surely not sent, or nobody knows: PLATFORMS 5."""
    server.faults["sendmessage"].append(fault)
    with pytest.raises(raised) as found:
        await bot.send(out())
    assert type(found.value) is raised
    unknown = not isinstance(found.value, Unavailable | Refused)
    assert unknown == (raised in (Answer, Unanswered))
    if isinstance(found.value, Limited):
        assert found.value.retry_after_s == 35
    if isinstance(found.value, PlaceMoved):
        assert found.value.now == "-100"


@pytest.mark.parametrize("why", ["PHOTO_INVALID_DIMENSIONS", "IMAGE_PROCESS_FAILED", "not enough rights to send photos to the chat"])
async def test_a_picture_that_is_not_taken_as_one_goes_as_a_document(server: TelegramServer, bot: Telegram, why: str) -> None:
    server.faults["sendphoto"].append(Refusal(400, f"Bad Request: {why}"))
    await bot.send(out("", file=OutFile(name="long.png", media_type="image/png", data=b"bytes")))
    [shown] = server.shown
    assert shown.file == ("document", "long.png", b"bytes")


async def test_a_file_that_may_not_be_sent_closes_no_chat(server: TelegramServer, bot: Telegram) -> None:
    """P8: words still arrive there."""
    server.faults["senddocument"].append(Refusal(400, "Bad Request: not enough rights to send documents to the chat"))
    with pytest.raises(Refused) as found:
        await bot.send(out("", file=OutFile(name="f", media_type="x/y", data=b"bytes")))
    assert type(found.value) is Refused


async def test_a_server_that_cannot_be_reached_was_surely_not_told_anything() -> None:
    bot = Telegram(TOKEN, base_url="http://127.0.0.1:9")
    with pytest.raises(Unavailable) as found:
        await bot.send(out())
    assert TOKEN not in str(found.value)
    await bot.aclose()


async def test_no_error_and_no_log_holds_the_token(server: TelegramServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    server.token = "another"
    bot = Telegram(TOKEN, base_url=server.base_url)
    with pytest.raises(LoggedOut) as found:
        await bot.connect()
    chain: BaseException | None = found.value
    while chain is not None:
        assert TOKEN not in str(chain)
        chain = chain.__cause__
    assert TOKEN not in caplog.text
    await bot.aclose()


# how it is connected


async def test_a_server_of_ones_own_may_be_named_with_what_libraries_put_behind_its_address(server: TelegramServer) -> None:
    bot = Telegram(TOKEN, base_url=f"{server.base_url}/bot", poll_s=1)
    try:
        assert (await bot.connect()).name == "@holdfast_bot"
    finally:
        await bot.aclose()


@pytest.mark.parametrize("fault", [404, Refusal(404, "Not Found: method not found")])
async def test_a_server_of_ones_own_may_lack_methods_that_can_be_done_without(server: TelegramServer, fault: Any) -> None:
    for method in ("getwebhookinfo", "sendchataction", "setmycommands", "answercallbackquery"):
        server.faults[method].append(fault)
    bot = Telegram(TOKEN, base_url=server.base_url, poll_s=1)
    try:
        await bot.connect()
        click = Click(id="c1", source=Source(chat="7", user="7"), data="x", message="1")
        for courtesy in (bot.typing(HERE), bot.offer({}), bot.answer_click(click, "Done.")):
            with pytest.raises(Refused) as found:
                await courtesy
            assert not isinstance(found.value, LoggedOut)
        await bot.send(out())
    finally:
        await bot.aclose()


@pytest.mark.parametrize("method", ["sendMessage", "sendDocument", "editMessageText", "deleteMessage"])
async def test_whatever_carries_an_answer_and_is_not_found_waits_for_a_new_token(
    server: TelegramServer, bot: Telegram, method: str
) -> None:
    """P4: an answer that is given up for the token's sake would be lost."""
    server.faults[method.lower()].append(Refusal(404, "Not Found"))
    file = OutFile(name="a.txt", media_type="text/plain", data=b"a")
    request = {
        "sendMessage": lambda: bot.send(out()),
        "sendDocument": lambda: bot.send(out(file=file)),
        "editMessageText": lambda: bot.edit("1", out()),
        "deleteMessage": lambda: bot.remove(HERE, "1"),
    }[method]
    with pytest.raises(LoggedOut):
        await request()


async def test_a_poll_confirms_what_is_stored_and_asks_for_the_same_kinds_each_time(server: TelegramServer, bot: Telegram) -> None:
    """P1: the offset is only ever what was stored."""
    server.say(7, "one")
    server.say(7, "two")
    received = bot.receive(None)
    batch = await anext(received)
    assert (len(batch.updates), batch.cursor, len(server.updates)) == (2, "1002", 2)
    await received.aclose()  # type: ignore[attr-defined]
    again = bot.receive(None)  # Nothing was stored.
    assert len((await anext(again)).updates) == 2
    assert (await anext(again)).updates == () and not server.updates
    await again.aclose()  # type: ignore[attr-defined]
    asked = [fields for method, fields in server.asked if method == "getUpdates"]
    assert {tuple(fields["allowed_updates"]) for fields in asked} == {reading.KINDS}
    assert [fields.get("offset") for fields in asked] == [None, None, 1002]


async def test_ids_of_updates_that_begin_anew_lose_nothing(server: TelegramServer, bot: Telegram) -> None:
    """After a quiet week the server counts from somewhere else."""
    received = bot.receive("99999")
    server.say(7, "hello")
    server.updates[0]["update_id"] = 100_500
    batch = await anext(received)
    assert batch.cursor == "100501"
    server.updates.clear()
    server.deliver(message={"message_id": 9, "date": 1, "chat": DM, "from": ANN, "text": "later"})
    server.updates[0]["update_id"] = 200_000
    assert (await anext(received)).cursor == "200001"
    await received.aclose()  # type: ignore[attr-defined]


async def test_another_program_that_polls_is_told_of_and_the_poll_is_tried_again(server: TelegramServer, bot: Telegram) -> None:
    server.faults["getupdates"].append(Refusal(409, "Conflict: terminated by other getUpdates request"))
    with pytest.raises(Unavailable, match="Another program reads the updates"):
        await anext(bot.receive(None))


async def test_a_webhook_that_was_left_behind_is_removed_without_dropping_what_waits(server: TelegramServer) -> None:
    """P1"""
    server.webhook = {"url": "https://old.example"}
    server.say(7, "hello")
    bot = Telegram(TOKEN, base_url=server.base_url, poll_s=1)
    await bot.connect()
    assert (server.webhook, len(server.updates)) == ({}, 1)
    await bot.aclose()


async def test_a_webhook_is_set_with_a_secret_and_takes_only_requests_that_carry_it(server: TelegramServer) -> None:
    bot = Telegram(TOKEN, base_url=server.base_url, webhook="https://here.example/hooks/telegram")
    await bot.connect()
    assert server.webhook["url"] == "https://here.example/hooks/telegram"
    secret = server.webhook["secret_token"]
    assert bot.hooked({SECRET_HEADER: secret}, b"{}").updates == (b"{}",)
    for headers in ({}, {SECRET_HEADER: "wrong"}):
        with pytest.raises(Refused):
            bot.hooked(headers, b"{}")
    assert (await anext(bot.receive(None))).updates == ()
    await bot.aclose()


async def test_a_webhook_that_another_program_takes_back_is_left_to_it_for_as_long_as_it_is_there(server: TelegramServer) -> None:
    """P8: two programs with an address each would take it from one another for ever."""
    bot = Telegram(TOKEN, base_url=server.base_url, webhook="https://here.example/hooks/telegram", beat_s=0.01)
    for words in ("It is set again", "keeps changing"):
        await bot.connect()
        received = bot.receive(None)
        await anext(received)
        server.webhook = {"url": "https://there.example"}
        with pytest.raises(Unavailable, match=words):
            await anext(received)
    with pytest.raises(Unavailable, match="Stop that program"):
        await bot.connect()
    assert server.webhook["url"] == "https://there.example"
    server.webhook = {}
    await bot.connect()
    assert server.webhook["url"] == "https://here.example/hooks/telegram"
    await bot.aclose()


async def test_without_a_webhook_nobody_can_hand_us_updates(bot: Telegram) -> None:
    with pytest.raises(NotFound):
        bot.hooked({}, b"{}")


async def test_commands_are_offered_clicks_are_answered_and_typing_is_shown(server: TelegramServer, bot: Telegram) -> None:
    from holdfast.core.commands import COMMANDS

    await bot.offer(COMMANDS)
    assert {command["command"] for command in server.menu} == set(COMMANDS)
    await bot.typing(HERE)
    await bot.answer_click(Click(id="c1", source=Source(chat="7", user="7"), data="x", message="1"), "Done. " * 100)
    assert server.typed == 1 and len(server.clicks["c1"]) <= 200


@pytest.mark.parametrize(("chats", "seconds"), [((7,), 30), ((-5,), 180), (tuple(range(1, 80)), 6), (tuple(range(-9, 30)), 70)])
def test_a_bot_that_sends_whenever_its_rates_allow_it_is_never_refused_by_flood_control(chats: tuple[int, ...], seconds: int) -> None:
    """P4: a refusal costs everybody's answers half a minute."""
    clock, rates = [0.0], CAPABILITIES.rates
    flood, account = Flood(now=lambda: clock[0]), pacing.of_account(CAPABILITIES.rates, 0.0)
    buckets = {chat: pacing.of_chat(rates, shared=chat < 0, now=0.0) for chat in chats}
    sent = 0
    while clock[0] < seconds:
        for chat, bucket in buckets.items():
            if pacing.wait_s(rates, account, bucket, What.FINAL, clock[0]) == 0:
                account, buckets[chat] = account.taken(clock[0]), bucket.taken(clock[0])
                assert flood.wait_s(chat) == 0
                sent += 1
        clock[0] += 0.02
    assert sent >= 0.8 * min(rates.account_per_s * seconds, sum(seconds / rates.every_s[chat < 0] for chat in chats))
