"""What people do in a chat, translated from a platform's update: the same values for every platform."""

from collections.abc import Mapping

import msgspec

from holdfast.core.places import Anchor

# What a button answers with; a choice is a number, from 0.
APPROVE, ALWAYS, DENY = "approve", "always", "deny"
# For so long, and so many of them, edits wait for messages that they overtook. Most come within minutes; what no message follows, as the
# edit of one that was not meant for us, must not stay.
EARLY_MS, MOST_EARLY = 60 * 60 * 1000, 200


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """Who did something, and where. `chat_type`: dm, group or channel. `name`: what to call the person; anybody can take any name."""

    chat: str
    user: str
    chat_type: str = "dm"
    thread: str | None = None
    name: str = ""

    @property
    def shared(self) -> bool:
        return self.chat_type != "dm"


class RemoteFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that the platform keeps. `id`: by which it is fetched."""

    id: str
    name: str
    media_type: str = "application/octet-stream"
    size: int | None = None


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """`key` names the message within its account, the same whenever it is delivered. `anchor`: what a reply to it hangs on. `reply_to`: the
    message that it replies to, by the receipt of that message; `quote`: words of it that are not ours. `addressed`: it mentions us, or
    replies to us, or is a command. `follows`: it stands in a thread and is meant for those who take part in that, us among them if we do.
    `album`: those with the same one were sent together.
    """

    key: str
    source: Source
    text: str = ""
    files: tuple[RemoteFile, ...] = ()
    anchor: Anchor = Anchor()
    reply_to: str | None = None
    quote: str = ""
    addressed: bool = True
    follows: bool = False
    album: str | None = None


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """`key`: of the message as it was first delivered; `version`: differs from one edit of it to the next."""

    key: str
    version: str
    source: Source
    text: str


class Removal(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    source: Source


class Click(msgspec.Struct, frozen=True, kw_only=True):
    """On a button of ours. `id`: by which the platform is answered. `message`: ours, with the button."""

    id: str
    source: Source
    data: str
    message: str


class Echo(msgspec.Struct, frozen=True, kw_only=True):
    """A message of our own. `key`: with which it was sent, where that is known."""

    message: str
    chat: str
    key: str | None = None


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """A chat goes by another name from now on."""

    was: str
    now: str


class Presence(msgspec.Struct, frozen=True, kw_only=True):
    """We were let into a chat, or shut out of it."""

    chat: str
    there: bool
    why: str = ""


class Invitation(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody asks us into a chat, which we are not in before we accept it. The type of the chat is what they say it is."""

    source: Source


class Sealed(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody wrote what we cannot read, because the chat is encrypted. `key`: the same for everything in that chat."""

    key: str
    source: Source
    anchor: Anchor = Anchor()


Inbound = Message | Edit | Removal | Click | Echo | Move | Presence | Invitation | Sealed


def chat_of(inbound: Inbound) -> str:
    """Things of one chat happen in the order in which they were delivered. A move comes before what is said under the new name."""
    match inbound:
        case Message(source=source) | Edit(source=source) | Removal(source=source) | Click(source=source):
            return source.chat
        case Invitation(source=source) | Sealed(source=source):
            return source.chat
        case Echo(chat=chat) | Presence(chat=chat) | Move(now=chat):
            return chat


def waits_no_more(edits: Mapping[str, int], now: int) -> list[str]:
    """Of edits that came before their message, in their order and with the time at which each came: those that are forgotten."""
    old = [name for name, at in edits.items() if now - at >= EARLY_MS]
    rest = [name for name in edits if name not in old]
    return old + rest[: max(0, len(rest) - MOST_EARLY)]


def button_data(question_id: str, which: str | int) -> str:
    return f"{question_id} {which}"


def button(data: str) -> tuple[str, str] | None:
    """The question and the answer that a button stands for; None if it is not one of ours."""
    question_id, space, which = data.partition(" ")
    known = which in (APPROVE, ALWAYS, DENY) or which.isdecimal()
    return (question_id, which) if space and question_id and known else None
