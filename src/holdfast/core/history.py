"""What an agent is shown of a conversation: what people said, the steps of earlier answers, and one result for each of their calls."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, overload

import msgspec

from holdfast.core import content
from holdfast.core.content import Content
from holdfast.core.effects import ToolOutcome
from holdfast.core.events import ModelResponded
from holdfast.core.messages import Message, Taken, ToolCall
from holdfast.core.steps import Step as FoldedStep
from holdfast.core.transcript import Transcript

NOT_RUN = "It was not run: the turn ended first."


class User(msgspec.Struct, frozen=True, kw_only=True):
    """What a person said, or another cause. `what`: message, or the kind of cause."""

    id: str
    content: Content
    sender: str | None = None
    what: str = "message"

    @property
    def text(self) -> str:
        return content.text(self.content)


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A call of a step under its own id, `<turn>.<step>.<n>`. `problem`: why it cannot be run."""

    call_id: str
    name: str
    arguments: dict[str, Any]
    step: int = 0
    problem: str | None = None


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """`response`: the model's, None for an agent without one."""

    turn_id: str
    number: int
    text: str
    calls: tuple[Call, ...] = ()
    response: ModelResponded | None = None


class Result(msgspec.Struct, frozen=True, kw_only=True):
    call_id: str
    name: str
    outcome: ToolOutcome
    content: Content

    @property
    def text(self) -> str:
        return content.text(self.content)


Item = User | Step | Result


def calls_of(turn_id: str, response: ModelResponded) -> tuple[Call, ...]:
    """The calls that a recorded response proposes."""
    return tuple(
        Call(
            call_id=f"{turn_id}.{response.step}.{number}",
            name=call.name,
            arguments=call.arguments,
            step=response.step,
            problem=call.problem,
        )
        for number, call in enumerate(response.calls, 1)
    )


class History(Sequence[Item]):
    """Made when somebody reads it: an agent that does not look at it costs nothing."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript

    @cached_property
    def _items(self) -> list[Item]:
        return list(_items(self._transcript))

    @overload
    def __getitem__(self, place: int) -> Item: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Item]: ...
    def __getitem__(self, place: int | slice) -> Item | Sequence[Item]:
        return self._items[place]

    def __len__(self) -> int:
        return len(self._items)


def causes(transcript: Transcript) -> tuple[User, ...]:
    """What the newest turn answers: what it started from, and what it has taken since."""
    turn = transcript.turns[-1]
    known = {message.id: message for message in transcript.messages if message.turn_id == turn.id}
    taken = [part.message_id for step in transcript.steps for part in step.parts(turn.id) if isinstance(part, Taken)]
    return tuple(_user(known[cause_id]) for cause_id in (*turn.causes, *taken) if cause_id in known)


def unfinished(transcript: Transcript) -> tuple[Call, ...]:
    """The calls of the newest turn's last recorded step, if one of them has no result yet."""
    responded = [step.response for step in transcript.steps if step.response is not None]
    if not responded:
        return ()
    done = {call.call_id for call in transcript.calls if call.outcome is not None}
    calls = calls_of(transcript.turns[-1].id, responded[-1])
    return calls if any(call.call_id not in done for call in calls) else ()


def _items(transcript: Transcript) -> Iterator[Item]:
    known = {message.id: message for message in transcript.messages}
    newest = transcript.turns[-1].id if transcript.turns else None
    for turn in transcript.turns:
        for cause_id in turn.causes:
            if cause_id in known:
                yield _user(known[cause_id])
        for step in transcript.steps_of(turn.id):
            for part in step.parts(turn.id):
                if isinstance(part, Taken) and part.message_id in known:
                    yield _user(known[part.message_id])
            if step.response is not None or turn.id != newest:  # What this turn says and no record has yet is `kept`.
                yield from _step(turn.id, step, over=turn.id != newest)


def _user(message: Message) -> User:
    return User(id=message.id, content=message.content, sender=message.sender, what=message.cause or "message")


def _step(turn_id: str, step: FoldedStep, *, over: bool) -> Iterator[Item]:
    """A step and the results of its calls. `over`: its turn is, so that a call without a result never ran."""
    ran = {call.call_id: call for call in step.calls}
    calls = calls_of(turn_id, step.response) if step.response is not None else tuple(map(_simple, step.calls))
    if step.response is not None or calls or step.text.read():
        yield Step(turn_id=turn_id, number=step.number, text=step.text.read(), calls=calls, response=step.response)
    for call in calls:
        known = ran.get(call.call_id)
        if known is not None and known.outcome is not None:
            yield Result(call_id=call.call_id, name=call.name, outcome=known.outcome, content=known.content or "")
        elif over:
            yield Result(call_id=call.call_id, name=call.name, outcome=ToolOutcome.FAILED, content=NOT_RUN)


def _simple(call: ToolCall) -> Call:
    return Call(call_id=call.call_id, name=call.name, arguments=call.arguments, step=call.step)
