"""Every seam of Holdfast on one page. A method's docstring is its contract; `tests/conformance/` is the proof."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Protocol

import msgspec

from holdfast.core.blame import Interruption
from holdfast.core.delivery import DeliveryState
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.events import DeliveryChanged, Event, Logged, Page, QuestionAnswered, SessionChanged, TurnLeft
from holdfast.core.lives import Life
from holdfast.core.resets import Boundary
from holdfast.core.restarts import Request
from holdfast.core.sessions import Lease, Session
from holdfast.core.shutdowns import Shutdown
from holdfast.core.transcript import Message, ToolCall, Transcript


class Clock(Protocol):
    """Wall time for records, monotonic time for waits. They may move independently; never subtract one from the other."""

    def now(self) -> int:
        """Milliseconds since the epoch, UTC. May step in either direction."""

    def monotonic(self) -> float:
        """Seconds. Never goes back."""

    def offset_s(self, at: int) -> int:
        """How many seconds local time is ahead of UTC at that moment."""


class Ids(Protocol):
    def new(self, prefix: str) -> str:
        """`<prefix>_` and at least 80 random bits, in letters and digits."""


# An event made ready to be sent.
Make = Callable[[Logged], bytes]


# --- the store ---------------------------------------------------------------------------------------------------


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """One life of one process. `id` is given by the store; `name` is also the name of its lock. `draining`: why it has begun to stop, as
    its running turns are told (`shutdown_timeout`, `restart_timeout`); set by `record_drain` alone. `told`: the stop that another process
    passed on to it; set by `tell_owners` alone.
    """

    id: int = 0
    name: str
    pid: int
    started_at: int
    boot_id: str
    socket: str | None = None
    draining: str | None = None
    told: Shutdown | None = None

    @property
    def life(self) -> Life:
        return Life(self.pid, self.started_at, self.boot_id)


class Accepted(msgspec.Struct, frozen=True):
    """`duplicate`: this was stored before, under the same key; ids are those of the first time."""

    message_id: str
    session_id: str
    duplicate: bool = False


class StartedTurn(msgspec.Struct, frozen=True):
    lease: Lease
    turn_id: str
    attempt: int
    position: int


class Stopped(msgspec.Struct, frozen=True):
    """`turn_id`: None where nothing was there to stop. `ended`: the turn had no process, so it ended in the same transaction."""

    turn_id: str | None
    queued: int
    ended: bool


class Moved(msgspec.Struct, frozen=True):
    """Which session is its key's current one. `changed`: this request made it so. `goes_on`: a cut turn of it is to continue."""

    session_id: str
    changed: bool
    goes_on: bool = False


class Deletion(msgspec.Struct, frozen=True):
    """`undo_until`: the last moment at which it can be brought back."""

    session_id: str
    deleted_at: int
    undo_until: int


class Usage(msgspec.Struct, frozen=True):
    """What the store takes up, how many sessions there are, and of how many deleted ones the content is still to be removed."""

    bytes: int
    sessions: int
    removing: int


class Aside(msgspec.Struct, frozen=True, kw_only=True):
    """Words to the gateway itself, in a conversation. They start no turn."""

    message_id: str
    text: str
    sender: str
    dedup_key: str | None
    anchor: str | None = None


class Say(msgspec.Struct, frozen=True):
    reply: str


class Stop(msgspec.Struct, frozen=True):
    """`saw`: the turn that was open when it was accepted, if one was. Another one that runs by now is not stopped."""

    by: str
    saw: str | None = None


class Reset(msgspec.Struct, frozen=True):
    """`fresh`: id and log name of the session that is begun."""

    fresh: tuple[str, str]
    by: str


class Resume(msgspec.Struct, frozen=True):
    """`session_id`: None for what was cut here or, where nothing is under way, the conversation before this one."""

    session_id: str | None
    by: str


Action = Say | Stop | Reset | Resume


class StreamItem(msgspec.Struct, frozen=True):
    """Stream events of one turn for a shared write."""

    lease: Lease
    turn_id: str
    attempt: int
    position: int
    events: tuple[Event, ...]


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """One reply that is owed to a chat."""

    delivery_id: str
    session_id: str
    session_key: str
    state: DeliveryState
    text: str
    tries: int
    retry_at: int
    anchor: str | None = None


