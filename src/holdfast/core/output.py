"""How much of a long text is kept: of a tool's output in the log, of its result, and of any text in an HTTP response.

What is left out is counted, both as a number and in the text itself, so that no reader takes a part for the whole. This is the only
place that leaves anything out.
"""

from collections import deque
from typing import Any, NamedTuple

# Of a call's output: this much is recorded as it comes.
RECORDED_HEAD = 64 * 1024
# After that, a sample of the newest output now and then, and more of it when the call ends.
SAMPLE = 2 * 1024
RECORDED_TAIL = 16 * 1024
# A sample every second at first; after each 16 samples half as often, but at least every 30 s.
FIRST_WAIT_S, LONGEST_WAIT_S, SAMPLES_EACH = 1.0, 30.0, 16
# Of a call's result: its beginning and its end.
RESULT_HEAD, RESULT_TAIL = 32 * 1024, 32 * 1024
# Of one output, result or argument, and of one message, in an HTTP response.
SHOWN_HEAD, SHOWN_TAIL = 4 * 1024, 12 * 1024
GLIMPSE = 256
MESSAGE_HEAD, MESSAGE_TAIL = 192 * 1024, 64 * 1024
# A text that is longer by no more than this stays whole, so that a shortened text is not shortened again because of its own marks.
SLACK = 1024
# In bytes. A part of a text that is shorter than this says nothing.
FEW_WORDS = 64


class Piece(NamedTuple):
    """`omitted`: how many characters were left out just before `text`."""

    text: str
    omitted: int = 0


def left_out(count: int) -> str:
    """Marks the place in a text where characters are missing."""
    return f"\n[... {count:,} characters left out ...]\n"


def shortened(text: str, head: int, tail: int) -> Piece:
    """The beginning and the end of a text that is longer than both together."""
    omitted = len(text) - head - tail
    if omitted <= SLACK:
        return Piece(text)
    return Piece(text[:head] + left_out(omitted) + text[len(text) - tail :], omitted)


def fitted(text: str, room: int) -> str:
    """At most so many bytes of a text, of its beginning more than of its end; nothing where a few words would be all of it."""
    data = text.encode()
    if len(data) <= room:
        return text
    kept = room - len(left_out(len(text)))
    if kept < FEW_WORDS:
        return ""
    tail = kept // 4
    head, end = data[: kept - tail].decode(errors="ignore"), data[len(data) - tail :].decode(errors="ignore")
    return head + left_out(len(text) - len(head) - len(end)) + end


def result(text: str) -> str:
    """A call's result as it is recorded, and as its agent gets it."""
    return shortened(text, RESULT_HEAD, RESULT_TAIL).text


def shown(text: str) -> Piece:
    """An output, a result or an argument in an HTTP response."""
    return shortened(text, SHOWN_HEAD, SHOWN_TAIL)


def glimpse(text: str) -> Piece:
    """The same, if there are many of them."""
    return shortened(text, GLIMPSE, GLIMPSE)


def shown_message(text: str) -> Piece:
    return shortened(text, MESSAGE_HEAD, MESSAGE_TAIL)


def shown_value(value: Any) -> Any:
    """A call's arguments, every text in them as `shown`."""
    match value:
        case str():
            return shown(value).text
        case dict():
            return {name: shown_value(inner) for name, inner in value.items()}
        case list():
            return [shown_value(inner) for inner in value]
        case _:
            return value


class Ends:
    """The beginning and the end of a text that comes in pieces, some of which say that something is missing before them."""

    def __init__(self, head: int, tail: int) -> None:
        self._head: list[str] = []
        self._room, self._tail = head, tail
        self._between = 0
        self._newest: deque[Piece] = deque()
        self._size = 0

    def add(self, text: str, omitted: int = 0) -> None:
        if self._room and not omitted:
            self._head.append(text[: self._room])
            text = text[self._room :]
            self._room -= len(self._head[-1])
        elif omitted:
            self._room = 0
        if not text and not omitted:
            return
        self._newest.append(Piece(text, omitted))
        self._size += len(text)
        while self._newest and self._size - len(self._newest[0].text) >= self._tail:
            self._drop(len(self._newest[0].text))
            self._newest.popleft()

    def _drop(self, chars: int) -> None:
        """Drops the first characters of the oldest kept piece, and the gap before it."""
        first = self._newest[0]
        self._between += first.omitted + chars
        self._size -= chars
        self._newest[0] = Piece(first.text[chars:])

    def read(self) -> Piece:
        """The kept text with its gaps marked; `omitted` is how much is missing in total."""
        if self._newest and (self._size > self._tail or self._newest[0].omitted):
            self._drop(max(0, self._size - self._tail))
        parts = [*self._head, left_out(self._between) if self._between else ""]
        omitted = self._between
        for piece in self._newest:
            parts += (left_out(piece.omitted) if piece.omitted else "", piece.text)
            omitted += piece.omitted
        return Piece("".join(parts), omitted)


class Course:
    """Which parts of a running call's output go into the log. What is recorded grows with the running time, not with the output."""

    def __init__(self) -> None:
        self._room = RECORDED_HEAD
        self._newest: deque[str] = deque()
        self._size = 0
        self._waiting = 0
        self._samples = 0
        self._due_at = 0.0

    def add(self, text: str, now: float) -> list[Piece]:
        """The part of it to record now."""
        pieces = []
        if self._room:
            pieces.append(Piece(text[: self._room]))
            text = text[self._room :]
            self._room -= len(pieces[0].text)
            self._due_at = now + FIRST_WAIT_S
        if text:
            self._waiting += len(text)
            text = text[-RECORDED_TAIL:]
            self._newest.append(text)
            self._size += len(text)
            while self._size - len(self._newest[0]) >= RECORDED_TAIL:
                self._size -= len(self._newest.popleft())
        return pieces + self.sample(now)

    def sample(self, now: float) -> list[Piece]:
        """The newest unrecorded output, if it is time to show some."""
        if not self._waiting or now < self._due_at:
            return []
        self._samples += 1
        self._due_at = now + min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** (self._samples // SAMPLES_EACH))
        return self._take(SAMPLE)

    def end(self) -> list[Piece]:
        """The call has ended or was abandoned: the newest unrecorded output."""
        return self._take(RECORDED_TAIL) if self._waiting else []

    def _take(self, chars: int) -> list[Piece]:
        text = "".join(self._newest)[-chars:]
        piece = Piece(text, self._waiting - len(text))
        self._newest.clear()
        self._size = self._waiting = 0
        return [piece]
