"""Tries an app before a gateway does (`ports.trials.Trial`): whose tokens they are, what the bot may do, and who writes to it first."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from holdfast.core.errors import Refused, Unavailable
from holdfast.core.inbound import Message
from holdfast.platforms.slack import reading
from holdfast.platforms.slack.errors import Answer, Unanswered, meaning
from holdfast.platforms.slack.reading import Me
from holdfast.platforms.slack.sockets import Sockets
from holdfast.platforms.slack.wire import Wire
from holdfast.ports.trials import Found, Person

T = TypeVar("T")
NEEDED = ("chat:write", "im:history", "channels:history", "groups:history", "mpim:history", "files:read", "files:write")
INVITE = "In a channel it hears only what is written after it was invited there (`/invite {name}`), and answers in threads."


def check(account: Mapping[str, str]) -> Found:
    return asyncio.run(_with(account, _check))


def first_person(account: Mapping[str, str], *, within_s: float) -> Person | None:
    return asyncio.run(_with(account, lambda wire: _first_person(wire, within_s)))


async def _check(wire: Wire) -> Found:
    found = await _made(wire.tell("auth.test"))
    if wire.has_app:
        await _made(wire.socket_address())
    name = f"@{found.get('user', '')}"
    missing = [scope for scope in NEEDED if wire.scopes and scope not in wire.scopes]
    advice = [f"The app lacks {', '.join(missing)}. Add that in its settings below OAuth & Permissions, and install it again."]
    said = (*(advice if missing else ()), INVITE.format(name=name))
    return Found(name=name, about=found.get("team", ""), advice=said, hears=wire.has_app)


async def _first_person(wire: Wire, within_s: float) -> Person | None:
    """Nothing is acknowledged, so Slack tells it to the gateway again."""
    me, sockets = await _made(wire.tell("auth.test")), Sockets(wire)
    until = time.monotonic() + within_s
    await _made(sockets.open())
    try:
        while (left_s := until - time.monotonic()) > 0:
            frame = await _made(sockets.next(left_s))
            for said in _read(frame.body, Me(user=me["user_id"], bot=me.get("bot_id", ""))) if frame else ():
                if isinstance(said, Message) and not said.source.shared:
                    return Person(id=said.source.user, name=await _name(wire, said.source.user), text=said.text)
        return None
    finally:
        await sockets.aclose()


def _read(body: bytes, me: Me) -> tuple[Any, ...]:
    try:
        return reading.read(body, me)
    except Exception:  # The platform's boundary: an update may hold anything.
        return ()


async def _name(wire: Wire, user: str) -> str:
    try:
        found = (await wire.ask("users.info", user=user))["user"]
        return str(found.get("real_name") or found.get("name") or user)
    except (Answer, Unanswered):
        return user


async def _with(account: Mapping[str, str], work: Callable[[Wire], Awaitable[T]]) -> T:
    wire = Wire(account["bot_token"], account.get("app_token", ""), base_url=account["base_url"])
    try:
        return await work(wire)
    finally:
        await wire.aclose()


async def _made(request: Awaitable[T]) -> T:
    try:
        return await request
    except Exception as error:
        meant = meaning(error)
        if not isinstance(meant, Refused | Unavailable):
            meant = Unavailable(f"Slack did not answer ({error}).")
        raise meant from None
