"""Which values are secrets, so that they are never recorded: Holdfast's own token, keys of models, what the environment calls one, and what
servers of tools are given.
"""

import re
from collections.abc import Mapping

from holdfast.config import Config, agent, agents, chat_accounts, chats, mcp
from holdfast.config.errors import BadConfig

_SAYS_SO = re.compile(r"(^|_)(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS)S?$")


def known(config: Config, environment: Mapping[str, str]) -> dict[str, str]:
    """By name."""
    found = {name: value for name, value in environment.items() if name in config.secrets or _SAYS_SO.search(name.upper())}
    if config.agent.api_key_file and (key := agent.key(config.agent, config.home, environment)):
        found[config.agent.api_key_file] = key
    for named in config.agents.values():
        try:
            if named.api_key_file and (key := agents.key(named, config.agent, config.home, environment)):
                found[named.api_key_file] = key
        except BadConfig:
            continue  # Said where the agent is made.
    return found | mcp.known(config.mcp, config.home, environment) | chats.known(chat_accounts(config), config.home)
