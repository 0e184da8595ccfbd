"""What an agent is shown of a conversation: what people said, the steps of earlier answers, and one result for each of their calls."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, overload

import msgspec

from holdfast.core import content, limits, notes, output
from holdfast.core.content import AudioPart, Content, TextPart
from holdfast.core.effects import ToolOutcome
from holdfast.core.events import ContextCompacted, ModelResponded
from holdfast.core.messages import Message, Taken, ToolCall, Turn
from holdfast.core.processes import ENDED, MATCHED
from holdfast.core.steps import Step as FoldedStep
from holdfast.core.transcript import Transcript

NOT_RUN = "It was not run: the turn ended first."
# The call that an agent makes for a recording that its model does not take. Its argument `blob` says which.
TRANSCRIBE = "transcribe"
# What `User.what` says of a summary.
SUMMARY = "summary"
# Of a result that made its turn too long for a model.
SHORTER_HEAD, SHORTER_TAIL = 1024, 1024


class User(msgspec.Struct, frozen=True, kw_only=True):
    """What a person said, or another cause. `what`: message, the kind of cause, or `summary`, which stands for all that came earlier and
    has the generation of the turn that wrote it. `generation`: of its turn. `heard`: the recordings in it (blobs) behind which stands what
    was said in them, or why nobody knows. `about`: what a model is told of a cause that nobody says now.
    """

    id: str
    content: Content
    sender: str | None = None
    what: str = "message"
    generation: int = 0
    heard: tuple[str, ...] = ()
    about: str | None = None

    @property
    def text(self) -> str:
        return content.text(self.content)


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A call of a step under its own id, `<turn>.<step>.<n>`. `problem`: why it cannot be run. `careful`: its agent wants a person's
    approval, whatever is configured.
    """

    call_id: str
    name: str
    arguments: dict[str, Any]
    step: int = 0
    problem: str | None = None
    careful: bool = False


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """`response`: the model's, None for an agent without one. `generation`: of its turn."""

    turn_id: str
    number: int
    text: str
    calls: tuple[Call, ...] = ()
    response: ModelResponded | None = None
    generation: int = 0


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


def hear(user: User, heard: Mapping[str, str]) -> User:
    """With what is said of its recordings, by blob, behind each of them."""
    new = {part.blob for part in content.attached(user.content) if isinstance(part, AudioPart)} & heard.keys() - set(user.heard)
    if not new:
        return user
    said: list[content.Part] = []
    for part in content.parts(user.content):
        said.append(part)
        if isinstance(part, AudioPart) and part.blob in new:
            said.append(TextPart(heard[part.blob]))
    return msgspec.structs.replace(user, content=content.of(said), heard=(*user.heard, *sorted(new)))


def transcribed(arguments: Mapping[str, Any], outcome: ToolOutcome, text: str) -> str:
    """What a model is told behind the recording of such a call."""
    name = arguments.get("name")
    return f"[Transcript of {name}:] {text}" if outcome is ToolOutcome.DONE else f"[There is no transcript of {name}. {text}]"


def summary(compacted: ContextCompacted, turn_id: str, generation: int) -> User:
    """What a model is given instead of the turns that it covers. `generation`: of the turn that wrote it."""
    return User(id=f"{turn_id}.summary", content=_told(compacted), what=SUMMARY, generation=generation)


def _told(compacted: ContextCompacted) -> str:
    if compacted.summary:
        return f"[The earlier part of this conversation is not given here. This is a summary of it:]\n\n{compacted.summary}"
    return "[The earlier part of this conversation is left out here, because it was too long. Ask the user about what you miss.]"


