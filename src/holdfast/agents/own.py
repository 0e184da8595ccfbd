"""An agent that is not ours: an object of a module that the configuration names."""

import importlib
import inspect
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from holdfast.config import BadConfig
from holdfast.ports.agents import Agent, AgentRequest, TurnFace


class OwnAgent:
    """What an agent need not say is added here."""

    def __init__(
        self,
        name: str,
        run: Callable[[AgentRequest, TurnFace], Awaitable[None]],
        close: Callable[[], Awaitable[None]] | None,
    ) -> None:
        self.name, self._run, self._close = name, run, close

    async def run(self, request: AgentRequest, turn: TurnFace) -> None:
        await self._run(request, turn)

    async def aclose(self) -> None:
        if self._close is not None:
            await self._close()


def load(named: str, folder: Path) -> Agent:
    """The agent `MODULE:OBJECT`: an object with `run`, a class of such objects, or an async function. The module may be in `folder`. Raises
    `BadConfig`.
    """
    module, _, name = named.partition(":")
    if str(folder) not in sys.path:
        sys.path.append(str(folder))  # Last: nothing there may stand in for a module of ours.
    try:
        found = getattr(importlib.import_module(module), name, None)
        if inspect.isclass(found):
            found = found()
    except Exception as error:  # The boundary to code that is not ours.
        missing = isinstance(error, ModuleNotFoundError) and error.name == module
        hint = f" It is looked for in {folder} and on PYTHONPATH." if missing else ""
        raise BadConfig(f"The agent {named!r} cannot be loaded: {type(error).__name__}: {error}.{hint}") from error
    if found is None:
        raise BadConfig(f"The agent {named!r} cannot be loaded: the module {module} has no {name}.")
    run = found if inspect.iscoroutinefunction(found) else getattr(found, "run", None)
    if not inspect.iscoroutinefunction(run):
        raise BadConfig(f"{named!r} is no agent. It must be an async function of a request and a turn, or have such a `run`.")
    return OwnAgent(named, run, getattr(found, "aclose", None))


if __name__ == "__main__":  # For those who want to know whether it can be loaded, and not to load it themselves.
    try:
        load(sys.argv[1], Path(sys.argv[2]))
    except BadConfig as error:
        sys.exit(f"\n{error}")
