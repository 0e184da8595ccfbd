"""The words of the log: every kind of event, what it carries, and how it is written down.

Records are facts that stay; stream events are the pieces a turn shows on its way and may be pruned once it ended.
"""

import zlib
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import msgspec

from holdfast.core import content
from holdfast.core.content import BytesPart, Content, Part
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.elicitation import Elicited
from holdfast.core.recitals import Recital
from holdfast.core.rich import Rich
from holdfast.core.turns import Outcome
from holdfast.core.usage import DaySpent

# Fields of records that are the store's own affair, and those that the place of the event in the log already says.
HIDDEN = frozenset(
    {"dedup_key", "log", "owner", "epoch", "attempt", "died", "blamed_for", "blocks", "calls", "since", "elicited", "recital"}
    | {"buttons", "fold"}
)


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of all bodies. `kind` is the event's public name and never changes meaning."""

    kind: ClassVar[str]
    stream: ClassVar[bool] = False
    says: ClassVar[bool] = False  # It holds content.

    @property
    def move(self) -> str:
        """What it is called in the table of turns."""
        return self.kind


class Says(Event, frozen=True):
    """Base of the bodies that hold content. Stored as `text`: a string, or a list of parts."""

    says = True
    content: Content = msgspec.field(name="text")

    @property
    def text(self) -> str:
        return content.text(self.content)

    @property
    def parts(self) -> tuple[Part, ...]:
        return content.parts(self.content)


class SessionCreated(Event, frozen=True):
    kind = "session.created"
    session_id: str
    session_key: str
    log: str
    title: str | None = None
    auto_reset_reason: str | None = None
    dedup_key: str | None = None


class SessionResumed(Event, frozen=True):
    """A human made it its key's current one, lifted its suspension and wants its cut turn, if it has one, to go on."""

    kind = "session.resumed"
    by: str
    goes_on: bool = False
    dedup_key: str | None = None


class SessionChanged(Event, frozen=True):
    """Only the fields that changed are set."""

    kind = "session.changed"
    title: str | msgspec.UnsetType = msgspec.UNSET
    pinned: bool | msgspec.UnsetType = msgspec.UNSET
    archived: bool | msgspec.UnsetType = msgspec.UNSET
    model: str | msgspec.UnsetType | None = msgspec.UNSET
    suspended: bool | msgspec.UnsetType = msgspec.UNSET
    resume_pending: bool | msgspec.UnsetType = msgspec.UNSET
    resume_reason: str | msgspec.UnsetType | None = msgspec.UNSET
    rule: str | msgspec.UnsetType = msgspec.UNSET
    dedup_key: str | None = None


class SessionBranched(Event, frozen=True):
    """What stands before it was said in another session, `origin`, up to this message, and is copied from there. `title`: the other one's
    then. `left_out`: how many of its earlier turns are not copied.
    """

    kind = "session.branched"
    origin: str
    message_id: str
    by: str
    title: str | None = None
    left_out: int = 0


class SessionDeleted(Event, frozen=True):
    """It is out of everybody's sight. Before `purge_at` it can be brought back; after that its content goes for good."""

    kind = "session.deleted"
    by: str
    purge_at: int
    why: str | None = None


class SessionUndeleted(Event, frozen=True):
    kind = "session.undeleted"
    by: str


class SessionPurged(Event, frozen=True):
    """The tombstone: all that is known of a session whose earlier events are being removed. `current`: its key pointed at it. `spent`: what
    its models used, day by day, so that the sums of a day stay true.
    """

    kind = "session.purged"
    session_id: str
    session_key: str
    created_at: int
    generation: int
    deleted_at: int
    by: str
    why: str | None = None
    current: bool = False
    spent: tuple[DaySpent, ...] = ()


class SessionForgotten(Event, frozen=True):
    """Events of a purged session are gone. Of their dedup keys the digests stay. `done`: nothing is left to remove."""

    kind = "session.forgotten"
    keys: tuple[str, ...] = ()
    done: bool = False


