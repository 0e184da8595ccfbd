"""Clients that recite: each of their requests brings the whole conversation from its first message on, and names it by nothing else. Which
conversation they mean, and what in it is new, follows from their words."""

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

USER, ASSISTANT = "user", "assistant"
# How many messages without an answer are looked for.
UNANSWERED = 8


class Line(NamedTuple):
    """A message as a client recites it. `role`: USER or ASSISTANT. `attached`: what comes with it; by that no conversation is known."""

    role: str
    text: str
    attached: tuple[Any, ...] = ()


class Recital(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a client recited with a message, by digests: everything up to that message, and the `instructions` that the conversation was
    given last.
    """

    digest: str
    instructions: str | None = None


class Recited(msgspec.Struct, frozen=True, kw_only=True):
    """A message that was sent with a recital. `seq`: where it stands in the log; `turn_seq`: where the turn began that was the newest one
    then, 0 if there was none. `newest`: its session has no later recital.
    """

    session_id: str
    message_id: str
    seq: int
    turn_seq: int
    at: int
    recital: Recital
    newest: bool


def digests(lines: Sequence[Line]) -> list[str]:
    """For each line the digest of all up to it. White space does not count: clients trim and reflow what they keep."""
    running, made = hashlib.sha256(), []
    for role, text, _ in lines:
        running.update(f"{role} {_bare(text)}\n".encode("utf-8", "surrogatepass"))
        made.append(running.hexdigest()[:32])
    return made


def digest(text: str) -> str:
    return digests([Line(USER, text)])[0]


def ends(lines: Sequence[Line]) -> list[int]:
    """Where the part of a recital may end that is known already, best first: at the message before the last answer, or at one of the newest
    that got no answer. Behind it there are only an answer and new messages.
    """
    before = len(new(lines)[0])
    found = list(range(len(lines) - 2, before - 1, -1))[:UNANSWERED]
    while before and lines[before - 1].role == ASSISTANT:
        before -= 1
    return [*found, before - 1] if before else found


def behind(lines: Sequence[Line], end: int) -> tuple[str, list[Line]]:
    """The answer that a client has to the message at `end`, and what it says after that."""
    rest = lines[end + 1 :]
    answers = [line.text for line in rest if line.role == ASSISTANT]
    return "".join(answers), [line for line in rest if line.role == USER]


def new(lines: Sequence[Line]) -> tuple[list[Line], list[Line]]:
    """The lines up to the last answer, and the messages behind it."""
    last = max((place for place, line in enumerate(lines) if line.role == ASSISTANT), default=-1)
    return list(lines[: last + 1]), list(lines[last + 1 :])


def agrees(sent: str, said: str) -> bool:
    """Whether what a client sends back as an answer can be this one: it may have left in the middle of it, and it may have seen something
    before it that a later attempt wrote over.
    """
    bare, whole = _bare(sent), _bare(said)
    return whole.startswith(bare) or bare.endswith(whole)


def composed(messages: Sequence[Line], *, earlier: Sequence[Line] = (), instructions: str | None = None) -> str:
    """The text of a message to the agent. `earlier`: what the client recites and no conversation here has. `instructions`: what it says
    the agent is to be, if the conversation was not given that yet.
    """
    text = "\n\n".join(line.text for line in messages if line.text)
    above = []
    if instructions:
        above.append(f"Instructions from the client:\n{instructions}")
    if earlier:
        above.append("Earlier messages, as the client sent them:\n" + "\n\n".join(f"{line.role.title()}: {line.text}" for line in earlier))
    return "\n\n".join([*above, f"Message:\n{text}"]) if above else text


def _bare(text: str) -> str:
    return "".join(text.split())
