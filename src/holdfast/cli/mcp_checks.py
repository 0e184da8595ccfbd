"""The checks of `holdfast doctor` about MCP servers: whether each can be started or reached, and what is wrong with its tools.

The only module of the command line that knows the tools, and of those only `tools.mcp.trial`.
"""

import os
import shutil
from collections.abc import Callable, Iterator, Sequence

from holdfast import config
from holdfast.api.status import Status
from holdfast.cli.findings import Finding
from holdfast.cli.terminal.layout import count
from holdfast.config import mcp
from holdfast.config.mcp import McpServer
from holdfast.sandbox import Sandbox


def run_all(settings: config.Config, status: Status | None, *, deep: bool, sandbox: Callable[[], Sandbox]) -> Iterator[Finding]:
    """`status`: of the gateway that runs, which knows best. `deep` starts every server. `sandbox`: what programs would run in."""
    known = {server.name: server for server in status.mcp} if status is not None else {}
    if settings.mcp and not config.has_agent(settings):
        yield Finding("mcp", "warn", "The demo agent uses no servers.", "`holdfast setup` chooses a model.")
    for name, server in settings.mcp.items():
        if not server.enabled:
            yield Finding("mcp", "ok", f"{name}: off")
        elif (found := known.get(name)) is not None and found.state not in ("not started", "starting"):
            yield _found(name, found.state, found.tools, found.problem, found.left_out)
        elif deep and status is None:
            yield _tried(settings, name, server, sandbox)
        else:
            yield _looked_at(settings, name, server)


def _looked_at(settings: config.Config, name: str, server: McpServer) -> Finding:
    """Without starting it."""
    try:
        access = mcp.access(server, settings.home, os.environ)
    except config.BadConfig as error:
        return Finding("mcp", "fail", f"{name}: {error}")
    if access.words and shutil.which(access.words[0]) is None:
        return Finding("mcp", "fail", f"{name}: there is no program {access.words[0]}.", "Install it, or write its whole path in command.")
    what = f"the program {access.words[0]} is there" if access.words else f"at {server.url}"
    return Finding("mcp", "ok", f"{name}: {what}; it is started when a turn needs it, and --deep tries it while no gateway runs")


def _tried(settings: config.Config, name: str, server: McpServer, sandbox: Callable[[], Sandbox]) -> Finding:
    from holdfast.tools.mcp import trial  # Most homes have no server.

    found = trial.tried(name, server, home=settings.home, environment=os.environ, sandbox=sandbox)
    return _found(name, found.state, found.tools, found.problem, found.left_out)


def _found(name: str, state: str, tools: int, problem: str | None, left_out: Sequence[str]) -> Finding:
    if state != "running":
        return Finding("mcp", "fail", f"{name}: {problem or state}.", "See [mcp] in docs/tools.md; `holdfast logs` has more.")
    if left_out:
        return Finding("mcp", "warn", f"{name}: {count(tools, 'tool')}. Left out: {'; '.join(left_out)}.", "Tell its author.")
    return Finding("mcp", "ok", f"{name}: running, {count(tools, 'tool')}")
