"""What events of Matrix rooms mean, and what is said there: tables, without a server."""

import re
from typing import Any

import msgspec
import nio  # type: ignore[import-untyped]
import pytest

from holdfast.core.chat_errors import Limited, LoggedOut, PlaceGone, ThreadGone, Unreadable
from holdfast.core.errors import Refused, Unavailable
from holdfast.core.events import Button
from holdfast.core.inbound import Click, Echo, Edit, Invitation, Message, Move, Presence, RemoteFile, Removal, Sealed, Source
from holdfast.core.markdown import read as markdown
from holdfast.core.places import Anchor
from holdfast.core.rich import Mark, Rich, Span
from holdfast.platforms.matrix import reading, rendering
from holdfast.platforms.matrix.errors import Answer, NotSent, Unanswered, meaning
from holdfast.platforms.matrix.reading import Me, Update

ME = Me(user="@holdfast:example.org", name="Holdfast")
ANN, BOB, ROOM = "@ann:example.org", "@bob:example.org", "!room:example.org"


def found(event: Any, **update: Any) -> list[Any]:
    return list(reading.read(msgspec.json.encode(Update(room=ROOM, event=event, **update)), ME))


def event(kind: Any = "m.room.message", sender: Any = ANN, **content: Any) -> dict[str, Any]:
    return {"type": kind, "event_id": "$3", "sender": sender, "origin_server_ts": 1, "content": content}


def said(text: str, *, direct: bool = False, related: dict[str, Any] | None = None, **content: Any) -> Message:
    [message] = found(event(msgtype="m.text", body=text, **content), direct=direct, related=related, name="Ann Lee")
    assert isinstance(message, Message)
    return message


def reply(to: str = "$2", **more: Any) -> dict[str, Any]:
    return {"m.relates_to": {"m.in_reply_to": {"event_id": to}, **more}}


# what people do


def test_a_message_names_its_sender_room_and_anchor() -> None:
    source = Source(chat=ROOM, user=ANN, name="Ann Lee")
    assert said("hello", direct=True) == Message(key=f"{ROOM}|$3", source=source, text="hello", anchor=Anchor("$3"))


def test_whoever_has_no_name_is_called_by_their_account() -> None:
    [message] = found(event(msgtype="m.text", body="hello"))
    assert message.source.name == "ann" and message.source.chat_type == "group"


@pytest.mark.parametrize(
    ("text", "content", "addressed", "heard"),
    [
        ("hello", {}, False, "hello"),
        ("Holdfast: hello", {"m.mentions": {"user_ids": [ME.user]}}, True, "hello"),
        ("Holdfast hello", {"m.mentions": {"user_ids": [ME.user]}}, True, "hello"),
        ("hey Holdfast hi", {"m.mentions": {"user_ids": [ME.user]}}, True, "hey Holdfast hi"),
        ("@holdfast:example.org hello", {}, True, "hello"),
        ("holdfast, hello", {}, True, "hello"),
        ("Holdfast is nice", {"m.mentions": {}}, False, "Holdfast is nice"),
        ("Holdfast", {"m.mentions": {"user_ids": [ME.user]}}, True, "Holdfast"),
        ("hello all", {"m.mentions": {"user_ids": [BOB]}}, False, "hello all"),
        ("hi", {"formatted_body": f'<a href="https://matrix.to/#/{ME.user}">H</a> hi'}, True, "hi"),
        ("say @holdfast:example.org", {"m.mentions": {}}, False, "say @holdfast:example.org"),
        ("/stop", {}, True, "/stop"),
        ("!stop", {}, True, "/stop"),
        ("!approve all", {}, True, "/approve all"),
        ("!important", {}, False, "!important"),
        ("/usr/bin", {}, False, "/usr/bin"),
    ],
)
def test_in_a_room_a_mention_a_name_or_a_command_is_addressed_to_us(
    text: str, content: dict[str, Any], addressed: bool, heard: str
) -> None:
    message = said(text, **content)
    assert (message.addressed, message.text) == (addressed, heard)


def test_where_nobody_else_is_everything_is_addressed_to_us() -> None:
    [message] = found(event(msgtype="m.text", body="hello"), alone=True)
    assert message.addressed and message.source.chat_type == "group"


