"""What a turn gives, piece by piece, to readers that only append: they cannot take back what they have shown. Follows the log in its order,
so that every reader of the same events gets the same pieces (P7).
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.core import content, notices, usage
from holdfast.core import events as e
from holdfast.core.content import BytesPart
from holdfast.core.effects import ToolOutcome
from holdfast.core.messages import model_name
from holdfast.core.plans.ask import asks
from holdfast.core.texts import Growing
from holdfast.core.turns import MOVES, TABLE, TurnState


class Begins(msgspec.Struct, frozen=True):
    """An attempt works on it."""


class Says(msgspec.Struct, frozen=True):
    """A text grows. `item` names it."""

    item: str
    text: str


class Drops(msgspec.Struct, frozen=True):
    """A later attempt has written over this text; whatever it says instead is another item."""

    item: str


class Settles(msgspec.Struct, frozen=True):
    """This text is whole. `interim`: it was said before calls, on the way to the answer."""

    item: str
    text: str
    interim: bool = False


class Thinks(msgspec.Struct, frozen=True):
    item: str
    text: str


class Calls(msgspec.Struct, frozen=True, kw_only=True):
    """`approval`: the question whose answer allowed it."""

    call_id: str
    name: str
    arguments: dict[str, Any]
    approval: str | None = None


class Returns(msgspec.Struct, frozen=True):
    call_id: str
    outcome: ToolOutcome
    result: str


class Asks(msgspec.Struct, frozen=True, kw_only=True):
    """A person is asked. `form`: as `QuestionAsked` has it. `name` and `arguments`: of the call that an approval is for."""

    question_id: str
    form: str
    text: str
    choices: tuple[str, ...] = ()
    pattern: str | None = None
    name: str = ""
    arguments: dict[str, Any] = {}


class Attaches(msgspec.Struct, frozen=True):
    """Files of the answer."""

    item: str
    parts: tuple[BytesPart, ...]


class Notes(msgspec.Struct, frozen=True):
    """The gateway's own words to the reader."""

    item: str
    text: str


class Warns(msgspec.Struct, frozen=True):
    """The gateway says in the conversation what became of the turn: that it was interrupted, and how to continue."""

    text: str


class Remarks(msgspec.Struct, frozen=True):
    """What becomes of the turn meanwhile, for readers who want to know."""

    text: str


Piece = Begins | Says | Drops | Settles | Thinks | Calls | Returns | Asks | Attaches | Notes | Warns | Remarks


class StepText:
    """The text of one step as its readers have it. An attempt that writes the same again adds nothing; one that writes something else
    begins another item. `text`: what they have of it already.
    """

    __slots__ = ("_base", "_name", "_ran_ahead", "_restarts", "_text", "settled")

    def __init__(self, name: str, text: str = "") -> None:
        self._name, self._restarts = name, 0
        self._text = Growing(text)
        self._ran_ahead: str | None = None  # What readers have, while a later attempt has not come that far yet.
        self._base = 0  # So much of it was there before this reader's part began.
        self.settled = False

    @property
    def item(self) -> str:
        return f"{self._name}.{self._restarts}" if self._restarts else self._name

    @property
    def text(self) -> str:
        """What the log has of it."""
        return self._text.read()

    @property
    def shown(self) -> str:
        """What this reader has of it."""
        return self._readers[self._base :]

    @property
    def _readers(self) -> str:
        return self._text.read() if self._ran_ahead is None else self._ran_ahead

    def begin_here(self) -> None:
        self._base = len(self._readers)

    def grow(self, offset: int, text: str) -> list[Piece]:
        if self._ran_ahead is None and offset == self._text.length:  # As nearly always: a piece costs its own length.
            self._text.add(text)
            return [Says(self.item, text)] if text else []
        return self.become(self._text.read()[:offset] + text, final=False)

    def become(self, text: str, *, final: bool) -> list[Piece]:
        """`final`: no more of it will come."""
        before = self._readers
        self._text, self._ran_ahead = Growing(text), None
        if text.startswith(before):
            return [Says(self.item, text[len(before) :])] if len(text) > len(before) else []
        if before.startswith(text) and not final:
            self._ran_ahead = before
            return []
        dropped: list[Piece] = [Drops(self.item)] if len(before) > self._base else []
        self._restarts, self._base = self._restarts + 1, 0
        return [*dropped, Says(self.item, text)] if text else dropped

    def settle(self, *, interim: bool = False) -> list[Piece]:
        if self.settled:
            return []
        self.settled = True
        return [Settles(self.item, self.shown, interim)] if self.shown else []


