"""Which command a person types here. Sentences name `holdfast WORDS`; whatever reaches a terminal names what can be copied and pasted."""

import os
import re
import shlex
from collections.abc import MutableMapping

NAME = "holdfast"
# `./run` says by these how it was called, and which words are its own.
COMMAND, OWN_WORDS = "HOLDFAST_COMMAND", "HOLDFAST_OWN_WORDS"

_NAMED = re.compile(rf"`(sudo )?{NAME}((?: [^`]*)?)`")


def program() -> str:
    return shlex.quote(os.environ.get(COMMAND) or NAME)


def own_words() -> dict[str, str]:
    """The words that only the project's folder knows, with a line about each; none where Holdfast is installed."""
    lines = os.environ.get(OWN_WORDS, "").splitlines()
    return {word: line.strip() for word, _, line in (each.strip().partition(" ") for each in lines) if word}


def forget(environment: MutableMapping[str, str]) -> None:
    """For a process that starts others: nobody types those."""
    for name in (COMMAND, OWN_WORDS):
        environment.pop(name, None)


def rewrite(text: str, *, program: str, home: str | None = None) -> str:
    """Each `holdfast WORDS` between backticks as it is typed here; `home` is the folder that was chosen on the command line."""
    folder = f" --home {shlex.quote(home)}" if home else ""

    def typed(found: re.Match[str]) -> str:
        words = found[2]
        return f"`{found[1] or ''}{program}{words}{'' if '--home' in words else folder}`"

    return _NAMED.sub(typed, text)
