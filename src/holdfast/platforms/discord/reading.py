"""What an event of Discord means. Pure; it knows which bot it is read for."""

import re
from collections.abc import Callable
from typing import Any

import msgspec

from holdfast.core.chat_errors import Unreadable
from holdfast.core.inbound import Click, Echo, Edit, Inbound, Message, Presence, RemoteFile, Removal, Source
from holdfast.core.places import Anchor
from holdfast.platforms.discord.events import Event, Where

# What people write; all other types say that something happened.
_DEFAULT, _REPLY = 0, 19
MOST_QUOTED = 1000
_MENTION = re.compile(r"<@!?(\d+)>")


class Me(msgspec.Struct, frozen=True, kw_only=True):
    """The bot itself."""

    id: str
    name: str = ""


def read(update: bytes, me: Me) -> tuple[Inbound, ...]:
    """Raises `Unreadable`, and whatever an event of an unknown form leads to."""
    event = msgspec.json.decode(update, type=Event)
    reader = _READERS.get(event.t)
    if reader is None:
        return ()
    found = msgspec.json.decode(event.d)
    if not isinstance(found, dict):
        raise Unreadable("It is no event of Discord.")
    if event.where is None:
        raise Unreadable("The event does not say where it happened.")
    made = reader(found, event.where, me)
    if event.late and found.get("edited_timestamp") and event.t == "MESSAGE_CREATE":
        made = (*made, *_edited(found, event.where, me))  # If the first words are known already, these replace them.
    return made


def _message(said: dict[str, Any], where: Where, me: Me) -> tuple[Inbound, ...]:
    author = said["author"]
    if author["id"] == me.id:
        nonce = said.get("nonce")
        return (Echo(message=said["id"], chat=where.chat, key=None if nonce is None else str(nonce)),)
    if author.get("bot") or said.get("webhook_id") or said.get("type", _DEFAULT) not in (_DEFAULT, _REPLY):
        return ()  # Two bots that answer each other never end.
    replied = _replied(said)
    text, files = _text(said, me), _files(said)
    if not text and not files:
        return ()
    return (
        Message(
            key=_key(where, said["id"]),
            source=_source(author, said.get("member"), where),
            text=text,
            files=files,
            anchor=Anchor(said["id"], where.thread or ""),
            reply_to=replied.get("id"),
            quote=_quote(replied, me),
            addressed=where.private or _addressed(said, replied, me),
        ),
    )


def _edited(said: dict[str, Any], where: Where, me: Me) -> tuple[Inbound, ...]:
    """A preview of a link changes a message too; only an edit has a time of its own."""
    if not said.get("edited_timestamp") or "author" not in said or said["author"]["id"] == me.id or said["author"].get("bot"):
        return ()
    source = _source(said["author"], said.get("member"), where)
    return (Edit(key=_key(where, said["id"]), version=str(said["edited_timestamp"]), source=source, text=_text(said, me)),)


def _removed(said: dict[str, Any], where: Where, me: Me) -> tuple[Inbound, ...]:
    ids = said["ids"] if "ids" in said else [said["id"]]
    return tuple(Removal(key=_key(where, id), source=Source(chat=where.chat, user="", thread=where.thread)) for id in ids)


def _interaction(made: dict[str, Any], where: Where, me: Me) -> tuple[Inbound, ...]:
    member = made.get("member") or {}
    source = _source(member.get("user") or made["user"], member, where)
    match made["type"]:
        case 3:  # A button.
            return (Click(id=made["id"], source=source, data=made["data"]["custom_id"], message=made["message"]["id"]),)
        case 2:  # A command of the menu.
            words = [str(option["value"]) for option in made["data"].get("options", ()) if "value" in option]
            text = " ".join([f"/{made['data']['name']}", *words])
            return (Message(key=_key(where, made["id"]), source=source, text=text, anchor=Anchor("", where.thread or "")),)
    return ()