class SessionRestored(Event, frozen=True):
    """The store is a copy of the one in which this log was begun; from here on the log goes by another name."""

    kind = "session.restored"
    log: str


class RequestNoted(Event, frozen=True):
    """A request that found nothing to do, so that it finds nothing when it is repeated."""

    kind = "request.noted"
    what: str
    dedup_key: str


class MessageAccepted(Says, frozen=True):
    """The cause record of a message. `mode`: as `core.busy` says; "reject" only for one that is refused with it. `anchor` is the platform's
    own name of the message: what a reply to it hangs on. `recital`: what its client recited with it, if that is how it names a
    conversation.
    """

    kind = "message.accepted"
    message_id: str
    mode: str = "queue"
    sender: str = "owner"
    anchor: str | None = None
    dedup_key: str | None = None
    recital: Recital | None = None


class MessageEdited(Says, frozen=True):
    """Its sender changed a message. Whoever reads it later reads this; what was answered already stays answered. `effect`: as
    `core.plans.edit` says. `since`: where in the log its first words stand.
    """

    kind = "message.edited"
    message_id: str
    effect: str = "recorded"
    sender: str = "owner"
    since: int = 0
    dedup_key: str | None = None


class MessageRefused(Event, frozen=True):
    kind = "message.refused"
    message_id: str
    reason: str


