"""What Discord's events mean, what is sent to it, and what its answers mean."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from holdfast.core.chat_errors import AnchorGone, Limited, LoggedOut, MessageGone, Muted, PlaceGone, ThreadGone
from holdfast.core.commands import Usage
from holdfast.core.errors import NotFound, Refused, Unavailable
from holdfast.core.events import Button
from holdfast.core.inbound import Click, Echo, Edit, Message, Presence, RemoteFile, Removal, Source
from holdfast.core.markdown import read as markdown
from holdfast.core.places import Anchor, Place
from holdfast.core.rich import Rich
from holdfast.core.splitting import split
from holdfast.platforms.discord import reading
from holdfast.platforms.discord.errors import Answer, Unanswered
from holdfast.platforms.discord.events import Event, Interaction, Where, stored
from holdfast.platforms.discord.limits import Limits, route
from holdfast.platforms.discord.platform import Discord
from holdfast.platforms.discord.reading import Me
from holdfast.platforms.discord.rendering import render
from holdfast.ports.platforms import Batch, OutFile, Outgoing
from tests.fakes.discord import DiscordServer
from tests.fakes.discord.markdown import seen
from tests.fakes.discord.server import TOKEN, Refusal

pytestmark = pytest.mark.anyio
ME = Me(id="4711", name="holdfast")
ANN = {"id": "7", "username": "ann", "global_name": "Ann Lee"}
DM, CHANNEL, THREAD = Where("70", private=True), Where("500"), Where("77", parent="500")
OURS = {"id": "4711", "username": "holdfast"}


def event(kind: str, data: Any, where: Where | None = DM, *, late: bool = False) -> list[Any]:
    return list(reading.read(stored(Event(kind, msgspec.Raw(msgspec.json.encode(data)), where, late)), ME))


def said(text: str = "", where: Where = DM, *, late: bool = False, **fields: Any) -> list[Any]:
    message = {"id": "3", "channel_id": where.channel, "author": ANN, "content": text, "type": 0, **fields}
    return event("MESSAGE_CREATE", message, where, late=late)


def one(*given: Any, **named: Any) -> Message:
    [found] = said(*given, **named)
    assert isinstance(found, Message)
    return found


# what people do


def test_a_message_names_its_sender_chat_and_anchor() -> None:
    assert one("hello") == Message(
        key="70|3", source=Source(chat="70", user="7", name="Ann Lee"), text="hello", anchor=Anchor("3"), addressed=True
    )


def test_a_thread_is_part_of_its_channel() -> None:
    """C11: who may talk in a channel may talk in its threads."""
    found = one("hello", THREAD, mentions=[OURS])
    assert found.source == Source(chat="500", user="7", chat_type="group", thread="77", name="Ann Lee")
    assert (found.key, found.anchor) == ("77|3", Anchor("3", "77"))


@pytest.mark.parametrize(
    ("text", "fields", "addressed", "heard"),
    [
        ("hello", {}, False, "hello"),
        ("<@4711>, hello", {"mentions": [OURS]}, True, "hello"),
        ("<@!4711> hello", {"mentions": [OURS]}, True, "hello"),
        ("<@4711>", {"mentions": [OURS]}, True, "@holdfast"),
        ("hey <@4711> hi", {"mentions": [OURS]}, True, "hey @holdfast hi"),
        ("<@8> hello <#500>", {"mentions": [{"id": "8", "username": "bob", "global_name": "Bob"}]}, False, "@Bob hello <#500>"),
        ("@everyone", {"mention_everyone": True}, False, "@everyone"),
        ("yes", {"type": 19, "referenced_message": {"id": "2", "author": OURS, "content": "sure?"}}, True, "yes"),
        ("yes", {"type": 19, "referenced_message": {"id": "2", "author": {"id": "8"}, "content": "sure?"}}, False, "yes"),
    ],
)
def test_in_a_server_a_mention_or_a_reply_is_addressed_to_us(text: str, fields: dict[str, Any], addressed: bool, heard: str) -> None:
    found = one(text, CHANNEL, **fields)
    assert (found.addressed, found.text) == (addressed, heard)


@pytest.mark.parametrize(
    ("fields", "reply_to", "quote"),
    [
        ({"referenced_message": {"id": "2", "author": {"id": "8"}, "content": "their words"}}, "2", "their words"),
        ({"referenced_message": {"id": "2", "author": OURS, "content": "our words"}}, "2", ""),
        ({"referenced_message": None, "message_reference": {"message_id": "2"}}, "2", ""),
    ],
)
def test_a_reply_names_its_message_and_quotes_what_is_not_ours(fields: dict[str, Any], reply_to: str, quote: str) -> None:
    found = one("yes", type=19, **fields)
    assert (found.reply_to, found.quote) == (reply_to, quote)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"sticker_items": [{"id": "1", "name": "wave"}]}, "[Sticker: wave]"),
        ({"poll": {"question": {"text": "Tea?"}, "answers": [{"poll_media": {"text": "yes"}}]}}, "[Poll: Tea? (yes)]"),
        (
            {"message_reference": {"type": 1, "message_id": "2"}, "message_snapshots": [{"message": {"content": "old"}}]},
            "[Forwarded:]\nold",
        ),
    ],
)
def test_what_has_no_words_is_told_in_words(fields: dict[str, Any], text: str) -> None:
    assert one(**fields).text == text


@pytest.mark.parametrize(
    "fields", [{"author": {"id": "8", "bot": True}}, {"webhook_id": "1"}, {"type": 7}, {"content": ""}, {"type": 21, "content": "start"}]
)
def test_what_is_not_said_to_us_means_nothing(fields: dict[str, Any]) -> None:
    assert said(**({"text": "hello"} | fields if "content" not in fields else fields)) == []


def test_our_own_message_is_an_echo_with_its_key() -> None:
    """P4"""
    assert said("hi", author=OURS, nonce="k1") == [Echo(message="3", chat="70", key="k1")]
    assert said("hi", author=OURS, where=THREAD) == [Echo(message="3", chat="500")]


def test_edits_removals_clicks_and_commands_are_told_apart() -> None:
    message = {"id": "3", "channel_id": "70", "author": ANN, "content": "new", "edited_timestamp": "t1"}
    source = Source(chat="70", user="7", name="Ann Lee")
    assert event("MESSAGE_UPDATE", message) == [Edit(key="70|3", version="t1", source=source, text="new")]
    assert event("MESSAGE_UPDATE", {**message, "edited_timestamp": None}) == []  # A preview of a link.
    assert event("MESSAGE_UPDATE", {**message, "author": OURS}) == []
    assert [each.key for each in event("MESSAGE_DELETE", {"id": "3", "channel_id": "70"})] == ["70|3"]
    assert event("MESSAGE_DELETE_BULK", {"ids": ["3", "4"]}, CHANNEL) == [
        Removal(key=key, source=Source(chat="500", user="")) for key in ("500|3", "500|4")
    ]
    button = {"id": "9", "type": 3, "token": "t", "data": {"custom_id": "q1 0"}, "message": {"id": "5"}, "user": ANN}
    assert event("INTERACTION_CREATE", button) == [Click(id="9", source=source, data="q1 0", message="5")]
    command = {"id": "9", "type": 2, "token": "t", "data": {"name": "queue", "options": [{"value": "more"}]}, "member": {"user": ANN}}
    [chosen] = event("INTERACTION_CREATE", command, THREAD)
    assert (chosen.text, chosen.key, chosen.anchor, chosen.addressed) == ("/queue more", "77|9", Anchor("", "77"), True)
    assert event("CHANNEL_DELETE", {"id": "500"}, CHANNEL) == [Presence(chat="500", there=False, why="The channel was deleted.")]
    assert event("TYPING_START", {}) == []


def test_a_message_from_the_history_that_was_changed_is_also_its_edit() -> None:
    """P1: whoever knows the first words is told the last ones."""
    found = said("new", late=True, edited_timestamp="t1")
    assert [type(each) for each in found] == [Message, Edit] and found[1].text == "new"
    assert len(said("new", edited_timestamp="t1")) == 1


@pytest.mark.parametrize("body", [b"nonsense", b"{}", b'{"t":"MESSAGE_CREATE","d":{}}', b'{"t":"MESSAGE_CREATE","d":3,"where":["7",true]}'])
def test_what_is_no_event_raises_and_nothing_else_happens(body: bytes) -> None:
    with pytest.raises(Exception):  # noqa: B017
        reading.read(body, ME)


# how text is written

MARKED = [
    "plain",
    "**bold** and *italic* and ~~gone~~",
    "**bold *both* bold** and ***all***",
    "*a***b** and **a**~~b~~**c**",
    "in*tra*word and snake_case_name and 2*3*4",
    "`code` and ``co`de`` and ```` ``` ````",
    "```python\nprint('*hi*')\n```\nafter",
    "> quoted *words*\n> more\n\nafter",
    "# heading\n- one\n- two\n1. three",
    "[words](https://example.org/a_b_(c)) and https://example.org/x_y_z*q",
    "\\# no heading\n\\> no quote\n\\-# small",
    "<@123> <#5> @everyone ||secret|| \\* \\_ [x](y) <https://a.b>",
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "**trailing ** and ** leading** and **  **",
    "¯\\_(ツ)_/¯ 😀",
]


def lines(text: str) -> list[str]:
    """A block of code has lines of its own, whatever stands around it."""
    return [line.rstrip() for line in text.split("\n") if line.strip()]


@pytest.mark.parametrize("text", MARKED)
def test_what_people_see_is_the_text_and_no_mark(text: str) -> None:
    """Discord's own rules, applied to what we send, give the plain text back."""
    rich = markdown(text)
    assert lines(seen(render(rich)).replace("\u200b", "")) == lines(rich.text)


