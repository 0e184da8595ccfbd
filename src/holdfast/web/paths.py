"""Which resource a path leads to. Its words are looked up one after the other: nothing is compiled at the start, and no pattern is tried in
vain for a request.
"""

from collections.abc import Sequence

from starlette.types import ASGIApp, Receive, Scope, Send


class _Place:
    """What may follow the words so far: certain words, any one word (`named`), or nothing (`ends`: the resource, and the names of what
    stands for any word). `takes_rest`: the same for whatever follows, however many words it has.
    """

    __slots__ = ("ends", "named", "takes_rest", "words")

    def __init__(self) -> None:
        self.words: dict[str, _Place] = {}
        self.named: _Place | None = None
        self.ends: tuple[ASGIApp, tuple[str, ...]] | None = None
        self.takes_rest: tuple[ASGIApp, tuple[str, ...]] | None = None


class Paths:
    """An ASGI application for those that are added to it, and `default` for every other path. Parameters are in `path_params`."""

    def __init__(self, default: ASGIApp) -> None:
        self._default, self._root = default, _Place()

    def add(self, path: str, resource: ASGIApp, *, rest: bool = False) -> None:
        """`{name}` in it stands for one word. `rest`: the last name stands for all the words that are left, also for none."""
        place, names = self._root, list[str]()
        words = _words(path)
        for word in words:
            if not word.startswith("{"):
                place = place.words.setdefault(word, _Place())
                continue
            names.append(word[1:-1])
            if rest and len(names) == path.count("{"):
                place.takes_rest = resource, tuple(names)
                return
            place.named = place.named or _Place()
            place = place.named
        place.ends = resource, tuple(names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        resource, scope["path_params"] = self.find(scope["path"])
        await resource(scope, receive, send)

    def find(self, path: str) -> tuple[ASGIApp, dict[str, str]]:
        return _found(self._root, _words(path), ()) or (self._default, {})


def _words(path: str) -> list[str]:
    return path.split("/")[1:]


def _found(place: _Place, words: Sequence[str], values: tuple[str, ...]) -> tuple[ASGIApp, dict[str, str]] | None:
    """A word that is known goes before one that may be any."""
    if not words:
        return _with_names(place.ends, values)
    word, *rest = words
    if (known := place.words.get(word)) and (found := _found(known, rest, values)):
        return found
    if word and place.named and (found := _found(place.named, rest, (*values, word))):
        return found
    return _with_names(place.takes_rest, (*values, "/".join(words)))


def _with_names(end: tuple[ASGIApp, tuple[str, ...]] | None, values: tuple[str, ...]) -> tuple[ASGIApp, dict[str, str]] | None:
    return (end[0], dict(zip(end[1], values, strict=True))) if end else None
