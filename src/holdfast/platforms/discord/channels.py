"""Which channels are threads, and of what. A message does not say so itself; what is asked once is remembered as long as the process
lives, because it never changes.
"""

from typing import Any

from holdfast.core.chat_errors import PlaceGone
from holdfast.platforms.discord.events import THREADS, Where
from holdfast.platforms.discord.reads import Reads

MOST_KNOWN = 10_000


class Channels:
    def __init__(self, reads: Reads) -> None:
        self._reads = reads
        self._parents: dict[str, str | None] = {}

    async def where(self, channel: str, *, private: bool) -> Where:
        """Raises `Unavailable`, `LoggedOut`."""
        if private:
            return Where(channel, private=True)
        if channel not in self._parents:
            try:
                self.learn(await self._reads.get(f"/channels/{channel}"))
            except PlaceGone:  # We may be told of it and may not look at it: then it is a place like any other.
                self._parents[channel] = None
        return Where(channel, parent=self._parents[channel])

    def learn(self, channel: dict[str, Any]) -> None:
        if len(self._parents) >= MOST_KNOWN:
            self._parents.clear()
        self._parents[channel["id"]] = channel.get("parent_id") if channel.get("type") in THREADS else None