class DueTime(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which time of which schedule a cause stands for. `when` says it in words; `missed`: how many times before it were not told."""

    schedule_id: str
    due_at: int
    when: str = ""
    missed: int = 0


class CauseRecorded(Says, frozen=True):
    """Something other than a message that a turn may start from, or that a running turn may take: a process that ended, a schedule.
    `what` says which; `generation`: the turn of the lane it belongs to, where it belongs to one. `during`: that turn was open when it
    happened, and may take it, but no other turn starts from it. `schedule`: which time of a schedule it is.
    """

    kind = "cause.recorded"
    cause_id: str
    what: str
    sender: str = "owner"
    generation: int | None = None
    during: bool = False
    anchor: str | None = None
    schedule: DueTime | None = None
    dedup_key: str | None = None


class CauseTaken(Event, frozen=True):
    """The turn took this cause while it ran. Its agent sees it after this is on record. `step` and `offset`: where in the answer."""

    kind = "cause.taken"
    cause_id: str
    step: int = 0
    offset: int = 0


class CauseDropped(Event, frozen=True):
    """No turn will start from this cause. Nobody is told: nobody said it."""

    kind = "cause.dropped"
    cause_id: str
    reason: str


class ScheduleAdded(Says, frozen=True):
    """From now on a turn of this key starts from these words at certain times, with the rights of `sender`: once (`once_at`), every so
    many seconds since a time, or as a cron expression says in a time zone. `due_at`: the first time. `missed`: what is done about a time
    at which nothing could start ("run" or "skip"). `call_id`: the call of an agent that made it.
    """

    kind = "schedule.added"
    schedule_id: str
    due_at: int
    once_at: int | None = None
    every_s: int | None = None
    since: int = 0
    cron: str | None = None
    time_zone: str = "UTC"
    missed: str = "run"
    sender: str = "owner"
    call_id: str | None = None
    dedup_key: str | None = None


class ScheduleDue(Event, frozen=True):
    """A time of a schedule has come, after `missed` others. `cause_id`: the cause that was recorded for it, in the key's current session;
    or `skipped`: why none was. `next_at`: None after the last time, with which the schedule is over.
    """

    kind = "schedule.due"
    schedule_id: str
    due_at: int
    next_at: int | None = None
    missed: int = 0
    cause_id: str | None = None
    skipped: str | None = None


class ScheduleRemoved(Event, frozen=True):
    kind = "schedule.removed"
    schedule_id: str
    by: str


class Button(msgspec.Struct, frozen=True, array_like=True):
    """`data` comes back when somebody presses it."""

    label: str
    data: str


class MessageWritten(Says, frozen=True):
    """A message of the conversation, whole. What must be sent to a chat carries its delivery, the anchor of what it replies to, and the
    buttons that a chat which has any shows below it. A command to the gateway carries the `recital` of its client, if it has one.
    """

    kind = "message.written"
    message_id: str
    role: str
    delivery_id: str | None = None
    anchor: str | None = None
    buttons: tuple[Button, ...] = ()
    dedup_key: str | None = None
    recital: Recital | None = None


class ProcessStarted(Event, frozen=True):
    """A background process is about to be started: on record before anything of it runs. `turn_id`, `call_id`: by which call of which
    turn, which was of this `generation`; `owner`: in which process of ours. What comes of it has the rights of `sender`, who asked for
    that turn, and is told at `anchor`. `notify`: its end is told. `patterns`: lines of its output that hold one of these are told.
    """

    kind = "process.started"
    process_id: str
    command: str
    turn_id: str
    call_id: str
    owner: int
    generation: int = 0
    sender: str = "owner"
    anchor: str | None = None
    notify: bool = True
    patterns: tuple[str, ...] = ()


class ProcessMatched(Event, frozen=True):
    """Lines of its output that are watched for came, so many since the last time, and are told. `through`: up to which byte it was read.
    `streak`: how often that has happened in close succession; the next ones are told later and later.
    """

    kind = "process.matched"
    process_id: str
    lines: int
    through: int
    streak: int = 0


class ProcessConsumed(Event, frozen=True):
    """Nothing of it is told from here on: it was (or is about to be) killed, or its end is known where it was started. `how`: "killed",
    "waited", "read", "deleted" (with its conversation).
    """

    kind = "process.consumed"
    process_id: str
    how: str


class ProcessEnded(Event, frozen=True):
    """How it ended (as `ports.keepers.End`), and when. `stopped`: an operator's stop of Holdfast ends it. `by`: the person who ends it."""

    kind = "process.ended"
    process_id: str
    ended_at: int
    code: int | None = None
    signal: int | None = None
    problem: str | None = None
    lost: str | None = None
    stopped: bool = False
    by: str | None = None


class TurnStarted(Event, frozen=True):
    """`cause`: what kind of cause it was. `causes`: their ids; those of messages are message ids. `trial`: its session is a suspect, and
    this attempt runs on trial. `model`: the model or agent that was chosen for its session then, and that answers it to its end.
    `sender`: the person it works for and `day`: the date, where people may start only so many turns a day.
    """

    kind = "turn.started"
    generation: int
    attempt: int
    cause: str
    causes: tuple[str, ...] = msgspec.field(name="message_ids")
    owner: int
    epoch: int
    trial: bool = False
    model: str | None = None
    sender: str | None = None
    day: str | None = None


class TurnTaken(Event, frozen=True):
    """The lease changed hands while the turn was open."""

    kind = "turn.taken"
    owner: int
    epoch: int


class TurnAlive(Event, frozen=True):
    """The turn's process says that it still runs it, while a model or a tool has nothing to show."""

    kind = "turn.alive"
    stream = True


class Text(Event, frozen=True):
    """What the step has said so far is its first `offset` characters followed by `text`."""

    kind = "text"
    stream = True
    offset: int
    text: str
    step: int = 0


class Reasoning(Event, frozen=True):
    kind = "reasoning"
    stream = True
    text: str
    step: int = 0


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Tokens of one response. `cached`: those of the input that the provider had kept; `stored`: those that it keeps from now on;
    `thought`: those of the output that were thoughts.
    """

    input: int = 0
    output: int = 0
    cached: int = 0
    stored: int = 0
    thought: int = 0


class ProposedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call as a model proposes it. `problem`: why it cannot be run, where its arguments do not read."""

    name: str
    arguments: dict[str, Any]
    problem: str | None = None


class ModelResponded(Event, frozen=True):
    """A step: one whole response of a model, as its provider sent it (`blocks`). It stands before everything its calls do. `cost`: in
    millionths of a US dollar, None where the price is not known. `text`: what of the blocks is said to people; `thoughts`: what was
    thought aloud before it, as it was shown; `calls`: what of them is to be run, in order, so that a step can be continued from the log
    alone. `day` and `sender`: for which day, where the process runs, and for whom it is counted. `copied`: it was counted in the
    conversation that it is copied from.
    """

    kind = "model.responded"
    step: int
    text: str = ""
    thoughts: str = ""
    calls: tuple[ProposedCall, ...] = ()
    blocks: tuple[dict[str, Any], ...] = ()
    finish: str = "end"
    usage: Usage = Usage()
    cost: int | None = None
    wire: str = ""
    provider: str = ""
    model: str = ""
    response_id: str | None = None
    day: str | None = None
    sender: str | None = None
    copied: bool = False


class AgentStarted(Event, frozen=True):
    """The turn is about to start a process of an agent that is another program. `agent`: its name in the configuration. `process`: the name
    by which its keeper is found.
    """

    kind = "agent.started"
    agent: str
    process: str


class AgentRead(Event, frozen=True):
    """How far that process was read: all output before `offset` is on record, `written` characters of it in the answer. `session`: the
    agent's id of the conversation. `how`: new, resumed, loaded, or told (given our transcript). `label`: what it calls itself. `takes`:
    what it accepts in addition to text. `request`: the prompt that it is answering, if any; `answered`: the one that it has answered.
    `fold`: the state of `core.acp` in the middle of a prompt.
    """

    kind = "agent.read"
    agent: str
    process: str
    session: str = msgspec.field(name="agent_session")
    how: str
    offset: int
    label: str = ""
    takes: tuple[str, ...] = ()
    request: str | None = None
    answered: str | None = None
    written: int = 0
    fold: str | None = None


class ModelFailed(Event, frozen=True):
    """A request for a step failed. `error` is its class, `why` its words. `retry_at`: when it is tried again, None when it is not;
    `wait_ms`: how long that was then, which no clock that is set back makes longer. `summary`: it was for a summary that the step needs.
    """

    kind = "model.failed"
    step: int
    tries: int
    error: str
    why: str
    model: str = ""
    retry_at: int | None = None
    wait_ms: int = 0
    summary: bool = False


class ContextCompacted(Event, frozen=True):
    """From here on a model is given `summary` instead of the turns up to generation `through`; the log keeps them. `problem`: why there is
    no summary and those turns are left out. `trimmed`: the calls of this turn whose results a model is given shortened from here on.
    """

    kind = "context.compacted"
    through: int
    summary: str
    problem: str | None = None
    usage: Usage = Usage()
    cost: int | None = None
    provider: str = ""
    model: str = ""
    trimmed: tuple[str, ...] = ()
    day: str | None = None
    sender: str | None = None
    copied: bool = False


class ToolStarted(Event, frozen=True):
    """`offset`: how much of the step's text stands before the call. `key`: what the tool is given to make a repetition harmless.
    `approval`: the question whose answer allowed it, used up by this; `place`: where it works then, as that answer was for.
    """

    kind = "tool.started"
    call_id: str
    name: str
    arguments: dict[str, Any]
    effect: Effect
    step: int = 0
    offset: int = 0
    key: str | None = None
    approval: str | None = None
    place: str | None = None


class ToolOutput(Event, frozen=True):
    """`omitted`: how many characters of the output, just before `text`, are not in the log."""

    kind = "tool.output"
    stream = True
    call_id: str
    text: str
    omitted: int = 0
    step: int = 0


class ToolFinished(Event, frozen=True):
    kind = "tool.finished"
    says = True
    call_id: str
    outcome: ToolOutcome
    content: Content = msgspec.field(name="result")

    @property
    def result(self) -> str:
        return content.text(self.content)

    @property
    def parts(self) -> tuple[Part, ...]:
        return content.parts(self.content)


class QuestionAsked(Says, frozen=True):
    """`form`: question, approval or elicitation. `call`: the very call an approval is for, `fingerprint` what it is known by, and `pattern`
    what "always for this conversation" would allow, None where that is not offered; `theirs`: the agent itself asks, and keeps that for
    itself. `for_operators`: only an operator may approve it, not also the one who asked for the work. `elicited`: what the call itself
    asks for, once it has started. `ends_attempt`: as version 0.1 wrote it, where asking ended the attempt; since then `TurnWaiting` does.
    """

    kind = "question.asked"
    question_id: str
    call_id: str
    expires_at: int
    form: str = "question"
    choices: tuple[str, ...] = ()
    call: ProposedCall | None = None
    fingerprint: str | None = None
    pattern: str | None = None
    for_operators: bool = False
    theirs: bool = False
    elicited: Elicited | None = None
    ends_attempt: bool = True

    @property
    def move(self) -> str:
        return "question.asked (0.1)" if self.ends_attempt else self.kind


class QuestionAnswered(Says, frozen=True):
    """`verdict`, `scope` and `reason` (for the agent): of an approval; of what a call itself asked, the verdict is `given`. `last`: no
    other question of the turn is open now, so that it can continue.
    """

    kind = "question.answered"
    question_id: str
    call_id: str
    message_id: str | None = None
    by: str | None = None
    verdict: str | None = None
    scope: str | None = None
    reason: str | None = None
    last: bool = True
    dedup_key: str | None = None

    @property
    def move(self) -> str:
        return "question.answered (last)" if self.last else self.kind


class QuestionClosed(Event, frozen=True):
    """Nobody waits for its answer any more: the call that asked is over, or asks again."""

    kind = "question.closed"
    question_id: str
    call_id: str
    why: str


class RuleAdded(Event, frozen=True):
    """Calls that match `pattern`, which names their tool, need no further approval in this conversation. `by`: who said so."""

    kind = "rule.added"
    rule_id: str
    pattern: str
    by: str


class RuleRemoved(Event, frozen=True):
    kind = "rule.removed"
    rule_id: str
    by: str


class TurnWaiting(Event, frozen=True):
    """The attempt is over and its lease free: the turn waits for answers to these questions, and continues after the last one."""

    kind = "turn.waiting"
    question_ids: tuple[str, ...]


class StopRequested(Event, frozen=True):
    """`turn_id`: the turn it is for, which may have ended already. `reply`: the delivery that tells the chat which asked. `why`: where
    nobody said stop.
    """

    kind = "stop.requested"
    turn_id: str
    by: str
    reply: str | None = None
    why: str | None = None
    dedup_key: str | None = None


class TurnInterrupted(Event, frozen=True):
    """`restarts` counts restarts in a row that interrupted this session, this one included; `deaths` the unclean deaths that interrupted
    this turn, in all. `written`: how long the answer was. `lived_ms`: how long the attempt lived, 0 where no restart is to blame.
    `died`: the owner whose death it was found after; nobody holds the turn from then on. `stream_id`: the journal of the attempt, where it
    is late: some of what the attempt did may be in it, and it could not be read when this was recorded.
    """

    kind = "turn.interrupted"
    reason: str
    restarts: int
    written: int = 0
    deaths: int = 0
    lived_ms: int = 0
    died: int | None = None
    stream_id: str | None = None


class Considered(msgspec.Struct, frozen=True):
    """A rule that was looked at for a decision: the fact it looked at, in words, and whether it applied."""

    rule: str
    fact: str
    applies: bool


class TurnResumed(Event, frozen=True):
    """`why` says it in words, for people. `considered`: the rules up to the one that decided. `trial`: its session is a suspect, and this
    attempt runs on trial.
    """

    kind = "turn.resumed"
    attempt: int
    rule: str
    reason: str
    why: str | None = None
    trial: bool = False
    considered: tuple[Considered, ...] = ()


class TrialAwaited(Event, frozen=True):
    """An interrupted turn still waits for its trial. `aged_ms`: how old it was when it began to wait; waiting does not age it."""

    kind = "trial.awaited"
    turn_id: str
    aged_ms: int


class TrialPassed(Event, frozen=True):
    """A turn on trial has lived for long enough: its session is a suspect no more."""

    kind = "trial.passed"
    turn_id: str


class TurnLeft(Event, frozen=True):
    """It was decided that a turn nobody runs stays as it is."""

    kind = "turn.left"
    rule: str
    why: str | None = None
    considered: tuple[Considered, ...] = ()


class TurnEnded(Event, frozen=True):
    """`unread_results`: it ended with tool results that nobody processed. `still_pending`: the session's resume flag outlives it.
    `blamed_for`: the owner for whose death its session is suspended.
    """

    kind = "turn.ended"
    outcome: Outcome
    error: str | None = None
    rule: str | None = None
    why: str | None = None
    unread_results: bool = False
    still_pending: bool = False
    blamed_for: int | None = None
    considered: tuple[Considered, ...] = ()


class DeliveryOpened(Event, frozen=True):
    """A message is about to be sent that will show the answer of this turn while it is being written. `owner`: who sends it. `anchor`: of
    what the turn replies to.
    """

    kind = "delivery.opened"
    delivery_id: str
    turn_id: str
    owner: int
    anchor: str | None = None


class Piece(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One message of a delivery that takes several, or that is put into messages which are there. `text`: None for all there is to say;
    `file`: the number of an attachment, which is sent instead. `target`: the platform's message that it is put into by an edit.
    """

    text: Rich | None = None
    file: int | None = None
    target: str | None = None
    repeat: bool = False


class DeliveryPlanned(Event, frozen=True):
    """What is owed is sent in these pieces. `live`: the messages they are put into, which showed the answer until now; `lost`: those of
    which nobody knows whether they arrived.
    """

    kind = "delivery.planned"
    delivery_id: str
    pieces: tuple[Piece, ...]
    live: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


class DeliveryChanged(Event, frozen=True):
    """`state` as in core.delivery; `retry_at` is the wall time of the next try, `receipt` what the platform answered. `owner`: who sends
    it, while it is being sent. `part`: which piece of it. `anew`: the message that it was put into is gone, so it is sent as one of its
    own.
    """

    kind = "delivery.changed"
    delivery_id: str
    state: str
    part: int = 0
    anew: bool = False
    tries: int = 0
    receipt: str | None = None
    retry_at: int = 0
    error: str | None = None
    owner: int | None = None


class JournalPruned(Event, frozen=True):
    """Stream events up to this sequence are gone, those of turns that ended long ago."""

    kind = "journal.pruned"
    through: int


class JournalChanged(Event, frozen=True):
    """What is known of a journal that is late. `state`: recovering, recovered or neutral, as the row says that tells of the interruption.
    `tries`: how often it was looked for in vain; `size`: how long it was. `text`: what was said in the part of it that has just arrived,
    `call_ids`: the calls whose results are in that part. The events of that part follow, each in its own place of the turn.
    """

    kind = "journal.changed"
    turn_id: str
    stream_id: str
    state: str
    tries: int = 0
    size: int = 0
    text: str = ""
    call_ids: tuple[str, ...] = ()


class Unknown(Event, frozen=True):
    """Stands for an event of a later version: whole, and left alone. It is made by readers and never stored."""

    kind = "unknown"
    name: str


class Damaged(Event, frozen=True):
    """Stands where a stored event could not be read. It is made by readers and never stored."""

    kind = "damaged"
    reason: str


KINDS: dict[str, type[Event]] = {
    event.kind: event
    for event in (
        *(
            SessionCreated,
            SessionChanged,
            SessionResumed,
            SessionBranched,
            SessionDeleted,
            SessionUndeleted,
            SessionPurged,
            SessionForgotten,
            SessionRestored,
        ),
        *(RequestNoted, MessageAccepted, MessageEdited, MessageRefused, MessageWritten, CauseRecorded, CauseTaken, CauseDropped),
        *(ProcessStarted, ProcessMatched, ProcessConsumed, ProcessEnded),
        *(TurnStarted, TurnTaken, TurnInterrupted, TurnResumed, TurnLeft, TurnEnded, StopRequested, TrialAwaited, TrialPassed),
        *(Text, Reasoning, ModelResponded, ModelFailed, ContextCompacted, ToolStarted, ToolOutput, ToolFinished),
        *(QuestionAsked, QuestionAnswered, QuestionClosed, RuleAdded, RuleRemoved, TurnWaiting),
        *(ScheduleAdded, ScheduleDue, ScheduleRemoved, AgentStarted, AgentRead),
        *(TurnAlive, DeliveryOpened, DeliveryPlanned, DeliveryChanged, JournalPruned, JournalChanged, Damaged),
    )
}

_encoder = msgspec.json.Encoder()
_decoders = {kind: msgspec.json.Decoder(body) for kind, body in KINDS.items()}


def encode(event: Event) -> bytes:
    return _encoder.encode(event)


def decode(kind: str, body: bytes) -> Event:
    """The event a stored body stands for; `Unknown` for one of a later version, `Damaged` for one that no longer reads."""
    decoder = _decoders.get(kind)
    if decoder is None:
        return Unknown(name=kind)
    try:
        return decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return Damaged(reason=f"its body does not read: {error}")


def attached(event: Event) -> tuple[BytesPart, ...]:
    """The parts of its content that name blobs."""
    return content.attached(event.content) if isinstance(event, Says | ToolFinished) else ()


class Logged(msgspec.Struct, frozen=True):
    """An event in its place in the log: the session's, without gaps. `epoch`: of the lease it was written under,
    None in what version 0.1 wrote; positions count within it.
    """

    session_id: str
    seq: int
    turn_id: str | None
    attempt: int
    position: int
    kind: str
    at: int
    body: bytes
    epoch: int | None = None
    stream: bool = False

    @property
    def event(self) -> Event:
        return decode(self.kind, self.body)


def public(event: Event, *, in_turn: bool) -> Iterator[tuple[str, Any]]:
    """The fields of an event that readers get, with their values. `in_turn`: its place already names the turn."""
    for name in event.__struct_fields__:
        value = getattr(event, name)
        if name == "content":
            yield "result" if isinstance(event, ToolFinished) else "text", content.text(value)
            if not isinstance(value, str):
                yield "parts", value
        elif name == "pieces":  # How they are worded is between us and the platform.
            yield name, len(value)
        elif name not in HIDDEN and value is not msgspec.UNSET and not (in_turn and name == "turn_id"):
            yield name, value


# A page of events ends once the bodies in it make up this much: what is done with a page takes a few milliseconds, whatever is in it.
PAGE_BYTES = 256 * 1024


LARGE_BYTES = 32 * 1024


class Page(list[Logged]):
    """Events in the order of the log. `more`: others may follow. `made`: what was made of the large ones, by session and
    sequence.
    """

    def __init__(self, logged: Iterable[Logged] = (), *, more: bool = False) -> None:
        super().__init__(logged)
        self.more = more
        self.made: dict[tuple[str, int], bytes] = {}


def checksum(
    session: int,
    seq: int,
    turn: str | None,
    attempt: int,
    position: int,
    kind: str,
    at: int,
    body: bytes,
    epoch: int | None = None,
    stream: int = 0,
) -> int:
    """Covers every stored column, so that a flipped bit in any of them is found. Without an epoch: as version 0.1 made it."""
    if epoch is None:
        return zlib.crc32(f"{session}|{seq}|{turn}|{attempt}|{position}|{kind}|{at}".encode() + body)
    return zlib.crc32(f"{session}|{seq}|{turn}|{attempt}|{position}|{kind}|{at}|{epoch}|{stream}".encode() + body)
