"""A session and its conversation as the API shows them: the shapes in docs/http-api.md and in the OpenAPI document."""

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from holdfast.api.times import rfc3339, rfc3339_or_none
from holdfast.core.sessions import Session


class SummaryView(msgspec.Struct, kw_only=True):
    """`rule` and `why` are the last decision about its newest turn; `left`: the decision was not to continue it for now. `current`: it is
    its key's current session.
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


class TextPartView(msgspec.Struct, kw_only=True, tag="text", tag_field="type"):
    """`id` and `step`: only in answers. `text_omitted`: how many characters of the middle were left out, if any."""

    text: str
    id: str | UnsetType = UNSET
    step: int | UnsetType = UNSET
    text_omitted: int | UnsetType = UNSET


class CallPartView(msgspec.Struct, kw_only=True, tag="call", tag_field="type"):
    """The answer made this call after the first `offset` characters of its step; see `tool_calls`."""

    id: str
    step: int
    offset: int
    call_id: str


class MessagePartView(msgspec.Struct, kw_only=True, tag="message", tag_field="type"):
    """The turn took this message after the first `offset` characters of its step; see `messages`."""

    id: str
    step: int
    offset: int
    message_id: str


class _BytesPartView(msgspec.Struct, kw_only=True):
    """`digest` names the bytes. `media_type` is what the sender says they are."""

    digest: str
    size: int
    media_type: str
    name: str | None
    id: str | UnsetType = UNSET
    step: int | UnsetType = UNSET


class ImagePartView(_BytesPartView, kw_only=True, tag="image", tag_field="type"): ...


class AudioPartView(_BytesPartView, kw_only=True, tag="audio", tag_field="type"): ...


class FilePartView(_BytesPartView, kw_only=True, tag="file", tag_field="type"): ...


BytesPartView = ImagePartView | AudioPartView | FilePartView
ContentPartView = TextPartView | BytesPartView
PartView = ContentPartView | CallPartView | MessagePartView


class ToolCallView(msgspec.Struct, kw_only=True):
    """`result_parts`: only if the result is more than text. `output_omitted` and `result_omitted`: how many characters of the middle were
    left out, if any; the event stream after `whole_after` has what the log has of them.
    """

    call_id: str
    step: int
    name: str
    arguments: dict[str, Any]
    outcome: str | None
    result: str | None
    output: str
    result_parts: list[ContentPartView] | UnsetType = UNSET
    output_omitted: int | UnsetType = UNSET
    result_omitted: int | UnsetType = UNSET
    whole_after: str | UnsetType = UNSET


class MessageView(msgspec.Struct, kw_only=True):
    """`parts` is the content in order; `text` only its words, for an answer those of its last step. `tool_calls`: only on assistant
    messages, `cause` on causes, `state` to `attempt` on interruptions. `tool_calls_omitted` and `parts_omitted`: how many earlier calls and
    parts of the turn are not shown, if any. `text_omitted`: how many characters of the middle of the text were left out, if any; the event
    after `whole_after` has all of it.
    """

    id: str
    role: str
    text: str
    parts: list[PartView]
    turn_id: str | None
    created_at: str
    status: str
    tool_calls: list[ToolCallView] | UnsetType = UNSET
    cause: str | UnsetType | None = UNSET
    state: str | UnsetType = UNSET
    reason: str | UnsetType | None = UNSET
    rule: str | UnsetType | None = UNSET
    decision: str | UnsetType | None = UNSET
    attempt: int | UnsetType | None = UNSET
    tool_calls_omitted: int | UnsetType = UNSET
    parts_omitted: int | UnsetType = UNSET
    text_omitted: int | UnsetType = UNSET
    whole_after: str | UnsetType = UNSET


class TurnView(msgspec.Struct, kw_only=True):
    """`steps`: how many model responses it has."""

    id: str
    generation: int
    attempt: int
    steps: int
    cause: str
    state: str
    outcome: str | None
    rule: str | None
    started_at: str
    ended_at: str | None
    error: str | None


class QuestionCallView(msgspec.Struct, kw_only=True):
    name: str
    arguments: dict[str, Any]


class QuestionView(msgspec.Struct, kw_only=True):
    """An open question. `kind`: `question`, `approval` or `elicitation`. `call`: the call that asks, or that the question is about, once
    it is recorded.
    """

    question_id: str
    kind: str
    turn_id: str
    call_id: str
    text: str
    parts: list[ContentPartView]
    choices: list[str]
    call: QuestionCallView | None
    asked_at: str
    expires_at: str


class SessionView(SummaryView, kw_only=True):
    """A session and the newest page of its conversation. `cursor` is the id of the newest event in this view. `earlier`: null, or the value
    of `before` that gets the previous page. `turns` are the turns of these messages, `questions` the open ones.
    """

    cursor: str
    messages: list[MessageView]
    earlier: str | None
    turns: list[TurnView]
    questions: list[QuestionView]


class MessagePageView(msgspec.Struct, kw_only=True):
    """A page of a conversation, oldest message first. `earlier` as in a session."""

    messages: list[MessageView]
    earlier: str | None
    turns: list[TurnView]


class SnapshotView(SessionView, kw_only=True):
    """What a reader gets whose cursor cannot be used. `because`: `unreadable`, `foreign`, `future`, or `pruned` (pieces are gone)."""

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
