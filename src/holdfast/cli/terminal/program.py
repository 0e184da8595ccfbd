"""What a person types here to run Holdfast. Our sentences say `holdfast WORDS`; at a terminal they show what can be copied and pasted."""

import os
import shlex
from collections.abc import MutableMapping

from holdfast.core.sentences import NAME

# Set by `./run`: how it was called, and its own commands.
COMMAND, OWN_WORDS = "HOLDFAST_COMMAND", "HOLDFAST_OWN_WORDS"


def typed() -> str:
    return shlex.quote(os.environ.get(COMMAND) or NAME)


def own_words() -> dict[str, str]:
    """The commands that only the project's folder has, with a line about each; none where Holdfast is installed."""
    lines = os.environ.get(OWN_WORDS, "").splitlines()
    return {word: line.strip() for word, _, line in (each.strip().partition(" ") for each in lines) if word}


def forget(environment: MutableMapping[str, str]) -> None:
    """For a process that starts others: those are not typed by a person."""
    for name in (COMMAND, OWN_WORDS):
        environment.pop(name, None)
