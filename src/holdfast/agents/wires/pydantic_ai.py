"""Every other provider, through pydantic-ai. Loaded only for a model of such a provider; its block is pydantic-ai's own response."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any, cast

import msgspec
from pydantic_ai import exceptions
from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    PartDeltaEvent,
    PartStartEvent,
    SystemPromptPart,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.messages import ModelRequest as Request
from pydantic_ai.models import Model, ModelRequestParameters, infer_model
from pydantic_ai.settings import ModelSettings, ThinkingLevel
from pydantic_ai.tools import ToolDefinition

from holdfast.agents.wires import errors
from holdfast.agents.wires.history import Told, call_id, content_of, told, usable_name
from holdfast.agents.wires.parts import Given, given
from holdfast.agents.wires.reading import Said, proposed, settled
from holdfast.core.effects import ToolOutcome
from holdfast.core.errors import BadInput
from holdfast.core.events import Usage
from holdfast.core.history import Step, User
from holdfast.ports.agents import Response
from holdfast.ports.models import (
    Busy,
    CallPiece,
    Cut,
    ModelError,
    ModelRequest,
    NotAllowed,
    Piece,
    Rejected,
    Taking,
    ThoughtPiece,
    TooLong,
)

WIRE = "pydantic-ai"
FINISH = {"stop": "end", "tool_call": "calls", "length": "length", "content_filter": "filtered"}


def known(chosen: str) -> Model:
    """The model of that name, if pydantic-ai knows it and has what it needs."""
    try:
        return infer_model(chosen)
    except (exceptions.UserError, ImportError) as error:
        raise BadInput(f"pydantic-ai cannot use it: {str(error).rstrip('.')}.") from None


class Bridge:
    """Keys and addresses are what the provider's own library finds in the environment."""

    wire = WIRE

    def __init__(self, model: Model, *, provider: str, name: str, timeout_s: float, takes: frozenset[str] = frozenset()) -> None:
        self.provider, self.model, self.takes = provider, name, Taking(kinds=takes)
        self._model = model
        self._timeout_s = timeout_s
        self._open: AsyncExitStack | None = None
        own: Any = getattr(model, "client", None)
        if hasattr(own, "max_retries"):  # Libraries made by the same generator as OpenAI's try again unseen.
            own.max_retries = 0

    async def aclose(self) -> None:
        if self._open is not None:
            await self._open.aclose()
            self._open = None

    async def stream(self, request: ModelRequest) -> AsyncIterator[Piece | Response]:
        if self._open is None:
            self._open = AsyncExitStack()
            await self._open.enter_async_context(self._model)
        messages, said, begun = await self._messages(request), Said(), False
        failure: ModelError
        try:
            async with model_request_stream(
                self._model,
                messages,
                model_settings=_settings(request),
                model_request_parameters=ModelRequestParameters(function_tools=_tools(request)),
            ) as stream:
                events = aiter(stream)
                while (event := await self._next(events)) is not None:
                    begun = True
                    for piece in _pieces(event, said):
                        yield piece
                response = self._response(stream.get(), said.read())
        except TimeoutError:
            failure = Cut(f"{self.provider} has been silent for too long.") if begun else Busy(f"{self.provider} does not answer.")
        except (exceptions.AgentRunError, exceptions.UserError) as error:
            failure = self._failure(error, begun=begun)
        else:
            yield response
            return
        # Raised here, so that it does not carry the library's error, which may hold the request with its headers.
        raise failure

    async def _next(self, events: AsyncIterator[Any]) -> Any:
        async with asyncio.timeout(self._timeout_s):
            return await anext(events, None)

    async def _messages(self, request: ModelRequest) -> list[ModelMessage]:
        messages: list[ModelMessage] = []
        parts: list[ModelRequestPart] = [SystemPromptPart(request.system)] if request.system else []
        for item in told(request.history):
            if isinstance(item, User):
                parts.append(UserPromptPart(_contents(await given(item.content, self.takes, request.read))))
                continue
            said, calls = self._said(item.step, thoughts=request.thoughts)
            if said:
                messages += [Request(parts), ModelResponse(said)] if parts else [ModelResponse(said)]
                parts = await self._results(item, calls, request)
        if request.note:
            parts.append(UserPromptPart(request.note))
        return [*messages, Request(parts)] if parts else messages

    def _said(self, step: Step, *, thoughts: bool) -> tuple[list[ModelResponsePart], list[str]]:
        """The parts of a step and the ids of its calls."""
        response = step.response
        if response is not None and (response.wire, response.provider) == (WIRE, self.provider) and response.blocks:
            (message,) = ModelMessagesTypeAdapter.validate_python(list(response.blocks))
            assert isinstance(message, ModelResponse)
            parts = [part for part in message.parts if thoughts or not isinstance(part, ThinkingPart)]
        else:
            parts = [TextPart(step.text)] if step.text else []
            parts += [ToolCallPart(call.name, call.arguments, tool_call_id=call_id(call.call_id)) for call in step.calls]
        parts = [_named(part) if isinstance(part, ToolCallPart) else part for part in parts]
        return parts, [part.tool_call_id for part in parts if isinstance(part, ToolCallPart)]

    async def _results(self, item: Told, calls: Sequence[str], request: ModelRequest) -> list[ModelRequestPart]:
        results: list[ModelRequestPart] = []
        for known_id, result in zip(calls, item.results, strict=True):
            content = _contents(await given(content_of(result), self.takes, request.read))
            done = result.outcome is ToolOutcome.DONE
            results.append(ToolReturnPart(usable_name(result.name), content, known_id, outcome="success" if done else "failed"))
        return results

    def _response(self, told: ModelResponse, text: str) -> Response:
        # The provider's own mark of its end. pydantic-ai calls a stream complete without it, too.
        reason = told.finish_reason or (told.provider_details or {}).get("finish_reason")
        if reason is None or reason == "error" or told.state not in ("complete", "suspended"):
            raise Cut(f"The stream of {self.provider} ended before the answer did.")
        finish = "paused" if told.state == "suspended" else FINISH.get(reason, "end")
        written = [(part.tool_name, part.args) for part in told.parts if isinstance(part, ToolCallPart)]
        calls, finish = settled([proposed(name, args if isinstance(args, str) else _json(args)) for name, args in written], finish)
        used = told.usage
        return Response(
            text=text,
            calls=calls,
            blocks=tuple(ModelMessagesTypeAdapter.dump_python([told], mode="json")),
            finish=finish,
            usage=Usage(
                input=used.input_tokens,
                output=used.output_tokens,
                cached=used.cache_read_tokens,
                stored=used.cache_write_tokens,
                thought=used.output_reasoning_tokens,
            ),
            wire=WIRE,
            provider=self.provider,
            model=self.model,
            response_id=told.provider_response_id,
        )

    def _failure(self, error: Exception, *, begun: bool) -> ModelError:
        told = f"{self.provider}: {error}"[: errors.SHOWN]
        match error:
            case exceptions.ModelContextWindowExceededError():
                return TooLong(told)
            case exceptions.ModelQuotaExceededError():
                return NotAllowed(told, lacks="credit")
            case exceptions.ModelAuthenticationError():
                return NotAllowed(told, lacks="key")
            case exceptions.ModelNotFoundError():
                return NotAllowed(told, lacks="model")
            case exceptions.ModelHTTPError():
                return errors.error(self.provider, errors.fault(str(error), status=error.status_code, retry_after_s=error.retry_after))
            case exceptions.ModelConnectionError():
                return Cut(told) if begun else Busy(told, at_once=True)
            case exceptions.ModelRequestRejectedError() | exceptions.UserError():
                return Rejected(told)
            case exceptions.ModelAPIError():
                return Busy(told, retry_after_s=error.retry_after)
        return Cut(told) if begun else Busy(told)


