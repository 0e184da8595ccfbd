"""What stands in a chat of Slack: for what came while nobody was there, and for whether something of ours arrived."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from holdfast.core.chat_errors import LoggedOut
from holdfast.core.errors import Refused
from holdfast.core.places import Place
from holdfast.platforms.slack.backlog import Gap
from holdfast.platforms.slack.errors import Unscoped
from holdfast.platforms.slack.reading import METADATA

PAGE, MOST_PAGES = 200, 5
Ask = Callable[..., Awaitable[dict[str, Any]]]
Said = dict[str, Any]


class Found(NamedTuple):
    """`updates`: as events that would have told them, in their order. `instead`: of a gap with more than a page in it, the parts to ask for
    in its place, the older one first. `threads`: those that begin in it and in which something was written since.
    """

    updates: Sequence[bytes] = ()
    instead: Sequence[Gap] = ()
    threads: Sequence[Gap] = ()


class History:
    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def chats(self) -> list[dict[str, Any]]:
        """Those that the bot is in, as far as it may list them. Raises `Unavailable` and `LoggedOut`."""
        found: list[dict[str, Any]] = []
        cursor: str | None = None
        while True:
            try:
                types = "im,mpim,public_channel,private_channel"
                page = await self._ask("users.conversations", types=types, limit=PAGE, cursor=cursor)
            except Refused as error:
                _raise_if_shut_out(error)
                return found
            found += page["channels"]
            cursor = _next(page)
            if cursor is None:
                return found

    async def since(self, gap: Gap, heard_until: str) -> Found:
        """Of a chat that is gone there is nothing. `heard_until`: older replies are known, in whichever thread. Raises `Unavailable` and
        `LoggedOut`.
        """
        said: list[Said] = []
        cursor: str | None = None
        try:
            while True:
                page, cursor = await self._page(gap.channel, gap.thread, cursor, oldest=gap.oldest, latest=gap.latest)
                # Replies come with the message that began their thread, however old that is.
                said += (one for one in page if float(one["ts"]) > float(gap.oldest))
                if cursor is None or len(said) > 1:
                    break
        except Refused as error:
            _raise_if_shut_out(error)
            return Found()
        said.sort(key=lambda one: float(one["ts"]))
        return Found(_events(gap, said), threads=_threads(gap, said, heard_until)) if cursor is None else Found(instead=_parts(gap, said))

    async def sent_under(self, key: str, place: Place) -> str | None:
        """The message of ours with this key. Raises `Unavailable`, `PlaceGone`, and `Refused` where it can never be told."""
        found, whole = await self._pages(place.chat, place.thread)
        for said in found:
            metadata = said.get("metadata") or {}
            if metadata.get("event_type") == METADATA and metadata["event_payload"].get("id") == key:
                return str(said["ts"])
        if not whole and place.thread is not None:  # Threads are read from their beginning.
            raise Refused("The thread is too long to look for a message in it.")
        return None

    async def _pages(self, channel: str, thread: str | None) -> tuple[list[Said], bool]:
        """The messages, and whether these are all."""
        found: list[Said] = []
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            page, cursor = await self._page(channel, thread, cursor)
            found += page
            if cursor is None:
                return found, True
        return found, False

    async def _page(self, channel: str, thread: str | None, cursor: str | None, **bounds: str | None) -> tuple[list[Said], str | None]:
        """Some messages, and what leads to the next ones."""
        method = "conversations.history" if thread is None else "conversations.replies"
        page = await self._ask(method, channel=channel, ts=thread, limit=PAGE, cursor=cursor, include_all_metadata=True, **bounds)
        return page["messages"], _next(page)


def _next(page: dict[str, Any]) -> str | None:
    return (page.get("response_metadata") or {}).get("next_cursor") or None


def _raise_if_shut_out(error: Refused) -> None:
    """A chat that is gone, or that the app may not read, has nothing for us. A revoked token says nothing about any chat."""
    if isinstance(error, LoggedOut) and not isinstance(error, Unscoped):
        raise error


def _events(gap: Gap, said: Sequence[Said]) -> list[bytes]:
    kind = {"channel_type": gap.kind} if gap.kind else {}
    events = ({"type": "message", "channel": gap.channel, **kind, **one} for one in said)
    return [msgspec.json.encode({"type": "event_callback", "event": event}) for event in events]


def _threads(gap: Gap, said: Sequence[Said], heard_until: str) -> list[Gap]:
    if gap.thread is not None:
        return []
    roots = (str(one["ts"]) for one in said if float(one.get("latest_reply") or 0) > float(heard_until))
    return [Gap(gap.channel, max(root, heard_until, key=float), gap.kind, root) for root in roots]


def _parts(gap: Gap, said: Sequence[Said]) -> tuple[Gap, Gap]:
    """Each has fewer messages than the gap, whichever end of it Slack showed first. Neither bound is part of what is asked for."""
    middle = len(said) // 2
    return msgspec.structs.replace(gap, latest=said[middle]["ts"]), msgspec.structs.replace(gap, oldest=said[middle - 1]["ts"])
