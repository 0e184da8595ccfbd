"""The seam between a turn and the tools it runs."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, Protocol

import msgspec

from holdfast.core import content
from holdfast.core.content import Content
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.elicitation import Given, Request
from holdfast.core.events import Event, Used
from holdfast.core.redaction import NO_SECRETS, Secrets


class ToolSpec(msgspec.Struct, frozen=True):
    """A tool as a model is told of it. `schema`: JSON schema of its arguments, an object."""

    name: str
    description: str
    schema: dict[str, Any]


class ToolResult(msgspec.Struct, frozen=True):
    """`also`: what is true once the result is on record, recorded with it. `used`: by a model that the call asked."""

    outcome: ToolOutcome
    content: Content
    also: tuple[Event, ...] = ()
    used: Used | None = None

    @property
    def text(self) -> str:
        return content.text(self.content)


class Asks(msgspec.Struct, frozen=True, kw_only=True):
    """What a call gives instead of a result: it rests until a person has answered these, and is then run again with the answers and with
    `state`, which goes into the record.
    """

    requests: tuple[Request, ...]
    state: str | None = None


class Answers(msgspec.Struct, frozen=True, kw_only=True):
    """What a call that rested continues with. `requests`: what it had asked; `given`: by their keys."""

    requests: tuple[Request, ...] = ()
    given: dict[str, Given]
    state: str | None = None


class ToolContext(msgspec.Struct, frozen=True, kw_only=True):
    """`folder`: the one that was chosen for the conversation, None for its own. `output` takes what the tool puts out as it comes. Of a
    long output only parts are recorded (`core.output`). `key`: stays the same when the call is repeated after an interruption. `sender`:
    whom the turn works for. `secrets`: for a tool that shortens its own result, which must replace them first. `answers`: of a call that
    rested. `ask`: asks a person while the call runs, for a tool that cannot rest; None when nobody answered in time. A death of the process
    ends such a call, and its question with it.
    """

    session_id: str
    session_key: str
    generation: int
    turn_id: str
    call_id: str
    key: str
    folder: str | None = None
    sender: str = ""
    output: Callable[[str], Awaitable[None]]
    secrets: Secrets = NO_SECRETS
    answers: Answers | None = None
    ask: Callable[[Request], Awaitable[Given | None]] | None = None


class Buffers(Protocol):
    """The files of the editor that shows a conversation, saved or not. Paths are absolute."""

    async def read(self, session_id: str, path: str) -> str | None:
        """The text as the editor has it. None if no editor is there, or it does not give the file: then the disk counts."""

    async def write(self, session_id: str, path: str, text: str) -> bool:
        """False if no editor is there that writes files: then the disk is written. Raises `Refused` if the editor did not write it, or did
        not say so.
        """


class Tool(Protocol):
    """`description` and `schema` (of its arguments: JSON schema, an object) are what a model is told. Arguments are checked against the
    schema before a call is recorded. `version`: of a tool that others describe, another one whenever they describe it differently; what
    people allowed of one version they have not allowed of another.
    """

    name: str
    description: str
    schema: dict[str, Any]
    version: str

    def effect(self, arguments: dict[str, Any]) -> Effect:
        """What running this call twice would do. Arguments may be wrong; unsure means unsafe."""

    async def ready(self) -> None:
        """Waits until what `place` and `confined` say is known. They are asked after this alone."""

    def place(self, session_id: str, folder: str | None) -> str:
        """Where a call of this session would work: the folder and the sandbox, in words. An approval is for this place only. `folder`: the
        one that was chosen for the session.
        """

    def confined(self, arguments: dict[str, Any]) -> bool:
        """Whether something keeps this call within bounds, so that it need not ask where nothing else is configured: a sandbox, or the
        word of a server that is trusted.
        """

    def shared(self, arguments: dict[str, Any]) -> bool:
        """Whether it changes what conversations of other people are given, too. Then only an operator's own turn may do so unasked, and
        only an operator approves it.
        """

    async def reap(self, lives: Callable[[str], bool]) -> int:
        """Kills what lives of the gateway that are over (`lives(owner's name)` is false) left running; gives how many it killed."""

    async def stop(self, turn_id: str) -> int:
        """Kills what calls of this turn, run here, left running after they had returned: the turn was stopped. Gives how many."""

    async def end_session(self, session_id: str) -> int:
        """Kills what calls of this session left running, whichever process of this home started them. Gives how many."""

    async def kept(self) -> list[str]:
        """The sessions of which it keeps files."""

    async def forget(self, session_id: str) -> None:
        """Removes the files it keeps of a session, whose content is gone. Raises `OSError`."""

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult | Asks:
        """Cancelled means: whatever it started is dead when this has returned. What goes on after a call that returned is named in its
        result. Bad arguments are a failed result, not an exception.
        """


class ToolServers(Protocol):
    """Programs whose tools come and go with them. `name`: for the log."""

    name: str

    async def offered(self, wanted: Collection[str]) -> Sequence[Tool]:
        """The tools that can be used now. Starts what is not running, and waits for it, but not long; longer for the servers of the
        `wanted` tools, of which calls have to be finished. What is not there by then is not offered.
        """

    def missing(self, name: str) -> str | None:
        """Why there is no tool of that name now, if it belongs to a server that is away."""

    async def aclose(self) -> None:
        """Ends all of them. Called once, when no call is running."""
