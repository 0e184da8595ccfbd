"""What an envelope, an event or a form of Slack means. Pure; it knows which bot it is read for."""

import re
from typing import Any
from urllib.parse import parse_qs

import msgspec

from holdfast.core.chat_errors import Unreadable
from holdfast.core.commands import COMMANDS
from holdfast.core.inbound import Click, Echo, Edit, Inbound, Message, Presence, RemoteFile, Removal, Source
from holdfast.core.places import Anchor

# Under which a message of ours carries its key.
METADATA = "holdfast_reply"
MOST_QUOTED = 1000
# What people say. Whatever else happens to messages has a subtype of its own.
_SAID = (None, "file_share", "thread_broadcast", "me_message", "bot_message")
_CHAT_TYPES = {"im": "dm", "mpim": "group"}
_UNAVAILABLE_FILES = ("tombstone", "hidden_by_limit")
_MARKED = re.compile(r"<([^<>]*)>")
_BANG = re.compile(r"!([a-z]+)\b")


class Me(msgspec.Struct, frozen=True, kw_only=True):
    """The bot itself: as a user, and as the sender of its messages."""

    user: str
    bot: str = ""


def read(update: bytes, me: Me) -> tuple[Inbound, ...]:
    """Raises `Unreadable`, and whatever an update of an unknown form leads to."""
    found = decoded(update)
    match found.get("type"):
        case "events_api":
            return _event(found["payload"]["event"], me)
        case "event_callback":
            return _event(found["event"], me)
        case "interactive":
            return _interaction(found["payload"])
        case "block_actions":
            return _interaction(found)
        case "slash_commands":
            return _command(found["payload"])
        case None if "command" in found:
            return _command(found)
        case None:
            raise Unreadable("It is nothing that Slack sends.")
        case _:
            return ()


def decoded(update: bytes) -> dict[str, Any]:
    """Over HTTP, clicks and commands are forms. Raises `Unreadable`."""
    if update.lstrip()[:1] in (b"{", b"["):
        found = msgspec.json.decode(update)
    else:
        form = {name: values[0] for name, values in parse_qs(update.decode(), keep_blank_values=True).items()}
        found = msgspec.json.decode(form["payload"]) if "payload" in form else form
    if not isinstance(found, dict):
        raise Unreadable("It is nothing that Slack sends.")
    return found


def _event(event: dict[str, Any], me: Me) -> tuple[Inbound, ...]:
    match event["type"]:
        case "message" | "app_mention":  # A mention is both; they have one key.
            return _message(event, me)
        case "member_joined_channel" if event["user"] == me.user:
            return (Presence(chat=event["channel"], there=True),)
        case "channel_left" | "group_left":
            return (Presence(chat=event["channel"], there=False, why="The bot was removed from the channel."),)
        case "channel_archive" | "group_archive":
            return (Presence(chat=event["channel"], there=False, why="The channel was archived."),)
        case "channel_unarchive" | "group_unarchive":
            return (Presence(chat=event["channel"], there=True),)
        case _:
            return ()


def _message(event: dict[str, Any], me: Me) -> tuple[Inbound, ...]:
    match event.get("subtype"):
        case "message_changed":
            return _changed(event, me)
        case "message_deleted":
            return _removed(event, event.get("previous_message") or {}, me)
        case subtype if subtype not in _SAID:
            return ()
    channel, ts = event["channel"], event["ts"]
    if is_ours(event, me):
        return (Echo(message=ts, chat=channel, key=_sent_under(event)),)
    if "bot_id" in event or "user" not in event:
        return ()  # Two bots that answer each other never stop.
    text, files = _without_mention(event.get("text") or "", me), _files(event)
    if not text and not files:
        return ()
    source = _source(event, channel, event["user"])
    ours = event.get("parent_user_id") == me.user
    in_thread = event.get("thread_ts") not in (None, ts)
    command = text.startswith("/")
    return (
        Message(
            key=_key(channel, ts),
            source=source,
            text=text,
            files=files,
            anchor=Anchor(ts, source.thread or ""),
            reply_to=event["thread_ts"] if ours else None,
            quote=_quote(event),
            addressed=not source.shared or ours or command or _mentions(event.get("text") or "", me),
            follows=source.shared and in_thread and "<@" not in (event.get("text") or ""),
        ),
    )


def _changed(event: dict[str, Any], me: Me) -> tuple[Inbound, ...]:
    """Also told when a preview of a link appears: only people's changes carry who made them, and when."""
    said, before = event["message"], event.get("previous_message") or {}
    if said.get("subtype") == "tombstone":  # It was deleted, and has replies.
        return _removed({**event, "deleted_ts": said["ts"]}, before, me)
    edited = said.get("edited")
    if is_ours(said, me) or "bot_id" in said or "user" not in said or not edited or edited == before.get("edited"):
        return ()
    source = _source({**said, "channel_type": event.get("channel_type")}, event["channel"], said["user"])
    text = _without_mention(said.get("text") or "", me)
    return (Edit(key=_key(event["channel"], said["ts"]), version=str(edited["ts"]), source=source, text=text),)


