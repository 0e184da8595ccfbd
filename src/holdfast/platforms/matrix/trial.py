"""Tries an account before a gateway does: where its homeserver is, whose token it is, and who turns to it first. Confirms nothing, so that
what people write meanwhile is answered by the gateway.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from holdfast.core.chat_errors import LoggedOut
from holdfast.core.errors import Refused, Unavailable
from holdfast.platforms.matrix.errors import Answer, NotSent, Unanswered, meaning
from holdfast.platforms.matrix.wire import Wire
from holdfast.ports.trials import Found, Person

T = TypeVar("T")
POLL_S = 20.0
_ADVICE = "Invite it to rooms without encryption: it accepts the invitations of people who may talk to it."


class Login(msgspec.Struct, frozen=True, kw_only=True):
    user: str
    token: str
    device: str


def discover(given: str) -> str:
    """The address of a homeserver, from an address or from the part of an account's name behind the colon. Raises `Unavailable`."""
    return asyncio.run(_discover(given.strip().rstrip("/")))


def log_in(homeserver: str, user: str, password: str, *, device: str) -> Login:
    """`device`: which it was before, so that it stays the same one. Raises `LoggedOut`, `Unavailable`."""
    body: dict[str, Any] = {
        "type": "m.login.password",
        "identifier": {"type": "m.id.user", "user": user},
        "password": password,
        "initial_device_display_name": "Holdfast",
    }

    async def ask(wire: Wire) -> Login:
        try:
            found = await wire.call("POST", "login", body=body | ({"device_id": device} if device else {}))
        except Answer as error:
            if error.status in (400, 401, 403):
                raise LoggedOut(f"The homeserver does not let {user} in: {error.words}") from None
            raise
        return Login(user=found["user_id"], token=found["access_token"], device=found["device_id"])

    return asyncio.run(_with(Wire(homeserver), ask))


def here(homeserver: str, token: str) -> tuple[str, str]:
    """The device of a token, and from where it has to be read so that nothing is missed from now on. Raises `LoggedOut`, `Unavailable`."""

    async def ask(wire: Wire) -> tuple[str, str]:
        who = await wire.call("GET", "account", "whoami")
        found = await wire.call("GET", "sync", query={"filter": '{"room":{"rooms":[]}}', "timeout": "0"})
        return str(who.get("device_id") or ""), str(found["next_batch"])

    return asyncio.run(_with(Wire(homeserver, token), ask))


def check(account: Mapping[str, str]) -> Found:
    async def ask(wire: Wire) -> Found:
        user = str((await wire.call("GET", "account", "whoami"))["user_id"])
        try:
            name = str((await wire.call("GET", "profile", user, "displayname")).get("displayname") or "")
        except Answer:
            name = ""
        return Found(name=user, about=name, advice=(_ADVICE,))

    return asyncio.run(_with(_wire(account), ask))


def first_person(account: Mapping[str, str], *, within_s: float) -> Person | None:
    """Who invited the account or wrote to it since it was set up; waits for somebody."""

    async def wait(wire: Wire) -> Person | None:
        me = str((await wire.call("GET", "account", "whoami"))["user_id"])
        since, until = account.get("since", ""), time.monotonic() + within_s
        while (left_s := until - time.monotonic()) > 0:
            waits_s = min(POLL_S, left_s)
            query = {"timeout": str(int(1000 * waits_s))} | ({"since": since} if since else {})
            found = await wire.call("GET", "sync", query=query, timeout_s=waits_s + 30.0)
            if (person := _person(found.get("rooms", {}), me)) is not None:
                return person
            since = found["next_batch"]
        return None

    return asyncio.run(_with(_wire(account), wait))


def _person(rooms: dict[str, Any], me: str) -> Person | None:
    for shown in rooms.get("invite", {}).values():
        events = shown.get("invite_state", {}).get("events", ())
        members = {event["state_key"]: event for event in events if event.get("type") == "m.room.member"}
        if me in members and members[me]["sender"] != me:
            who = members[me]["sender"]
            name = members.get(who, {}).get("content", {}).get("displayname") or who
            return Person(id=who, name=name, text="(an invitation)")
    for shown in rooms.get("join", {}).values():
        for event in shown.get("timeline", {}).get("events", ()):
            if event.get("type") == "m.room.message" and event["sender"] != me:
                return Person(id=event["sender"], name=event["sender"], text=str(event["content"].get("body", "")))
    return None


async def _discover(given: str) -> str:
    if given.startswith("@"):
        given = given.partition(":")[2]
    if "://" not in given:
        try:
            found = await _with(
                Wire(f"https://{given}"), lambda wire: wire.call("GET", "client", base="/.well-known/matrix", timeout_s=10.0)
            )
            given = str(found["m.homeserver"]["base_url"]).rstrip("/")
        except (Refused, Unavailable, KeyError, TypeError):
            given = f"https://{given}"
    if urlsplit(given).scheme not in ("http", "https") or not urlsplit(given).hostname:
        raise Unavailable(f"{given!r} is not the address of a homeserver. An address looks like https://matrix.example.org.")
    await _with(Wire(given), lambda wire: wire.call("GET", "versions", base="/_matrix/client", timeout_s=10.0))
    return given


def _wire(account: Mapping[str, str]) -> Wire:
    return Wire(account["homeserver"], account["token"])


async def _with(wire: Wire, work: Callable[[Wire], Awaitable[T]]) -> T:
    try:
        return await work(wire)
    except (Answer, NotSent, Unanswered) as error:
        meant = meaning(error)
        if isinstance(meant, LoggedOut | Unavailable):
            raise meant from None
        raise Unavailable(f"What answers at this address is not a Matrix homeserver ({error}).") from None
    finally:
        await wire.aclose()