@pytest.mark.parametrize(
    ("text", "related", "heard", "quote", "addressed"),
    [
        ("yes", {"sender": BOB, "content": {"body": "sure?"}}, "yes", "sure?", False),
        ("yes", {"sender": ME.user, "content": {"body": "sure?"}}, "yes", "", True),
        ("> <@bob:example.org> sure?\n> really?\n\nyes\n> no", None, "yes\n> no", "sure?\nreally?", False),
        ("> <@bob:example.org> old\n\nyes", {"sender": BOB, "content": {"body": "new"}}, "yes", "new", False),
        ("> a quote of mine\n\nyes", {"sender": BOB, "content": {"body": "x"}}, "> a quote of mine\n\nyes", "x", False),
        (
            "yes",
            {"sender": BOB, "content": {"body": "> <@ann:example.org> q\n\nsure?", **reply("$1")}},
            "yes",
            "sure?",
            False,
        ),
    ],
)
def test_a_reply_names_its_message_and_quotes_what_is_not_ours(
    text: str, related: dict[str, Any] | None, heard: str, quote: str, addressed: bool
) -> None:
    """The words that older clients repeat before a reply are no part of it."""
    message = said(text, related=related, **reply())
    assert (message.text, message.reply_to, message.quote, message.addressed) == (heard, "$2", quote, addressed)


@pytest.mark.parametrize(("falls_back", "reply_to"), [(True, None), (False, "$2")])
def test_a_thread_is_part_of_the_place(falls_back: bool, reply_to: str | None) -> None:
    """C11: what stands in a thread for clients that know none is no reply."""
    message = said("hello", **reply(rel_type="m.thread", event_id="$1", is_falling_back=falls_back))
    assert (message.anchor, message.source.thread, message.reply_to) == (Anchor("$3", "$1"), "$1", reply_to)


@pytest.mark.parametrize(
    ("content", "text", "file"),
    [
        (
            {"msgtype": "m.image", "body": "cat.png", "url": "mxc://s/1", "info": {"mimetype": "image/png", "size": 5}},
            "",
            RemoteFile(id="mxc://s/1", name="cat.png", media_type="image/png", size=5),
        ),
        (
            {"msgtype": "m.file", "body": "look", "filename": "a.pdf", "url": "mxc://s/2", "info": {"mimetype": "application/pdf"}},
            "look",
            RemoteFile(id="mxc://s/2", name="a.pdf", media_type="application/pdf"),
        ),
        ({"msgtype": "m.audio", "body": "Voice", "url": "mxc://s/3"}, "", RemoteFile(id="mxc://s/3", name="Voice", media_type="audio/ogg")),
        ({"msgtype": "m.location", "body": "Pub", "geo_uri": "geo:1.5,2.5"}, "[Location: 1.5,2.5 (Pub)]", None),
        ({"msgtype": "m.file", "body": "x", "url": "https://elsewhere.example/x"}, "", None),
    ],
)
def test_files_are_named_by_what_fetches_them_and_places_are_told_in_words(
    content: dict[str, Any], text: str, file: RemoteFile | None
) -> None:
    [message] = found(event(**content))
    assert (message.text, message.files) == (text, (file,) if file else ())


def test_a_sticker_is_a_picture() -> None:
    [message] = found(event("m.sticker", body="wave", url="mxc://s/4"))
    assert message.files == (RemoteFile(id="mxc://s/4", name="wave", media_type="image/png"),)


def test_an_edit_names_the_message_as_it_was_first_sent() -> None:
    content = {"body": "* Holdfast: new", "m.new_content": {"msgtype": "m.text", "body": "Holdfast: new"}}
    [edit] = found(event(msgtype="m.text", **content, **{"m.relates_to": {"rel_type": "m.replace", "event_id": "$1"}}))
    assert edit == Edit(key=f"{ROOM}|$1", version="$3", source=edit.source, text="new")


@pytest.mark.parametrize("redaction", [{"redacts": "$1", "content": {}}, {"content": {"redacts": "$1"}}])
def test_a_redaction_is_a_removal_in_rooms_of_every_version(redaction: dict[str, Any]) -> None:
    [removal] = found(event("m.room.redaction") | redaction)
    assert isinstance(removal, Removal) and removal.key == f"{ROOM}|$1"


@pytest.mark.parametrize(
    "nothing",
    [
        event(),  # Taken back since.
        event(msgtype="m.notice", body="another program"),
        event(msgtype="m.key.verification.request", body="Ann wants to verify you"),
        event("m.room.member", membership="join") | {"state_key": ANN},
        event("m.reaction", **{"m.relates_to": {"rel_type": "m.annotation", "event_id": "$1", "key": "👍"}}),
        event("m.room.message", ME.user, body="new", **{"m.relates_to": {"rel_type": "m.replace", "event_id": "$1"}}),
    ],
)
def test_what_is_not_meant_for_anybody_means_nothing(nothing: dict[str, Any]) -> None:
    assert found(nothing) == []


