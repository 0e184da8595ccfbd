"""What an update of the Bot API means. Pure; it knows which bot it is read for."""

from collections.abc import Callable
from typing import Any

import msgspec

from holdfast.core.chat_errors import Unreadable
from holdfast.core.inbound import Click, Edit, Inbound, Message, Move, Presence, RemoteFile, Source
from holdfast.core.places import Anchor

# Asked for in every poll: the server remembers the last list.
KINDS = ("message", "edited_message", "callback_query", "my_chat_member")
_CHAT_TYPES = {"private": "dm", "group": "group", "supergroup": "group", "channel": "channel"}
_SHUT_OUT = ("kicked", "left")
MOST_QUOTED = 1000


class Me(msgspec.Struct, frozen=True, kw_only=True):
    """The bot itself. `username` without the @."""

    id: int
    username: str = ""


def read(update: bytes, me: Me) -> tuple[Inbound, ...]:
    """Raises `Unreadable`, and whatever an update of an unknown form leads to."""
    found = msgspec.json.decode(update)
    if not isinstance(found, dict) or not isinstance(found.get("update_id"), int):
        raise Unreadable("It is no update of the Bot API.")
    for kind, reader in _READERS.items():
        if kind in found:
            return reader(found[kind], me)
    return ()


def _message(said: dict[str, Any], me: Me) -> tuple[Inbound, ...]:
    chat = said["chat"]
    if "migrate_to_chat_id" in said:
        return (Move(was=str(chat["id"]), now=str(said["migrate_to_chat_id"])),)
    if "migrate_from_chat_id" in said:
        return (Move(was=str(said["migrate_from_chat_id"]), now=str(chat["id"])),)
    if "from" not in said or said["from"]["id"] == me.id:
        return ()
    text, files = _text(said), _files(said)
    if not text and not files:
        return ()  # Somebody came, went, or changed a picture.
    thread, topic = _thread(said)
    replied = said.get("reply_to_message") or {}
    return (
        Message(
            key=_key(said),
            source=_source(said["from"], chat, thread),
            text=_without_mention(text, me),
            files=files,
            anchor=Anchor(str(said["message_id"]), thread or "", topic or ""),
            reply_to=str(replied["message_id"]) if replied else None,
            quote=_quote(said, replied, me),
            addressed=chat["type"] == "private" or _addressed(said, text, replied, me),
            album=said.get("media_group_id"),
        ),
    )


def _edited(said: dict[str, Any], me: Me) -> tuple[Inbound, ...]:
    """It may come without a change of the text; then the same words are recorded once more, and nobody is told."""
    if "from" not in said:
        return ()
    thread, _ = _thread(said)
    text = _without_mention(said.get("text") or said.get("caption") or "", me)
    source = _source(said["from"], said["chat"], thread)
    return (Edit(key=_key(said), version=str(said.get("edit_date", 0)), source=source, text=text),)


def _clicked(query: dict[str, Any], me: Me) -> tuple[Inbound, ...]:
    said = query.get("message")
    if said is None or "data" not in query:
        return ()
    thread, _ = _thread(said)
    source = _source(query["from"], said["chat"], thread)
    return (Click(id=str(query["id"]), source=source, data=query["data"], message=str(said["message_id"])),)


def _member(change: dict[str, Any], me: Me) -> tuple[Inbound, ...]:
    status = change["new_chat_member"]["status"]
    chat = str(change["chat"]["id"])
    if status in _SHUT_OUT:
        private = change["chat"]["type"] == "private"
        return (Presence(chat=chat, there=False, why="The bot was blocked." if private else "The bot was removed from the chat."),)
    return (Presence(chat=chat, there=True),)


_READERS: dict[str, Callable[[dict[str, Any], Me], tuple[Inbound, ...]]] = {
    "message": _message,
    "edited_message": _edited,
    "callback_query": _clicked,
    "my_chat_member": _member,
}


def _key(said: dict[str, Any]) -> str:
    """Without the id of the update: that is given anew after a week, and differs between polling and webhooks."""
    return f"{said['chat']['id']}|{said['message_id']}"


