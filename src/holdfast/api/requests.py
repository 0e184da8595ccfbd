"""What a request to the HTTP API may say: its body or its query, and nothing else. The web decodes these strictly; the command line sends
them."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from holdfast.api.conversation import MOST_MESSAGES
from holdfast.core.blobs import MOST_ATTACHMENTS
from holdfast.core.busy import Mode
from holdfast.core.schedules import MAX_TEXT, MOST_EVERY_S

MAX_PAUSE_S = 24 * 3600.0

Title = Annotated[str, Meta(max_length=500)]
ClientId = Annotated[str, Meta(min_length=1, max_length=200)]
AttachmentId = Annotated[str, Meta(min_length=1, max_length=200)]
TurnId = Annotated[str, Meta(min_length=1, max_length=200)]
# Checked by the store, whose refusal lists the states.
State = Annotated[str, Meta(extra_json_schema={"enum": ["suspended", "pending", "running", "waiting", "pinned", "deleted"]})]


class Body(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of all request bodies."""


class Query(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of all query strings. An unknown parameter changes nothing."""


class Nothing(Body, frozen=True):
    """For a request whose path already says everything."""


# sessions


class NewSession(Body, frozen=True):
    """`folder`: an absolute path on the machine of Holdfast, where the tools of this session work instead of in a folder of their own."""

    title: Title | None = None
    folder: Annotated[str, Meta(min_length=1, max_length=4096)] | None = None


class AnsweredFile(Body, frozen=True):
    """`text`: of a file that was read. `failed`: why it was not done."""

    request_id: Annotated[str, Meta(min_length=1, max_length=200)]
    text: str | None = None
    failed: str | None = None


class EditorNews(Body, frozen=True):
    """`reads`, `writes`: what the editor can do with files. `answers`: to what it was asked before."""

    reads: bool = False
    writes: bool = False
    answers: Annotated[list[AnsweredFile], Meta(max_length=100)] = []


class SessionsQuery(Query, frozen=True):
    """`query` searches titles and messages; `before` takes the `next` of the previous page; `state` keeps only sessions in that state."""

    query: Annotated[str, Meta(max_length=1000)] = ""
    limit: Annotated[int, Meta(ge=1, le=100)] = 20
    before: Annotated[str, Meta(max_length=100)] | None = None
    archived: bool = False
    state: State | None = None


class SessionQuery(Query, frozen=True):
    """`messages`: at most so many of the newest."""

    messages: Annotated[int, Meta(ge=1, le=MOST_MESSAGES)] = MOST_MESSAGES


class SearchQuery(Query, frozen=True):
    """`q`: words that all have to be there, the last one may be the beginning of a word. `limit`: of so many sessions at most;
    with a `session`, so many messages of that one.
    """

    q: Annotated[str, Meta(max_length=1000)] = ""
    limit: Annotated[int, Meta(ge=1, le=100)] = 20
    session: Annotated[str, Meta(min_length=1, max_length=200)] | None = None


class ExportQuery(Query, frozen=True):
    """`md`: Markdown, `json`: as the API shows it, whole, `html`: a page that needs nothing else."""

    as_: Literal["md", "json", "html"] = msgspec.field(default="md", name="as")


class DraftChange(Body, frozen=True):
    """`rev`: of the draft that this one replaces."""

    text: Annotated[str, Meta(max_length=200_000)]
    rev: Annotated[int, Meta(ge=0)] = 0


class Seen(Body, frozen=True):
    """`cursor`: of the session as it was seen."""

    cursor: Annotated[str, Meta(min_length=1, max_length=200)]


class OutboxQuery(Query, frozen=True):
    """`given_up`: also what was given up; `arrived`: also what has arrived."""

    given_up: bool = False
    arrived: bool = False


class OutboxChange(Body, frozen=True):
    """`retry`: try it again now, also if it was given up; `drop`: give it up, or tell nobody any more that it was; `sent`: it arrived, as a
    person has seen.
    """

    action: Literal["retry", "drop", "sent"]


class NewPerson(Body, frozen=True):
    """By the pairing `code` that they were given, or by `platform` and `user`."""

    code: Annotated[str, Meta(min_length=1, max_length=40)] | None = None
    platform: Annotated[str, Meta(min_length=1, max_length=40)] | None = None
    user: Annotated[str, Meta(min_length=1, max_length=200)] | None = None
    name: Annotated[str, Meta(max_length=200)] = ""


class LogQuery(Query, frozen=True):
    """`hours`: so far back."""

    hours: Annotated[int, Meta(ge=1, le=168)] = 24


class SeriesQuery(Query, frozen=True):
    """`hours`: so far back."""

    hours: Annotated[int, Meta(ge=1, le=24)] = 1


class UsageQuery(Query, frozen=True):
    """`days`: so many, up to today."""

    days: Annotated[int, Meta(ge=1, le=366)] = 7


class SessionChange(Body, frozen=True):
    """`model`: one of the models and agents that can be chosen (`models` of the status); null for the default."""

    title: Title | UnsetType = UNSET
    pinned: bool | UnsetType = UNSET
    archived: bool | UnsetType = UNSET
    model: Annotated[str, Meta(max_length=200)] | UnsetType | None = UNSET


class Command(Body, frozen=True):
    """A command sent again with the same `client_id` is not carried out again."""

    client_id: ClientId | None = None


class Branch(Command, frozen=True, kw_only=True):
    """`message_id`: the new session begins with what was said up to this message."""

    message_id: str


class StopTurn(Command, frozen=True):
    """`turn_id`: stop this turn and no other. Without it, the turn that is open when the request arrives."""

    turn_id: TurnId | None = None


# conversations


class NewMessage(Body, frozen=True):
    """The same `client_id` with the same text and attachments again is the same message. `attachments` are ids of uploads; with
    any, the text may be empty. `mode`: what becomes of it while the conversation is busy; without one, as configured for its chat.
    """

    text: str
    client_id: ClientId | None = None
    mode: Mode | None = None
    attachments: Annotated[tuple[AttachmentId, ...], Meta(max_length=MOST_ATTACHMENTS)] = ()


class MessageEdit(Body, frozen=True):
    """What the message says from now on; what is attached to it stays. The same `client_id` with the same text again is the same edit."""

    text: str
    client_id: ClientId | None = None


class UploadQuery(Query, frozen=True):
    """`name` and `type` of the file; without `type`, the header Content-Type says it. The same `client_id` with the same file again is the
    same upload, for a day.
    """

    name: Annotated[str, Meta(max_length=1000)] | None = None
    type: Annotated[str, Meta(max_length=200)] | None = None
    client_id: ClientId | None = None


class BlobQuery(Query, frozen=True):
    """`name`: what a browser saves the bytes as. `type`: the `media_type` of the part that names them; without it, that of an upload of
    these bytes.
    """

    name: Annotated[str, Meta(max_length=1000)] | None = None
    type: Annotated[str, Meta(max_length=200)] | None = None


class MessagesQuery(Query, frozen=True):
    """`before` takes the `earlier` of the page you have; without it, the newest page."""

    before: Annotated[str, Meta(max_length=500)] | None = None
    limit: Annotated[int, Meta(ge=1, le=MOST_MESSAGES)] = 100


class EventsQuery(Query, frozen=True):
    """`after` continues after an event's id; the header `Last-Event-ID` wins over it."""

    after: str = "0"


class TabQuery(Query, frozen=True):
    """`session` and `after` may be given up to four times: which sessions, and after which event of each. `list`: the `rev` after which
    changes of the list are told; 0 for those from now on. `status`: whether the status is told.
    """

    session: Annotated[str, Meta(max_length=200)] | None = None
    after: Annotated[str, Meta(max_length=200)] | None = None
    list: Annotated[str, Meta(max_length=40)] | None = None
    status: bool = False


class Answer(Body, frozen=True):
    """To a question: either `text`, or `choice`, which is one of the question's choices. The same `client_id` with the same words again is
    the same answer.
    """

    text: str | None = None
    choice: str | None = None
    client_id: ClientId | None = None


class Judgement(Body, frozen=True):
    """Of an approval. `scope` `session`: also calls that match its `pattern`, in this conversation, from now on. `reason`: why not, for the
    agent. The same `client_id` with the same words again is the same answer.
    """

    verdict: Literal["approve", "deny"]
    scope: Literal["once", "session"] = "once"
    reason: Annotated[str, Meta(max_length=10_000)] = ""
    client_id: ClientId | None = None


class RulesQuery(Query, frozen=True):
    """`session`: only those of this session."""

    session: Annotated[str, Meta(min_length=1, max_length=200)] | None = None


class NewSchedule(Body, frozen=True):
    """Exactly one of `at` (ISO 8601; without an offset, in `time_zone`), `every_s`, `cron` (five fields) and `when` (words, such as
    `tomorrow 9:00` or `every weekday 8:00`). `time_zone`: a name such as `Europe/Berlin`; without it, as configured. `missed`: what is done
    about a time at which nothing can start. The same `client_id` with the same text again is the same schedule.
    """

    session_id: Annotated[str, Meta(min_length=1, max_length=200)]
    text: Annotated[str, Meta(min_length=1, max_length=MAX_TEXT)]
    at: Annotated[str, Meta(max_length=100)] | None = None
    every_s: Annotated[int, Meta(ge=1, le=MOST_EVERY_S)] | None = None
    cron: Annotated[str, Meta(max_length=200)] | None = None
    when: Annotated[str, Meta(max_length=200)] | None = None
    time_zone: Annotated[str, Meta(max_length=100)] | None = None
    missed: Literal["run", "skip"] | None = None
    client_id: ClientId | None = None


class ChangedSchedule(Body, frozen=True):
    """`paused`: true pauses it, false continues it with its next time; what came in between is skipped."""

    paused: bool


class SchedulesQuery(Query, frozen=True):
    """`session`: only those of this session's key."""

    session: Annotated[str, Meta(min_length=1, max_length=200)] | None = None


class ProcessesQuery(Query, frozen=True):
    """`session`: those of this session, also those that have ended. Without it, all that run."""

    session: Annotated[str, Meta(min_length=1, max_length=200)] | None = None


class ProcessQuery(Query, frozen=True):
    """`offset`: from which byte of its output on; without it, the end of it. `limit`: at most so many bytes."""

    offset: Annotated[int, Meta(ge=0, le=2**53)] | None = None
    limit: Annotated[int, Meta(ge=1, le=256 * 1024)] = 8192


# the gateway


class Credential(Body, frozen=True):
    """One of the two."""

    code: str | None = None
    token: str | None = None


class NewPause(Body, frozen=True):
    """`holder` says who paused the gateway. The pause ends by itself after `for_s` seconds."""

    holder: Annotated[str, Meta(min_length=1, max_length=200)] = "owner"
    for_s: Annotated[float, Meta(gt=0, le=MAX_PAUSE_S)] = 3600.0
