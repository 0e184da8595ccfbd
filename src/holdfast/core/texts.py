"""What can be written down: every value an agent or a tool hands in becomes one that the log can hold. Nothing is refused for its form."""

from typing import Any

MAX_DEPTH = 50
_INT64 = range(-(2**63), 2**63)


def storable(text: str) -> str:
    """Half a character, as some models send in pieces, becomes the sign for one that is missing."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def storable_value(value: Any, depth: int = 0) -> Any:
    """A value of JSON, whatever it was: what JSON or a number of 64 bits cannot hold is given as text."""
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
