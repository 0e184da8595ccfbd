"""What the OpenAI-compatible door takes and shows, in that protocol's own shapes. Fields that change nothing here are not listed: requests
may have them."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from holdfast.api.requests import Body, Query

Name = Annotated[str, Meta(min_length=1, max_length=300)]
Text = Annotated[str, Meta(max_length=8 * 1024 * 1024)]


# requests


class StreamOptions(msgspec.Struct, frozen=True):
    include_usage: bool | None = None


class NewResponse(Body, frozen=True, forbid_unknown_fields=False):
    """`input`: a text, or a list of input items. `conversation`: the id of a session, as a string or as `{"id"}`."""

    input: Text | list[dict[str, Any]]
    model: Name | None = None
    instructions: str | None = None
    previous_response_id: Name | None = None
    conversation: Name | dict[str, Any] | None = None
    stream: bool | None = None
    background: bool | None = None
    store: bool | None = None
    text: dict[str, Any] | None = None
    tools: list[Any] | None = None
    tool_choice: Any = None
    prompt: Any = None


class NewCompletion(Body, frozen=True, forbid_unknown_fields=False):
    messages: list[dict[str, Any]]
    model: Name | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: int | None = None
    tools: list[Any] | None = None
    tool_choice: Any = None
    functions: list[Any] | None = None
    response_format: dict[str, Any] | None = None
    logprobs: bool | None = None
    modalities: list[str] | None = None


class ResponseQuery(Query, frozen=True):
    """`starting_after`: the `sequence_number` of the last event of a stream that is already known."""

    stream: bool = False
    starting_after: Annotated[int, Meta(ge=0, le=2**62)] = 0


# failures


class DoorFailure(msgspec.Struct, frozen=True):
    """`type` says whose fault it is, `code` what it is; `param` names the part of the request."""

    message: str
    type: str
    param: str | None
    code: str


class DoorFailed(msgspec.Struct, frozen=True):
    error: DoorFailure


# models


class ModelObject(msgspec.Struct, frozen=True):
    id: str
    created: int = 0
    object: Literal["model"] = "model"
    owned_by: str = "holdfast"


class ModelList(msgspec.Struct, frozen=True):
    data: list[ModelObject]
    object: Literal["list"] = "list"


# responses


class OutputText(msgspec.Struct, tag_field="type", tag="output_text"):
    text: str
    annotations: list[Any] = []
    logprobs: list[Any] = []


class SummaryText(msgspec.Struct, tag_field="type", tag="summary_text"):
    text: str


class MessageItem(msgspec.Struct, kw_only=True, tag_field="type", tag="message"):
    """`phase`: `commentary` for what was said before calls, else `final_answer`."""

    id: str
    status: str
    role: Literal["assistant"] = "assistant"
    content: list[OutputText] = []
    phase: str | None = None


class ReasoningItem(msgspec.Struct, kw_only=True, tag_field="type", tag="reasoning"):
    id: str
    summary: list[SummaryText] = []
    status: str = "in_progress"


class ExecutionError(msgspec.Struct, tag_field="type", tag="mcp_tool_execution_error"):
    content: str


class CallItem(msgspec.Struct, kw_only=True, tag_field="type", tag="mcp_call"):
    """A call that the agent made, which is run here."""

    id: str
    name: str
    arguments: str
    status: str = "in_progress"
    server_label: str = "holdfast"
    output: str | None = None
    error: ExecutionError | None = None
    approval_request_id: str | None = None


class ApprovalItem(msgspec.Struct, kw_only=True, tag_field="type", tag="mcp_approval_request"):
    """A call that waits for an approval: `mcp_approval_response` in the next request gives or refuses it."""

    id: str
    name: str
    arguments: str
    server_label: str = "holdfast"


Item = MessageItem | ReasoningItem | CallItem | ApprovalItem


class CachedTokens(msgspec.Struct):
    cached_tokens: int = 0
    cache_write_tokens: int = 0


class ThoughtTokens(msgspec.Struct):
    reasoning_tokens: int = 0


class ResponseUsage(msgspec.Struct):
    input_tokens: int
    output_tokens: int
    total_tokens: int
    input_tokens_details: CachedTokens
    output_tokens_details: ThoughtTokens


class ResponseFailure(msgspec.Struct):
    code: str
    message: str


class Incomplete(msgspec.Struct):
    """`reason`: `interrupted`, `max_output_tokens` or `content_filter`."""

    reason: str


class ConversationName(msgspec.Struct):
    id: str


class ResponseObject(msgspec.Struct, kw_only=True):
    """`metadata` names the session, the message and the turn, the questions that wait for an answer (`waiting_for`), and says why an
    answer broke off (`why`).
    """

    id: str
    created_at: int
    status: str
    model: str
    output: list[Item]
    conversation: ConversationName
    metadata: dict[str, str]
    object: Literal["response"] = "response"
    completed_at: int | None = None
    error: ResponseFailure | None = None
    incomplete_details: Incomplete | None = None
    usage: ResponseUsage | None = None
    instructions: None = None
    previous_response_id: None = None
    temperature: None = None
    top_p: None = None
    parallel_tool_calls: bool = True
    tool_choice: str = "auto"
    tools: list[Any] = []


# chat completions


class CompletionUsage(msgspec.Struct):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: CachedTokens
    completion_tokens_details: ThoughtTokens


class CompletionMessage(msgspec.Struct, kw_only=True):
    """`reasoning_content`: thoughts, calls and what happened to the turn. Many clients show it apart from the answer."""

    content: str
    role: Literal["assistant"] = "assistant"
    reasoning_content: str | None = None
    refusal: None = None


class Choice(msgspec.Struct, kw_only=True):
    message: CompletionMessage
    finish_reason: str
    index: int = 0
    logprobs: None = None


class CompletionObject(msgspec.Struct, kw_only=True):
    id: str
    created: int
    model: str
    choices: list[Choice]
    usage: CompletionUsage
    object: Literal["chat.completion"] = "chat.completion"
