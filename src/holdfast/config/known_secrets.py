"""Which values are secrets, so that they are never recorded: Holdfast's own token, keys of models, what the environment calls one, and what
servers of tools are given.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from holdfast.config import agent as agents
from holdfast.config import mcp
from holdfast.config.agent import Agent
from holdfast.config.mcp import McpServer

_SAYS_SO = re.compile(r"(^|_)(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS)S?$")


def known(
    agent: Agent, listed: tuple[str, ...], home: Path, environment: Mapping[str, str], servers: Mapping[str, McpServer]
) -> dict[str, str]:
    """By name. `listed`: variables whose names do not say that they hold a secret."""
    found = {name: value for name, value in environment.items() if name in listed or _SAYS_SO.search(name.upper())}
    if agent.api_key_file and (key := agents.key(agent, home, environment)):
        found[agent.api_key_file] = key
    return found | mcp.known(servers, home, environment)
