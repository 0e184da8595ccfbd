"""What is known of a conversation, and of each of its turns, while its log is folded."""

from collections.abc import Callable
from typing import Any

from holdfast.core import events as e
from holdfast.core.approvals import Approval
from holdfast.core.messages import Compacted, Delivery, Link, Message, Question, Turn, answer_id
from holdfast.core.processes import Process
from holdfast.core.rows import Rows
from holdfast.core.signs import Signs
from holdfast.core.steps import Key, Steps, key
from holdfast.core.usage import NOTHING


class Work:
    """What is known of one turn while it is folded. `at`: the place of the event that is being applied. `behind`: it and all that come
    after it can be folded from what lies behind this place in the log.
    """

    __slots__ = ("answer", "approvals", "at", "begun", "behind", "cuts", "late", "opened", "row", "signs", "steps", "superseded", "turn")

    def __init__(self, turn: Turn, at: Key, started_at: int, behind: int) -> None:
        self.turn, self.at, self.behind = turn, at, behind
        self.steps = Steps(turn.id)
        self.answer = Message(
            id=answer_id(turn.id),
            role="assistant",
            content="",
            turn_id=turn.id,
            created_at=started_at,
            status="partial",
            made_of=self.steps,
            tool_calls=self.steps.calls,
        )
        self.approvals: dict[str, Approval] = {}
        self.signs = Signs(at)
        self.opened: Key | None = None
        self.row: Message | None = None  # Tells of the interruption over which nothing is decided yet.
        self.cuts: list[Message] = []  # The rows of all its interruptions.
        self.begun: dict[int, int] = {}  # By step: the last attempt that wrote it from its beginning.
        self.late: dict[str, Message] = {}  # By the journal that is late: the row that tells of its interruption.
        self.superseded: dict[str, Message] = {}  # By the same: what was said in it, where another attempt has continued.

    def begin_again(self, step: int, attempt: int) -> None:
        """A step that was interrupted is written from its beginning: the interruption stands before what is said now."""
        self.begun[step] = max(attempt, self.begun.get(step, 0))
        for row in self.cuts:
            if row.step == step and row.attempt is not None and attempt >= row.attempt:
                row.offset = 0


class Fold:
    """What the modules of this package change, each with the events of its subject. `whole`: the log is read from its beginning."""

    def __init__(self, *, whole: bool) -> None:
        self.whole = whole
        self.rows = Rows()
        self.turns: list[Turn] = []
        self.queued: dict[str, Message] = {}
        self.questions: dict[str, Question] = {}
        self.processes: dict[str, Process] = {}  # Of the background, in the order of their starts.
        self.deliveries: dict[str, Delivery] = {}
        self.compacted: Compacted | None = None  # What agents are given instead of the earliest turns.
        self.links: dict[str, Link] = {}  # To agents that are other programs, by their names.
        self.trimmed: set[str] = set()  # Calls whose results they are given shortened.
        self.titled = NOTHING  # What the model used that was asked for a title.
        self.holes = False  # Something of the newest turn, or of what came after it, could not be read.
        self.works: dict[str, Work] = {}
        self.unjoined: set[Work] = set()  # Turns that have said or put out something since their answer was read.
        self._epoch = -1

    @property
    def newest(self) -> Work | None:
        return self.works[self.turns[-1].id] if self.turns else None

    def find(self, message_id: str) -> Message | None:
        """The message of this id, also while it waits."""
        return self.queued.get(message_id) or self.rows.newest((message_id,))

    def join(self) -> None:
        for work in self.unjoined:
            work.answer.content = work.steps.content
            work.steps.join()
        self.unjoined.clear()

    def meet(self, item: e.Logged, event: e.Event) -> Work | None:
        """The turn it belongs to, which need not be the newest. A turn whose start is damaged begins with the first of its events that
        reads; an event of a turn whose beginning is not read at all stands nowhere.
        """
        at = key(item)
        work = None if type(event) is e.TurnStarted else self.works.get(item.turn_id or "")
        if work is not None:
            work.at = at
        elif isinstance(event, e.TurnStarted):
            work = self._start(item, event)
        elif at[0] >= self._epoch and (self.whole or self.turns):
            generation = self.turns[-1].generation + 1 if self.turns else 1
            started = e.TurnStarted(generation=generation, attempt=item.attempt, cause="message", causes=(), owner=0, epoch=0)
            work = self._start(item, started)
            self.holes = True
        if at[0] > self._epoch:
            self._epoch = at[0]
        return work

    def pass_over(self, event: e.Event) -> None:
        """Of a turn whose beginning is not read: a message that it took does not wait any more."""
        match event:
            case e.CauseTaken():
                self.queued.pop(event.cause_id, None)
            case e.MessageWritten(role="user"):
                self.queued.pop(event.message_id, None)
            case e.QuestionAnswered(message_id=str(message_id)):
                self.queued.pop(message_id, None)

    def _start(self, item: e.Logged, event: e.TurnStarted) -> Work:
        self.holes = False
        turn = Turn(
            id=item.turn_id or "",
            generation=event.generation,
            attempt=event.attempt,
            cause=event.cause,
            causes=event.causes,
            started_at=item.at,
            attempt_started_at=item.at,
            signed_at=item.at or None,
            chosen=event.model,
        )
        self.turns.append(turn)
        waits = min((message.accepted for message in self.queued.values()), default=item.seq)
        for cause_id in event.causes:
            if message := self.queued.pop(cause_id, None):
                message.turn_id = turn.id
                self.rows.take(message)
        work = self.works[turn.id] = Work(turn, key(item), item.at, min(waits, item.seq) - 1)
        self.rows.begin(work.answer)
        return work

    def open(self, work: Work, item: e.Logged) -> None:
        """Its answer has something to show from here on."""
        if work.opened is None or (work.at < work.opened and work.answer.status == "partial"):
            work.opened, work.answer.created_at = work.at, item.at
            self.rows.show(work.answer)


# What is done with an event of a turn, and with one that belongs to none.
InTurn = dict[type[e.Event], Callable[[Fold, Work, e.Logged, Any], None]]
Free = dict[type[e.Event], Callable[[Fold, e.Logged, Any], None]]
