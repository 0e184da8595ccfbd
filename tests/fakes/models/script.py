"""What a model server replies, as data: in a test, or as JSON in a file."""

from typing import Any, Literal

import msgspec


class Say(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One of: a piece of text, a piece of thought, a call. `arguments`: an object, or text as a model would write it."""

    text: str | None = None
    thought: str | None = None
    call: str | None = None
    arguments: dict[str, Any] | str = {}
    id: str | None = None

    @property
    def written(self) -> str:
        return self.arguments if isinstance(self.arguments, str) else msgspec.json.encode(self.arguments).decode()


class Reply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A reply to one request.

    `say`: what the model says; each wire makes its events of it. `finish`: the reason for the end in the wire's own words, if not the
    usual one. `interleave`: the pieces of several calls come in turns. `events`: these instead, as they are. `usage`: input, output,
    cached tokens.
    `status`, `error`: a refusal. `body`, `content_type`: this instead of a stream.
    `stop_after`: so many events are sent, and `then`: the body ends cleanly (close), the connection is closed within the body (half),
    reset, or left open in silence (hang). `drop`: there is no answer at all; the connection is closed (or hangs). `leave`: it is closed
    after the reply, untold.
    `delay_s`: before each event. `drip`: so many bytes at a time.
    """

    say: tuple[Say, ...] = ()
    finish: str | None = None
    interleave: bool = False
    events: tuple[Any, ...] | None = None
    usage: tuple[int, int, int] = (10, 5, 4)
    status: int = 200
    error: Any = None
    headers: dict[str, str] = {}
    body: str | None = None
    content_type: str = "text/event-stream"
    stop_after: int | None = None
    then: Literal["close", "half", "reset", "hang"] = "close"
    drop: bool = False
    leave: bool = False
    delay_s: float = 0
    drip: int = 0


class Script(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`by` order: the next reply for each request; the last one again when there are no more. `by` steps: the reply whose number
    is how many responses of a model the request's history holds, so that a request that is sent again gets the same reply. `window`:
    requests with more bytes than this are refused as too long. `models`: what it lists; others are refused. `key`: the one that it takes.
    `transcripts`: what it makes of recordings, one after the other, the last one again; a number is the status of a refusal, an
    object the whole answer.
    """

    replies: tuple[Reply, ...]
    by: Literal["order", "steps"] = "order"
    window: int | None = None
    models: tuple[str, ...] = ()
    key: str | None = None
    transcripts: tuple[str | int | dict[str, Any], ...] = ()


def text(*pieces: str) -> tuple[Say, ...]:
    return tuple(Say(text=piece) for piece in pieces)


def thought(*pieces: str) -> tuple[Say, ...]:
    return tuple(Say(thought=piece) for piece in pieces)


def call(name: str, arguments: dict[str, Any] | str = {}, id: str | None = None) -> Say:  # noqa: B006  It is only read.
    return Say(call=name, arguments=arguments, id=id)
