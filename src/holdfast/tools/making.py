"""How the configured tools are made, and where they work."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from holdfast.config import Config, has_agent, most_upload_bytes, schedule_policy, tools_folder
from holdfast.config.tools import fetch_networks
from holdfast.core.redaction import Secrets
from holdfast.ports.blobs import Put
from holdfast.ports.keepers import Keepers
from holdfast.ports.process import Clock, Ids
from holdfast.ports.store import Store
from holdfast.ports.tools import Buffers, Tool
from holdfast.sandbox import Sandbox
from holdfast.tools.confinement import Confinement
from holdfast.tools.processes import Processes
from holdfast.tools.surroundings import Surroundings
from holdfast.tools.terminal import Terminal
from holdfast.tools.workspaces import Workspaces

if TYPE_CHECKING:
    from holdfast.ports.models import Transcriber
    from holdfast.tools.mcp.ground import Spawn
    from holdfast.tools.mcp.servers import Servers


class Ground(msgspec.Struct, frozen=True, kw_only=True):
    """What tools stand on. `owner` and `name`: of this process, in the store and of its lock. `put` and `read`: the bytes of a blob.
    `buffers`: the files of editors, if tools may use them.
    """

    home: Path
    owner: int
    name: str
    environment: Mapping[str, str]
    store: Store
    keepers: Keepers
    clock: Clock
    ids: Ids
    secrets: Secrets
    put: Put
    read: Callable[[str], Awaitable[bytes]]
    spawn: "Spawn"
    buffers: Buffers | None = None


class Making:
    """Of one configuration. What it does not ask for is not loaded."""

    def __init__(self, config: Config, ground: Ground) -> None:
        self._config, self._ground = config, ground
        self.workspaces = Workspaces(config.home, folder=tools_folder(config), shared=config.tools.shared)
        self.confinement = Confinement(self._sandbox)
        self.servers = self._servers()

    def _sandbox(self) -> Sandbox:
        """Looked for when the first command needs it, or when this process serves; not before, because it takes a tenth of a second."""
        from holdfast.sandbox.trial import choose

        config = self._config
        return choose(
            config.tools.sandbox,
            home=config.home,
            shared=tools_folder(config) if config.tools.shared else None,
            network=config.tools.network,
            environment=self._ground.environment,
        )

    def _servers(self) -> "Servers | None":
        """Of tools, if there are some and an agent that can use them."""
        if not self._config.mcp or not has_agent(self._config):
            return None
        from holdfast.tools.mcp import ground as mcp
        from holdfast.tools.mcp.servers import Servers

        ground = self._ground
        return Servers(
            self._config.mcp,
            mcp.Ground(
                home=ground.home,
                owner=ground.name,
                environment=ground.environment,
                confinement=self.confinement,
                secrets=ground.secrets,
                put=ground.put,
                spawn=ground.spawn,
                longest_s=self._config.tools.timeout_s,
            ),
        )

    def tools(self, transcriber: "Transcriber | None") -> dict[str, Tool]:
        """By name. `transcriber`: of recordings, if there is a model for it."""
        config, ground = self._config, self._ground
        surroundings = Surroundings(workspaces=self.workspaces, confinement=self.confinement, environment=ground.environment)
        terminal = Terminal(home=ground.home, owner=ground.name, surroundings=surroundings, timeout_s=config.tools.timeout_s)
        processes = Processes(
            records=ground.store,
            keepers=ground.keepers,
            surroundings=surroundings,
            clock=ground.clock,
            owner=ground.owner,
            most=config.tools.max_processes,
            most_bytes=int(config.tools.process_output_mb * 1024 * 1024),
        )
        made: list[Tool] = [terminal, processes]
        if has_agent(config):
            made += self._more(transcriber)
        return {tool.name: tool for tool in made}

    def _more(self, transcriber: "Transcriber | None") -> Iterator[Tool]:
        """Those that the demo agent does not need."""
        from holdfast.tools import files
        from holdfast.tools.fetch import FetchUrl
        from holdfast.tools.schedule import ScheduleWork
        from holdfast.tools.transcribe import Transcribe

        config, ground = self._config, self._ground
        roots = files.Roots(ground.home, self.workspaces, self.confinement, ground.buffers)
        for kind in (files.ReadFile, files.ListFiles, files.SearchFiles, files.WriteFile, files.EditFile):
            yield kind(roots)
        yield files.AttachFile(roots, ground.put, most_bytes=most_upload_bytes(config))
        yield FetchUrl(allowed=fetch_networks(config.tools))
        yield Transcribe(transcriber, ground.read)
        yield ScheduleWork(ground.store, clock=ground.clock, ids=ground.ids, policy=schedule_policy(config))
