"""Trying a server from the command line: it is started as a gateway would start it, asked for its tools, and ended."""

import asyncio
import secrets
from collections.abc import AsyncIterable, Callable, Mapping
from pathlib import Path

from holdfast.config.mcp import McpServer
from holdfast.core.errors import Bug
from holdfast.core.redaction import Secrets
from holdfast.ports.blobs import Blob
from holdfast.sandbox import Sandbox
from holdfast.tools.confinement import Confinement
from holdfast.tools.mcp.ground import Ground
from holdfast.tools.mcp.server import Server
from holdfast.tools.mcp.servers import Shown, shown


def tried(name: str, server: McpServer, *, home: Path, environment: Mapping[str, str], sandbox: Callable[[], Sandbox]) -> Shown:
    """What is known of it then. Takes as long as its start may take; blocks."""
    return asyncio.run(_tried(name, server, home, environment, sandbox))


async def _tried(name: str, server: McpServer, home: Path, environment: Mapping[str, str], sandbox: Callable[[], Sandbox]) -> Shown:
    loop = asyncio.get_running_loop()
    ground = Ground(
        home=home,
        owner=f"doctor_{secrets.token_hex(8)}",
        environment=environment,
        confinement=Confinement(sandbox),
        secrets=Secrets(),
        put=_nothing,
        spawn=lambda work, *, name: loop.create_task(work, name=name),
        longest_s=server.start_timeout_s,
    )
    found = Server(name, server, ground)
    try:
        await found.prepare(loop.time() + server.start_timeout_s + 1.0, insist=False)
        return shown(found)
    finally:
        await found.close()


async def _nothing(chunks: AsyncIterable[bytes], *, media_type: str) -> Blob:
    raise Bug("Nothing is called in a trial.")
