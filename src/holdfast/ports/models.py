"""The seam between the model agent and the providers of models: one request, one streamed response, no retries inside."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Protocol

import msgspec

from holdfast.core.errors import HoldfastError
from holdfast.core.events import Used
from holdfast.core.history import Item
from holdfast.ports.agents import Response
from holdfast.ports.tools import ToolSpec


class ModelSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What may be set for a model. None: as its provider has it. `effort`: how much it thinks, in the provider's own words. `extra` goes
    into the request's body as it is.
    """

    max_tokens: int | None = None
    temperature: float | None = None
    effort: str | None = None
    extra: dict[str, Any] = {}


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """`system` and `tools` stay the same from step to step, so that a provider can keep them. `note` is ours to the model and comes last,
    after the history. `read`: the bytes of a blob, by digest, for the parts of the history that the model takes. `thoughts`: whether
    its own earlier thoughts are sent back to it; false after a provider refused them.
    """

    system: str
    history: Sequence[Item]
    tools: Sequence[ToolSpec]
    note: str | None = None
    settings: ModelSettings = ModelSettings()
    read: Callable[[str], Awaitable[bytes]]
    thoughts: bool = True


class TextPiece(msgspec.Struct, frozen=True):
    text: str


class ThoughtPiece(msgspec.Struct, frozen=True):
    text: str


class CallPiece(msgspec.Struct, frozen=True):
    """The model has begun to write a call; its arguments come with the response. For those who watch."""

    name: str


Piece = TextPiece | ThoughtPiece | CallPiece


class Taking(msgspec.Struct, frozen=True, kw_only=True):
    """What a model can be given besides text: kinds of parts (image, audio, file), and how many bytes of one image."""

    kinds: frozenset[str] = frozenset()
    image_limit: int = 15 * 1024 * 1024


class ModelClient(Protocol):
    """One model of one provider."""

    provider: str
    model: str
    wire: str
    takes: Taking

    def stream(self, request: ModelRequest) -> AsyncIterator[Piece | Response]:
        """The pieces as they come; last, once, the whole response. Raises a `ModelError` instead if there is none. A stream that ends
        without the provider's own mark of its end is `Cut`, never a response, whatever came before. Cancelling closes the connection.
        """

    async def aclose(self) -> None:
        """Closes its connections. Called once, when no stream is open."""


class Transcript(msgspec.Struct, frozen=True):
    """`used`: by the request for it; its usage is empty where the provider does not tell it."""

    text: str
    used: Used


class Transcriber(Protocol):
    async def words(self, recording: bytes, *, name: str, media_type: str) -> Transcript:
        """What is said in it. Raises a `ModelError`. Opens nothing that stays open."""


class ModelError(HoldfastError):
    """A request brought no response. The words say what the provider said, and hold no key."""

    code = "model_failed"


class Busy(ModelError):
    """Worth trying again: overloaded, a rate limit, no connection, an error of the server. `retry_after_s`: as the provider said.
    `at_once`: there was no connection, or it was closed before any answer, so that a first retry need not wait.
    """

    code = "model_busy"

    def __init__(self, message: str, *, retry_after_s: float | None = None, at_once: bool = False) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
        self.at_once = at_once


class Cut(Busy):
    """The stream broke off, or ended without the provider's mark of its end."""

    code = "model_cut"


class TooLong(ModelError):
    """The request is longer than the model's window."""

    code = "model_too_long"


class NotAllowed(ModelError):
    """The key is wrong, missing or out of credit, or may not use this model. Trying again does not help; another model may. `lacks`: which
    of these, where the provider says it: key, credit, permission or model.
    """

    code = "model_not_allowed"

    def __init__(self, message: str, *, lacks: str = "") -> None:
        super().__init__(message)
        self.lacks = lacks


class Rejected(ModelError):
    """The provider says that the request is wrong. `thoughts`: it objects to earlier thoughts that were sent back."""

    code = "model_rejected"

    def __init__(self, message: str, *, thoughts: bool = False) -> None:
        super().__init__(message)
        self.thoughts = thoughts