def _deleted(channel: dict[str, Any], where: Where, me: Me) -> tuple[Inbound, ...]:
    return (Presence(chat=channel["id"], there=False, why="The channel was deleted."),)


_READERS: dict[str, Callable[[dict[str, Any], Where, Me], tuple[Inbound, ...]]] = {
    "MESSAGE_CREATE": _message,
    "MESSAGE_UPDATE": _edited,
    "MESSAGE_DELETE": _removed,
    "MESSAGE_DELETE_BULK": _removed,
    "INTERACTION_CREATE": _interaction,
    "CHANNEL_DELETE": _deleted,
}


def _key(where: Where, id: str) -> str:
    return f"{where.channel}|{id}"


def _source(who: dict[str, Any], member: dict[str, Any] | None, where: Where) -> Source:
    name = (member or {}).get("nick") or who.get("global_name") or who.get("username") or ""
    kind = "dm" if where.private else "group"
    return Source(chat=where.chat, user=who["id"], chat_type=kind, thread=where.thread, name=name)


def _replied(said: dict[str, Any]) -> dict[str, Any]:
    """The message that it replies to, as far as it is known; a forwarded one is no reply."""
    if said.get("message_snapshots"):
        return {}
    if found := said.get("referenced_message"):
        return dict(found)
    reference = said.get("message_reference") or {}
    return {"id": reference["message_id"]} if said.get("type") == _REPLY and "message_id" in reference else {}


def _quote(replied: dict[str, Any], me: Me) -> str:
    """The words of others that somebody replies to. Our own words the agent knows."""
    if not replied or replied.get("author", {}).get("id") == me.id:
        return ""
    return _named(str(replied.get("content") or ""), replied)[:MOST_QUOTED]


def _addressed(said: dict[str, Any], replied: dict[str, Any], me: Me) -> bool:
    if replied.get("author", {}).get("id") == me.id:
        return True
    return any(mentioned["id"] == me.id for mentioned in said.get("mentions", ()))


def _text(said: dict[str, Any], me: Me) -> str:
    """Its words, or what it is. Mentions are read as names; the one by which we are called says nothing to the agent."""
    words = _without_mention(str(said.get("content") or ""), me)
    pieces = [_named(words, said)] if words else []
    for snapshot in said.get("message_snapshots") or ():
        forwarded = snapshot["message"].get("content")
        if forwarded:
            pieces.append(f"[Forwarded:]\n{forwarded}")
    pieces.extend(f"[Sticker: {sticker['name']}]" for sticker in said.get("sticker_items") or ())
    if poll := said.get("poll"):
        answers = ", ".join(str(answer["poll_media"].get("text", "")) for answer in poll["answers"])
        pieces.append(f"[Poll: {poll['question']['text']} ({answers})]")
    return "\n\n".join(pieces)


def _without_mention(text: str, me: Me) -> str:
    found = _MENTION.match(text)
    if found is None or found[1] != me.id:
        return text
    return text[found.end() :].lstrip(" ,:\n") or text


def _named(text: str, said: dict[str, Any]) -> str:
    names = {who["id"]: who.get("global_name") or who.get("username") or who["id"] for who in said.get("mentions", ())}
    return _MENTION.sub(lambda found: f"@{names[found[1]]}" if found[1] in names else found[0], text)


def _files(said: dict[str, Any]) -> tuple[RemoteFile, ...]:
    """Their addresses are valid for a day; with the message's id a new one can be asked for."""
    found = list(said.get("attachments") or ())
    for snapshot in said.get("message_snapshots") or ():
        found.extend(snapshot["message"].get("attachments") or ())
    return tuple(
        RemoteFile(
            id=f"{said['channel_id']}/{said['id']}/{file['id']} {file['url']}",
            name=file["filename"],
            media_type=str(file.get("content_type") or "application/octet-stream").partition(";")[0].strip(),
            size=file.get("size"),
        )
        for file in found
    )
