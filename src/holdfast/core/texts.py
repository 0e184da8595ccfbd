"""Turns every value from an agent or a tool into one that the log can hold, and a text into one that shows all it holds. Nothing is refused
because of its form.
"""

import re
from typing import Any

MAX_DEPTH = 50
_INT64 = range(-(2**63), 2**63)
# What a reader does not see, or what makes them see the rest in another order. The page's `visible` has the same.
_HIDDEN = re.compile(
    "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\xad\\u061c\\u180e\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufe00-\\ufe0f\\ufeff"
    "\\ufff9-\\ufffb\\U000e0000-\\U000e0fff]"
)


def storable(text: str) -> str:
    """Half a character, as some models send, becomes a replacement character."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def visible(text: str) -> str:
    """With hidden characters written out: nobody approves a text that looks like another one."""
    return text if text.isascii() and text.isprintable() else _HIDDEN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text)


def storable_value(value: Any, depth: int = 0) -> Any:
    """Any value as JSON: what JSON or a 64-bit number cannot hold becomes text."""
    match value:
        case None | bool() | float():
            return value
        case str():
            return storable(value)
        case int():
            return value if value in _INT64 else str(value)
        case dict() if depth < MAX_DEPTH:
            return {storable(str(name)): storable_value(inner, depth + 1) for name, inner in value.items()}
        case list() | tuple() if depth < MAX_DEPTH:
            return [storable_value(inner, depth + 1) for inner in value]
        case _:
            return storable(str(value)[:10_000])


class Growing:
    """A text that is written in pieces and joined when it is read, so that writing costs its length and not its square."""

    __slots__ = ("_pieces", "length")

    def __init__(self, text: str = "") -> None:
        self._pieces, self.length = [text], len(text)

    def add(self, text: str) -> None:
        self._pieces.append(text)
        self.length += len(text)

    def write(self, offset: int, text: str) -> None:
        """Its first `offset` characters, followed by `text`, are the text from now on."""
        if offset < self.length:
            kept = self.read()[:offset]
            self._pieces, self.length = [kept], len(kept)
        self.add(text)

    def read(self) -> str:
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0]
