"""Where and how a line of shell is run for a session: in its folder, in the sandbox where there is one, with an environment that holds
nothing of ours but what tools share.
"""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from holdfast import tool_processes
from holdfast.ports.tools import ToolContext
from holdfast.sandbox import Sandbox
from holdfast.tools.confinement import Confinement
from holdfast.tools.workspaces import Workspaces


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A line of shell, ready to be started."""

    words: list[str]
    folder: Path
    environment: dict[str, str]
    sandbox: Sandbox


class Surroundings:
    def __init__(self, *, workspaces: Workspaces, confinement: Confinement, environment: Mapping[str, str]) -> None:
        self._workspaces, self._confinement = workspaces, confinement
        self._environment = tool_processes.shared(environment)

    @property
    def workspaces(self) -> Workspaces:
        return self._workspaces

    async def ready(self) -> None:
        await self._confinement.found()

    def place(self, session_id: str, folder: str | None) -> str:
        sandbox = self._confinement.known
        return f"{self._workspaces.folder(session_id, folder)}, {sandbox.words if sandbox else 'no sandbox'}"

    @property
    def confines(self) -> bool:
        sandbox = self._confinement.known
        return sandbox is not None and sandbox.confines

    async def prepare(self, line: str, context: ToolContext) -> Line:
        """Its session, key, generation and turn are in its environment (E4). Raises `OSError`, `UnfitFolder`."""
        sandbox = await self._confinement.found()
        place = self._workspaces.make(context.session_id, context.folder)
        known = {
            tool_processes.SESSION: context.session_id,
            "HOLDFAST_SESSION_KEY": context.session_key,
            "HOLDFAST_GENERATION": str(context.generation),
            tool_processes.TURN: context.turn_id,
        }
        return Line(
            words=sandbox.command(line, place),
            folder=place.folder,
            environment=self._environment | sandbox.environment(place) | known,
            sandbox=sandbox,
        )