@pytest.mark.parametrize("garbage", [7, None, "why", {}, {"type": "m.room.message"}, {"event_id": "$1", "sender": 5}])
def test_what_is_no_event_is_unreadable(garbage: Any) -> None:
    with pytest.raises(Unreadable):
        found(garbage)


@pytest.mark.parametrize(
    ("ours", "key"),
    [
        ({"unsigned": {"transaction_id": "k1"}}, "k1"),
        ({"content": {"body": "x", rendering.KEY: "k2"}}, "k2"),  # Sent by another device of the account.
        ({}, None),
    ],
)
def test_a_message_of_our_own_comes_back_with_its_key(ours: dict[str, Any], key: str | None) -> None:
    assert found(event(sender=ME.user, msgtype="m.text", body="x") | ours) == [Echo(message="$3", chat=ROOM, key=key)]


def test_encrypted_messages_are_the_same_one_for_the_whole_room() -> None:
    [sealed] = found(event("m.room.encrypted", ciphertext="..."))
    assert isinstance(sealed, Sealed) and sealed.key == f"{ROOM}|sealed"


@pytest.mark.parametrize(
    ("membership", "sender", "presence"),
    [
        ({"membership": "join"}, ME.user, Presence(chat=ROOM, there=True)),
        ({"membership": "leave"}, ME.user, Presence(chat=ROOM, there=False, why="The account left the room.")),
        (
            {"membership": "ban", "reason": "spam"},
            ANN,
            Presence(chat=ROOM, there=False, why="@ann:example.org removed the account from the room: spam"),
        ),
    ],
)
def test_our_own_membership_says_whether_we_are_there(membership: dict[str, str], sender: str, presence: Presence) -> None:
    assert found(event("m.room.member", sender, **membership) | {"state_key": ME.user}) == [presence]


def test_a_room_that_was_replaced_moved_only_if_both_rooms_say_so() -> None:
    assert found(event("m.room.tombstone", replacement_room="!new:example.org")) == []
    assert found(None, replaces="!old:example.org") == [Move(was="!old:example.org", now=ROOM)]


@pytest.mark.parametrize(("direct", "chat_type"), [(True, "dm"), (False, "group")])
def test_an_invitation_names_who_sent_it(direct: bool, chat_type: str) -> None:
    shown = [event("m.room.name", name="Team"), event("m.room.member", membership="invite", is_direct=direct) | {"state_key": ME.user}]
    update = msgspec.json.encode(Update(room=ROOM, invited=shown))
    assert reading.read(update, ME) == (Invitation(source=Source(chat=ROOM, user=ANN, chat_type=chat_type)),)


# reactions in the place of buttons

BUTTONS = ("q1 approve", "q1 always", "q1 deny")


@pytest.mark.parametrize(
    ("key", "data"),
    [
        *(("👍", "q1 approve"), ("👍️", "q1 approve"), ("👍🏽", "q1 approve"), ("✅", "q1 approve")),
        *(("♾️", "q1 always"), ("♾", "q1 always"), ("👎", "q1 deny"), ("❌", "q1 deny"), ("🎉", None)),
    ],
)
def test_a_reaction_to_a_question_of_ours_is_a_click(key: str, data: str | None) -> None:
    """A27"""
    related = {"event_id": "$1", "sender": ME.user, "content": {rendering.BUTTONS: list(BUTTONS)}}
    reaction = event("m.reaction", **{"m.relates_to": {"rel_type": "m.annotation", "event_id": "$1", "key": key}})
    clicks = found(reaction, related=related)
    assert [click.data for click in clicks if isinstance(click, Click)] == ([data] if data else [])
    assert found(reaction, related=related | {"sender": BOB}) == []


def test_choices_are_pressed_by_their_numbers() -> None:
    assert rendering.pressed("2️⃣", ["q1 0", "q1 1"]) == "q1 1"
    content = rendering.content(Rich("Colour?"), buttons=(Button(label="red", data="q1 0"), Button(label="green", data="q1 1")))
    assert content["body"] == "Colour?\n\nReact with 1️⃣ red · 2️⃣ green"
    assert content[rendering.BUTTONS] == ["q1 0", "q1 1"]


