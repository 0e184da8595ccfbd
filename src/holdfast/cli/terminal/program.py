"""Which command a person types here: sentences name `holdfast WORDS`, and at a terminal they name what can be copied and pasted."""

import os
import shlex
from collections.abc import MutableMapping

from holdfast.core.sentences import NAME

# `./run` says by these how it was called, and which words are its own.
COMMAND, OWN_WORDS = "HOLDFAST_COMMAND", "HOLDFAST_OWN_WORDS"


def typed() -> str:
    return shlex.quote(os.environ.get(COMMAND) or NAME)


def own_words() -> dict[str, str]:
    """The words that only the project's folder knows, with a line about each; none where Holdfast is installed."""
    lines = os.environ.get(OWN_WORDS, "").splitlines()
    return {word: line.strip() for word, _, line in (each.strip().partition(" ") for each in lines) if word}


def forget(environment: MutableMapping[str, str]) -> None:
    """For a process that starts others: nobody types those."""
    for name in (COMMAND, OWN_WORDS):
        environment.pop(name, None)
