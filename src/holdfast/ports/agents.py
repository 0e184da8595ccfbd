"""The seam between a turn and the agent that answers it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from holdfast.core import content
from holdfast.core.approvals import Approval
from holdfast.core.effects import ToolOutcome
from holdfast.core.events import AgentRead, AgentStarted, ContextCompacted, ModelFailed, ProposedCall, Usage
from holdfast.core.history import Call, Item, Step, User
from holdfast.core.messages import Link, ToolCall
from holdfast.ports.tools import ToolResult, ToolSpec


class AgentRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent is given. `history` is everything that was said and done before this attempt, folded from the log, this turn
    included; every call of an earlier turn has its result. `causes` are what this turn answers. `unfinished`: the calls of the last
    recorded step that have no result yet; an agent that works in steps runs them first. `calls` are this turn's calls of earlier
    attempts, `kept` the text they had written and no step has on record. `failures`: the failed requests for the step that is due.
    `model`: the model or agent chosen for this conversation when the turn began, None for the default. `tools`: those it can call, by
    name, the same for the whole attempt. `links`: how far the conversation is with agents that are other programs, by their names.
    `folder`: the one that was chosen for the conversation, None for its own. `note` is ours to the agent, never inside the user's words.
    """

    session_id: str
    session_key: str
    generation: int
    turn_id: str
    attempt: int
    history: Sequence[Item]
    causes: tuple[User, ...]
    unfinished: tuple[Call, ...]
    calls: list[ToolCall]
    kept: str
    failures: tuple[ModelFailed, ...] = ()
    model: str | None = None
    tools: tuple[ToolSpec, ...] = ()
    links: Mapping[str, Link] = {}
    folder: str | None = None
    note: str | None

    @property
    def sender(self) -> str:
        """Whom the turn works for."""
        return next((cause.sender for cause in self.causes if cause.sender), "")

    @property
    def text(self) -> str:
        """The words this turn answers."""
        return "\n\n".join(text for cause in self.causes if (text := content.text(cause.content)))


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """One whole response of a model. `blocks` is what its provider sent, to be sent back unchanged; `text` and `calls` are what of it is
    said to people and what is to be run. `cost`: in millionths of a US dollar, None where the price is not known.
    """

    text: str = ""
    calls: tuple[ProposedCall, ...] = ()
    blocks: tuple[dict[str, Any], ...] = ()
    finish: str = "end"
    usage: Usage = Usage()
    cost: int | None = None
    wire: str = ""
    provider: str = ""
    model: str = ""
    response_id: str | None = None


class TurnFace(Protocol):
    """What an agent may do with its turn. Everything is recorded before it counts; every method may be cancelled. A simple agent uses only
    `say`, `call` and `ask`; one that works in steps says a step's text as it comes and ends the step with `responded`.
    """

    async def say(self, text: str) -> None:
        """More of the step's text. Shown once it is durable."""

    async def think(self, text: str) -> None:
        """More of the reasoning."""

    async def keep(self, chars: int) -> None:
        """The first `chars` characters of what earlier attempts wrote (`kept`) stay. Otherwise the step's text starts over."""

    async def responded(self, response: Response) -> Step:
        """Records a step, whole, and the questions that its calls ask, before any of its calls starts. Gives the step as it is on record,
        its calls under their own ids; what is wrong with a call's arguments is its `problem`. The response's text is the step's, whatever
        pieces of it were said.
        """

    async def failed(self, failure: ModelFailed) -> None:
        """Records that a request for the step failed, before it is tried again. What the step had said until then stays until more is
        said, which starts over."""

    async def afford(self) -> None:
        """Call it before each request to a model. Returns if the limits allow another one. Raises `LimitReached`; where the limits are such
        that somebody is asked, the attempt ends here and the turn waits, as with `run`.
        """

    async def tell(self, notice_id: str, text: str) -> None:
        """Tells the people of the conversation something that is no part of the answer, as a notice. Under the same id only once in a
        turn, also over its attempts.
        """

    async def compacted(self, compaction: ContextCompacted) -> None:
        """Records that a summary stands for earlier turns. The next attempt's history begins with it."""

    async def run(self, calls: Sequence[Call]) -> list[ToolResult]:
        """Runs the calls of a step and gives their results, in the same order. Each is recorded before it starts and its result before
        this returns; one that has a result gives that and runs nothing (P5). Pure ones run in parallel and go ahead; the others run one
        by one, in order, and what stands behind a call that waits for a person waits with it. Where questions are still open when
        nothing more can run, the attempt ends here and the turn waits; the next attempt gets the answers.
        """

    async def call(self, call_id: str, name: str, arguments: dict[str, Any], *, careful: bool = False) -> ToolResult:
        """As `run`, for one call of an agent that does not work in steps. `careful`: a person must approve it first, also where it is
        configured to run.
        """

    async def ask(self, call_id: str, question: str) -> ToolResult:
        """The user's answer, with files where it has them. Where there is none yet the attempt ends here and the turn waits, as with
        `run`.
        """

    async def taken(self) -> tuple[User, ...]:
        """Steering messages that came since the last call. Each is recorded as taken before it is given, and starts no turn of its own;
        one that is not taken before the turn ends does. Call it between steps, where there is nothing half done.
        """


class ReportingFace(TurnFace, Protocol):
    """What an agent may do besides that is another program and calls its tools itself: it reports what it did, and asks for permissions.
    Every agent is given this; one that does not need it asks for a `TurnFace`.
    """

    async def linked(self, event: AgentStarted | AgentRead) -> bool:
        """Records how far an agent that is another program was read, after everything said and reported so far; `written` is filled in.
        In the middle of a prompt, returns False and records nothing while some text is held back and not on record yet.
        """

    async def report(self, call_id: str, name: str, arguments: dict[str, Any]) -> None:
        """Records a call that the agent makes itself. Repeating it changes nothing."""

    async def report_output(self, call_id: str, text: str) -> None:
        """Records more output of such a call."""

    async def report_result(self, call_id: str, outcome: ToolOutcome, text: str) -> None:
        """Records how such a call ended. Repeating it changes nothing."""

    async def permit(self, wanted: Sequence[tuple[Call, str | None]]) -> dict[str, Approval]:
        """Asks people for permissions, each once: a call, and what the agent would allow itself from now on, if it offers that. Returns
        the answers by call id, at least one: if there is none yet, the attempt ends here and the turn waits, as with `run`. Asking again
        returns the same answers.
        """


class AgentProcesses(Protocol):
    """The processes of agents that are other programs, which outlive this one."""

    async def tidy(self, is_open: Callable[[str], Awaitable[bool]]) -> None:
        """Ends those that have not been used for a while. `is_open`: whether a session has a turn that may still need its process."""

    async def sessions(self) -> set[str]:
        """Sessions that have one, whether or not it still runs."""

    async def settle(self, session_id: str, read: AgentRead) -> None:
        """Ends the work on a prompt whose turn is over: asks the agent to stop, and kills its process if it does not. `read`: the last
        record of that process. Repeating it changes nothing. Raises `Unavailable`.
        """

    async def end_session(self, session_id: str) -> None:
        """Ends those of a session."""

    async def stop_all(self) -> None:
        """Ends all of them."""


class Agent(Protocol):
    name: str

    async def run(self, request: AgentRequest, turn: ReportingFace) -> None:
        """One attempt at one answer. Returning ends the turn as completed; raising ends it as failed. It is cancelled with a word of
        why: `stop`, `waiting`, `gateway shutting down`, `gateway restarting` ...
        """

    async def aclose(self) -> None:
        """Closes what it holds open between runs. Called once, when none is running."""
