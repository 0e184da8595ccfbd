"""A session and its conversation as the API shows them: the shapes in docs/http-api.md and in the OpenAPI document."""

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from holdfast.api.processes import ProcessView
from holdfast.api.schedules import DueTimeView, ScheduleView
from holdfast.api.times import rfc3339, rfc3339_or_none
from holdfast.core.sessions import Session
from holdfast.core.usage import Spent
from holdfast.ports.desk import Glance


class SummaryView(msgspec.Struct, kw_only=True):
    """`rule` and `why` are the last decision about its newest turn; `left`: the decision was not to continue it for now. `current`: it is
    its key's current session. `model`: the model or agent chosen for it, null for the default. `folder`: the one chosen for its tools, only
    if one was.
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
    model: str | None
    folder: str | UnsetType = UNSET


class ListedView(SummaryView, kw_only=True):
    """A session in a list. `excerpt`: the beginning of what was said last. `unread`: something was said that nobody has seen on the page.
    `needs`: null, or what is asked of a person: `question`, `approval` or `elicitation`. `delivery`: null, or `unknown` if it is not known
    whether a reply reached its chat.
    """

    excerpt: str | None
    unread: bool
    needs: str | None
    delivery: str | None


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


class LateResultView(msgspec.Struct, kw_only=True):
    """What a call came to that had been closed as unknown. The agent was not told."""

    outcome: str
    result: str
    finished_at: str


class ToolCallView(msgspec.Struct, kw_only=True):
    """`result_parts`: only if the result is more than text. `output_omitted` and `result_omitted`: how many characters of the middle were
    left out, if any; the event stream after `whole_after` has what the log has of them. `finished_at`: once it has an outcome. `recovered`:
    its result came with a journal that was late; `late` is that result, where the call had been closed as unknown by then.
    """

    call_id: str
    step: int
    name: str
    arguments: dict[str, Any]
    outcome: str | None
    result: str | None
    output: str
    started_at: str
    finished_at: str | UnsetType = UNSET
    result_parts: list[ContentPartView] | UnsetType = UNSET
    output_omitted: int | UnsetType = UNSET
    result_omitted: int | UnsetType = UNSET
    whole_after: str | UnsetType = UNSET
    recovered: bool | UnsetType = UNSET
    late: LateResultView | UnsetType = UNSET


class QuestionCallView(msgspec.Struct, kw_only=True):
    name: str
    arguments: dict[str, Any]


class AnswersView(msgspec.Struct, kw_only=True):
    """What a message answers. `text` and `call` are those of the question, shortened; `by`: who answered, `verdict`: of an approval."""

    question_id: str
    kind: str
    text: str
    call: QuestionCallView | None
    by: str | None
    verdict: str | None


class DeliveryView(msgspec.Struct, kw_only=True):
    """How far a message has come on its way to its chat. `state`: `pending`, `sending`, `sent`, `unknown`, `repeating` or `dead`; `states`:
    of each message it is sent in. `retry_at`: when it is tried again, null if it is not waiting for that. `error`: why the last try failed.
    """

    delivery_id: str
    state: str
    states: list[str]
    tries: int
    retry_at: str | None
    error: str | None


class MessageView(msgspec.Struct, kw_only=True):
    """`parts` is the content in order; `text` only its words, for an answer those of its last step. `edited_at`: when its sender last
    changed it, if ever. `sender`: who wrote it, on what people wrote, and `sender_name`: what that person was called, where it is known.
    `tool_calls`: only on assistant messages, `answers` on answers to questions, `cause` on causes and on interruptions
    of turns that one started, `schedule` on causes of schedules, `delivery` on what is sent to a chat, `state` to `offset` on
    interruptions, which stand in the answer behind the first `offset` characters of this `step` (null: behind all of it); `stream_id`,
    `tries` and `first_seen` on those that wait for a journal. `recovered`: some of it came with a journal that was late.
    `tool_calls_omitted` and `parts_omitted`: how many earlier calls and parts of the turn are not shown, if any. `text_omitted`: how many
    characters of the middle of the text were left out, if any; the event after `whole_after` has all of it.
    """

    id: str
    role: str
    text: str
    parts: list[PartView]
    turn_id: str | None
    created_at: str
    status: str
    sender: str | UnsetType = UNSET
    sender_name: str | UnsetType = UNSET
    edited_at: str | UnsetType = UNSET
    tool_calls: list[ToolCallView] | UnsetType = UNSET
    answers: AnswersView | UnsetType = UNSET
    cause: str | UnsetType | None = UNSET
    schedule: DueTimeView | UnsetType = UNSET
    delivery: DeliveryView | UnsetType = UNSET
    state: str | UnsetType = UNSET
    reason: str | UnsetType | None = UNSET
    rule: str | UnsetType | None = UNSET
    decision: str | UnsetType | None = UNSET
    attempt: int | UnsetType | None = UNSET
    written: int | UnsetType = UNSET
    step: int | UnsetType = UNSET
    offset: int | UnsetType | None = UNSET
    stream_id: str | UnsetType = UNSET
    tries: int | UnsetType = UNSET
    first_seen: str | UnsetType = UNSET
    recovered: bool | UnsetType = UNSET
    tool_calls_omitted: int | UnsetType = UNSET
    parts_omitted: int | UnsetType = UNSET
    text_omitted: int | UnsetType = UNSET
    whole_after: str | UnsetType = UNSET


class FailureView(msgspec.Struct, kw_only=True):
    """A request to a model that failed. `tries`: how often this model had been asked for the step by then. `retry_at`: when it was to be
    asked again, null if it was not.
    """

    at: str
    step: int
    model: str
    tries: int
    error: str
    why: str
    retry_at: str | None


class ResponseView(msgspec.Struct, kw_only=True):
    """A response of a model. Tokens; `cached` are those of the input that its provider had kept, `stored` those that it keeps from then
    on, `thought` those of the output that were thoughts. `cost`: in millionths of a US dollar, null where the price is not known.
    """

    step: int
    model: str
    finish: str
    input: int
    output: int
    cached: int
    stored: int
    thought: int
    cost: int | None


class UsageView(msgspec.Struct, kw_only=True):
    """What models used, as of a response, summed up over `requests`. `cost`: of those whose price is known, null if none is; `unpriced`:
    of how many it is not.
    """

    requests: int
    input: int
    output: int
    cached: int
    stored: int
    thought: int
    cost: int | None
    unpriced: int


class ThoughtView(msgspec.Struct, kw_only=True):
    """`kept`: on record, so that it stays when the step fails or is interrupted."""

    step: int
    text: str
    kept: bool


class TurnView(msgspec.Struct, kw_only=True):
    """`steps`: how many model responses it has, `responses` the newest of them; `model`: the last one that responded; `agent`: the agent
    that was chosen to answer; `usage`: what responses and summaries used. `failures`: the newest requests for a response that failed.
    `thoughts`: what was thought aloud in the newest steps. Each only if there is any.
    `stopped_because`: why it was stopped, if not by a stop.
    """

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
    failures: list[FailureView] | UnsetType = UNSET
    responses: list[ResponseView] | UnsetType = UNSET
    thoughts: list[ThoughtView] | UnsetType = UNSET
    model: str | UnsetType = UNSET
    agent: str | UnsetType = UNSET
    usage: UsageView | UnsetType = UNSET
    stopped_because: str | UnsetType = UNSET


class QuestionView(msgspec.Struct, kw_only=True):
    """An open question. `kind`: `question`, `approval` or `elicitation`. `call`: the call that asks, or the one that an approval is for,
    which is shown whole. `pattern`: what an approval with the scope `session` allows from then on; null where that is not possible.
    """

    question_id: str
    kind: str
    turn_id: str
    call_id: str
    text: str
    parts: list[ContentPartView]
    choices: list[str]
    call: QuestionCallView | None
    pattern: str | None
    asked_at: str
    expires_at: str


class SessionView(SummaryView, kw_only=True):
    """A session and the newest page of its conversation. `cursor` is the id of the newest event in this view. `earlier`: null, or the value
    of `before` that gets the previous page. `turns` are the turns of these messages, `questions` the open ones, `schedules` those of its
    key, `processes` those of the background that run and the newest that ended. `answer_below`: the message below which the answer of the
    open turn will stand, null once it says something. `usage`: of all turns.
    """

    cursor: str
    messages: list[MessageView]
    earlier: str | None
    answer_below: str | None
    turns: list[TurnView]
    questions: list[QuestionView]
    schedules: list[ScheduleView]
    processes: list[ProcessView]
    usage: UsageView


class MessagePageView(msgspec.Struct, kw_only=True):
    """A page of a conversation, oldest message first. `earlier` as in a session."""

    messages: list[MessageView]
    earlier: str | None
    turns: list[TurnView]


class SnapshotView(SessionView, kw_only=True):
    """What a reader gets whose cursor cannot be used. `because`: `unreadable`, `foreign`, `future`, or `pruned` (pieces are gone)."""

    because: str


class SessionPageView(msgspec.Struct, kw_only=True):
    sessions: list[ListedView]
    next: str | None


def usage(spent: Spent) -> UsageView:
    return UsageView(
        requests=spent.requests,
        input=spent.input,
        output=spent.output,
        cached=spent.cached,
        stored=spent.stored,
        thought=spent.thought,
        cost=spent.known_cost,
        unpriced=spent.unpriced,
    )


def summary(session: Session) -> SummaryView:
    return SummaryView(**fields(session))


def listed(session: Session, glance: Glance) -> ListedView:
    return ListedView(**fields(session), excerpt=glance.excerpt, unread=glance.unread, needs=glance.needs, delivery=glance.delivery)


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
        "model": session.model,
        "folder": session.folder if session.folder is not None else UNSET,
    }
