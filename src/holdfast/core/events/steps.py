"""What an agent says and thinks within a turn, step by step, and how its model or its process is getting on."""

from typing import Any

import msgspec

from holdfast.core.events.base import Event


class Text(Event, frozen=True):
    """What the step has said so far is its first `offset` characters followed by `text`."""

    kind = "text"
    stream = True
    offset: int
    text: str
    step: int = 0


class Reasoning(Event, frozen=True):
    kind = "reasoning"
    stream = True
    text: str
    step: int = 0


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Tokens of one response. `cached`: those of the input that the provider had kept; `stored`: those that it keeps from now on;
    `thought`: those of the output that were thoughts.
    """

    input: int = 0
    output: int = 0
    cached: int = 0
    stored: int = 0
    thought: int = 0


class ProposedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call as a model proposes it. `problem`: why it cannot be run, where its arguments do not read."""

    name: str
    arguments: dict[str, Any]
    problem: str | None = None


class ModelResponded(Event, frozen=True):
    """A step: one whole response of a model, as its provider sent it (`blocks`). It stands before everything its calls do. `cost`: in
    millionths of a US dollar, None where the price is not known. `text`: what of the blocks is said to people; `thoughts`: what was
    thought aloud before it, as it was shown; `calls`: what of them is to be run, in order, so that a step can be continued from the log
    alone. `day` and `sender`: for which day, where the process runs, and for whom it is counted. `copied`: it was counted in the
    conversation that it is copied from.
    """

    kind = "model.responded"
    step: int
    text: str = ""
    thoughts: str = ""
    calls: tuple[ProposedCall, ...] = ()
    blocks: tuple[dict[str, Any], ...] = ()
    finish: str = "end"
    usage: Usage = Usage()
    cost: int | None = None
    wire: str = ""
    provider: str = ""
    model: str = ""
    response_id: str | None = None
    day: str | None = None
    sender: str | None = None
    copied: bool = False


class ModelFailed(Event, frozen=True):
    """A request for a step failed. `error` is its class, `why` its words. `retry_at`: when it is tried again, None when it is not;
    `wait_ms`: how long that was then, which no clock that is set back makes longer. `summary`: it was for a summary that the step needs.
    """

    kind = "model.failed"
    step: int
    tries: int
    error: str
    why: str
    model: str = ""
    retry_at: int | None = None
    wait_ms: int = 0
    summary: bool = False


class ContextCompacted(Event, frozen=True):
    """From here on a model is given `summary` instead of the turns up to generation `through`; the log keeps them. `problem`: why there is
    no summary and those turns are left out. `trimmed`: the calls of this turn whose results a model is given shortened from here on.
    `recall`: what an agent is given from here on lies behind this place in the log; 0 if it may lie anywhere.
    """

    kind = "context.compacted"
    through: int
    summary: str
    problem: str | None = None
    usage: Usage = Usage()
    cost: int | None = None
    provider: str = ""
    model: str = ""
    trimmed: tuple[str, ...] = ()
    day: str | None = None
    sender: str | None = None
    copied: bool = False
    recall: int = 0

    @property
    def covers(self) -> bool:
        """It stands for earlier turns, or leaves them out; otherwise it only shortens results."""
        return bool(self.summary) or self.problem is not None


class AgentStarted(Event, frozen=True):
    """The turn is about to start a process of an agent that is another program. `agent`: its name in the configuration. `process`: the name
    by which its keeper is found.
    """

    kind = "agent.started"
    agent: str
    process: str


class AgentRead(Event, frozen=True):
    """How far that process was read: all output before `offset` is on record, `written` characters of it in the answer. `session`: the
    agent's id of the conversation. `how`: new, resumed, loaded, or told (given our transcript). `label`: what it calls itself. `takes`:
    what it accepts in addition to text. `request`: the prompt that it is answering, if any; `answered`: the one that it has answered.
    `fold`: the state of `core.acp` in the middle of a prompt. `thoughts`: what it thought aloud in the output since the last such record.
    """

    kind = "agent.read"
    agent: str
    process: str
    session: str = msgspec.field(name="agent_session")
    how: str
    offset: int
    label: str = ""
    takes: tuple[str, ...] = ()
    request: str | None = None
    answered: str | None = None
    written: int = 0
    fold: str | None = None
    thoughts: str = ""