class TurnPieces:
    """Apply the events of one turn in the order of the log. `said`: what it has said to readers of the whole turn."""

    def __init__(self, turn_id: str) -> None:
        self.turn_id = turn_id
        self.state = TurnState.RUNNING
        self.attempt = 1
        self.questions: dict[str, Asks] = {}
        self.spent = usage.NOTHING
        self.model: str | None = None
        self.finish = "end"
        self._steps: dict[int, StepText] = {}
        self._responded: dict[int, str] = {}
        self._spoke = (0, 0)  # Attempt and step of the piece that came last.
        self._calls: set[str] = set()
        self._returned: set[str] = set()

    def begin_here(self) -> None:
        """A reader joins: what came before is not given to it, and not counted for it."""
        self.spent = usage.NOTHING
        for step in self._steps.values():
            step.begin_here()

    def apply(self, item: e.Logged, event: e.Event) -> list[Piece]:
        if item.kind in MOVES:
            self.state = TABLE.get((self.state, event.move), self.state)
        match event:
            case e.Text():
                return self._say(item, event)
            case e.Reasoning():
                late = item.attempt < self._spoke[0]
                return [] if late else [Thinks(f"{self.turn_id}.{event.step}.{item.attempt}", event.text)]
            case e.ModelResponded():
                return self._respond(event)
            case e.MessageWritten(role="assistant"):
                return self._write(event)
            case e.MessageWritten(role="notice"):
                return [Warns(event.text)]
            case e.ToolStarted() | e.ToolFinished():
                return self._call(event)
            case e.QuestionAsked():
                return [self._ask(event)]
            case e.QuestionAnswered() | e.QuestionClosed():
                self.questions.pop(event.question_id, None)
            case _:
                return self._remark(item, event)
        return []

    def settle(self) -> list[Piece]:
        """Nothing more will be added to what is open."""
        return [piece for step in self._in_order for piece in step.settle()]

    @property
    def _in_order(self) -> Sequence[StepText]:
        return [self._steps[number] for number in sorted(self._steps)]

    def _step(self, number: int) -> StepText:
        step = self._steps.get(number)
        if step is None:
            step = self._steps[number] = StepText(f"{self.turn_id}.{number}")
        return step

    def _say(self, item: e.Logged, event: e.Text) -> list[Piece]:
        """What an earlier attempt said, and a later one has said over, is not given to anybody."""
        if (item.attempt, event.step) < self._spoke or event.step in self._responded:
            return []
        self._spoke = (item.attempt, event.step)
        return self._step(event.step).grow(event.offset, event.text)

    def _respond(self, event: e.ModelResponded) -> list[Piece]:
        self.spent += usage.of(event)
        self.model = model_name(event.provider, event.model) or self.model
        self.finish = event.finish
        self._responded[event.step] = event.text
        step = self._step(event.step)
        return [*step.become(event.text, final=True), *step.settle(interim=bool(event.calls))]

    def _write(self, event: e.MessageWritten) -> list[Piece]:
        """The answer is on record. What no response said is the text of the step that was open."""
        text = event.text
        said = next((self._responded[step] for step in sorted(self._responded, reverse=True) if self._responded[step]), None)
        number = max(self._responded) + 1 if self._responded else 0
        pieces: list[Piece] = []
        if text != said:
            pieces = self._step(number).become(text, final=True)
        elif number in self._steps:
            pieces = self._step(number).become("", final=True)
        files = content.attached(event.content)
        return [*pieces, Attaches(event.message_id, files)] if files else pieces

    def _call(self, event: e.ToolStarted | e.ToolFinished) -> list[Piece]:
        """A call that is run once more stays one call. A question is given as such."""
        if isinstance(event, e.ToolStarted):
            if asks(event.name) or event.call_id in self._calls:
                return []
            self._calls.add(event.call_id)
            return [Calls(call_id=event.call_id, name=event.name, arguments=event.arguments, approval=event.approval)]
        if event.call_id not in self._calls or event.call_id in self._returned:
            return []
        self._returned.add(event.call_id)
        return [Returns(event.call_id, event.outcome, event.result)]

    def _ask(self, event: e.QuestionAsked) -> Asks:
        asked = self.questions[event.question_id] = Asks(
            question_id=event.question_id,
            form=event.form,
            text=event.text,
            choices=event.choices,
            pattern=event.pattern,
            name=event.call.name if event.call else "",
            arguments=event.call.arguments if event.call else {},
        )
        return asked

    def _remark(self, item: e.Logged, event: e.Event) -> list[Piece]:
        match event:
            case e.TurnResumed():
                self.attempt = event.attempt
                told = [] if event.reason == "answered" else [Remarks(f"Continued (attempt {event.attempt}).")]
                return [Begins(), *told]
            case e.TurnInterrupted():
                return [Remarks(f"Interrupted by {notices.interrupted_by(event.reason)}.")]
            case e.ModelFailed():
                again = " and is asked again" if event.retry_at else ""
                return [Remarks(f"{event.model or 'The model'} did not answer{again}: {event.why}")]
            case e.ContextCompacted():
                self.spent += usage.of(event)
                told_so = notices.compacted(summarised=bool(event.summary), problem=event.problem, trimmed=len(event.trimmed))
                return [Remarks(told_so)]
        return []
