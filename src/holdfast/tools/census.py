"""Which processes run of which call."""

import asyncio
from pathlib import Path

from holdfast import tool_processes
from holdfast.core.process_id import ProcessId


class Census:
    """Looking takes a few milliseconds: many who ask at once share a look that began after they asked."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._looking = asyncio.Lock()
        self._begun = 0
        self._found: dict[str, list[ProcessId]] = {}

    async def running(self, call: str) -> list[ProcessId]:
        asked = self._begun
        async with self._looking:
            if self._begun == asked:
                self._begun += 1
                self._found = await asyncio.to_thread(self._look)
            return self._found.get(call, [])

    def _look(self) -> dict[str, list[ProcessId]]:
        found: dict[str, list[ProcessId]] = {}
        for process, environment in tool_processes.running(self._home):
            found.setdefault(environment.get(tool_processes.CALL, ""), []).append(process)
        return found