class Counts(msgspec.Struct, frozen=True):
    sessions: int
    inbox: int
    outbox: int
    running: int
    suspended: int
    pending: int


class Pause(msgspec.Struct, frozen=True):
    """Somebody holds up the work of a home, until a time: no turn starts, and what is said is kept."""

    holder: str
    since: int
    until: int


class SessionPage(msgspec.Struct, frozen=True):
    sessions: list[Session]
    next: str | None


class Store(Protocol):
    """The log of every session and its catalog, changed together in one transaction per method.

    A method that returned is durable: it survives the death of the process and of the machine. One that raised
    changed nothing. A cancelled call, or one that met `StoreClosed`, may have happened or not; read the state back
    before deciding. Any method may raise `StoreFull`, `StoreClosed` or another `Unavailable`, and `BadInput` for text
    with lone surrogates or numbers beyond 64 bits. Times are the caller's; sequences, positions, epochs and
    generations are the store's alone.
    """

    # sessions

    async def create_session(self, *, session_id: str, session_key: str, log: str, at: int, title: str | None = None) -> Session:
        """A new session, made the current one of its key."""

    async def session(self, session_id: str) -> Session:
        """The catalog's row, also of one that is deleted. Raises `NotFound`; `Deleted`, which is one, once its content is gone."""

    async def current_session(self, session_key: str) -> Session | None:
        """The session a key points at now."""

    async def named(self, prefix: str, *, limit: int) -> list[Session]:
        """The sessions whose id begins with these letters, newest first, archived ones too."""

    async def sessions(
        self, *, limit: int, before: str | None = None, query: str = "", archived: bool = False, state: str | None = None
    ) -> SessionPage:
        """Newest first. `before` is a `next` given earlier; one that does not parse raises `BadInput`. `state`: only those that are
        suspended, pending, running or waiting.
        """

    async def conversations(self, session_key: str, *, limit: int) -> list[tuple[int, Session]]:
        """The sessions of one key, newest first, each with the number it keeps: the first one of the key is 1."""

    async def change_session(self, session_id: str, change: SessionChanged, *, at: int) -> Session:
        """Title, pin, archive and flags, as a record. A resume mark sets its time and, where none is given, the reason
        `restart_timeout`; taking it back empties both. A session that becomes suspended refuses the messages that wait in it, and
        their senders are told once. Raises `NotFound`.
        """

    async def mark_pending(self, session_key: str, *, reason: str = "restart_timeout", at: int) -> bool:
        """Marks the key's current session resume-pending. False, and nothing changed, for a key without one and for a suspended one."""

    async def settle_mark(self, session_id: str, *, turn_id: str | None, rule: str, at: int) -> bool:
        """Takes the mark of a session back by a rule's decision, if it still has no open turn, its newest turn is still that one, and
        nothing waits in it. False, and nothing changed, otherwise.
        """

    async def clear_pending(self, session_key: str, *, at: int) -> bool:
        """Takes the mark back. False, and nothing changed, where there is none."""

    async def suspend_active(self, *, window_ms: int, at: int) -> int:
        """Suspends every session that showed a sign of life within the window before the newest one of all, had something to do or said,
        and is not resume-pending; gives how many. For an operator who wants nothing resumed after a crash.
        """

    async def reset(self, session_id: str, *, fresh: tuple[str, str], by: str, dedup_key: str | None, at: int) -> Moved:
        """Begins a new session of the same key. The turn that is open is stopped, what waits is refused and its senders are told once, all
        in one transaction. A session that was never used stays. The same key again gives the first answer. Raises `NotFound`.
        """

    async def resume_session(self, session_id: str, *, by: str, dedup_key: str | None, at: int) -> Moved:
        """Makes it its key's current one, lifts its suspension, forgets its restarts and lets its cut turn go on. The one it takes
        the place of is left as by `reset`. Raises `NotFound`.
        """

    # deleting

    async def delete_session(self, session_id: str, *, by: str, until: int, at: int) -> Deletion:
        """Takes it out of every list, search and lane. Its open turn is stopped, what waits is refused and its senders are told once, what
        is owed is held back; its key has no current session, if this was it. One that is deleted stays as it is. Raises `NotFound`, and
        `Deleted` for one that is purged.
        """

    async def undelete_session(self, session_id: str, *, by: str, at: int) -> bool:
        """Brings it back, whole; what was stopped and refused stays so. False, and nothing changed, where it is not deleted. Raises
        `NotFound`, and `Deleted` for one that is purged.
        """

    async def purge(self, *, now: int, steps: int) -> bool:
        """Removes the content of deleted sessions whose time is over: from the log, the catalog, the quarantine, the search index and the
        write-ahead log. What stays of one is its id, its key, when and by whom it was deleted, and digests of its dedup keys. At
        most `steps` small transactions; killed after any of them, the next call continues. Gives whether there is more to do at once.
        """

    async def remove_oldest(self, *, before: int, limit: int, why: str, until: int, at: int) -> list[str]:
        """Deletes, by "retention", up to `limit` sessions whose last sign of life was before a time, the oldest first. Never one that is
        pinned, pending or queued, has an open turn, or owes a reply. Gives their ids.
        """

    async def usage(self) -> Usage: ...

    # reading the log

    async def events(self, session_id: str, *, after: int, limit: int, make: Make | None = None) -> Page:
        """Events with a sequence above `after`, in order: at most `limit`, at most a thousand, and no more than it takes to make up
        `PAGE_BYTES`. What `make` makes of the large ones is given with them; it runs in another thread. One that fails its checksum,
        cannot be read or is missing is given as `Damaged`, in its place, and put into quarantine once. Pruned stream events are simply
        not there.
        """

    async def records(self, session_id: str, *, after: int, limit: int) -> Page:
        """As `events`, without stream events. Where a record is missing altogether, nothing stands for it."""

    async def transcript(self, session: Session) -> Transcript:
        """The conversation: the records of turns that are over, and every event of the one that is open. It is at least as new as
        `session`. Neither the event loop nor another reader waits for it, however long it is.
        """

    async def tail(self, *, after_id: int, limit: int, make: Make | None = None) -> Page:
        """Events of all sessions, of every process, in the order of commits, above a global id; as many as `events` gives. One that is
        too damaged to tell whose it is belongs to the session "".
        """

    async def last_id(self) -> int:
        """The global id of the newest event; 0 in an empty store."""

    # what anyone may add, at any time, without a lease

    async def accept(
        self,
        session_id: str,
        *,
        message_id: str,
        text: str,
        sender: str,
        dedup_key: str | None,
        at: int,
        fresh: tuple[str, str],
        max_waiting: int,
        anchor: str | None = None,
        answers: bool = True,
        on_page: bool = False,
        resets: tuple[Boundary, ...] = (),
    ) -> Accepted:
        """A message is on disk once this returns: in the inbox, or, if it `answers`, recorded as the answer to the open question
        of a waiting turn. A question counts as asked once its delivery is `sent`, or for a message written `on_page`, where everything
        that is stored is seen; until then the message waits behind it (A27), and a question that will never arrive is sent again.

        If the session is not current, the key's current one gets the message; if it is suspended or past a reset boundary, a new one
        (`fresh`: session id, log name) does, whose first words say why. All in the same transaction.

        A key whose current session is deleted gets a new one, too. The same key with the same text again is a no-op that gives the first
        answer; with other text it raises `DuplicateOtherContent`, and `Deleted` if the session it was said in is purged. Raises
        `NotFound`, `LaneFull`.
        """

    async def command(self, session_id: str, aside: Aside, action: Action, *, at: int) -> Accepted:
        """Records words to the gateway, does what they ask for, and answers them, in one transaction. They are recorded in the
        session that is the key's current one afterwards. The same key with the same text again does nothing and gives the first answer;
        with other text it raises `DuplicateOtherContent`. Raises `NotFound`.
        """

    async def tell_once(self, session_id: str, *, notice_id: str, text: str, anchor: str | None, at: int) -> bool:
        """Writes a notice into a session, and owes it to its chat. False, and nothing written, where a notice of that id was before."""

    async def request_stop(
        self, session_id: str, *, by: str, dedup_key: str | None, at: int, turn_id: str | None = None, saw: str | None = None
    ) -> Stopped:
        """Records that the open turn is to stop: only the one of `turn_id`, if given, or the one that the caller `saw` open; nothing if
        that has ended. `core.stops` says which turn several stops at once are for. A turn that belongs to no process (waiting, answered)
        ends as cancelled at once; an interrupted one is ended by whichever process decides about it. Raises `NotFound`. Repeating a dedup
        key changes nothing and returns the first answer.
        """

    async def answer(self, question_id: str, answer: Callable[[str, str], QuestionAnswered], *, at: int) -> str:
        """Records the answer to an open question, made by `answer(question_id, call_id)`; gives the session's id. Raises
        `NotFound`, `QuestionClosed`.
        """

    async def expire_questions(self, *, now: int) -> list[str]:
        """Ends, as failed, every turn whose question is past its time. Gives their sessions' ids."""

    # turns

    async def start_turn(self, session_id: str, *, owner: int, turn_id: str, at: int, trial: bool = False) -> StartedTurn | None:
        """Takes the oldest waiting message and starts its turn, on `trial` or not: lease, generation + 1, `turn.started`, the user's
        message, in one transaction. A cut turn that was left ends there as set aside, and the session stays pending. None when
        nothing waits, a turn is still open, or this owner was told to stop; what waits in a session that is suspended or no longer its
        key's current one is refused, and its senders are told once.
        """

    async def take_turn(
        self, session_id: str, *, owner: int, turn_id: str, epoch: int, events: Sequence[Event | Interruption], at: int
    ) -> StartedTurn:
        """Takes the lease of an open turn from the holder of `epoch`, and records `events` under the new one, as `append_turn` does. The
        caller must know that the former owner is gone. Raises `StaleEpoch` when somebody was faster, `ToldToStop` when
        this owner was told to stop.
        """

    async def append_turn(
        self, lease: Lease, *, turn_id: str, attempt: int, position: int, events: Sequence[Event | Interruption], at: int
    ) -> int:
        """Appends to a turn and gives the new position. Raises `StaleEpoch`, `StalePosition`, `PositionGap`. A
        `TurnResumed` among the events begins the next attempt. Once a stop is on record it is refused with `StaleEpoch`, and so is every
        end of an interrupted turn but `cancelled`; a running turn that ends by itself then ends as cancelled. `TurnEnded`, `TurnLeft`
        and `QuestionAsked` release the lease. An `Interruption` becomes `TurnInterrupted`, counted on from what the session has in this
        transaction; one found after a death releases the lease, too. A session that these events suspend refuses the messages that
        wait in it, and their senders are told once.
        """

    async def pass_trial(self, lease: Lease, *, turn_id: str, at: int) -> bool:
        """Records that a turn which runs on trial has lived for long enough, and sets its session's count of restarts to 0. False, and
        nothing changed, when it is no longer there or not on trial.
        """

    async def await_trial(self, session_id: str, *, turn_id: str, aged_ms: int, at: int) -> bool:
        """Records that an interrupted turn still waits for its trial, and how old it was when it began to. False when it waits no more."""

    async def leave_turn(self, session_id: str, *, turn_id: str, left: TurnLeft, at: int) -> bool:
        """Records that a turn which no process holds, waiting or already left, stays so. False when it is no longer there. A question
        whose delivery was given up is owed to its chat again.
        """

    async def append_streams(self, items: Sequence[StreamItem], *, at: int) -> list[int | Exception]:
        """Stream events of many turns in one write: for each the new position, or why it was refused, as `append_turn`
        would raise it. One refusal does not touch the rest.
        """

    async def open_turns(self, *, apart_from: int) -> list[Session]:
        """Sessions whose turn somebody must look after: answered, interrupted, or running; the oldest message first. Left out are those
        that simply run under the owner `apart_from`, neither stopped nor suspended, and those that were left and have no news.
        """

    async def unsettled(self) -> list[Session]:
        """Further sessions to settle at start-up: turns that were left, waiting turns about which nothing was decided yet, and sessions
        marked resume-pending that have no open turn. The oldest message first.
        """

    async def waiting_lanes(self, *, limit: int) -> list[str]:
        """Sessions with a waiting message and no open turn, oldest message first."""

    # deliveries

    async def deliveries(self, *, states: Sequence[DeliveryState], now: int, limit: int) -> list[Delivery]:
        """Replies in these states whose time to be tried has come, oldest first."""

    async def record_delivery(self, session_id: str, change: DeliveryChanged, *, expect: DeliveryState, at: int) -> bool:
        """Moves a delivery on; false, and nothing changed, when it is not in the expected state."""

    # owners

    async def register_owner(self, owner: Owner) -> int:
        """The number under which this life of this process holds leases. The same name again gives the same number; no
        number is ever given to another name.
        """

    async def owners(self) -> list[Owner]: ...

    async def record_start(self, owner: int, *, at: int) -> int:
        """This life begins to serve. Gives how many starts in a row before it died without an end, without a completed turn and
        without having been called sound; a death for which a session is suspended is left out. The same owner again changes nothing.
        """

    async def record_sound(self, owner: int) -> None:
        """This life has been healthy for long enough to be trusted."""

    async def deaths(self, *, before: int, since: int) -> int:
        """How many starts at or after a time, by owners before this one, have no end on record: neither a stop nor a hand-over."""

    async def record_drain(self, owner: int, *, reason: str) -> None:
        """This life begins to stop. Turns found running after its death were interrupted for this reason, not by a crash (C27)."""

    async def tell_owners(self, stop: Shutdown, *, by: int | None) -> None:
        """Passes a stop on to every owner other than `by`, joined with what each was told before. None of them starts or takes a turn
        after this (C28, C30).
        """

    async def record_end(self, owner: int, *, ended: bool = True) -> None:
        """This life ends on purpose; or, after all, does not."""

    async def running_by_owner(self) -> dict[int, int]:
        """How many turns each owner runs; those that run none are not in it."""

    async def set_pause(self, pause: Pause | None) -> None:
        """Pauses the work of this home, or ends the pause; also for the process that serves next."""

    async def pause(self, *, now: int) -> Pause | None:
        """The pause that holds at that time."""

    async def last_end(self, *, apart_from: int) -> bool:
        """Whether the start before this one ended on purpose, or there was none."""

    async def forget_owner(self, owner: int) -> None:
        """Only for one that is dead and holds no lease any more; otherwise nothing happens."""

    # the whole

    async def counts(self) -> Counts: ...

    async def index_search(self, *, limit: int) -> bool:
        """Puts some of the events that are not yet searchable into the index, at most `limit`, and of a long text its beginning. False when
        there are none. No other write waits long for it.
        """

    async def prune_streams(self, *, before: int, at: int, limit: int) -> int:
        """Removes the stream events of up to `limit` sessions that rest since before a time, as a record; gives how many
        events went.
        """

    async def sign_out(self, sign_in: str, *, until: int, now: int) -> None:
        """A sign-in of a browser is over, `until` it would have ended by itself. Also when the disk is full."""

    async def signed_out(self, *, now: int) -> list[str]:
        """The sign-ins that were ended and have time left."""

    async def backup(self, path: str) -> None:
        """A consistent copy, also while others write."""

    def subscribe(self, heard: Callable[[], None]) -> Callable[[], None]:
        """`heard` is called on the event loop after commits of this process. Gives the way to unsubscribe."""

    @property
    def degraded(self) -> str | None:
        """None, or why nothing can be stored at the moment."""

    async def aclose(self) -> None:
        """What was accepted is written; everything later raises `StoreClosed`."""


