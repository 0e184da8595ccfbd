"""What lies beyond a gateway: whom it calls, and who hears of it. The composition root makes these; the gateway knows their ports alone."""

from collections.abc import Callable

import msgspec

from holdfast.core.events import Logged
from holdfast.gateway.agents import Agents
from holdfast.gateway.toolbox import Toolbox
from holdfast.ports.agents import AgentProcesses
from holdfast.ports.blobs import Files
from holdfast.ports.keepers import Keepers
from holdfast.ports.platforms import Platform
from holdfast.ports.process import Restarts
from holdfast.ports.spool import Spool
from holdfast.ports.titles import Titler


class Edges(msgspec.Struct, frozen=True, kw_only=True):
    """`titler`: gives conversations their titles; None: nobody does. `check_folder`: which folder a conversation may choose; None: none.
    `on_step`: hears which step of a stop has begun.
    """

    agents: Agents
    tools: Toolbox
    platforms: dict[str, Platform]
    files: Files
    spool: Spool
    encode: Callable[[Logged], bytes]
    titler: Titler | None = None
    restarts: Restarts | None = None
    keepers: Keepers | None = None
    agent_processes: AgentProcesses | None = None
    check_folder: Callable[[str], str] | None = None
    on_step: Callable[[str], None] = lambda step: None
