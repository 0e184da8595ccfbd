"""What an attempt has said, thought and put out since its last write: pieces, in order, until they are taken to be written.

What may be the beginning of a secret is held back until what follows it is known, and is never among them before.
"""

from collections.abc import Callable, Iterator, Sequence

from holdfast.core.events import Event, Reasoning, Text, ToolOutput
from holdfast.core.output import SHOWN_HEAD, SHOWN_TAIL, Course, Ends, Piece
from holdfast.core.redaction import Held
from holdfast.core.texts import Growing, storable

# What is said at once is recorded in pieces of at most this much, so that no single event takes long to read, encode or send.
PIECE = 64 * 1024


class Unwritten:
    """`step`: the first one that is not on record. Methods that add pieces yield the length of each."""

    def __init__(self, secrets: Callable[[], Held[str]], *, step: int, said: str) -> None:
        """`secrets`: makes what holds back the beginnings of secrets. `said`: the last text of the steps that are on record."""
        self.step = self._first = step
        self._secrets, self._earlier, self._text = secrets, said, Growing()
        self._pieces: list[Event] = []
        # What was said last and is not among the pieces yet, and where in the text it begins.
        self._said: list[str] = []
        self._said_from = 0
        self._starts_over = False
        self.begun = False  # The text of the step was begun here, with its first character.
        self._thoughts = _thoughts()  # Those of the step.
        self._outputs: dict[str, Course] = {}
        self._held_text, self._held_thought = secrets(), secrets()
        self._held_output: dict[str, Held[str]] = {}

    def __bool__(self) -> bool:
        return bool(self._pieces or self._said)

    # the text of the step

    @property
    def text(self) -> str:
        """The text of the step or, before that says something, the last one that was said."""
        return self._text.read() + self._held_text.waiting or self._earlier

    @property
    def says_more(self) -> bool:
        """Whether there is more than was on record when this was made: some of the step's text, or a step that has ended since."""
        return self.step > self._first or self._text.length > 0 or self.holds_back

    @property
    def holds_back(self) -> bool:
        """Whether some text is held back because it may be the beginning of a secret."""
        return bool(self._held_text.waiting)

    @property
    def offset(self) -> int:
        """How long the step's text is."""
        return self._text.length

    def keep(self, text: str) -> None:
        """The step's text begins with what earlier attempts wrote."""
        self._gather()
        self._text, self._held_text, self._starts_over, self.begun = Growing(text), self._secrets(), False, False

    def start_over(self) -> None:
        """What is said next stands in the place of the step's text. Until then, and if nothing more is said, that text stays (P7)."""
        self._starts_over, self._held_thought, self._thoughts = True, self._secrets(), _thoughts()

    def say(self, text: str) -> Iterator[int]:
        if self._starts_over:
            self.keep("")
        self.begun = self.begun or not self._text.length
        text = self._held_text.add(storable(text))
        for start in range(0, len(text), PIECE):
            piece = text[start : start + PIECE]
            if self._text.length - self._said_from + len(piece) > PIECE:
                self._gather()
            self._say(piece)
            yield len(piece)

    def think(self, text: str) -> Iterator[int]:
        text = self._held_thought.add(storable(text))
        self._thoughts.add(text)
        for start in range(0, len(text), PIECE):
            self.add(Reasoning(text=text[start : start + PIECE], step=self.step))
            yield min(PIECE, len(text) - start)

    def _say(self, text: str) -> None:
        if not self._said:
            self._said_from = self._text.length
        self._said.append(text)
        self._text.add(text)

    def end_text(self) -> None:
        """It is over, with a step or the attempt: what was held back of it is no secret."""
        if thought := self._held_thought.end():
            self._thoughts.add(thought)
            self.add(Reasoning(text=thought, step=self.step))
        if text := self._held_text.end():
            self._say(text)

    def end_step(self) -> str:
        """The step's thoughts, for its response, which is about to be recorded."""
        if self._starts_over:
            self.keep("")
        self.end_text()
        return self._thoughts.read().text

    def next_step(self, said: str) -> None:
        """`said`: the text of the response that ended the step, which is on record."""
        self._earlier = said or self._earlier
        self.step, self._text, self._thoughts, self.begun = self.step + 1, Growing(), _thoughts(), False

    # the output of calls

    def without_secrets(self, call_id: str, text: str) -> str:
        """A tool's output as it may be kept. What may be the beginning of a secret comes with what follows it."""
        if (held := self._held_output.get(call_id)) is None:
            held = self._held_output[call_id] = self._secrets()
        return held.add(storable(text))

    def put_out(self, call_id: str, text: str, now: float) -> Iterator[int]:
        """As much of a tool's output, `without_secrets`, as is kept of it."""
        if (course := self._outputs.get(call_id)) is None:
            course = self._outputs[call_id] = Course()
        for event in _outputs(call_id, course.add(text, now)):
            self.add(event)
            yield len(event.text)

    def sample(self, now: float) -> bool:
        """The newest output that is due to be shown, though none has come since. Whether there is some."""
        due = [event for call_id, course in self._outputs.items() for event in _outputs(call_id, course.sample(now))]
        for event in due:
            self.add(event)
        return bool(due)

    def end_outputs(self, call_ids: Sequence[str] | None, now: float) -> list[Event]:
        """The last of the output of these calls, which are over; None: of all."""
        over = list(self._outputs) if call_ids is None else [call_id for call_id in call_ids if call_id in self._outputs]
        return [event for call_id in over for event in _outputs(call_id, self._end_output(call_id, now))]

    def _end_output(self, call_id: str, now: float) -> list[Piece]:
        course, held = self._outputs.pop(call_id), self._held_output.pop(call_id).end()
        return [*(course.add(held, now) if held else []), *course.end()]

    # the pieces

    def add(self, event: Event) -> None:
        self._gather()
        self._pieces.append(event)

    def _gather(self) -> None:
        if self._said:
            self._pieces.append(Text(offset=self._said_from, text="".join(self._said), step=self.step))
            self._said = []

    def look(self) -> Sequence[Event]:
        """All of them, which stay."""
        self._gather()
        return self._pieces

    def take(self, count: int | None = None) -> list[Event]:
        """The first `count` of them, or all."""
        self._gather()
        taken = self._pieces[:count]
        self._pieces = self._pieces[len(taken) :]
        return taken

    def give_back(self, events: Sequence[Event]) -> None:
        self._pieces = [*events, *self._pieces]


def _thoughts() -> Ends:
    return Ends(SHOWN_HEAD, SHOWN_TAIL)


def _outputs(call_id: str, pieces: list[Piece]) -> list[ToolOutput]:
    return [ToolOutput(call_id=call_id, text=piece.text, omitted=piece.omitted) for piece in pieces]
