"""The tools of a gateway, together: what a model is told of them, what is wrong with a call, and what they left running."""

from collections.abc import Awaitable, Callable
from functools import cached_property
from typing import Any

import structlog

from holdfast.core.history import TRANSCRIBE
from holdfast.core.plans import ask
from holdfast.ports.models import ToolSpec
from holdfast.ports.tools import Tool

MOST_PROBLEMS = 3
MOST_CHARS = 500
# Tools that agents use and models do not.
HIDDEN = frozenset({TRANSCRIBE})

log = structlog.get_logger()


class Toolbox:
    def __init__(self, tools: dict[str, Tool]) -> None:
        self._tools = tools
        self._checks: dict[str, Callable[[dict[str, Any]], list[str]]] = {}

    def get(self, name: str) -> Tool | None:
        return self._tools.get(name)

    @property
    def names(self) -> list[str]:
        return [spec.name for spec in self.specs]

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
        return f"There is no tool {name!r}. The tools are: {', '.join(self.names)}."

    def problem(self, name: str, arguments: dict[str, Any]) -> str | None:
        """What is wrong with the arguments of a call, for the model that made it."""
        schema = ask.SCHEMA if ask.asks(name) else tool.schema if (tool := self._tools.get(name)) else None
        if schema is None:
            return None
        if name not in self._checks:
            self._checks[name] = _check(name, schema)
        wrong = self._checks[name](arguments)
        if not wrong:
            return None
        return f"It was not run, because its arguments are wrong. {' '.join(wrong)} Correct them and call it again."

    async def reap(self, lives: Callable[[str], bool]) -> None:
        """Kills what owners left running that live no more."""
        for tool in self._tools.values():
            await tool.reap(lives)

    async def stop(self, turn_id: str) -> None:
        """What finished calls of a turn left in the background ends with the turn that is stopped (A21)."""
        for tool in self._tools.values():
            await tool.stop(turn_id)

    async def end_session(self, session_id: str) -> None:
        """What calls of a session left in the background. A call that still runs is ended by the stop of its turn."""
        for tool in self._tools.values():
            await tool.end_session(session_id)

    async def forget_purged(self, purged: Callable[[list[str]], Awaitable[list[str]]]) -> None:
        """Removes the files that tools keep of sessions whose content is gone. `purged` gives those among some."""
        for tool in self._tools.values():
            if kept := await tool.kept():
                for session_id in await purged(kept):
                    try:
                        await tool.forget(session_id)
                    except OSError as error:
                        log.warning("files of a deleted session cannot be removed", session=session_id, error=str(error))


def _check(name: str, schema: dict[str, Any]) -> Callable[[dict[str, Any]], list[str]]:
    """Gives what is wrong with arguments. A schema that is itself wrong, which a foreign tool may have, checks nothing."""
    import jsonschema_rs  # Only where a call is made: it need not be loaded for a gateway that makes none.

    try:
        validator = jsonschema_rs.validator_for(schema)
    except ValueError as error:
        log.warning("a tool's schema cannot be used", tool=name, error=str(error))
        return lambda arguments: []

    def wrong(arguments: dict[str, Any]) -> list[str]:
        found = []
        for error in validator.iter_errors(arguments):
            where = ".".join(map(str, error.instance_path))
            found.append(f"{f'`{where}`: ' if where else ''}{error.message[:MOST_CHARS]}.")
            if len(found) == MOST_PROBLEMS:
                break
        return found

    return wrong
