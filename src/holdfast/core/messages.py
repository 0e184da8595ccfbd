"""A conversation in values: its messages, turns, tool calls and questions, and the parts of an answer."""

from typing import Any, Protocol

import msgspec

from holdfast.core import content
from holdfast.core.content import BytesPart, Content, Part
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.elicitation import Resting
from holdfast.core.events import AgentRead, ContextCompacted, DueTime, ModelFailed, ProposedCall
from holdfast.core.turns import Outcome, TurnState
from holdfast.core.usage import NOTHING, Spent


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """Text of an answer. Every part of an answer has an id, `<turn>.<step>.<n>`, which it keeps for ever."""

    id: str
    step: int
    text: str


class Called(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call stands here, behind the first `offset` characters of its step."""

    id: str
    step: int
    offset: int
    call_id: str


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """The turn took this message here, while it ran: behind the first `offset` characters of the step."""

    id: str
    step: int
    offset: int
    message_id: str


class Attached(msgspec.Struct, frozen=True, kw_only=True):
    """An image, a recording or a file of the answer."""

    id: str
    step: int
    part: BytesPart


AnswerPart = Said | Called | Taken | Attached


class Answer(Protocol):
    """What an assistant's message is made of."""

    def parts(self) -> tuple[AnswerPart, ...]: ...


class LateResult(msgspec.Struct, frozen=True, kw_only=True):
    """A result that arrived after its call was closed as unknown. It changes nothing that the agent was told."""

    outcome: ToolOutcome
    content: Content
    finished_at: int

    @property
    def result(self) -> str:
        return content.text(self.content)


class ToolCall(msgspec.Struct, kw_only=True):
    """`content` is its result. `output` is its beginning and its end, where it is long; `output_omitted` says how much of it is missing
    there. `seq`: where in the log the call started. `resting`: what it has asked a person. `recovered`: its result came with a journal that
    was late; `late` is that result, where the call had been closed as unknown by then.
    """

    call_id: str
    name: str
    arguments: dict[str, Any]
    effect: Effect
    attempt: int
    step: int = 0
    outcome: ToolOutcome | None = None
    content: Content | None = None
    output: str = ""
    output_omitted: int = 0
    finished_in: int = 0
    seq: int = 0
    resting: Resting | None = None
    started_at: int = 0
    finished_at: int | None = None
    recovered: bool = False
    late: LateResult | None = None

    @property
    def rests(self) -> bool:
        """Nothing of it is under way: it continues with what a person answers."""
        return self.outcome is None and self.resting is not None and not self.resting.elicited.live

    @property
    def result(self) -> str | None:
        return None if self.content is None else content.text(self.content)


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """What a message answers. `name` and `arguments`: of the call that asked, or that an approval is for. `by`: who answered;
    `verdict`: of an approval.
    """

    question_id: str
    form: str
    text: str
    name: str | None
    arguments: dict[str, Any]
    by: str | None
    verdict: str | None


class Awaited(msgspec.Struct, frozen=True):
    """A journal that is late: its name, how often it was looked for in vain, and since when it is missed."""

    stream_id: str
    tries: int
    first_seen: int


class Delivery(msgspec.Struct, kw_only=True):
    """How far a message has come on its way to a chat. `states`: of each of the messages that it is sent in. `tries`, `retry_at` (0 if it
    is not waiting for that) and `error`: as they were recorded last.
    """

    delivery_id: str
    states: list[str]
    tries: int = 0
    retry_at: int = 0
    error: str | None = None


class Message(msgspec.Struct, kw_only=True):
    """`role`: user, assistant, interruption, notice, or cause (something other than a message that a turn started from or took; `cause`
    says what, `schedule` which time of a schedule). `status`: complete, partial, refused, command (one to the gateway, which no agent
    sees), or superseded (what an earlier attempt said, where another one has continued since). `made_of`: what an assistant's message is
    made of. An interruption row also has `reason`, `state`, `cause` (what its turn had started from, if that was no message), `written`
    (how long the answer was), `step` and `offset` (where in the answer it stands: behind so many characters of that step, None for all of
    them), `awaits`, while its journal is late, and, once decided, `rule`, `decision` (in words) and `attempt`. `delivery`: of what is sent
    to a chat.
    `recovered`: some of it came with a journal that was late. `edited_at`: when its sender last changed it. `seq`: where in the log its
    text stands whole. `accepted`: where it was accepted. `answers`: what it answers, if anything. `sender_name`: what its sender was
    called.
    """

    id: str
    role: str
    content: Content
    turn_id: str | None
    created_at: int
    status: str = "complete"
    made_of: Answer | None = None
    tool_calls: list[ToolCall] = []
    cause: str | None = None
    schedule: DueTime | None = None
    state: str | None = None
    reason: str | None = None
    rule: str | None = None
    decision: str | None = None
    attempt: int | None = None
    written: int | None = None
    step: int | None = None
    offset: int | None = None
    delivery: Delivery | None = None
    sender: str | None = None
    sender_name: str | None = None
    anchor: str | None = None
    edited_at: int | None = None
    seq: int = 0
    accepted: int = 0
    answers: Answered | None = None
    recovered: bool = False
    awaits: Awaited | None = None

    @property
    def text(self) -> str:
        return content.text(self.content)

    @property
    def parts(self) -> tuple[Part, ...]:
        """Of its content. Those of an answer have ids and places besides: `answer`."""
        return content.parts(self.content)

    @property
    def answer(self) -> tuple[AnswerPart, ...]:
        """The parts of an assistant's message, in order."""
        return () if self.made_of is None else self.made_of.parts()


class Failure(msgspec.Struct, frozen=True):
    """A request to a model that failed, and when."""

    at: int
    event: ModelFailed


class Compacted(msgspec.Struct, frozen=True):
    """A turn began with a summary of those before it. `generation`: of the turn that wrote it."""

    turn_id: str
    generation: int
    event: ContextCompacted


class Turn(msgspec.Struct, kw_only=True):
    """`signed_at`: its last sign of life, None where its time is not known. `reason`: what interrupted it last. `asked`: a human has asked
    to continue it since. `unread_results`: it stands at, or ended with, tool results that nobody processed. `spoke`: its newest attempt
    has something of its own to show. `steps`: how many responses of a model it has; `failures`: the requests for one that failed.
    `died`: the owner whose death interrupted it last, if one did. `spent`: what its models used, `model` the last one that responded;
    `chosen`: the model or agent that was to answer, None for the default.
    `stopped_because`: why it was to stop, where nobody said so.
    """

    id: str
    generation: int
    attempt: int
    cause: str
    causes: tuple[str, ...]
    started_at: int
    attempt_started_at: int
    state: TurnState = TurnState.RUNNING
    outcome: Outcome | None = None
    rule: str | None = None
    ended_at: int | None = None
    error: str | None = None
    stop_requested: bool = False
    stopped_because: str | None = None
    signed_at: int | None = None
    reason: str | None = None
    asked: bool = False
    unread_results: bool = False
    spoke: bool = False
    steps: int = 0
    failures: list[Failure] = []
    died: int | None = None
    spent: Spent = NOTHING
    model: str | None = None
    chosen: str | None = None


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """How far a conversation is with an agent that is another program. `process`: the one started last, in the turn `started_in`, which
    has started `starts` of them. `read`: how far the last usable process was read, in the turn `turn_id`; None if none was usable.
    """

    process: str
    started_in: str | None = None
    starts: int = 0
    read: AgentRead | None = None
    turn_id: str | None = None


class Question(msgspec.Struct, kw_only=True):
    """An open question. `form`: question, approval or elicitation. `call`: the call that asks, or the one that an approval is for, which
    `fingerprint` knows; until that starts, as it was proposed. `pattern`: what may be allowed from now on instead. `live`: the call that
    asks runs meanwhile.
    """

    question_id: str
    turn_id: str
    call_id: str
    content: Content
    asked_at: int
    expires_at: int
    form: str = "question"
    choices: tuple[str, ...] = ()
    call: ToolCall | ProposedCall | None = None
    fingerprint: str | None = None
    pattern: str | None = None
    live: bool = False

    @property
    def text(self) -> str:
        return content.text(self.content)

    @property
    def parts(self) -> tuple[Part, ...]:
        return content.parts(self.content)


def answer_id(turn_id: str) -> str:
    """A turn has one answer, however many attempts it takes, and its id is known from the first piece on."""
    return f"{turn_id}.answer"


def model_name(provider: str, model: str) -> str:
    """As it is configured: PROVIDER:NAME."""
    return f"{provider}:{model}" if provider and model else model