# what we say


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("**bold** _it_ `a<b`", "<strong>bold</strong> <em>it</em> <code>a&lt;b</code>"),
        ("**a *b* c**", "<strong>a <em>b</em> c</strong>"),
        ("x\n```py\n<b>1</b>\n2\n```\ny", 'x<pre><code class="language-py">&lt;b&gt;1&lt;/b&gt;\n2</code></pre>y'),
        ("> q1\n> q2\n\nz", "<blockquote>q1<br>q2</blockquote><br>z"),
        ("[a](https://x.example/?a=1&b=\"2')", None),
        ("[a](https://x.example/?a=1&b=2)", '<a href="https://x.example/?a=1&amp;b=2">a</a>'),
        ("[a](javascript:alert)", "a"),
    ],
)
def test_marks_become_tags_and_no_character_does(text: str, html: str | None) -> None:
    made = rendering.html(markdown(text))
    assert html is None or made == html
    assert not re.search(r"<(?!/?(strong|em|del|code|pre|blockquote|a|br)\b)", made)


def test_a_language_cannot_leave_its_attribute() -> None:
    made = rendering.html(Rich("x", (Span(Mark.PRE, 0, 1, '"><img src=x onerror=alert(1)>'),)))
    assert "<img" not in made and '"><' not in made.replace('"><code', "").replace('onerror=alert(1)&gt;">', "")


def test_nobody_is_called_by_what_a_text_says() -> None:
    content = rendering.content(markdown("@room and @ann:example.org: <b>look</b>"))
    assert content["m.mentions"] == {} and "formatted_body" not in content


def test_an_edit_carries_the_new_text_and_its_target() -> None:
    edit = rendering.replacing("$1", rendering.content(markdown("**new**")))
    assert edit["m.new_content"]["body"] == "new" and edit["body"] == "* new"
    assert edit["m.relates_to"] == {"rel_type": "m.replace", "event_id": "$1"}


@pytest.mark.parametrize("text", ["x" * 12_000, "é" * 6000, '"' * 6000, "<" * 2990, "😀" * 3000])
def test_a_text_within_the_limit_fits_into_an_event_also_as_an_edit(text: str) -> None:
    """65,536 bytes for the whole event, of which an edit takes the text four times."""
    rich = Rich(text, (Span(Mark.BOLD, 0, 1),) if not text.startswith("x") else ())
    assert len(text) <= rendering.size(rich) <= 12_100
    assert len(msgspec.json.encode(rendering.replacing("$" + "1" * 43, rendering.content(rich)))) < 60_000


def test_another_library_reads_what_we_send() -> None:
    """matrix-nio checks events against the forms that the specification gives them."""
    sent = rendering.content(markdown("**bold** & `code`"), key="k1")
    for content in (sent, rendering.replacing("$" + "1" * 43, sent)):
        found = nio.Event.parse_event(event(sender=ME.user) | {"content": content, "event_id": "$" + "3" * 43})
        assert isinstance(found, nio.RoomMessageText) and found.format == rendering.HTML
        assert found.formatted_body.endswith("<strong>bold</strong> &amp; <code>code</code>")


# what answers mean


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (Answer.read(401, b'{"errcode": "M_UNKNOWN_TOKEN", "soft_logout": true}', None), LoggedOut),
        (Answer.read(403, b'{"errcode": "M_USER_DEACTIVATED"}', None), LoggedOut),
        (Answer.read(403, b'{"errcode": "M_FORBIDDEN", "error": "not in room"}', None), PlaceGone),
        (Answer.read(404, b'{"errcode": "M_NOT_FOUND"}', None), PlaceGone),
        (Answer.read(400, b'{"errcode": "M_UNKNOWN", "error": "Cannot start threads from an event with a relation"}', None), ThreadGone),
        (Answer.read(400, b'{"errcode": "M_BAD_JSON"}', None), Refused),
        (Answer.read(413, b"too large", None), Refused),
        (Answer.read(502, b"<html>", None), Answer),
        (NotSent("no"), Unavailable),
        (Unanswered("cut"), Unanswered),
    ],
)
def test_answers_mean_what_has_to_follow(answer: Exception, kind: type[Exception]) -> None:
    assert type(meaning(answer)) is kind


@pytest.mark.parametrize(
    ("payload", "header", "wait_s"),
    [
        (b'{"errcode": "M_LIMIT_EXCEEDED", "retry_after_ms": 1500}', None, 1.5),
        (b'{"errcode": "M_LIMIT_EXCEEDED"}', "7", 7.0),
        (b'{"errcode": "M_LIMIT_EXCEEDED"}', None, 3.0),
        (b"nginx", None, 3.0),
    ],
)
def test_a_limit_is_the_accounts_with_and_without_a_time_to_wait(payload: bytes, header: str | None, wait_s: float) -> None:
    meant = meaning(Answer.read(429, payload, header))
    assert isinstance(meant, Limited) and meant.account and meant.retry_after_s == wait_s
