"""Which sandbox the tools of this process have: tried once, out of the event loop; everyone who needs to know waits for it."""

import asyncio
from collections.abc import Callable

from holdfast.sandbox import Sandbox


class Confinement:
    def __init__(self, look: Callable[[], Sandbox]) -> None:
        self._look, self._looking = look, asyncio.Lock()
        self.known: Sandbox | None = None

    async def found(self) -> Sandbox:
        if self.known is None:
            async with self._looking:
                if self.known is None:
                    self.known = await asyncio.to_thread(self._look)
        return self.known
