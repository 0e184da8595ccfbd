"""Asking a person: what is recorded of a question, and how its chat gets it. A page reads the log."""

import msgspec

from holdfast.core import replies
from holdfast.core.content import Content
from holdfast.core.effects import Effect
from holdfast.core.events import Event, QuestionAsked, ToolStarted

ASK = "ask"
QUESTION_LIFE_MS = 24 * 3600 * 1000


class Asking(msgspec.Struct, frozen=True, kw_only=True):
    """A question and the call that asks it."""

    question_id: str
    call_id: str
    content: Content
    choices: tuple[str, ...] = ()
    step: int = 0
    offset: int = 0


def by_call(asked: Asking, *, session_key: str, anchor: str | None, at: int) -> list[Event]:
    """A call whose result is a person's answer: it starts with the question and ends with the answer. Asking does not end the attempt;
    `TurnWaiting` does, once nothing else of the turn can run.
    """
    arguments = {"question": asked.content if isinstance(asked.content, str) else msgspec.to_builtins(asked.content)}
    events: list[Event] = [
        ToolStarted(call_id=asked.call_id, name=ASK, arguments=arguments, effect=Effect.PURE, step=asked.step, offset=asked.offset)
    ]
    if replies.owed(session_key):
        events.append(replies.written(session_key, "notice", replies.asked_delivery(asked.question_id), asked.content, anchor=anchor))
    events.append(
        QuestionAsked(
            question_id=asked.question_id,
            call_id=asked.call_id,
            content=asked.content,
            choices=asked.choices,
            expires_at=at + QUESTION_LIFE_MS,
            ends_attempt=False,
        )
    )
    return events
