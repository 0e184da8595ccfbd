"""A conversation with a model while an attempt adds to it, and how it can fail to become an answer."""

from collections.abc import Iterator, Sequence

import msgspec

from holdfast.agents import instructions
from holdfast.agents.wires import parts
from holdfast.core import compaction, content, keys, retries
from holdfast.core.content import AudioPart, BytesPart, TextPart
from holdfast.core.errors import HoldfastError
from holdfast.core.events import ContextCompacted, ModelFailed
from holdfast.core.history import SUMMARY, TRANSCRIBE, Call, Item, Result, Step, User, hear, transcribed
from holdfast.core.processes import ENDED, MATCHED
from holdfast.ports.agents import AgentRequest
from holdfast.ports.models import NotAllowed, Rejected, Taking, TooLong
from holdfast.ports.tools import ToolResult

_UNFINISHED = {
    "length": "The answer reached its limit of tokens and is not complete. Ask for the rest, or raise max_tokens in [agent].",
    "filtered": "The model's provider withheld the answer, or the rest of it. Put the request in other words.",
}
_NOTHING_SAID = "The model ended its answer without a word. Ask again, or choose another model."


class NoAnswer(HoldfastError):
    """No model that may be asked has responded."""

    code = "no_answer"

    def __init__(self, failures: Sequence[ModelFailed]) -> None:
        refused = any(each.error == NotAllowed.code for each in failures)
        hint = " `holdfast doctor --deep` tries every model and says what to do." if refused else ""
        super().__init__(retries.told(failures) + hint)
        last = {failure.model: failure.error for failure in failures}
        # A model would answer, but not to this request.
        self.about_the_request = any(error in (TooLong.code, Rejected.code) for error in last.values())


class Unfinished(HoldfastError):
    """A model ended its answer before it was complete."""

    code = "answer_unfinished"


class TooManySteps(HoldfastError):
    """A turn that goes round in circles, or that is larger than anybody expects."""

    code = "too_many_steps"

    def __init__(self, steps: int) -> None:
        super().__init__(
            f"This turn has asked a model {steps} times, which is as often as one may (agent.max_steps). What it did is kept. Write what to"
            " do next, or raise the limit."
        )


class Talk:
    """The conversation as a model is given it, while this attempt adds to it. `steps`: how many this turn has, `generation`: its number.
    `items` stays one list.
    """

    def __init__(self, request: AgentRequest) -> None:
        self.turn_id, self.generation = request.turn_id, request.generation
        again = {call.call_id for call in request.unfinished}
        self._several = instructions.several_write(keys.parse(request.session_key))
        self.items: list[Item] = [
            self._named(item) if isinstance(item, User) else item
            for item in request.history
            if not (isinstance(item, Result) and item.call_id in again)
        ]
        mine = [item for item in self.items if isinstance(item, Step) and item.turn_id == request.turn_id]
        self.steps = mine[-1].number + 1 if mine else 0
        self._last = mine[-1] if mine else None
        self._spoke = any(step.text for step in mine)
        self._untaken: set[BytesPart] = set()

    def _named(self, user: User) -> User:
        """Where several people write, a model must know who said what; and what nobody says now."""
        marks = [user.about] if user.about is not None else []
        if self._several and user.sender is not None and user.what not in (ENDED, MATCHED):
            marks.append(f"[{user.sender}]")
        if not marks:
            return user
        mark = " ".join(marks)
        named = content.of((TextPart(mark), *content.parts(user.content)))
        return msgspec.structs.replace(user, content=f"{mark} {user.content}" if isinstance(user.content, str) else named)

    def add_users(self, users: Sequence[User]) -> None:
        self.items += map(self._named, users)

    def unheard(self, takes: Taking) -> tuple[Call, ...]:
        """The calls for recordings of this turn of which a model that takes this hears nothing."""
        calls = {}
        for user, part in self._attached:
            if isinstance(part, AudioPart) and part.blob not in user.heard and parts.problem(part, takes):
                known = {"name": part.name or "recording", "blob": part.blob, "media_type": part.media_type, "size": part.size}
                call_id = f"{self.turn_id}.heard.{part.blob[:16]}"  # The same in every attempt, whatever is heard already.
                calls[part.blob] = Call(call_id=call_id, name=TRANSCRIBE, arguments=known, step=self.steps)
        return tuple(calls.values())

    def unread(self, takes: Taking) -> dict[BytesPart, str]:
        """The other attachments of this turn, with the reason why a model that takes this is not given them. Each is named once."""
        found: dict[BytesPart, str] = {
            part: why
            for _, part in self._attached
            if not isinstance(part, AudioPart) and part not in self._untaken and (why := parts.problem(part, takes))
        }
        self._untaken |= found.keys()
        return found

    @property
    def _attached(self) -> Iterator[tuple[User, BytesPart]]:
        """What came with the words of this turn."""
        for user in self.items:
            if isinstance(user, User) and user.generation == self.generation and user.what != SUMMARY:
                for part in content.attached(user.content):
                    yield user, part

    def add_heard(self, calls: Sequence[Call], results: Sequence[ToolResult]) -> None:
        heard = {
            call.arguments["blob"]: transcribed(call.arguments, result.outcome, result.text)
            for call, result in zip(calls, results, strict=True)
        }
        mine = self.generation
        self.items[:] = [hear(item, heard) if isinstance(item, User) and item.generation == mine else item for item in self.items]

    def compact(self, compacted: ContextCompacted) -> None:
        """What is on record now instead of a part of it."""
        self.items[:] = compaction.applied(self.items, compacted, self.turn_id, self.generation)

    def add_step(self, step: Step) -> None:
        self.items.append(step)
        self._last, self.steps, self._spoke = step, step.number + 1, self._spoke or bool(step.text)

    def add_results(self, calls: Sequence[Call], results: Sequence[ToolResult]) -> None:
        self.items += [
            Result(call_id=call.call_id, name=call.name, outcome=result.outcome, content=result.content)
            for call, result in zip(calls, results, strict=True)
        ]

    @property
    def over(self) -> bool:
        """The last response makes no calls, so it is the answer."""
        return self._last is not None and not self._last.calls and self._finish != "paused"

    @property
    def _finish(self) -> str:
        return self._last.response.finish if self._last is not None and self._last.response is not None else "end"

    def check(self) -> None:
        """Raises `Unfinished` if its end is not the model's own, or if nobody would see that there was one."""
        if said := _UNFINISHED.get(self._finish) or ("" if self._spoke else _NOTHING_SAID):
            raise Unfinished(said)
