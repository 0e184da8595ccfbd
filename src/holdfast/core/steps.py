"""What one turn said and did: its steps, each with its text, its calls and the messages it took, in the order of the turn.

An agent without a model has one step 0 with all that it said. Everything is keyed by (epoch, position): what an earlier lease wrote stands
before what a later one wrote, whenever it reached the log. Records alone decide where parts stand and what they are called, so that an
answer looks the same while it grows, once it is loaded, and after its pieces were pruned.
"""

from collections.abc import Iterator
from itertools import islice
from operator import itemgetter
from typing import NamedTuple

from holdfast.core import content
from holdfast.core import events as e
from holdfast.core.content import BytesPart, Content
from holdfast.core.effects import ToolOutcome
from holdfast.core.elicitation import Elicited, Resting
from holdfast.core.messages import AnswerPart, Attached, Called, LateResult, Said, Taken, ToolCall
from holdfast.core.output import SHOWN_HEAD, SHOWN_TAIL, Ends
from holdfast.core.texts import Growing

# A place in a turn: epoch and position. Events of version 0.1 stored no epoch and stand before all others.
Key = tuple[int, int]
# Behind every place.
LAST: Key = (2**62, 0)


def key(item: e.Logged) -> Key:
    return (-1 if item.epoch is None else item.epoch, item.position)


class StepText:
    """The text of a step, from its pieces until a record fixes it. Within one lease pieces come in order, and they are joined when
    somebody reads them; a late piece of an earlier lease is put in its place then. Costs its length, in whatever pieces it comes.
    """

    __slots__ = ("_fixed", "_joined", "_latest", "_pieces", "_text")

    def __init__(self) -> None:
        self._fixed: str | None = None
        self._pieces: list[tuple[Key, int, str]] = []
        self._latest: Key = (-1, -1)
        self._text: Growing | None = None  # What the first `_joined` pieces make.
        self._joined = 0

    def write(self, at: Key, offset: int, text: str) -> None:
        """The step's first `offset` characters, followed by `text`, are its text as of this place."""
        if self._fixed is not None:
            return
        self._pieces.append((at, offset, text))
        if at >= self._latest:
            self._latest = at
        else:
            self._text, self._joined = None, -1

    def fix(self, text: str) -> None:
        """A record says what the text is, whatever pieces it came in."""
        self._fixed, self._pieces = text, []

    def read(self) -> str:
        if self._fixed is not None:
            return self._fixed
        if self._joined < 0:
            self._pieces.sort(key=itemgetter(0))
            self._joined = 0
        if self._text is None:
            self._text = Growing()
        for _, offset, text in islice(self._pieces, self._joined, None):
            self._text.write(offset, text)
        self._joined = len(self._pieces)
        return self._text.read()


class _Mark(NamedTuple):
    """Something that stands between the texts of a step, behind the first `place` characters: a call, or a message that was taken."""

    place: int
    call_id: str | None = None
    message_id: str | None = None


class Step:
    """`response`: the model's, once it is recorded."""

    __slots__ = ("_marks", "attached", "calls", "number", "response", "text")

    def __init__(self, number: int) -> None:
        self.number = number
        self.text = StepText()
        self.response: e.ModelResponded | None = None
        self.calls: list[ToolCall] = []
        self.attached: tuple[BytesPart, ...] = ()
        self._marks: list[_Mark] = []

    def mark(self, offset: int, *, call_id: str | None = None, message_id: str | None = None) -> None:
        """Behind a response, everything stands behind its text."""
        place = offset if self.response is None else len(self.response.text)
        self._marks.append(_Mark(max(place, self._marks[-1].place if self._marks else 0), call_id, message_id))

    def parts(self, turn_id: str) -> Iterator[AnswerPart]:
        """Calls have odd numbers, in their order; the texts between them even ones. So no number depends on how long a text is, which may
        be written over, or on pieces that may be gone.
        """
        text, done, step = self.text.read(), 0, self.number
        prefix, last = f"{turn_id}.{step}", 2 * len(self._marks)
        for number, mark in zip(range(1, last, 2), self._marks, strict=True):
            if said := text[done : mark.place]:
                yield Said(id=f"{prefix}.{number - 1}", step=step, text=said)
            done = mark.place
            if mark.call_id is not None:
                yield Called(id=f"{prefix}.{number}", step=step, offset=mark.place, call_id=mark.call_id)
            elif mark.message_id is not None:
                yield Taken(id=f"{prefix}.{number}", step=step, offset=mark.place, message_id=mark.message_id)
        if said := text[done:]:
            yield Said(id=f"{prefix}.{last}", step=step, text=said)
        for number, part in enumerate(self.attached, last + 1):
            yield Attached(id=f"{prefix}.{number}", step=step, part=part)


