"""What stands in a chat of Slack: for what came while nobody was there, and for whether something of ours arrived."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from holdfast.core.errors import Refused, Unavailable
from holdfast.core.places import Place
from holdfast.platforms.slack.backlog import Gap
from holdfast.platforms.slack.reading import METADATA

PAGE, MOST_PAGES = 200, 5
Ask = Callable[..., Awaitable[dict[str, Any]]]


class History:
    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def chats(self) -> list[dict[str, Any]]:
        """Those that the bot is in, as far as it may list them."""
        try:
            found = await self._ask("users.conversations", types="im,mpim,public_channel,private_channel", limit=PAGE)
        except Refused:
            return []
        return list(found["channels"])

    async def since(self, gap: Gap) -> Sequence[bytes]:
        """As events that would have told them, in their order. Of a chat that is gone there is nothing. Raises `Unavailable`."""
        try:
            found, _ = await self._pages(gap.channel, gap.thread, oldest=gap.oldest)
        except Refused:
            return ()
        found.sort(key=lambda said: str(said["ts"]))
        kind = {"channel_type": gap.kind} if gap.kind else {}
        events = ({"type": "message", "channel": gap.channel, **kind, **said} for said in found)
        return [msgspec.json.encode({"type": "event_callback", "event": event}) for event in events]

    async def sent_under(self, key: str, place: Place) -> str | None:
        """The message of ours with this key. Raises `Unavailable` where that cannot be told."""
        try:
            found, whole = await self._pages(place.chat, place.thread)
        except Refused as error:
            raise Unavailable(f"Slack does not show the chat ({error}).") from error
        for said in found:
            metadata = said.get("metadata") or {}
            if metadata.get("event_type") == METADATA and metadata["event_payload"].get("id") == key:
                return str(said["ts"])
        if not whole and place.thread is not None:  # Threads are read from their beginning.
            raise Unavailable("The thread is too long to look for a message in it.")
        return None

    async def _pages(self, channel: str, thread: str | None, *, oldest: str | None = None) -> tuple[list[dict[str, Any]], bool]:
        """The messages, and whether these are all."""
        method = "conversations.history" if thread is None else "conversations.replies"
        found: list[dict[str, Any]] = []
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            page = await self._ask(method, channel=channel, ts=thread, oldest=oldest, limit=PAGE, cursor=cursor, include_all_metadata=True)
            found += page["messages"]
            cursor = (page.get("response_metadata") or {}).get("next_cursor") or None
            if cursor is None:
                return found, True
        return found, False
