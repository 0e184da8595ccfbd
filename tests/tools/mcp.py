"""MCP servers as tests have them: real processes of the scripted one, and what is needed to use their tools."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from holdfast import tool_processes
from holdfast.config.mcp import McpServer
from holdfast.core.mcp import tool_name
from holdfast.core.redaction import Secrets
from holdfast.gateway.tasks import Tasks
from holdfast.ports.blobs import Blob
from holdfast.ports.tools import Tool, ToolContext, ToolResult
from holdfast.sandbox import Sandbox
from holdfast.sandbox.sandbox import Mode
from holdfast.tools.confinement import Confinement
from holdfast.tools.mcp.ground import Ground
from holdfast.tools.mcp.servers import Servers, Shown

SCRIPT = Path(__file__).parents[1] / "fakes" / "mcp" / "__main__.py"
PYTHON = (sys.executable, "-I", "-S")


def scripted(folder: Path, *words: str, **settings: Any) -> McpServer:
    """The scripted server, over pipes."""
    folder.mkdir(exist_ok=True)
    return McpServer(command=PYTHON[0], args=(*PYTHON[1:], str(SCRIPT), str(folder), *words), **settings)


@contextmanager
def over_http(folder: Path, *words: str, **settings: Any) -> Iterator[McpServer]:
    """The scripted server at an address, until this is left."""
    folder.mkdir(exist_ok=True)
    process = subprocess.Popen([*PYTHON, str(SCRIPT), str(folder), "http", *words], stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield McpServer(url=process.stdout.readline().decode().strip(), **settings)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def notes(folder: Path, what: str = "") -> list[dict[str, Any]]:
    """What happened to a scripted server."""
    file = folder / "notes.jsonl"
    found = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    return [each for each in found if not what or each["what"] == what]


def lines(folder: Path) -> list[str]:
    file = folder / "lines.txt"
    return file.read_text().split() if file.exists() else []


async def until(holds: Callable[[], Any], timeout_s: float = 60.0) -> None:
    async with asyncio.timeout(timeout_s):
        while not holds():  # noqa: ASYNC110 - what other processes do has no event.
            await asyncio.sleep(0.01)


class Desk:
    """`output`: what calls have put out. `blobs`: what they stored."""

    def __init__(self, servers: Servers, home: Path, tasks: Tasks) -> None:
        self.servers, self.home, self.tasks = servers, home, tasks
        self.output: list[str] = []
        self.blobs: dict[str, bytes] = {}

    async def tools(self, *wanted: str) -> dict[str, Tool]:
        return {tool.name: tool for tool in await self.servers.offered(wanted)}

    async def run(self, server: str, tool: str, *, key: str = "c", **arguments: Any) -> ToolResult:
        name = tool_name(server, tool)
        return await self.use((await self.tools(name))[name], key=key, **arguments)

    async def use(self, tool: Tool, *, key: str = "c", **arguments: Any) -> ToolResult:
        result = await tool.run(arguments, self.context(key))
        assert isinstance(result, ToolResult)
        return result

    def context(self, key: str = "c", *, session: str = "s", **more: Any) -> ToolContext:
        async def put_out(text: str) -> None:
            self.output.append(text)

        return ToolContext(session_id=session, session_key="k", generation=1, turn_id="t", call_id=key, key=key, output=put_out, **more)

    def shown(self, name: str) -> Shown:
        return next(each for each in self.servers.shown if each.name == name)

    @property
    def processes(self) -> list[int]:
        """All that run here for servers."""
        return [process.pid for process, _ in tool_processes.running(self.home)]


@asynccontextmanager
async def desk(
    home: Path,
    sandbox: Sandbox | None = None,
    secrets: Secrets | None = None,
    longest_s: float = 60.0,
    variables: dict[str, str] | None = None,
    **servers: McpServer,
) -> AsyncIterator[Desk]:
    """Without a sandbox, unless one is given."""
    await asyncio.to_thread(home.mkdir, exist_ok=True)
    tasks = Tasks()

    async def put(chunks: AsyncIterable[bytes], *, media_type: str) -> Blob:
        data = b"".join([chunk async for chunk in chunks])
        made.blobs[media_type] = data
        return Blob(digest="d" * 64, size=len(data), media_type=media_type, file="f")

    found = sandbox or Sandbox(mode=Mode.NONE, network=True, hidden=home)
    ground = Ground(
        home=home,
        owner="o_test",
        environment=variables or dict(os.environ),
        confinement=Confinement(lambda: found),
        secrets=Secrets() if secrets is None else secrets,
        put=put,
        spawn=tasks.spawn,
        longest_s=longest_s,
    )
    made = Desk(Servers(servers, ground), home, tasks)
    try:
        yield made
    finally:
        await made.servers.aclose()
        await tasks.aclose()
        assert not made.processes and not tasks.failures


def write_tools(folder: Path, tools: Sequence[Any]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "tools.json").write_bytes(msgspec.json.encode(tools))