def shorter(result: Result) -> Result:
    """Its beginning and its end; the same where it is short already. Attachments stay."""
    given = result.content
    text = output.shortened(content.text(given), SHORTER_HEAD, SHORTER_TAIL)
    if not text.omitted:
        return result
    return msgspec.structs.replace(result, content=content.of((TextPart(text.text), *content.attached(given))))


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
    taken = [part.message_id for step in transcript.steps for part in step.parts(turn.id) if isinstance(part, Taken)]
    found = [message for cause_id in (*turn.causes, *taken) if (message := transcript.find(cause_id))]
    recordings = _Recordings(transcript)
    return tuple(_user(message, turn, recordings) for message in found)


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
    recordings = _Recordings(transcript)
    through = 0
    if (compacted := transcript.compacted) is not None:
        through = compacted.event.through
        yield summary(compacted.event, compacted.turn_id, compacted.generation)
    for turn in transcript.turns:
        if turn.generation <= through and turn.id != newest:
            continue
        for cause_id in turn.causes:
            if cause_id in known:
                yield _user(known[cause_id], turn, recordings)
        for step in transcript.steps_of(turn.id):
            for part in step.parts(turn.id):
                if isinstance(part, Taken):
                    yield _user(known[part.message_id], turn, recordings)
            if step.response is not None or turn.id != newest:  # What this turn says and no record has yet is `kept`.
                for item in _step(turn, step, over=turn.id != newest):
                    yield shorter(item) if isinstance(item, Result) and item.call_id in transcript.trimmed else item


def about_cause(what: str) -> str | None:
    """What a model is told of every cause of this kind."""
    return notes.PROCESS if what in (ENDED, MATCHED) else None


def _user(message: Message, turn: Turn, recordings: "_Recordings") -> User:
    what, due = message.cause or "message", message.schedule
    about = about_cause(what)
    if due is not None:
        about = notes.scheduled(due.when, late_ms=message.created_at - due.due_at, missed=due.missed)
    user = User(id=message.id, content=message.content, sender=message.sender, what=what, generation=turn.generation, about=about)
    return user if isinstance(user.content, str) else hear(user, recordings.of(turn.id))


class _Recordings:
    """What is on record of recordings, by blob. A transcript counts wherever the same bytes stand; why there is none, only in the turn that
    tried: another one tries again. Looked up when a message has attachments.
    """

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript

    def of(self, turn_id: str) -> dict[str, str]:
        words, problems = self._found
        return problems.get(turn_id, {}) | words

    @cached_property
    def _found(self) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
        words: dict[str, str] = {}
        problems: dict[str, dict[str, str]] = {}
        for turn in self._transcript.turns:
            for step in self._transcript.steps_of(turn.id):
                for call in step.calls:
                    if call.name == TRANSCRIBE and call.outcome is not None:
                        into = words if call.outcome is ToolOutcome.DONE else problems.setdefault(turn.id, {})
                        into[str(call.arguments.get("blob"))] = transcribed(call.arguments, call.outcome, call.result or "")
        return words, problems


def _step(turn: Turn, step: FoldedStep, *, over: bool) -> Iterator[Item]:
    """A step and the results of its calls. `over`: its turn is, so that a call without a result never ran."""
    ran = {call.call_id: call for call in step.calls}
    simple = (_simple(call) for call in step.calls if call.name != TRANSCRIBE and not limits.is_question(call.call_id))
    calls = calls_of(turn.id, step.response) if step.response is not None else tuple(simple)
    if step.response is not None or calls or step.text.read():
        text = step.text.read()
        yield Step(turn_id=turn.id, number=step.number, text=text, calls=calls, response=step.response, generation=turn.generation)
    for call in calls:
        known = ran.get(call.call_id)
        if known is not None and known.outcome is not None:
            yield Result(call_id=call.call_id, name=call.name, outcome=known.outcome, content=known.content or "")
        elif over:
            yield Result(call_id=call.call_id, name=call.name, outcome=ToolOutcome.FAILED, content=NOT_RUN)


def _simple(call: ToolCall) -> Call:
    return Call(call_id=call.call_id, name=call.name, arguments=call.arguments, step=call.step)
