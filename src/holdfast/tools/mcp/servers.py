"""All configured servers: which of their tools an attempt is offered, how long it waits for them, and what people are told about each."""

import asyncio
from collections.abc import Collection, Mapping

import msgspec
import structlog

from holdfast.config.mcp import McpServer
from holdfast.core import mcp
from holdfast.ports.tools import Tool
from holdfast.tools.mcp.ground import Ground
from holdfast.tools.mcp.server import Server
from holdfast.tools.mcp.tool import ServedTool

# Counted from the moment in which a server was started: a turn that begins later waits for what is left of it. For one that has failed
# twice no turn waits: once it runs again, the next turn has it.
PATIENCE_S = 10.0


log = structlog.get_logger()


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """What people are told about a server. `state`: off, or as in `Phase`."""

    name: str
    kind: str
    state: str
    tools: int
    trusted: bool
    problem: str | None
    left_out: tuple[str, ...]


class Servers:
    name = "MCP servers"

    def __init__(self, servers: Mapping[str, McpServer], ground: Ground) -> None:
        self._off = {name: server for name, server in servers.items() if not server.enabled}
        self._servers = {name: Server(name, server, ground) for name, server in servers.items() if server.enabled}
        self._ground = ground
        # A tool stays the same object for as long as it is described in the same way.
        self._tools: dict[tuple[str, str], ServedTool] = {}

    async def offered(self, wanted: Collection[str]) -> list[Tool]:
        needed = {mcp.server_of(name) for name in wanted}
        deadlines = {name: server.deadline(_patience_s(server, needed=name in needed)) for name, server in self._servers.items()}
        for server in self._servers.values():
            server.want()
        for name, server in self._servers.items():
            await server.prepare(deadlines[name], insist=name in needed)
        running = [server for server in self._servers.values() if server.running]
        offered = [(server, name) for server in running for name in server.offer.tools]
        if len(offered) > mcp.MOST_IN_ALL:
            log.warning("there are more tools than a model can be told of", left_out=len(offered) - mcp.MOST_IN_ALL)
        self._tools = {(server.name, name): self._tool(server, name) for server, name in offered[: mcp.MOST_IN_ALL]}
        return list(self._tools.values())

    def missing(self, name: str) -> str | None:
        server = self._servers.get(mcp.server_of(name) or "")
        if server is None or server.running:
            return None
        why = f" What is known: {server.state.why}." if server.state.why else ""
        return f"the MCP server {server.name} is away ({server.state.phase}).{why}"

    def _tool(self, server: Server, name: str) -> ServedTool:
        known, made = server.offer.tools[name], self._tools.get((server.name, name))
        if made is None or made.version != known.version:
            return ServedTool(server, known, self._ground.put)
        return made

    async def aclose(self) -> None:
        if self._servers:
            await asyncio.gather(*(server.close() for server in self._servers.values()))

    @property
    def shown(self) -> list[Shown]:
        """By name."""
        off = [_known(name, server, "off") for name, server in self._off.items()]
        return sorted((*off, *map(shown, self._servers.values())), key=lambda each: each.name)


def shown(server: Server) -> Shown:
    return msgspec.structs.replace(
        _known(server.name, server.settings, server.state.phase),
        tools=len(server.offer.tools),
        problem=server.state.why or None,
        left_out=server.offer.left_out,
    )


def _known(name: str, server: McpServer, state: str) -> Shown:
    return Shown(name=name, kind=server.kind, state=state, tools=0, trusted=server.trusted, problem=None, left_out=())


def _patience_s(server: Server, *, needed: bool) -> float:
    if needed:
        return server.settings.start_timeout_s
    return PATIENCE_S if server.failures < 2 else 0.0