def _source(who: dict[str, Any], chat: dict[str, Any], thread: str | None) -> Source:
    name = " ".join(part for part in (who.get("first_name"), who.get("last_name")) if part) or who.get("username") or ""
    return Source(chat=str(chat["id"]), user=str(who["id"]), chat_type=_CHAT_TYPES[chat["type"]], thread=thread, name=name)


def _thread(said: dict[str, Any]) -> tuple[str | None, str | None]:
    """The topic of a forum or of a private chat, and that of a channel's direct messages. Outside of topics a thread is only a chain of
    replies.
    """
    thread = str(said["message_thread_id"]) if said.get("is_topic_message") and "message_thread_id" in said else None
    direct = said.get("direct_messages_topic")
    return thread, str(direct["topic_id"]) if direct else None


def _text(said: dict[str, Any]) -> str:
    """Its words; for what has none and is no file, what it is."""
    if text := said.get("text") or said.get("caption"):
        return str(text)
    if place := said.get("venue") or said.get("location"):
        where = place.get("location", place)
        title = f"{place['title']}, {place['address']}: " if "title" in place else ""
        return f"[Location: {title}{where['latitude']}, {where['longitude']}]"
    if contact := said.get("contact"):
        return f"[Contact: {contact.get('first_name', '')} {contact.get('last_name', '')}, {contact['phone_number']}]".replace(" ,", ",")
    if poll := said.get("poll"):
        return f"[Poll: {poll['question']} ({', '.join(option['text'] for option in poll['options'])})]"
    if dice := said.get("dice"):
        return f"[{dice['emoji']} {dice['value']}]"
    return ""


def _files(said: dict[str, Any]) -> tuple[RemoteFile, ...]:
    if photo := said.get("photo"):
        largest = max(photo, key=lambda size: size["width"] * size["height"])
        return (_file(largest, f"photo-{said['message_id']}.jpg", "image/jpeg"),)
    for kind, (name, media_type) in _FILES.items():
        if kind in said and not (kind == "document" and "animation" in said):
            return (_file(said[kind], f"{kind}-{said['message_id']}{name}", media_type),)
    return ()


_FILES = {
    "voice": (".ogg", "audio/ogg"),
    "audio": (".mp3", "audio/mpeg"),
    "video": (".mp4", "video/mp4"),
    "video_note": (".mp4", "video/mp4"),
    "animation": (".mp4", "video/mp4"),
    "document": ("", "application/octet-stream"),
    "sticker": (".webp", "image/webp"),
}


def _file(file: dict[str, Any], name: str, media_type: str) -> RemoteFile:
    return RemoteFile(
        id=file["file_id"], name=file.get("file_name") or name, media_type=file.get("mime_type") or media_type, size=file.get("file_size")
    )


def _quote(said: dict[str, Any], replied: dict[str, Any], me: Me) -> str:
    """What somebody picked out, or the words of others that they reply to. Our own words the agent knows."""
    if quote := said.get("quote"):
        return str(quote["text"])[:MOST_QUOTED]
    if not replied or replied.get("from", {}).get("id") == me.id or "forum_topic_created" in replied:
        return ""
    return str(replied.get("text") or replied.get("caption") or "")[:MOST_QUOTED]


def _addressed(said: dict[str, Any], text: str, replied: dict[str, Any], me: Me) -> bool:
    if replied.get("from", {}).get("id") == me.id:
        return True
    for entity in (*said.get("entities", ()), *said.get("caption_entities", ())):
        words = _slice(text, entity)
        match entity["type"]:
            case "mention" if words.casefold() == f"@{me.username}".casefold():
                return True
            case "text_mention" if entity["user"]["id"] == me.id:
                return True
            case "bot_command":
                name = words.partition("@")[2]
                if not name or name.casefold() == me.username.casefold():
                    return True
    return False


def _slice(text: str, entity: dict[str, Any]) -> str:
    """Offsets count UTF-16 code units."""
    units = text.encode("utf-16-le")
    return units[2 * entity["offset"] : 2 * (entity["offset"] + entity["length"])].decode("utf-16-le", "replace")


def _without_mention(text: str, me: Me) -> str:
    """The name by which we are called says nothing to the agent."""
    mention = f"@{me.username}"
    if me.username and text[: len(mention)].casefold() == mention.casefold() and not text[len(mention) : len(mention) + 1].isalnum():
        return text[len(mention) :].lstrip(" ,:\n") or text
    return text