def test_formatting_is_discords_own() -> None:
    assert render(markdown("**b** *i* ~~s~~ `c`")) == "**b** _i_ ~~s~~ `c`"
    assert render(markdown("```py\nx = 1\n```")) == "```py\nx = 1\n```"
    assert render(markdown("> a\n> b")) == "> a\n> b"
    assert render(markdown("[x](https://a.b/c)")) == "[x](<https://a.b/c>)"
    assert render(Rich("a*b <@1> ||x|| https://a.b/c_d_e")) == r"a\*b \<@1> \|\|x\|\| https://a.b/c_d_e"


def test_a_block_of_code_stays_whole_and_every_part_fits() -> None:
    bot = Discord(TOKEN)
    limit = bot.capabilities.text_limit
    code = "\n".join(f"line_{number} = '*{number}*'" for number in range(80))
    text = markdown("word_ " * 250 + f"\n\n```python\n{code}\n```\n" + "😀*" * 1500)
    parts = [render(part) for part in split(text, limit, bot.size)]
    assert all(len(part.encode("utf-16-le")) // 2 <= limit for part in parts)
    assert sum(f"```python\n{code}\n```" in part for part in parts) == 1


# what we say


@pytest.fixture
async def server() -> AsyncIterator[DiscordServer]:
    async with DiscordServer() as made:
        made.channel("500")
        made.channel("77", parent="500")
        yield made


@pytest.fixture
async def bot(server: DiscordServer) -> AsyncIterator[Discord]:
    made = Discord(TOKEN, base_url=f"{server.base_url}/api/v10")  # As libraries name it.
    await made.connect()
    yield made
    await made.aclose()


def outgoing(text: str = "hello", *, thread: str | None = None, key: str = "k1", **fields: Any) -> Outgoing:
    place = Place(platform="discord", chat="500", chat_type="group", thread=thread, reply_to=fields.pop("reply_to", None))
    return Outgoing(place=place, key=key, text=Rich(text), **fields)


async def test_whose_token_it_is_is_told_by_its_name(bot: Discord) -> None:
    account = await bot.connect()
    assert (account.id, account.name) == ("4711", "@holdfast#0815")


async def test_a_message_goes_to_its_thread_as_a_reply_and_calls_nobody(server: DiscordServer, bot: Discord) -> None:
    await bot.send(outgoing("hi @everyone", thread="77", reply_to="123"))
    [shown] = server.shown("77")
    assert shown["message_reference"] == {"message_id": "123", "fail_if_not_exists": False}
    body = server.asked[-1][2]
    assert body["allowed_mentions"] == {"parse": [], "replied_user": False} and body["enforce_nonce"] is True


async def test_the_same_key_is_one_message(server: DiscordServer, bot: Discord) -> None:
    """P4"""
    first = await bot.send(outgoing())
    assert await bot.send(outgoing()) == first
    assert await bot.send(outgoing(key="k2")) != first
    assert server.texts("500") == ["hello", "hello"]


async def test_a_key_whose_message_was_removed_sends_nothing_more(server: DiscordServer, bot: Discord) -> None:
    sent = await bot.send(outgoing())
    await bot.remove(outgoing().place, sent.message)
    with pytest.raises(Refused):
        await bot.send(outgoing())
    assert server.texts("500") == []


async def test_buttons_stand_in_rows_of_five_and_are_left_out_if_their_data_is_too_long(server: DiscordServer, bot: Discord) -> None:
    await bot.send(outgoing(buttons=tuple(Button(f"b{number}", f"q {number}") for number in range(7))))
    await bot.send(outgoing(key="k2", buttons=(Button("x", "q" * 101),)))
    first, second = server.shown("500")
    assert [len(row["components"]) for row in first["components"]] == [5, 2] and second["components"] == []


async def test_a_file_goes_with_its_words(server: DiscordServer, bot: Discord) -> None:
    await bot.send(outgoing("look", file=OutFile(name="a b.txt", media_type="text/plain", data=b"some bytes")))
    [shown] = server.shown("500")
    assert shown["attachments"][0]["filename"] == "a b.txt" and server.files["a b.txt"] == b"some bytes"


async def test_an_edit_changes_the_message_and_one_of_what_is_gone_says_so(server: DiscordServer, bot: Discord) -> None:
    sent = await bot.send(outgoing(buttons=(Button("x", "q 0"),)))
    for _ in range(2):
        await bot.edit(sent.message, outgoing("changed"))
    [shown] = server.shown("500")
    assert (shown["content"], shown["components"]) == ("changed", [])
    await bot.remove(outgoing().place, sent.message)
    await bot.remove(outgoing().place, sent.message)
    with pytest.raises(MessageGone):
        await bot.edit(sent.message, outgoing("again"))


async def test_a_thread_at_rest_wakes_up_by_a_new_message(server: DiscordServer, bot: Discord) -> None:
    sent = await bot.send(outgoing(thread="77"))
    server.channels["77"]["archived"] = True
    with pytest.raises(MessageGone):
        await bot.edit(sent.message, outgoing("changed", thread="77"))
    await bot.send(outgoing(thread="77", key="k2"))
    assert "archived" not in server.channels["77"]


@pytest.mark.parametrize(
    ("fault", "raised"),
    [
        (Refusal(404, 10003, "Unknown Channel"), PlaceGone),
        (Refusal(403, 50001, "Missing Access"), Muted),
        (Refusal(403, 50013, "Missing Permissions"), Muted),
        (Refusal(403, 50007, "Cannot send messages to this user"), PlaceGone),
        (Refusal(400, 50035, "Invalid Form Body", errors={"message_reference": {}}), AnchorGone),
        (Refusal(400, 50035, "Invalid Form Body", errors={"content": {}}), Refused),
        (Refusal(403, 200000, "Blocked by AutoMod"), Refused),
        (Refusal(413, 40005, "Request entity too large"), Refused),
        (Refusal(429, 30046, "Too many edits", retry_after=2.5), Limited),
        (Refusal(401, 0, "401: Unauthorized"), LoggedOut),
        (403, Unavailable),  # Something in front of Discord: nothing is given up for that.
        (502, Answer),
        ("lost", Unanswered),
        ("cut", Unanswered),
    ],
)
async def test_each_answer_means_what_has_to_follow(server: DiscordServer, bot: Discord, fault: Any, raised: type[Exception]) -> None:
    """P4"""
    server.faults["POST messages"].append(fault)
    with pytest.raises(raised) as caught:
        await bot.send(outgoing())
    assert type(caught.value) is raised
    assert TOKEN not in str(caught.value)
    if isinstance(caught.value, Limited):
        assert caught.value.retry_after_s == 2.5


async def test_a_thread_that_is_gone_leaves_its_channel(server: DiscordServer, bot: Discord) -> None:
    with pytest.raises(ThreadGone):
        await bot.send(outgoing(thread="99999"))


async def test_a_server_that_cannot_be_reached_was_surely_not_told_anything() -> None:
    bot = Discord(TOKEN, base_url="http://127.0.0.1:9")
    with pytest.raises(Unavailable):
        await bot.send(outgoing())
    await bot.aclose()


async def test_what_would_surely_be_refused_is_not_asked_for(server: DiscordServer, bot: Discord) -> None:
    """Refused requests are counted: too many lock an address out."""
    server.buckets = (2, 30.0)
    for number in range(2):
        await bot.send(outgoing(key=f"k{number}"))
    with pytest.raises(Limited) as caught:
        await bot.send(outgoing(key="k3"))
    assert 0 < caught.value.retry_after_s <= 30 and not caught.value.account and server.limited == 0
    await bot.send(outgoing(key="k4", thread="77"))  # Another channel has a limit of its own.


async def test_a_limit_of_the_account_holds_for_everything(server: DiscordServer, bot: Discord) -> None:
    server.faults["POST messages"].append(Refusal(429, 0, "You are being rate limited.", retry_after=20.0, **{"global": True}))
    for thread in (None, "77"):
        with pytest.raises(Limited) as caught:
            await bot.send(outgoing(thread=thread))
        assert caught.value.account and 19 < caught.value.retry_after_s <= 20


def test_requests_of_one_route_share_a_limit() -> None:
    assert route("PATCH", "/channels/500000/messages/123456") == route("PATCH", "/channels/500000/messages/654321")
    assert route("PATCH", "/channels/500000/messages/123456") != route("PATCH", "/channels/600000/messages/123456")
    limits = Limits()
    for where in ("POST /channels/1/messages", "PUT /channels/1/x"):
        limits.heard(where, {"X-RateLimit-Bucket": "b", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset-After": "5"}, 0.0)
        limits.check(where, 6.0)
    with pytest.raises(Limited):
        limits.check("POST /channels/1/messages", 1.0)
    limits.check("POST /channels/2/messages", 1.0)


# files, clicks and the menu


async def read_all(bot: Discord, file: RemoteFile) -> bytes:
    return b"".join([chunk async for chunk in bot.fetch(file)])


async def test_a_file_whose_address_is_too_old_gets_a_new_one(server: DiscordServer, bot: Discord) -> None:
    server.files["a.txt"] = b"some bytes"
    url = f"{server.base_url}/files/a.txt"
    message = server.say("500", "look", user="7", attachments=[{"id": "1", "filename": "a.txt", "url": url}])
    [file] = one(
        "look", CHANNEL, id=message["id"], attachments=[{"id": "1", "filename": "a.txt", "url": url, "content_type": "text/plain"}]
    ).files
    assert await read_all(bot, file) == b"some bytes"
    server.expired.add("a.txt")
    assert await read_all(bot, file) == b"some bytes"
    server.history["500"].clear()
    with pytest.raises(Refused):
        await read_all(bot, file)


async def test_a_click_is_acknowledged_once_it_is_stored_and_answered_to_the_one_who_pressed(server: DiscordServer, bot: Discord) -> None:
    made = Interaction(id="90", token="token-90", type=3)
    await bot.acknowledge(Batch(ticket=made))
    await bot.answer_click(Click(id="90", source=Source(chat="500", user="7"), data="q 0", message="5"), "Approved.")
    assert server.answers["90"][0] == {"type": 6}
    assert (server.answers["90"][1]["content"], server.answers["90"][1]["flags"]) == ("Approved.", 64)
    server.old_clicks.add("91")
    await bot.acknowledge(Batch(ticket=Interaction(id="91", token="token-91", type=3)))  # Too late, and no harm done.


async def test_the_menu_has_a_text_for_commands_that_take_one(server: DiscordServer, bot: Discord) -> None:
    await bot.offer({"stop": Usage("/stop", "Stop."), "queue": Usage("/queue TEXT", "Send."), "model": Usage("/model [name]", "x" * 200)})
    stop, queue, model = server.menu
    assert "options" not in stop and queue["options"][0]["required"] and not model["options"][0]["required"]
    assert len(model["description"]) == 100
    await bot.typing(Place(platform="discord", chat="500", thread="77"))
    assert server.typed == ["77"]


async def test_nobody_can_hand_us_updates(bot: Discord) -> None:
    with pytest.raises(NotFound):
        bot.hooked({}, b"")
