"""`/v1/chat/completions`: the whole conversation comes with each request, and its last message is answered. A client that leaves stops
nothing: stopping is a command."""

from collections.abc import Iterable
from typing import Any

from starlette.types import ASGIApp

from holdfast.api import openai as shapes
from holdfast.api.openai import CompletionObject, NewCompletion
from holdfast.core.answering import Answering, Status
from holdfast.core.errors import AttachmentGone, BlobMissing, ConversationBusy, Deleted, LaneFull, NotFound
from holdfast.core.events import Logged
from holdfast.core.pieces import Piece
from holdfast.core.recitals import Recited
from holdfast.core.usage import Spent
from holdfast.web.endpoints import Endpoint, Request
from holdfast.web.openai import asking, errors, frames, naming, requests
from holdfast.web.openai.conversations import Conversations
from holdfast.web.openai.errors import KeyReused, NoSuchModel, TurnFailed
from holdfast.web.openai.following import Means
from holdfast.web.openai.prose import Grown, Prose, finish_reason
from holdfast.web.openai.replies import Stream, Whole


class Chat:
    def __init__(self, means: Means, conversations: Conversations) -> None:
        self._means, self._conversations = means, conversations

    def endpoints(self) -> Iterable[Endpoint]:
        yield Endpoint(
            method="POST",
            path="/v1/chat/completions",
            handle=self.create,
            summary="Say the last message of a conversation, and get the answer",
            body=NewCompletion,
            responses={200: CompletionObject},
            refusals=(
                *(NotFound, Deleted, NoSuchModel, LaneFull, KeyReused, AttachmentGone, BlobMissing, ConversationBusy),
                TurnFailed,
            ),
        )

    async def create(self, request: Request) -> ASGIApp:
        body: NewCompletion = request.body
        wanted = requests.read(request, door="chat", asked=await requests.asked(request, asking.completion), model=body.model)
        recited = await self._conversations.send(wanted)
        answering, grant = Answering(recited.message_id, recited.seq), requests.grant(request)
        if body.stream:
            told = body.stream_options is not None and bool(body.stream_options.include_usage)
            return Stream(self._means, grant, recited, answering, Chunks(recited, answering, usage=told))
        return Whole(self._means, grant, recited, answering, Completion(recited, answering))


class Completion:
    """A completion that is given at once. A turn that failed has none."""

    def __init__(self, recited: Recited, answering: Answering) -> None:
        self._recited, self._answering = recited, answering
        self._prose = Prose()

    def take(self, pieces: list[Piece]) -> None:
        self._prose.take_all(pieces)

    def body(self) -> CompletionObject:
        answering, prose = self._answering, self._prose
        if answering.status is Status.FAILED:
            raise TurnFailed(_failure(answering))
        prose.rest(answering)
        message = shapes.CompletionMessage(content="".join(prose.content), reasoning_content="".join(prose.reasoning) or None)
        return CompletionObject(
            id=naming.completion_id(self._recited),
            created=answering.created_at // 1000,
            model=naming.model(answering),
            choices=[shapes.Choice(message=message, finish_reason=finish_reason(answering))],
            usage=_usage(answering.spent),
        )


class Chunks:
    """The chunks of a stream. `usage`: one more at the end says what it cost."""

    waits = False

    def __init__(self, recited: Recited, answering: Answering, *, usage: bool) -> None:
        self._recited, self._answering, self._usage = recited, answering, usage
        self._prose = Prose()

    def event(self, item: Logged, pieces: list[Piece]) -> bytes:
        made = [self._chunk({"role": "assistant", "content": ""})] if item.seq == self._recited.seq else []
        made += [self._grown(self._prose.take(piece)) for piece in pieces]
        if self._answering.over:
            made.append(self.rest())
        return b"".join(made)

    def rest(self) -> bytes:
        if self._answering.status is Status.FAILED:
            return self.broken(TurnFailed.code, _failure(self._answering)) + frames.DONE
        made = [self._grown(self._prose.rest(self._answering)), self._chunk({}, finish=finish_reason(self._answering))]
        if self._usage:
            made.append(frames.frame(self._body([], usage=_usage(self._answering.spent))))
        return b"".join([*made, frames.DONE])

    def broken(self, reason: str, message: str) -> bytes:
        body, _ = errors.shape(502, reason, message, None)
        return frames.frame(body)

    def _grown(self, grown: Grown) -> bytes:
        made = [self._chunk({"reasoning_content": grown.reasoning})] if grown.reasoning else []
        if grown.content:
            made.append(self._chunk({"content": grown.content}))
        return b"".join(made)

    def _chunk(self, delta: dict[str, str], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return frames.frame(self._body([choice], **({"usage": None} if self._usage else {})))

    def _body(self, choices: list[Any], **more: Any) -> dict[str, Any]:
        return {
            "id": naming.completion_id(self._recited),
            "object": "chat.completion.chunk",
            "created": self._answering.created_at // 1000,
            "model": naming.model(self._answering),
            "choices": choices,
            **more,
        }


def _failure(answering: Answering) -> str:
    return f"The agent did not answer: {answering.why or 'it failed.'}"


def _usage(spent: Spent) -> shapes.CompletionUsage:
    return shapes.CompletionUsage(
        spent.input,
        spent.output,
        spent.tokens,
        shapes.CachedTokens(spent.cached, spent.stored),
        shapes.ThoughtTokens(spent.thought),
    )
