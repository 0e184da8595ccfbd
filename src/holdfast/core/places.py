"""Where in a chat something is said: the chat, its thread or topic, and the message it replies to."""

import msgspec

from holdfast.core import keys


class Anchor(msgspec.Struct, frozen=True):
    """What a reply hangs on: a message, with the thread and the topic that it stands in. Written as `message@thread@topic`; parts may hold
    any text, and those that are missing at the end are left out.
    """

    message: str = ""
    thread: str = ""
    topic: str = ""

    def __str__(self) -> str:
        return "@".join(_escape(part) for part in (self.message, self.thread, self.topic)).rstrip("@")


def anchor(text: str | None) -> Anchor:
    """The exact inverse of `str(anchor)`."""
    parts = (text or "").split("@")
    return Anchor(*(_unescape(part) for part in parts[:3]))


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """`chat` is the name under which its conversations are kept; the platform may call it otherwise by now. `topic`: a second
    name of the thread, where a platform has one.
    """

    platform: str
    chat: str
    chat_type: str = "dm"
    thread: str | None = None
    topic: str | None = None
    reply_to: str | None = None

    @property
    def spot(self) -> "Spot":
        return Spot(self.platform, self.chat, self.thread)

    @property
    def shared(self) -> bool:
        """More than one person reads it."""
        return self.chat_type != "dm"


class Spot(msgspec.Struct, frozen=True):
    """A chat, or one thread of it: what is sent there is read in the order in which it is sent."""

    platform: str
    chat: str
    thread: str | None = None


def place(session_key: str, hangs_on: str | None = None) -> Place:
    """Where a reply in a conversation goes. `hangs_on`: the anchor of what it replies to."""
    key, found = keys.parse(session_key), anchor(hangs_on)
    return Place(
        platform=key.platform,
        chat=key.chat_id,
        chat_type=key.chat_type,
        thread=found.thread or key.thread_id,
        topic=found.topic or None,
        reply_to=found.message or None,
    )


def _escape(part: str) -> str:
    return part.replace("%", "%25").replace("@", "%40")


def _unescape(part: str) -> str:
    return part.replace("%40", "@").replace("%25", "%")
