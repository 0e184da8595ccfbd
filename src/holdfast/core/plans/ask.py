"""Asking a person: what is recorded of a question, and how its chat gets it. A page reads the log."""

from typing import Any

import msgspec

from holdfast.core import approvals, content, inbound, notices, replies
from holdfast.core import elicitation as elicitations
from holdfast.core.content import Content
from holdfast.core.effects import Effect
from holdfast.core.elicitation import Elicited
from holdfast.core.events import Button, Event, ProposedCall, QuestionAsked, ToolStarted
from holdfast.core.policy import Pattern

ASK = "ask_user"
# What it was called until version 0.1, in logs and in what agents of that time propose.
_FORMERLY = "ask"
DESCRIPTION = (
    "Asks the user a question and gives the answer. The work continues when the answer comes, which may take hours. Use it when you cannot"
    " continue without the user's word."
)
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "question": {"type": "string", "description": "The question, in the user's language."},
        "choices": {"type": "array", "items": {"type": "string"}, "description": "Answers to choose from, if there are a few."},
    },
    "required": ["question"],
    "additionalProperties": False,
}
MOST_LABEL = 60
QUESTION_LIFE_MS = 24 * 3600 * 1000


class Asking(msgspec.Struct, frozen=True, kw_only=True):
    """A question and the call that asks it."""

    question_id: str
    call_id: str
    content: Content
    choices: tuple[str, ...]
    step: int
    offset: int

    @property
    def arguments(self) -> dict[str, Any]:
        """Of the call, as it is recorded."""
        return {"question": msgspec.to_builtins(self.content), **({"choices": list(self.choices)} if self.choices else {})}


def asks(name: str) -> bool:
    """Whether a call of this name is a question to a person."""
    return name in (ASK, _FORMERLY)


def by_call(asked: Asking, *, session_key: str, anchor: str | None, at: int) -> list[Event]:
    """A call whose result is a person's answer: it starts with the question and ends with the answer. Asking does not end the attempt;
    `TurnWaiting` does, once nothing else of the turn can run.
    """
    started = ToolStarted(
        call_id=asked.call_id, name=ASK, arguments=asked.arguments, effect=Effect.PURE, step=asked.step, offset=asked.offset
    )
    events: list[Event] = [started]
    if replies.owed(session_key):
        words = content.followed_by(asked.content, notices.choose_how(asked.choices))
        pressed = _pressed(asked.question_id, asked.choices)
        delivery_id = replies.asked_delivery(asked.question_id)
        events.append(replies.written(session_key, "notice", delivery_id, words, anchor=anchor, buttons=pressed))
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


def elicitation(
    question_id: str,
    call_id: str,
    tool: str,
    elicited: Elicited,
    *,
    problem: str,
    session_key: str,
    anchor: str | None,
    expires_at: int,
) -> list[Event]:
    """A question of a call that has started. `problem`: what was wrong with the last answer."""
    request = elicited.requests[elicited.number]
    words, choices = elicitations.question(tool, request, problem), elicitations.choices(request)
    events: list[Event] = []
    if replies.owed(session_key):
        delivery_id, pressed = replies.asked_delivery(question_id), _pressed(question_id, choices)
        events.append(replies.written(session_key, "notice", delivery_id, words, anchor=anchor, buttons=pressed))
    events.append(
        QuestionAsked(
            question_id=question_id,
            call_id=call_id,
            content=words,
            choices=choices,
            expires_at=expires_at,
            form=elicitations.FORM,
            elicited=elicited,
            ends_attempt=False,
        )
    )
    return events


def approval(
    question_id: str,
    call_id: str,
    call: ProposedCall,
    *,
    place: str,
    offer: Pattern | str | None,
    for_operators: bool = False,
    session_key: str,
    anchor: str | None,
    at: int,
    theirs: bool = False,
) -> list[Event]:
    """A question about a call that has not started: it starts once somebody approved it, as `core.plans.approve` checks. `place`: where it
    would work. `offer`: what may be allowed from now on instead. `for_operators`: nobody else may approve it. `theirs`: the agent itself
    wants the permission, and makes the call.
    """
    words = approvals.question(call.name, call.arguments, place, for_operators=for_operators)
    pattern = None if offer is None else str(offer)
    events: list[Event] = []
    if replies.owed(session_key):
        told = notices.approve_how(words, question_id, pattern)
        delivery_id = replies.asked_delivery(question_id)
        buttons = _verdicts(question_id, always=pattern is not None)
        events.append(replies.written(session_key, "notice", delivery_id, told, anchor=anchor, buttons=buttons))
    events.append(
        QuestionAsked(
            question_id=question_id,
            call_id=call_id,
            content=words,
            expires_at=at + QUESTION_LIFE_MS,
            form=approvals.FORM,
            call=call,
            fingerprint=approvals.fingerprint(call.name, call.arguments, place),
            pattern=pattern,
            for_operators=for_operators,
            theirs=theirs,
            ends_attempt=False,
        )
    )
    return events


def _pressed(question_id: str, choices: tuple[str, ...]) -> tuple[Button, ...]:
    return tuple(Button(choice[:MOST_LABEL], inbound.button_data(question_id, number)) for number, choice in enumerate(choices))


def _verdicts(question_id: str, *, always: bool) -> tuple[Button, ...]:
    labels = {inbound.APPROVE: "Approve", **({inbound.ALWAYS: "Always here"} if always else {}), inbound.DENY: "Deny"}
    return tuple(Button(label, inbound.button_data(question_id, which)) for which, label in labels.items())
