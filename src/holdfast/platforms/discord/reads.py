"""Questions to Discord that change nothing: they may be asked again, and wait for the limits themselves."""

import asyncio
from collections.abc import Mapping
from typing import Any

from holdfast.core.chat_errors import Limited
from holdfast.core.errors import Unavailable
from holdfast.platforms.discord.errors import Answer, Unanswered
from holdfast.platforms.discord.wire import Wire

# Longer than that is not waited for.
MOST_WAIT_S = 60.0
TRIES = 3


class Reads:
    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def get(self, path: str, **query: str) -> Any:
        """Raises `Unavailable`, `Refused`."""
        return await self._ask("GET", path, None, query)

    async def open_private(self, user: str) -> Any:
        """The private chat with somebody. They do not notice; it is the same one each time."""
        return await self._ask("POST", "/users/@me/channels", {"recipient_id": user}, {})

    async def _ask(self, method: str, path: str, body: Mapping[str, Any] | None, query: Mapping[str, str]) -> Any:
        for number in range(TRIES):
            try:
                return await self._wire.call(method, path, body, query=query)
            except Limited as error:
                if error.retry_after_s > MOST_WAIT_S or number == TRIES - 1:
                    raise
                await asyncio.sleep(error.retry_after_s)
            except (Answer, Unanswered) as error:
                raise Unavailable(f"Discord did not answer ({error}).", retry_after_s=2.0) from None
        raise AssertionError("unreachable")