class Liveness(Protocol):
    """Which processes live. The operating system is asked, not a clock. Where it cannot answer, a process counts as living."""

    def alive(self, name: str) -> bool: ...


# --- agents and tools --------------------------------------------------------------------------------------------


class AgentRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent is given. `calls` are this turn's calls of earlier attempts, `kept` the text they had written,
    `note` ours to it.
    """

    session_key: str
    generation: int
    turn_id: str
    attempt: int
    messages: list[Message]
    text: str
    calls: list[ToolCall]
    kept: str
    note: str | None


class ToolResult(msgspec.Struct, frozen=True):
    outcome: ToolOutcome
    text: str


class TurnFace(Protocol):
    """What an agent may do with its turn. Everything is recorded before it counts; every method may be cancelled."""

    async def say(self, text: str) -> None:
        """More of the answer. Shown once it is durable."""

    async def think(self, text: str) -> None:
        """More of the reasoning."""

    async def keep(self, chars: int) -> None:
        """The first `chars` characters earlier attempts wrote stay part of the answer. Otherwise the answer starts over."""

    async def call(self, call_id: str, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Runs a tool. Recorded before it starts, its result before this returns. A call of this id that has a result
        gives that result and runs nothing (P5).
        """

    async def ask(self, call_id: str, question: str) -> str:
        """The user's answer. Where there is none yet the attempt ends here and the turn waits; the next attempt gets the
        answer.
        """


