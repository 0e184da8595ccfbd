"""Tries a bot before a gateway does (`ports.trials.Trial`): whose token it is, what it may see, and who writes to it first."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from holdfast.core.errors import Refused, Unavailable
from holdfast.platforms.telegram.errors import Answer, Unanswered, meaning
from holdfast.platforms.telegram.wire import Wire
from holdfast.ports.trials import Found, Person

T = TypeVar("T")
POLL_S = 20


PRIVACY = (
    "In groups Telegram shows it only messages that mention it, reply to it, or are commands. That is usually what you want; @BotFather"
    " changes it with /setprivacy."
)


def check(account: Mapping[str, str]) -> Found:
    return asyncio.run(_with(account, _check))


def first_person(account: Mapping[str, str], *, within_s: float) -> Person | None:
    """Also who wrote since the last poll."""

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

    return asyncio.run(_with(account, wait))


async def _check(wire: Wire) -> Found:
    found = await _ask(wire, "getMe")
    advice = () if found.get("can_read_all_group_messages") else (PRIVACY,)
    return Found(name=f"@{found.get('username', '')}", about=found.get("first_name", ""), advice=advice)


async def _with(account: Mapping[str, str], work: Callable[[Wire], Awaitable[T]]) -> T:
    wire = Wire(account["token"], base_url=account["base_url"])
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
