"""Events as they are stored: as they came, with the one thing that they do not say themselves, where their channel is."""

from typing import Any

import msgspec

from holdfast.platforms.discord import snowflakes

# Everything else of a gateway is not stored.
KINDS = frozenset({"MESSAGE_CREATE", "MESSAGE_UPDATE", "MESSAGE_DELETE", "MESSAGE_DELETE_BULK", "INTERACTION_CREATE", "CHANNEL_DELETE"})
THREADS = (10, 11, 12)


class Where(msgspec.Struct, frozen=True, omit_defaults=True):
    """`parent`: of a thread, the channel that it belongs to."""

    channel: str
    private: bool = False
    parent: str | None = None

    @property
    def chat(self) -> str:
        return self.parent or self.channel

    @property
    def thread(self) -> str | None:
        return self.channel if self.parent else None


class Event(msgspec.Struct, frozen=True, omit_defaults=True):
    """`where` is missing if the event did not say. `late`: it was read from the history, and may have been changed since."""

    t: str
    d: msgspec.Raw
    where: Where | None = None
    late: bool = False


def stored(event: Event) -> bytes:
    return msgspec.json.encode(event)


class _About(msgspec.Struct, frozen=True):
    id: str = ""
    channel_id: str = ""
    guild_id: str | None = None


class About(msgspec.Struct, frozen=True):
    """The id of what an event is about, as a number, and its channel."""

    id: int
    channel: str
    private: bool


def about(t: str, d: msgspec.Raw) -> About | None:
    """None for an event of an unknown form."""
    try:
        found = msgspec.json.decode(d, type=_About)
    except msgspec.DecodeError:
        return None
    channel = found.id if t == "CHANNEL_DELETE" else found.channel_id
    return About(snowflakes.number(found.id), channel, found.guild_id is None) if channel else None


class Interaction(msgspec.Struct, frozen=True):
    """`type`: 2 is a command of the menu, 3 a button."""

    id: str
    token: str
    type: int
    data: dict[str, Any] = {}


def interaction(d: msgspec.Raw) -> Interaction | None:
    try:
        return msgspec.json.decode(d, type=Interaction)
    except msgspec.DecodeError:
        return None
