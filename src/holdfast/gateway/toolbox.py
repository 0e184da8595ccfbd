"""The tools of a gateway, together: those of Holdfast and those of servers, what is wrong with a call, and what they left running."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any

import structlog

from holdfast.core.plans import ask
from holdfast.ports.tools import Tool, ToolServers

MOST_PROBLEMS = 3
MOST_CHARS = 500

# What is wrong with arguments.
Check = Callable[[dict[str, Any]], list[str]]

log = structlog.get_logger()


class Toolbox:
    """`own`: tools that are always there. `servers`: where the others come from."""

    name = "tools"

    def __init__(self, own: dict[str, Tool], servers: ToolServers | None = None) -> None:
        self.own, self._servers = own, servers
        # The newest of each name: a tool of a server may be described differently from one day to the next.
        self._checks: dict[str, tuple[dict[str, Any], Check]] = {}

    async def served(self, wanted: Collection[str]) -> Sequence[Tool]:
        """Those of servers that can be used now."""
        return await self._servers.offered(wanted) if self._servers is not None else ()

    def missing(self, name: str) -> str | None:
        """Why a tool of a server is not there, if it is known."""
        return self._servers.missing(name) if self._servers is not None else None

    def problem(self, name: str, tool: Tool | None, arguments: dict[str, Any]) -> str | None:
        """What is wrong with the arguments of a call, for the model that made it."""
        schema = ask.SCHEMA if ask.asks(name) else tool.schema if tool is not None else None
        if schema is None:
            return None
        checked, check = self._checks.get(name, (None, None))
        if check is None or checked is not schema:
            check = _check(name, schema)
            self._checks[name] = schema, check
        wrong = check(arguments)
        if not wrong:
            return None
        return f"It was not run, because its arguments are wrong. {' '.join(wrong)} Correct them and call it again."

    async def reap(self, lives: Callable[[str], bool]) -> None:
        """Kills what owners left running that live no more."""
        for tool in self.own.values():
            await tool.reap(lives)

    async def stop(self, turn_id: str) -> None:
        """What finished calls of a turn left in the background ends with the turn that is stopped (A21)."""
        for tool in self.own.values():
            await tool.stop(turn_id)

    async def end_session(self, session_id: str) -> None:
        """What calls of a session left in the background. A call that still runs is ended by the stop of its turn."""
        for tool in self.own.values():
            await tool.end_session(session_id)

    async def forget_purged(self, purged: Callable[[list[str]], Awaitable[list[str]]]) -> None:
        """Removes the files that tools keep of sessions whose content is gone. `purged` gives those among some."""
        for tool in self.own.values():
            if kept := await tool.kept():
                for session_id in await purged(kept):
                    try:
                        await tool.forget(session_id)
                    except OSError as error:
                        log.warning("files of a deleted session cannot be removed", session=session_id, error=str(error))

    async def aclose(self) -> None:
        if self._servers is not None:
            await self._servers.aclose()


def _check(name: str, schema: dict[str, Any]) -> Check:
    """A schema that is itself wrong, which a foreign tool may have, checks nothing."""
    import jsonschema_rs  # Only where a call is made: it need not be loaded for a gateway that makes none.

    try:
        validator = jsonschema_rs.validator_for(schema, retriever=_fetch_nothing)
    except ValueError as error:
        log.warning("a tool's schema cannot be used", tool=name, error=str(error)[:MOST_CHARS])
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


def _fetch_nothing(address: str) -> Any:
    """A schema that refers to an address, or to a file of this machine, would have it fetched from here."""
    raise ValueError(f"{address} is not fetched")
