"""Tries a bot before a gateway does: whose token it is, what it may see, and who writes to it first. Confirms nothing, so that what people
write meanwhile is answered by the gateway.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec

from holdfast.core.errors import Refused, Unavailable
from holdfast.platforms.telegram.errors import Answer, Unanswered, meaning
from holdfast.platforms.telegram.wire import Wire

T = TypeVar("T")
POLL_S = 20


class Bot(msgspec.Struct, frozen=True, kw_only=True):
    """`reads_groups`: it sees all messages of its groups, not only those that mention it. `topics`: its private chats may have topics."""

    id: str
    username: str
    name: str
    reads_groups: bool = False
    topics: bool = False


class Person(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    text: str


def check(token: str, base_url: str) -> Bot:
    """Raises `LoggedOut` or `Unavailable`."""
    return asyncio.run(_with(token, base_url, _check))


def first_person(token: str, base_url: str, *, within_s: float) -> Person | None:
    """Who wrote to the bot, in a private chat, since the last poll; waits for somebody. Raises `Unavailable`."""

    async def wait(wire: Wire) -> Person | None:
        await _ask(wire, "deleteWebhook", drop_pending_updates=False)
        until = time.monotonic() + within_s
        while (left_s := until - time.monotonic()) > 0:
            waits = max(1, min(POLL_S, int(left_s)))
            found = await _ask(wire, "getUpdates", read_timeout_s=waits + 10.0, limit=100, timeout=waits, allowed_updates=["message"])
            for update in reversed(found):
                said = update.get("message", {})
                if said.get("chat", {}).get("type") == "private" and "from" in said:
                    who = said["from"]
                    name = " ".join(part for part in (who.get("first_name"), who.get("last_name")) if part)
                    return Person(id=str(who["id"]), name=name, text=str(said.get("text", "")))
            if found:  # The same would come again at once.
                await asyncio.sleep(1.0)
        return None

    return asyncio.run(_with(token, base_url, wait))


async def _check(wire: Wire) -> Bot:
    found = await _ask(wire, "getMe")
    return Bot(
        id=str(found["id"]),
        username=found.get("username", ""),
        name=found.get("first_name", ""),
        reads_groups=bool(found.get("can_read_all_group_messages")),
        topics=bool(found.get("has_topics_enabled")),
    )


async def _with(token: str, base_url: str, work: Callable[[Wire], Awaitable[T]]) -> T:
    wire = Wire(token, base_url=base_url)
    try:
        return await work(wire)
    finally:
        await wire.aclose()


async def _ask(wire: Wire, method: str, **parameters: Any) -> Any:
    try:
        return await wire.call(method, **parameters)
    except Exception as error:
        meant = meaning(error)
        if isinstance(meant, Answer | Unanswered):
            meant = Unavailable(f"Telegram did not answer ({error}).")
        assert isinstance(meant, Refused | Unavailable)
        raise meant from None
