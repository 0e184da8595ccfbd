"""Asking a person on behalf of one turn: what is recorded, for a question of its agent and for an approval of a call."""

from typing import NamedTuple

from holdfast.core import approvals
from holdfast.core import events as e
from holdfast.core.approvals import Clearance
from holdfast.core.elicitation import Elicited
from holdfast.core.history import Call
from holdfast.core.messages import ToolCall
from holdfast.core.plans import ask
from holdfast.core.plans.ask import ASK, Asking
from holdfast.core.texts import storable
from holdfast.ports.process import Ids


class Asked(NamedTuple):
    """What is recorded to ask. `fingerprint`: of the call, where it waits for an approval; otherwise the answer is its result."""

    call: Call
    events: list[e.Event]
    fingerprint: str | None = None


class Asker:
    """`anchor`: what its turn replies to."""

    def __init__(self, session_key: str, anchor: str | None, ids: Ids) -> None:
        self._session_key, self._anchor, self._ids = session_key, anchor, ids

    def question(self, call: Call, *, offset: int, at: int) -> Asked:
        """`offset`: how much of the step's text stands before it."""
        choices = call.arguments.get("choices")
        asked = Asking(
            question_id=self._ids.new("q"),
            call_id=call.call_id,
            content=storable(str(call.arguments.get("question", ""))),
            choices=tuple(storable(str(choice)) for choice in choices) if isinstance(choices, list | tuple) else (),
            step=call.step,
            offset=offset,
        )
        events = ask.by_call(asked, session_key=self._session_key, anchor=self._anchor, at=at)
        return Asked(Call(call_id=call.call_id, name=ASK, arguments=asked.arguments, step=call.step), events)

    def elicitation(self, call: ToolCall, elicited: Elicited, problem: str, *, expires_at: int) -> tuple[str, list[e.Event]]:
        """A question of a call that has started, and its id."""
        question_id = self._ids.new("q")
        return question_id, ask.elicitation(
            question_id,
            call.call_id,
            call.name,
            elicited,
            problem=problem,
            session_key=self._session_key,
            anchor=self._anchor,
            expires_at=expires_at,
        )

    def permission(self, call: Call, offer: str | None, *, at: int) -> Asked:
        """For a call that the agent makes itself. `offer`: what it would allow from now on, if it offers that."""
        events = ask.approval(
            self._ids.new("q"),
            call.call_id,
            e.ProposedCall(name=call.name, arguments=call.arguments),
            place="",
            offer=offer,
            session_key=self._session_key,
            anchor=self._anchor,
            at=at,
            theirs=True,
        )
        return Asked(call, events, approvals.fingerprint(call.name, call.arguments, ""))

    def approval(self, call: Call, clearance: Clearance, *, at: int) -> Asked:
        events = ask.approval(
            self._ids.new("q"),
            call.call_id,
            e.ProposedCall(name=call.name, arguments=call.arguments),
            place=clearance.place,
            offer=clearance.offer,
            for_operators=clearance.for_operators,
            session_key=self._session_key,
            anchor=self._anchor,
            at=at,
        )
        return Asked(call, events, approvals.fingerprint(call.name, call.arguments, clearance.place))