def _settings(request: ModelRequest) -> ModelSettings:
    settings = request.settings
    made = ModelSettings()
    if settings.max_tokens is not None:
        made["max_tokens"] = settings.max_tokens
    if settings.temperature is not None:
        made["temperature"] = settings.temperature
    if settings.effort is not None:
        made["thinking"] = cast(ThinkingLevel, settings.effort)
    if settings.extra:
        made["extra_body"] = settings.extra
    return made


def _named(part: ToolCallPart[Any]) -> ToolCallPart[Any]:
    return replace(part, tool_name=usable_name(part.tool_name))


def _tools(request: ModelRequest) -> list[ToolDefinition]:
    return [ToolDefinition(name=tool.name, parameters_json_schema=tool.schema, description=tool.description) for tool in request.tools]


def _contents(parts: list[str | Given]) -> Any:
    """One text as it is, so that a model without attachments never sees a list."""
    contents = [part if isinstance(part, str) else BinaryContent(part.data, media_type=part.media_type) for part in parts]
    return "\n\n".join(each for each in contents if isinstance(each, str)) if all(isinstance(each, str) for each in contents) else contents


def _pieces(event: object, said: Said) -> Sequence[Piece]:
    match event:
        case PartStartEvent(part=TextPart(content=text)) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            return said.add(text)
        case PartStartEvent(part=ThinkingPart(content=text)) | PartDeltaEvent(delta=ThinkingPartDelta(content_delta=str(text))):
            said.part()
            return (ThoughtPiece(text),) if text else ()
        case PartStartEvent(part=ToolCallPart(tool_name=name)):
            said.part()
            return (CallPiece(name),)
    return ()


def _json(arguments: object) -> str:
    return msgspec.json.encode(arguments or {}).decode()