class Thoughts(NamedTuple):
    """What was thought aloud in a step. `kept`: on record, whatever becomes of the attempt."""

    step: int
    text: str
    kept: bool


class _Run:
    """A call, where its last run started and finished, and what that put out."""

    __slots__ = ("call", "finished", "output", "started")

    def __init__(self, call: ToolCall, started: Key) -> None:
        self.call, self.started = call, started
        self.finished: Key = started
        self.output: Ends | None = None


class Steps:
    """Apply a turn's events in the order of the log, late ones included; read `steps`, `content`, `calls`, `parts` at any time. `calls`
    stays one list; `join` puts into it what calls have put out.
    """

    __slots__ = ("_content", "_read", "_runs", "_steps", "_thinking", "_unjoined", "calls", "turn_id")

    def __init__(self, turn_id: str) -> None:
        self.turn_id = turn_id
        self.calls: list[ToolCall] = []
        self._steps: dict[int, Step] = {}
        self._runs: dict[str, _Run] = {}
        self._unjoined: list[_Run] = []
        self._content: Content | None = None
        self._thinking: dict[int, Ends] = {}  # What was thought aloud in steps whose responses are still to come.
        self._read: list[str] = []  # What an agent that is another program thought aloud, as far as it is on record.

    @property
    def steps(self) -> list[Step]:
        return [self._steps[number] for number in sorted(self._steps)]

    def join(self) -> None:
        for run in self._unjoined:
            if run.output is not None:
                run.call.output, run.call.output_omitted = run.output.read()
        self._unjoined.clear()

    def call(self, call_id: str) -> ToolCall | None:
        run = self._runs.get(call_id)
        return None if run is None else run.call

    def proposed(self, call_id: str) -> e.ProposedCall | None:
        """A call of a recorded response, whether it has started or not. Who asks for it asks of the newest."""
        for step in reversed(self._steps.values()):
            for number, call in enumerate(step.response.calls if step.response is not None else (), 1):
                if call_id == f"{self.turn_id}.{step.number}.{number}":
                    return call
        return None

    @property
    def content(self) -> Content:
        """The answer, as it is delivered: what the end wrote; until then the last step's text, or the last text that was said."""
        if self._content is not None:
            return self._content
        return next((text for step in reversed(self.steps) if (text := step.text.read())), "")

    def parts(self) -> tuple[AnswerPart, ...]:
        return tuple(part for step in self.steps for part in step.parts(self.turn_id))

    def _step(self, number: int) -> Step:
        step = self._steps.get(number)
        if step is None:
            step = self._steps[number] = Step(number)
        return step

    def thoughts(self) -> list[Thoughts]:
        """By step. Until a record has them thoughts are pieces; those of a request that failed or of an attempt that is over are not
        kept.
        """
        responses = [step.response for step in self.steps if step.response is not None]
        kept = [Thoughts(response.step, response.thoughts, True) for response in responses if response.thoughts]
        kept += [Thoughts(0, text, True) for text in self._read]
        open_ones = [Thoughts(number, thinking.read().text, False) for number, thinking in self._thinking.items()]
        return sorted([*kept, *open_ones], key=itemgetter(0))

    def think(self, event: e.Reasoning) -> None:
        step = self._steps.get(event.step)
        if step is None or step.response is None:
            if (thinking := self._thinking.get(event.step)) is None:
                thinking = self._thinking[event.step] = Ends(SHOWN_HEAD, SHOWN_TAIL)
            thinking.add(event.text)

    def say(self, at: Key, event: e.Text) -> None:
        self._step(event.step).text.write(at, event.offset, event.text)

    def respond(self, event: e.ModelResponded) -> None:
        step = self._step(event.step)
        step.response = event
        self._thinking.pop(event.step, None)
        step.text.fix(event.text)

    def read(self, event: e.AgentRead) -> None:
        """Its one step is 0."""
        if event.thoughts:
            self._read.append(event.thoughts)
            self._thinking.pop(0, None)

    def stop_thinking(self) -> None:
        self._thinking.clear()

    def write(self, written: Content) -> None:
        """The answer is on record. What no response fixed is the text of the step that was open: the one after the last response."""
        self._content, text = written, content.text(written)
        responded = [step for step in self.steps if step.response is not None]
        said = next((step.text.read() for step in reversed(responded) if step.text.read()), None)
        number = responded[-1].number + 1 if responded else 0
        if text != said:
            self._step(number).text.fix(text)
        elif number in self._steps:
            self._steps[number].text.fix("")
        if not isinstance(written, str):
            self._step(max(self._steps)).attached = content.attached(written)

    def start(self, at: Key, item: e.Logged, event: e.ToolStarted) -> None:
        """A call that is run once more stays one call, in its first place, with what its last run put out."""
        if run := self._runs.get(event.call_id):
            call, run.started, run.output = run.call, at, None
            call.attempt, call.seq, call.resting = item.attempt, item.seq, None
            call.output, call.output_omitted, call.outcome, call.content = "", 0, None, None
            call.started_at, call.finished_at, call.recovered, call.late = item.at, None, False, None
            return
        call = ToolCall(
            call_id=event.call_id,
            name=event.name,
            arguments=event.arguments,
            effect=event.effect,
            attempt=item.attempt,
            step=event.step,
            seq=item.seq,
            started_at=item.at,
        )
        self._runs[event.call_id] = _Run(call, at)
        self.calls.append(call)
        step = self._step(event.step)
        step.calls.append(call)
        step.mark(event.offset, call_id=event.call_id)

    def put_out(self, at: Key, event: e.ToolOutput) -> None:
        """What a run put out that was over before the call was run once more is not shown."""
        run = self._runs.get(event.call_id)
        if run is None or at < run.started:
            return
        if run.output is None:
            run.output = Ends(SHOWN_HEAD, SHOWN_TAIL)
        run.output.add(event.text, event.omitted)
        if not self._unjoined or self._unjoined[-1] is not run:
            self._unjoined.append(run)

    def finish(self, at: Key, attempt: int, call_id: str, outcome: ToolOutcome, result: Content, time: int) -> None:
        """Unless the call has run once more since, or a later lease has recorded what became of it. Where that was unknown, a result that
        comes late is shown with the call, and nothing else changes. `time`: when it finished.
        """
        run = self._runs.get(call_id)
        if run is None or at < run.started:
            return
        call = run.call
        if at >= run.finished:
            run.finished = at
            call.outcome, call.content, call.finished_in, call.finished_at = outcome, result, attempt, time
        elif call.outcome is ToolOutcome.UNKNOWN:
            call.late = LateResult(outcome=outcome, content=result, finished_at=time)

    def rest(self, call_id: str, elicited: Elicited) -> None:
        """A call asks a person. Answers to what it asked before, in the same breath, stay."""
        if call := self.call(call_id):
            call.resting = Resting(elicited=elicited, answers=dict(call.resting.answers) if call.resting is not None else {})

    def hear(self, call_id: str, said: Content) -> None:
        """The answer to what a call asks now."""
        if (call := self.call(call_id)) and call.resting is not None:
            call.resting.answers[call.resting.elicited.number] = content.text(said)

    def take(self, event: e.CauseTaken) -> None:
        self._step(event.step).mark(event.offset, message_id=event.cause_id)
