"""The tools of a gateway, together: what they left running is found and ended."""

from collections.abc import Callable

from holdfast.ports.tools import Tool


class Toolbox:
    def __init__(self, tools: dict[str, Tool]) -> None:
        self._tools = tools

    def get(self, name: str) -> Tool | None:
        return self._tools.get(name)

    async def reap(self, lives: Callable[[str], bool]) -> None:
        """Kills what owners left running that live no more."""
        for tool in self._tools.values():
            await tool.reap(lives)

    async def stop(self, turn_id: str) -> None:
        """What finished calls of a turn left in the background ends with the turn that is stopped (A21)."""
        for tool in self._tools.values():
            await tool.stop(turn_id)

    async def end_session(self, session_id: str) -> None:
        """What calls of a session left in the background. A call that still runs is ended by the stop of its turn."""
        for tool in self._tools.values():
            await tool.end_session(session_id)
