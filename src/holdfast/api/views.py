"""A session and its conversation as the API shows them. The shapes here are the shapes in docs/http-api.md and in the OpenAPI document."""

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from holdfast.api.times import rfc3339, rfc3339_or_none
from holdfast.core.sessions import Session


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
    """`tool_calls` is there on assistant messages, `state` to `attempt` on interruptions. `tool_calls_omitted`, where it is there: how many
    earlier calls of the turn are not shown. `text_omitted`, where it is there: how many
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
    tool_calls_omitted: int | UnsetType = UNSET
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
    """A session and the newest page of its conversation. `cursor` is the event id this view is as of. `earlier`: null, or what to give as
    `before` to get the page before this one. `turns` are those of the messages here.
    """

    cursor: str
    messages: list[MessageView]
    earlier: str | None
    turns: list[TurnView]
    question: QuestionView | None


class MessagePageView(msgspec.Struct, kw_only=True):
    """A page of a conversation, oldest message first. `earlier` as in a session."""

    messages: list[MessageView]
    earlier: str | None
    turns: list[TurnView]


class SnapshotView(SessionView, kw_only=True):
    """What a reader gets whose cursor leads nowhere. `because`: `unreadable`, `foreign`, `future`, or `pruned` (older pieces are gone)."""

    because: str


class SessionPageView(msgspec.Struct, kw_only=True):
    sessions: list[SummaryView]
    next: str | None


def summary(session: Session) -> SummaryView:
    return SummaryView(**fields(session))


def fields(session: Session) -> dict[str, Any]:
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
