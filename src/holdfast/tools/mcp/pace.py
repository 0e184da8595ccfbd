"""How fast a server may speak: reading what it says leaves the event loop to others for most of the time, however much it says (P8)."""

import asyncio

BYTES_PER_S = 16 * 1024 * 1024
MESSAGES_PER_S = 1_000
# What comes at once now and then is not held up.
AHEAD_S = 0.5


class Pace:
    """Of one server, or of one connection to it."""

    def __init__(self) -> None:
        self._free_at = 0.0

    async def keep(self, *, size: int = 0, messages: int = 0) -> None:
        """Waits as long as this much takes at most."""
        now = asyncio.get_running_loop().time()
        self._free_at = max(self._free_at, now - AHEAD_S) + max(size / BYTES_PER_S, messages / MESSAGES_PER_S)
        if self._free_at > now:
            await asyncio.sleep(self._free_at - now)
