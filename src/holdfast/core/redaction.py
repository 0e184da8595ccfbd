"""Known secrets are replaced before anything is recorded, in whatever form they come: plain, in URLs, in JSON, in Base64, and however a
stream cuts them into pieces. What is not known as a secret is not promised.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from heapq import heapify, heappop, heapreplace
from typing import Any, Generic, TypeVar

import msgspec

from holdfast.core import content as contents
from holdfast.core import events as e
from holdfast.core.content import Content, TextPart
from holdfast.core.texts import storable

# A shorter value would be found in words that have nothing to do with it.
LEAST = 8
# So much of the beginning of each form is looked up at once; whether more of it follows is compared.
BEGINNING = 32

T = TypeVar("T", str, bytes)


def mark(name: str) -> str:
    """What stands in the place of a secret."""
    return f"[secret {name}]"


class Forms(Generic[T]):
    """Every form of every secret, with what stands in its place. Where forms overlap the one that begins first counts, and of two that
    begin in the same place the longer one, so that it does not matter how a text is cut into pieces.
    """

    def __init__(self, marks: Mapping[T, T]) -> None:
        self._marks: Mapping[T, T] = marks
        self._forms: list[T] = sorted(marks, key=len, reverse=True)
        self._shortest = min(map(len, marks), default=0)
        self._longest = max(map(len, marks), default=0)
        self._beginnings: set[T] = {form[:size] for form in marks for size in range(1, min(len(form), BEGINNING + 1))}
        self._firsts: set[T] = {form[:1] for form in marks}
        self._pairs: re.Pattern[T] | None = _any_of({form[:2] for form in marks})

    def __bool__(self) -> bool:
        return bool(self._forms)

    @property
    def reach(self) -> int:
        """How far before and after a place a form may stand that the place splits."""
        return max(0, self._longest - 1)

    def nowhere_in(self, text: T) -> bool:
        """Whether no form can begin in a text, by its pairs of characters and its last one. None does in most words."""
        return text[-1:] not in self._firsts and (self._pairs is None or self._pairs.search(text) is None)

    def window(self, text: T, begin: int, end: int, *, over: bool) -> tuple[int, int]:
        """The part of a text nearest to these places that splits no secret: it begins behind one and ends before one, or behind one that is
        all there is. `over`: nothing follows the text; otherwise its end that may be the beginning of a secret is left out.
        """
        end = end if over else min(end, self._held(text, 0))
        found = sorted({*self._across(text, begin), *self._across(text, end)})
        for first, last in found:
            begin = last if first < begin < last else begin
        before = after = end
        for first, last in reversed(found):
            before = first if first < before < last else before
        for first, last in found:
            after = last if first < after < last else after
        return begin, max(begin, before if before > begin else after)

    def _across(self, text: T, place: int) -> Iterator[tuple[int, int]]:
        """Where forms stand, from where to where, around a place."""
        for form in self._forms:
            at = text.find(form, max(0, place - self.reach), place + self.reach)
            while at >= 0:
                yield at, at + len(form)
                at = text.find(form, at + 1, place + self.reach)

    def within(self, text: T) -> bool:
        return len(text) >= self._shortest and any(form in text for form in self._forms)

    def replaced(self, text: T, *, over: bool) -> tuple[T, T]:
        """A text without its secrets, and apart from it the end that may be the beginning of one. `over`: nothing follows it. Costs the
        length of the text, however many there are in it.
        """
        done: list[T] = []
        nothing = text[:0]
        at, held = 0, len(text) if over else self._held(text, 0)
        found = self._found(text)
        while found and found[0][0] < held:
            place, rank = found[0]
            form = self._forms[rank]
            if place >= at:
                done += [text[at:place], self._marks[form]]
                at = place + len(form)
                if held < at:
                    held = len(text) if over else self._held(text, at)
            following = text.find(form, at)
            if following < 0:
                heappop(found)
            else:
                heapreplace(found, (following, rank))
        done.append(text[at:held])
        return nothing.join(done), text[held:]

    def _found(self, text: T) -> list[tuple[int, int]]:
        """Where each form stands first: a heap of places, with the longest form first among those in the same place."""
        if len(text) < self._shortest:
            return []
        found = [(place, rank) for rank, form in enumerate(self._forms) if (place := text.find(form)) >= 0]
        heapify(found)
        return found

    def _held(self, text: T, at: int) -> int:
        """From where on the text behind `at` may be the beginning of a secret."""
        for place in range(max(at, len(text) - self._longest + 1), len(text)):
            if text[place : place + 1] in self._beginnings and text[place : place + BEGINNING] in self._beginnings:
                tail = text[place:]
                if len(tail) <= BEGINNING or any(form != tail and form.startswith(tail) for form in self._forms):
                    return place
        return len(text)


def _any_of(texts: set[T]) -> re.Pattern[T] | None:
    """Finds the first of these; None for none."""
    escaped = sorted(re.escape(text) for text in texts)
    if not escaped:
        return None
    either: T = "|" if isinstance(escaped[0], str) else b"|"
    return re.compile(either.join(escaped))


class Secrets:
    """The values that are known as secrets, by name. They may change while the process runs; nothing of them is ever shown."""

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self._values: dict[str, str] = {}
        self.know(values or {})

    def __repr__(self) -> str:
        return f"Secrets({len(self._values)})"

    def __bool__(self) -> bool:
        return bool(self._forms)

    def know(self, values: Mapping[str, str]) -> None:
        """Adds these. A value that was known under the same name stays known: it may still come from somewhere."""
        for name, value in values.items():
            if len(value.strip()) >= LEAST and storable(value) == value:
                self._values.setdefault(value.strip(), name)
        found = {form: mark(name) for value, name in self._values.items() for form in _forms(value)}
        self._marks = frozenset(found.values())
        self._forms = Forms(found)
        self._bytes = Forms({form.encode(): instead.encode() for form, instead in found.items()})
        # As they look in the body of an event.
        self._bodies = tuple({_in_json(form).encode() for form in found})

    def text(self, text: str) -> str:
        return self._forms.replaced(text, over=True)[0] if self._forms.within(text) else text

    def raw(self, data: bytes) -> bytes:
        """What came over a wire and is kept as it came."""
        return self._bytes.replaced(data, over=True)[0] if self._bytes.within(data) else data

    def holds(self, value: Any) -> bool:
        """Whether there is a secret somewhere in a value."""
        return any(self._forms.within(text) for text in _texts(value))

    def lost_in(self, value: Any) -> bool:
        """Whether a secret was replaced somewhere in a value, so that it is not what it was. Other words in brackets are only words."""
        return any(each in text for text in _texts(value) for each in self._marks)

    def value(self, value: Any) -> Any:
        """Every text in a value as JSON has it, names of fields too."""
        match value:
            case str():
                return self.text(value)
            case dict():
                return {self.text(name): self.value(inner) for name, inner in value.items()}
            case list() | tuple():
                return [self.value(inner) for inner in value]
            case _:
                return value

    def key(self, key: str) -> str:
        """A key under which a request is known, as it is kept. Two that held secrets stay two, and the same one stays the same."""
        clean = self.text(key)
        return key if clean == key else f"{clean}#{hashlib.sha256(key.encode()).hexdigest()}"

    def content(self, content: Content) -> Content:
        if isinstance(content, str):
            return self.text(content)
        return contents.of(TextPart(self.text(part.text)) if isinstance(part, TextPart) else self._named(part) for part in content)

    def _named(self, part: contents.BytesPart) -> contents.BytesPart:
        name = self.text(part.name) if part.name else part.name
        return part if name == part.name else msgspec.structs.replace(part, name=name)

    @property
    def reach(self) -> int:
        """So many bytes before and after a window are needed to see whether it splits a secret."""
        return self._bytes.reach

    def window(self, data: bytes, begin: int, end: int, *, over: bool) -> tuple[int, int]:
        """`Forms.window` of bytes."""
        return self._bytes.window(data, begin, end, over=over)

    def stream(self) -> "Held[str]":
        """For a text that comes in pieces."""
        return Held(self._forms, "")

    def bytes_stream(self) -> "Held[bytes]":
        """For bytes that come in pieces."""
        return Held(self._bytes, b"")

    def seal(self, event: e.Event) -> tuple[e.Event, bytes]:
        """An event as it is recorded, with its body. Only where the body shows a secret, every text in it is looked through."""
        body = e.encode(event)
        for form in self._bodies:
            if form in body:
                event = self._redacted(event)
                return event, e.encode(event)
        return event, body

    def _redacted(self, event: e.Event) -> e.Event:
        changed: dict[str, Any] = {}
        for name in event.__struct_fields__:
            value = getattr(event, name)
            if name == "content":
                changed[name] = self.content(value)
            elif name == "dedup_key" and value is not None:
                changed[name] = self.key(value)
            elif name != "session_key" and isinstance(value, str | dict | list | tuple | msgspec.Struct):
                changed[name] = self._like(value)
        clean = msgspec.structs.replace(event, **changed)
        if isinstance(clean, e.ModelResponded) and isinstance(event, e.ModelResponded) and clean.blocks != event.blocks:
            # A provider refuses blocks that were changed, for ever. Without them it gets the step's text and calls, as any other would.
            return msgspec.structs.replace(clean, blocks=(), wire="")
        return clean

    def _like(self, value: Any) -> Any:
        """The same kind of value, with every text in it looked through."""
        if isinstance(value, msgspec.Struct):
            return msgspec.structs.replace(value, **{name: self._like(getattr(value, name)) for name in value.__struct_fields__})
        if isinstance(value, tuple):
            return tuple(self._like(inner) for inner in value)
        return self.value(value)


NO_SECRETS = Secrets()


class Held(Generic[T]):
    """A stream without its secrets. It holds back only the longest end of what came that may be the beginning of one."""

    __slots__ = ("_forms", "_held", "_nothing")

    def __init__(self, forms: Forms[T], nothing: T) -> None:
        self._forms: Forms[T] = forms
        self._held: T = nothing
        self._nothing: T = nothing

    def add(self, piece: T) -> T:
        """What can be passed on now."""
        if not self._held and self._forms.nowhere_in(piece):
            return piece
        clean, self._held = self._forms.replaced(self._held + piece, over=False)
        return clean

    @property
    def waiting(self) -> T:
        """What is held back."""
        return self._forms.replaced(self._held, over=True)[0] if self._held else self._held

    def end(self) -> T:
        """What was held back. The stream is over, or something else follows it."""
        held, self._held = self.waiting, self._nothing
        return held


def _forms(value: str) -> set[str]:
    """The ways in which a value is commonly written."""
    data = value.encode()
    forms = {value, _quoted(value, ""), _quoted(value, "/"), _in_json(value), json.dumps(value)[1:-1]}
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        for before in range(3):  # Where it stands in the bytes that were encoded decides how it looks.
            coded = encode(b"\0" * before + data).decode()
            first = (0, 2, 3)[before]
            whole = coded.rstrip("=")
            last = len(whole) - (1 if (before + len(data)) % 3 else 0)
            forms.add(whole[first:last])
    return {form for form in forms if len(form) >= LEAST}


_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-~")


def _quoted(value: str, safe: str) -> str:
    """As in a URL."""
    return "".join(char if char in _UNRESERVED or char in safe else "".join(f"%{byte:02X}" for byte in char.encode()) for char in value)


def _in_json(value: str) -> str:
    return msgspec.json.encode(value).decode()[1:-1]


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for name, inner in value.items():
                yield name
                yield from _texts(inner)
        case list() | tuple():
            for inner in value:
                yield from _texts(inner)