class Agent(Protocol):
    name: str

    async def run(self, request: AgentRequest, turn: TurnFace) -> None:
        """One attempt at one answer. Returning ends the turn as completed; raising ends it as failed. It is cancelled with a word of
        why: `stop`, `gateway shutting down`, `gateway restarting` ...
        """

    async def aclose(self) -> None:
        """Closes what it holds open between runs. Called once, when none is running."""


class ToolContext(msgspec.Struct, frozen=True, kw_only=True):
    """`output` takes what the tool puts out as it comes. Of a long output only parts are recorded (`core.output`)."""

    session_id: str
    session_key: str
    generation: int
    turn_id: str
    call_id: str
    output: Callable[[str], Awaitable[None]]


class Tool(Protocol):
    name: str
    effect: Effect

    async def reap(self, lives: Callable[[str], bool]) -> int:
        """Kills what lives of the gateway that are over (`lives(owner's name)` is false) left running; gives how many it killed."""

    async def stop(self, turn_id: str) -> int:
        """Kills what calls of this turn, run here, left running after they had returned: the turn was stopped. Gives how many."""

    async def end_session(self, session_id: str) -> int:
        """Kills what calls of this session left running, whichever process of this home started them. Gives how many."""

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        """Cancelled means: whatever it started is dead when this has returned. What goes on after a call that returned is named in its
        result. Bad arguments are a failed result, not an exception.
        """


