"""The tools of one attempt: the same from its first step to its last, whatever becomes of the servers that some of them come from."""

from collections.abc import Collection
from functools import cached_property
from typing import Any

from holdfast.core.history import TRANSCRIBE
from holdfast.core.plans import ask
from holdfast.gateway.toolbox import Toolbox
from holdfast.ports.tools import Tool, ToolSpec

# Tools that agents use and models do not.
HIDDEN = frozenset({TRANSCRIBE})


class Kit:
    """Before `settle`, those of Holdfast alone. `wanted`: the names of tools of which calls have to be finished."""

    def __init__(self, toolbox: Toolbox, wanted: Collection[str] = ()) -> None:
        self._toolbox, self._wanted = toolbox, wanted
        self._tools = dict(toolbox.own)

    async def settle(self) -> None:
        """Chooses what is there now, for good. Call it before the agent begins."""
        for tool in await self._toolbox.served(self._wanted):
            self._tools.setdefault(tool.name, tool)

    def get(self, name: str) -> Tool | None:
        return self._tools.get(name)

    @cached_property
    def specs(self) -> tuple[ToolSpec, ...]:
        """What a model is told, by name, so that its provider can keep it: asking a person is a call like any other."""
        specs = [ToolSpec(tool.name, tool.description, tool.schema) for tool in self._tools.values() if tool.name not in HIDDEN]
        specs.append(ToolSpec(ask.ASK, ask.DESCRIPTION, ask.SCHEMA))
        return tuple(sorted(specs, key=lambda spec: spec.name))

    def hidden(self, name: str) -> str | None:
        """Why a model cannot make this call, whatever its arguments are."""
        return self.unknown(name) if name in HIDDEN else None

    def unknown(self, name: str) -> str:
        if missing := self._toolbox.missing(name):
            return f"It was not run: {missing}"
        return f"There is no tool {name!r}. The tools are: {', '.join(spec.name for spec in self.specs)}."

    def problem(self, name: str, arguments: dict[str, Any]) -> str | None:
        """What is wrong with the arguments of a call, for the model that made it."""
        return self._toolbox.problem(name, self.get(name), arguments)