def _removed(event: dict[str, Any], before: dict[str, Any], me: Me) -> tuple[Inbound, ...]:
    if not before or is_ours(before, me):
        return ()
    source = _source({**before, "channel_type": event.get("channel_type")}, event["channel"], before.get("user", ""))
    return (Removal(key=_key(event["channel"], event["deleted_ts"]), source=source),)


def _interaction(payload: dict[str, Any]) -> tuple[Inbound, ...]:
    said = payload.get("message")
    if payload.get("type") != "block_actions" or said is None or "value" not in payload["actions"][0]:
        return ()
    user, channel = payload["user"], payload["channel"]["id"]
    source = _source({"channel": channel, **said}, channel, user["id"], user.get("name") or user.get("username") or "")
    return (Click(id=payload["trigger_id"], source=source, data=payload["actions"][0]["value"], message=said["ts"]),)


def _command(form: dict[str, Any]) -> tuple[Inbound, ...]:
    """`/holdfast stop`: Slack keeps every other line that begins with a slash to itself."""
    channel, text = form["channel_id"], (form.get("text") or "").strip() or "help"
    kind = {"directmessage": "im"}.get(form.get("channel_name", ""), "mpim" if form.get("channel_name", "").startswith("mpdm-") else "")
    name = text.split(maxsplit=1)[0].lstrip("/")
    source = Source(
        chat=channel, user=form["user_id"], chat_type=_chat_type({"channel_type": kind}, channel), name=form.get("user_name", "")
    )
    said = plain(f"/{text.lstrip('/')}" if name in COMMANDS else text)
    return (Message(key=_key(channel, form["trigger_id"]), source=source, text=said),)


def _key(channel: str, ts: str) -> str:
    """Without the id of the event: a mention is two events, and one that is told again may get another."""
    return f"{channel}|{ts}"


def is_ours(said: dict[str, Any], me: Me) -> bool:
    return said.get("user") == me.user or bool(me.bot and said.get("bot_id") == me.bot)


def _sent_under(said: dict[str, Any]) -> str | None:
    metadata = said.get("metadata") or {}
    return str(metadata["event_payload"]["id"]) if metadata.get("event_type") == METADATA else None


def _chat_type(event: dict[str, Any], channel: str) -> str:
    """Where nobody says what it is, its id tells private chats from the rest."""
    kind = event.get("channel_type")
    return _CHAT_TYPES.get(kind, "channel") if kind else "dm" if channel.startswith("D") else "channel"


def _source(event: dict[str, Any], channel: str, user: str, name: str = "") -> Source:
    """In a channel every conversation is a thread, and a message outside of threads begins one: that is how people keep channels
    readable. Elsewhere a thread is one only if somebody made it one.
    """
    chat_type, thread = _chat_type(event, channel), event.get("thread_ts")
    if chat_type == "channel":
        thread = thread or event["ts"]
    elif thread == event.get("ts"):
        thread = None
    return Source(chat=channel, user=user, chat_type=chat_type, thread=thread, name=name)


def _files(event: dict[str, Any]) -> tuple[RemoteFile, ...]:
    return tuple(
        RemoteFile(
            id=file["id"],
            name=file.get("name") or file["id"],
            media_type=file.get("mimetype") or "application/octet-stream",
            size=file.get("size"),
        )
        for file in event.get("files") or ()
        if file.get("mode") not in _UNAVAILABLE_FILES
    )


def _quote(event: dict[str, Any]) -> str:
    """The words of a message that was shared with this one."""
    shared = (one for one in event.get("attachments") or () if one.get("is_share") or one.get("is_msg_unfurl"))
    return next((plain(one.get("text") or "")[:MOST_QUOTED] for one in shared), "")


def _mentions(text: str, me: Me) -> bool:
    return f"<@{me.user}>" in text or f"<@{me.user}|" in text


def _without_mention(text: str, me: Me) -> str:
    """The name by which we are called says nothing to the agent. `!stop` is a command: a line that begins with a slash never leaves
    Slack's own programs.
    """
    mention = re.compile(rf"\s*<@{re.escape(me.user)}(\|[^>]*)?>[\s,:]*")
    rest = plain(mention.sub("", text, count=1) if mention.match(text) else text).strip()
    if (bang := _BANG.match(rest)) and bang[1] in COMMANDS:
        return f"/{rest[1:]}"
    return rest or plain(text).strip()


def plain(text: str) -> str:
    """As people read it: without Slack's marks for people, channels and links, and with the three characters that it escapes."""
    shown = _MARKED.sub(lambda found: _named(found[1]), text)
    return shown.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _named(mark: str) -> str:
    what, _, label = mark.partition("|")
    match what[:1]:
        case "@" | "#":
            return f"{what[0]}{label or what[1:]}"
        case "!":
            return label or f"@{what[1:].partition('^')[0]}"
        case _:
            return what if not label or what.endswith(label) else f"{label} ({what})"