# --- platforms ---------------------------------------------------------------------------------------------------


class Receipt(msgspec.Struct, frozen=True):
    message: str


class Platform(Protocol):
    """A chat platform, translated. `reconciles`: it can be asked whether a delivery arrived."""

    name: str
    reconciles: bool

    def allows(self, session_key: str, sender: str) -> bool:
        """Whether this person may use the agent there, as things are now."""

    def may_operate(self, session_key: str, sender: str) -> bool:
        """Whether this person may also restart Holdfast from there."""

    async def send(self, delivery_id: str, session_key: str, text: str, *, anchor: str | None) -> Receipt:
        """`anchor` is the update it replies to, as that update named it: the platform's own word, in which it keeps whatever it needs to
        reply in the same place (message, thread, topic). Where the message is gone, it is sent to that place as no reply to anything: a
        lost anchor is no reason to fail. Raises `Unavailable` when it surely was not sent and may
        be tried again, `Refused` when it never will be. Anything else, and death, leaves the outcome unknown.
        """

    async def find(self, delivery_id: str, session_key: str) -> Receipt | None:
        """Whether a delivery arrived. Only asked where `reconciles`."""

    def updates(self) -> AsyncIterator["Update"]:
        """What people write. An update is acknowledged to the platform only by `confirm`."""

    async def confirm(self, update: "Update") -> None: ...

    async def aclose(self) -> None:
        """Disconnects. Called once, when nothing is sent or taken any more."""


class Restarts(Protocol):
    """The process that a gateway lives in, as far as restarts go, and the note that outlives it. `cuts`: a restart here is an end and a new
    start, so that running turns are cut; otherwise a successor takes over.
    """

    cuts: bool

    def note(self) -> Sequence[Request]:
        """Who waits for a restart."""

    def keep(self, requests: Sequence[Request]) -> None:
        """The note from now on, for every later process. Raises nothing: what cannot be kept is logged."""

    def begin(self, request: Request) -> None:
        """A restart begins soon after this returns. If it fails, `Announcements.failed` is called."""


class Update(msgspec.Struct, frozen=True, kw_only=True):
    """`dedup_key` names platform, account, chat, message and edit, so that a second delivery is a no-op."""

    dedup_key: str
    session_key: str
    sender: str
    text: str
    anchor: str | None = None
