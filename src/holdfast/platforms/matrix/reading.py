"""What an event of a room means. Pure; it knows which account it is read for. An event comes with what it needs to be understood without
asking anybody: the room, whether that is a private chat, the name of its sender, and the event that it replies or reacts to.
"""

from typing import Any

import msgspec

from holdfast.core import commands
from holdfast.core.chat_errors import Unreadable
from holdfast.core.inbound import Click, Echo, Edit, Inbound, Invitation, Message, Move, Presence, RemoteFile, Removal, Sealed, Source
from holdfast.core.places import Anchor
from holdfast.platforms.matrix.rendering import BUTTONS, KEY, pressed

# What is asked for of a room; everything else means nothing to us.
KINDS = ("m.room.message", "m.sticker", "m.room.encrypted", "m.reaction", "m.room.redaction", "m.room.member", "m.room.tombstone")
MOST_QUOTED = 1000
# Words of programs, which are never answered, and requests of clients to each other.
_NOT_FOR_US = ("m.notice", "m.server_notice", "m.key.verification.")


class Me(msgspec.Struct, frozen=True, kw_only=True):
    """The account itself. `user`: its full id. `name`: as rooms show it."""

    user: str
    name: str = ""


class Update(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is stored of an event. `direct`: the room is a private chat; `alone`: nobody else was there with its sender and us. `related`:
    the event that it replies or reacts to. In the place of an event, `invited`: what the room shows to somebody who is invited; `replaces`:
    the room that this one continues, as both of them say.
    """

    room: str
    event: Any = None
    direct: bool = False
    alone: bool = False
    name: str = ""
    related: dict[str, Any] | None = None
    invited: list[Any] | None = None
    replaces: str | None = None


def read(update: bytes, me: Me) -> tuple[Inbound, ...]:
    """Raises `Unreadable`, and whatever an event of an unknown form leads to."""
    found = msgspec.json.decode(update, type=Update)
    if found.invited is not None:
        return _invitation(found, found.invited, me)
    if found.replaces is not None:
        return (Move(was=found.replaces, now=found.room),)
    event = found.event
    if isinstance(event, str):  # Why there is none.
        raise Unreadable(event)
    if not isinstance(event, dict) or not isinstance(event.get("event_id"), str) or not isinstance(event.get("sender"), str):
        raise Unreadable("It is no event of a room.")
    if event["type"] == "m.room.member":
        return _member(found, me)
    if event["sender"] == me.user:
        return _ours(found)
    match event["type"]:
        case "m.room.message" | "m.sticker":
            return _said(found, me)
        case "m.room.encrypted":
            return (Sealed(key=f"{found.room}|sealed", source=_source(found), anchor=_anchor(event)),)
        case "m.reaction":
            return _reaction(found, me)
        case "m.room.redaction":
            gone = event.get("redacts") or event["content"].get("redacts")
            return (Removal(key=_key(found, gone), source=_source(found)),) if gone else ()
        case _:
            return ()


def relation(event: dict[str, Any]) -> tuple[str, str] | None:
    """The kind of what connects an event with another, and the other's id: "m.thread", "m.replace", "m.annotation" or "reply"."""
    relates = event.get("content", {}).get("m.relates_to") or {}
    if relates.get("rel_type"):
        return str(relates["rel_type"]), str(relates["event_id"])
    replied = (relates.get("m.in_reply_to") or {}).get("event_id")
    return ("reply", str(replied)) if replied else None


def replied_to(event: dict[str, Any]) -> str | None:
    """The message that somebody replies to. In a thread clients that know no threads are given one that nobody chose."""
    relates = event.get("content", {}).get("m.relates_to") or {}
    if relates.get("is_falling_back"):
        return None
    found = (relates.get("m.in_reply_to") or {}).get("event_id")
    return str(found) if found else None


# what people do


def _said(found: Update, me: Me) -> tuple[Inbound, ...]:
    event, content = found.event, found.event["content"]
    if not content or str(content.get("msgtype")).startswith(_NOT_FOR_US):  # Taken back since, or no word of a person.
        return ()
    related = relation(event)
    if related is not None and related[0] == "m.replace":
        new = content.get("m.new_content") or {}
        text, _ = _heard(_words(new), me)
        return (Edit(key=_key(found, related[1]), version=event["event_id"], source=_source(found), text=text),)
    reply_to, body = replied_to(event), _words(content)
    fallback, body = _fallback(body) if _has_reply(content) else ("", body)
    mentioned = _mentions(content, me)
    text, named = _heard(body, me, mentioned=mentioned)
    ours = found.related is not None and found.related.get("sender") == me.user
    return (
        Message(
            key=_key(found, event["event_id"]),
            source=_source(found),
            text=text,
            files=_files(event),
            anchor=_anchor(event),
            reply_to=reply_to,
            quote=_quote(found, fallback, me) if reply_to else "",
            addressed=found.direct or found.alone or named or ours or mentioned or _is_command(text),
        ),
    )


def _ours(found: Update) -> tuple[Inbound, ...]:
    event = found.event
    content = event.get("content") or {}
    if event["type"] != "m.room.message" or (relation(event) or ("", ""))[0] == "m.replace":
        return ()
    key = (event.get("unsigned") or {}).get("transaction_id") or content.get(KEY)
    return (Echo(message=event["event_id"], chat=found.room, key=key),)


def _reaction(found: Update, me: Me) -> tuple[Inbound, ...]:
    """To a message of ours that has buttons: it presses one of them."""
    relates = found.event["content"].get("m.relates_to") or {}
    related = found.related or {}
    if related.get("sender") != me.user or relates.get("rel_type") != "m.annotation":
        return ()
    content = related.get("content") or {}
    data = pressed(str(relates.get("key", "")), [each for each in content.get(BUTTONS) or () if isinstance(each, str)])
    if data is None:
        return ()
    kind = relation(related)
    source = _source(found, thread=kind[1] if kind is not None and kind[0] == "m.thread" else None)
    return (Click(id=found.event["event_id"], source=source, data=data, message=related["event_id"]),)


def _member(found: Update, me: Me) -> tuple[Inbound, ...]:
    event = found.event
    if event.get("state_key") != me.user:
        return ()
    match event["content"]["membership"]:
        case "join":
            return (Presence(chat=found.room, there=True),)
        case "leave" | "ban":
            ours = event["sender"] == me.user
            return (Presence(chat=found.room, there=False, why="The account left the room." if ours else _removed(event)),)
        case _:
            return ()


def _removed(event: dict[str, Any]) -> str:
    reason = event["content"].get("reason")
    return f"{event['sender']} removed the account from the room{f': {reason}' if reason else '.'}"


def _invitation(found: Update, shown: list[Any], me: Me) -> tuple[Inbound, ...]:
    for event in shown:
        if event["type"] == "m.room.member" and event["state_key"] == me.user and event["content"]["membership"] == "invite":
            chat_type = "dm" if event["content"].get("is_direct") else "group"
            return (Invitation(source=Source(chat=found.room, user=event["sender"], chat_type=chat_type)),)
    raise Unreadable("It is an invitation of nobody.")


# parts of it


def _key(found: Update, event_id: str) -> str:
    return f"{found.room}|{event_id}"


def _source(found: Update, *, thread: str | None = None) -> Source:
    return Source(
        chat=found.room,
        user=found.event["sender"],
        chat_type="dm" if found.direct else "group",
        thread=thread or _thread(found.event),
        name=found.name or found.event["sender"].removeprefix("@").partition(":")[0],
    )


def _thread(event: dict[str, Any]) -> str | None:
    found = relation(event)
    return found[1] if found is not None and found[0] == "m.thread" else None


def _anchor(event: dict[str, Any]) -> Anchor:
    return Anchor(event["event_id"], _thread(event) or "")


def _words(content: dict[str, Any]) -> str:
    """What is said. The body of a file is its name, unless there is a name besides it."""
    body = str(content.get("body") or "")
    if "url" in content or "file" in content:
        name = content.get("filename")
        return body if name is not None and name != body else ""
    if content.get("msgtype") == "m.location":
        return f"[Location: {content.get('geo_uri', '').removeprefix('geo:')}{f' ({body})' if body else ''}]"
    return body


def _has_reply(content: dict[str, Any]) -> bool:
    return bool((content.get("m.relates_to") or {}).get("m.in_reply_to"))


def _fallback(body: str) -> tuple[str, str]:
    """Older clients put the words that are replied to before the reply. Gives both."""
    lines = body.split("\n")
    end = next((place for place, line in enumerate(lines) if not line.startswith(">")), len(lines))
    if not end or not lines[0].startswith(("> <", "> * <")):
        return "", body
    quoted = "\n".join(line.removeprefix(">").removeprefix(" ") for line in lines[:end])
    behind = end + (end < len(lines) and not lines[end])
    return quoted.partition("> ")[2], "\n".join(lines[behind:])


def _quote(found: Update, fallback: str, me: Me) -> str:
    """The words of others that are replied to. Our own words the agent knows."""
    if found.related is None:
        return fallback[:MOST_QUOTED]
    if found.related.get("sender") == me.user:
        return ""
    content = found.related.get("content") or {}
    body = str(content.get("body") or "")
    return (_fallback(body)[1] if _has_reply(content) else body)[:MOST_QUOTED]


def _mentions(content: dict[str, Any], me: Me) -> bool:
    """By the list of those who are meant; from clients without it, by a link to us or by our id."""
    meant = content.get("m.mentions")
    if isinstance(meant, dict):
        return me.user in (meant.get("user_ids") or ())
    return f"matrix.to/#/{me.user}" in str(content.get("formatted_body") or "") or me.user in str(content.get("body") or "")


def _heard(text: str, me: Me, *, mentioned: bool = False) -> tuple[str, bool]:
    """The text without the name by which we are called, which says nothing to the agent; and whether it begins with that. Clients keep
    commands that begin with a slash to themselves, so an exclamation mark does as well.
    """
    named = False
    for name in (me.user, me.name, me.user.removeprefix("@").partition(":")[0]):
        ends = ":, \n" if mentioned or name == me.user else ":,"
        behind = text[len(name) : len(name) + 1]
        if name and text[: len(name)].casefold() == name.casefold() and (not behind or behind in ends):
            text, named = text[len(name) :].lstrip(":, \n") or text, bool(behind) or mentioned
            break
    if text.startswith("!") and _is_command(f"/{text[1:]}"):
        text = f"/{text[1:]}"
    return text, named


def _is_command(text: str) -> bool:
    found = commands.parse(text)
    return found is not None and found.known


def _files(event: dict[str, Any]) -> tuple[RemoteFile, ...]:
    content = event["content"]
    url = content.get("url")
    if not isinstance(url, str) or not url.startswith("mxc://"):
        return ()
    info = content.get("info") or {}
    name = content.get("filename") or content.get("body") or "file"
    media_type = info.get("mimetype") or _TYPES.get(content.get("msgtype") or event["type"], "application/octet-stream")
    size = info.get("size")
    return (RemoteFile(id=url, name=str(name), media_type=str(media_type), size=size if isinstance(size, int) else None),)


_TYPES = {"m.image": "image/png", "m.sticker": "image/png", "m.audio": "audio/ogg", "m.video": "video/mp4"}
