"""Tries a bot before a gateway does (`ports.trials.Trial`): whose token it is, what it may see, and who writes to it first."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import urlencode

import msgspec

from holdfast.core.errors import Unavailable
from holdfast.platforms.discord.errors import Unanswered
from holdfast.platforms.discord.platform import INTENTS, account_name, reads_all
from holdfast.platforms.discord.reads import Reads
from holdfast.platforms.discord.receiving import introduction
from holdfast.platforms.discord.socket import Dropped, Forgotten, Frame, Op, Socket
from holdfast.platforms.discord.wire import API, Wire
from holdfast.ports.trials import Found, Person

T = TypeVar("T")
# To see channels, write there and in threads, attach files, and read what was written while the bot was away.
PERMISSIONS = 1 << 10 | 1 << 11 | 1 << 15 | 1 << 16 | 1 << 38
CONTENT = (
    "In servers it sees only messages that mention it. That is enough unless mention = false or listen_chats is set, or people reply to it"
    " without a mention; then switch on the Message Content Intent in the developer portal (Bot, Privileged Gateway Intents) and restart."
)


def check(account: Mapping[str, str]) -> Found:
    return asyncio.run(_with(account, _check))


def first_person(account: Mapping[str, str], *, within_s: float) -> Person | None:
    return asyncio.run(_with(account, lambda wire: _first_person(wire, within_s)))


async def _check(wire: Wire) -> Found:
    reads = Reads(wire)
    user, application = await reads.get("/users/@me"), await reads.get("/applications/@me")
    return Found(
        name=account_name(user),
        about=str(application.get("name") or ""),
        first=(f"Invite it into a server of yours, if it is in none: {_invitation(application['id'])}",),
        advice=() if reads_all(application) else (CONTENT,),
    )


def _invitation(application: str) -> str:
    return f"{API}/oauth2/authorize?" + urlencode(
        {"client_id": application, "scope": "bot applications.commands", "permissions": PERMISSIONS}
    )


async def _first_person(wire: Wire, within_s: float) -> Person | None:
    """Begins a session of its own, which nobody resumes."""
    url = (await Reads(wire).get("/gateway/bot"))["url"]
    until = time.monotonic() + within_s
    try:
        socket = await Socket.open(wire, url)
        try:
            await socket.say(Op.IDENTIFY, introduction(wire.token, INTENTS))
            while (left_s := until - time.monotonic()) > 0:
                frame = await socket.next(left_s)
                if frame is not None and (found := _person(frame)) is not None:
                    return found
        finally:
            await socket.close()
    except (Dropped, Forgotten, Unanswered) as error:
        raise Unavailable(f"Discord's gateway cannot be reached ({error}).") from None
    return None


def _person(frame: Frame) -> Person | None:
    """Who wrote, if it was a person in a private chat."""
    said: Any = msgspec.json.decode(frame.d) if frame.t == "MESSAGE_CREATE" else {}
    author = said.get("author") or {}
    if not author or author.get("bot") or "guild_id" in said:
        return None
    return Person(id=author["id"], name=author.get("global_name") or author["username"], text=str(said.get("content", "")))


async def _with(account: Mapping[str, str], work: Callable[[Wire], Awaitable[T]]) -> T:
    wire = Wire(account["token"], base_url=account["base_url"])
    try:
        return await work(wire)
    finally:
        await wire.aclose()
