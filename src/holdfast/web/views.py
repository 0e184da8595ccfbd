"""A session and its conversation as the API shows them. The shapes here are the shapes in docs/http-api.md and in the OpenAPI document."""

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from holdfast.core import output
from holdfast.core import transcript as t
from holdfast.core.sessions import Session
from holdfast.core.turns import shown
from holdfast.web.times import rfc3339, rfc3339_or_none


class SummaryView(msgspec.Struct, kw_only=True):
    """`rule` and `why` are the last decision over its newest turn; `left`: it was to leave the turn as it is. `current`: its key points
    at it now.
    """

    session_id: str
    session_key: str
    title: str | None
    created_at: str
    updated_at: str
    state: str
    generation: int
    suspended: bool
    resume_pending: bool
    resume_reason: str | None
    last_resume_marked_at: str | None
    was_auto_reset: bool
    auto_reset_reason: str | None
    interrupted_restarts: int
    pinned: bool
    archived: bool
    queued: int
    current: bool
    left: bool
    rule: str | None
    why: str | None


class ToolCallView(msgspec.Struct, kw_only=True):
    """`output_omitted` and `result_omitted`, where they are there: how many characters of it were left out, of the middle. What the log has
    of them comes with the event stream behind `whole_after`.
    """

    call_id: str
    name: str
    arguments: dict[str, Any]
    outcome: str | None
    result: str | None
    output: str
    output_omitted: int | UnsetType = UNSET
    result_omitted: int | UnsetType = UNSET
    whole_after: str | UnsetType = UNSET


class MessageView(msgspec.Struct, kw_only=True):
    """`tool_calls` is there on assistant messages, `state` to `attempt` on interruptions. `text_omitted`, where it is there: how many
    characters of the text were left out, of the middle; the event behind `whole_after` has it whole.
    """

    id: str
    role: str
    text: str
    turn_id: str | None
    created_at: str
    status: str
    tool_calls: list[ToolCallView] | UnsetType = UNSET
    state: str | UnsetType = UNSET
    reason: str | UnsetType | None = UNSET
    rule: str | UnsetType | None = UNSET
    decision: str | UnsetType | None = UNSET
    attempt: int | UnsetType | None = UNSET
    text_omitted: int | UnsetType = UNSET
    whole_after: str | UnsetType = UNSET


class TurnView(msgspec.Struct, kw_only=True):
    id: str
    generation: int
    attempt: int
    cause: str
    state: str
    outcome: str | None
    rule: str | None
    started_at: str
    ended_at: str | None
    error: str | None


class QuestionView(msgspec.Struct, kw_only=True):
    question_id: str
    turn_id: str
    call_id: str
    text: str
    asked_at: str
    expires_at: str


class SessionView(SummaryView, kw_only=True):
    """The whole session. `cursor` is the event id this view is as of."""

    cursor: str
    messages: list[MessageView]
    turns: list[TurnView]
    question: QuestionView | None


class SnapshotView(SessionView, kw_only=True):
    """What a reader gets whose cursor leads nowhere. `because`: `unreadable`, `foreign`, `future`, or `pruned` (older pieces are gone)."""

    because: str


class SessionPageView(msgspec.Struct, kw_only=True):
    sessions: list[SummaryView]
    next: str | None


def summary(session: Session) -> SummaryView:
    return SummaryView(**_summary(session))


def whole(session: Session, transcript: t.Transcript) -> SessionView:
    return SessionView(**_summary(session), **_conversation(session, transcript))


def snapshot(session: Session, transcript: t.Transcript, because: str) -> SnapshotView:
    return SnapshotView(**_summary(session), **_conversation(session, transcript), because=because)


def _conversation(session: Session, transcript: t.Transcript) -> dict[str, Any]:
    return {
        "cursor": f"{session.log}.{transcript.seq}",
        "messages": [_message(message, session.log) for message in (*transcript.messages, *transcript.queued.values())],
        "turns": [_turn(turn) for turn in transcript.turns],
        "question": _question(transcript.question) if transcript.question else None,
    }


def _summary(session: Session) -> dict[str, Any]:
    return {
        "session_id": session.session_id,
        "session_key": session.session_key,
        "title": session.title,
        "created_at": rfc3339(session.created_at),
        "updated_at": rfc3339(session.updated_at),
        "state": session.state,
        "generation": session.generation,
        "suspended": session.suspended,
        "resume_pending": session.resume_pending,
        "resume_reason": session.resume_reason,
        "last_resume_marked_at": rfc3339_or_none(session.last_resume_marked_at),
        "was_auto_reset": session.was_auto_reset,
        "auto_reset_reason": session.auto_reset_reason,
        "interrupted_restarts": session.interrupted_restarts,
        "pinned": session.pinned,
        "archived": session.archived,
        "queued": session.queued,
        "current": session.current,
        "left": session.left,
        "rule": session.rule,
        "why": session.why,
    }


def _message(message: t.Message, log: str) -> MessageView:
    text, omitted = output.shown_message(message.text)
    view = MessageView(
        id=message.id,
        role=message.role,
        text=text,
        turn_id=message.turn_id,
        created_at=rfc3339(message.created_at),
        status=message.status,
    )
    if omitted:
        view.text_omitted, view.whole_after = omitted, f"{log}.{max(0, message.seq - 1)}"
    if message.role == "assistant":
        view.tool_calls = [_call(call, log) for call in message.tool_calls]
    elif message.role == "interruption":
        view.state, view.reason = message.state or "neutral", message.reason
        view.rule, view.decision, view.attempt = message.rule, message.decision, message.attempt
    return view


def _call(call: t.ToolCall, log: str) -> ToolCallView:
    said = output.shown(call.result or "")
    view = ToolCallView(
        call_id=call.call_id,
        name=call.name,
        arguments=output.shown_value(call.arguments),
        outcome=call.outcome,
        result=None if call.result is None else said.text,
        output=call.output,
    )
    if said.omitted:
        view.result_omitted = said.omitted
    if call.output_omitted:
        view.output_omitted = call.output_omitted
    if said.omitted or call.output_omitted:
        view.whole_after = f"{log}.{max(0, call.seq - 1)}"
    return view


def _turn(turn: t.Turn) -> TurnView:
    return TurnView(
        id=turn.id,
        generation=turn.generation,
        attempt=turn.attempt,
        cause=turn.cause,
        state=shown(turn.state),
        outcome=turn.outcome,
        rule=turn.rule,
        started_at=rfc3339(turn.started_at),
        ended_at=rfc3339_or_none(turn.ended_at),
        error=turn.error,
    )


def _question(question: t.Question) -> QuestionView:
    return QuestionView(
        question_id=question.question_id,
        turn_id=question.turn_id,
        call_id=question.call_id,
        text=question.text,
        asked_at=rfc3339(question.asked_at),
        expires_at=rfc3339(question.expires_at),
    )
