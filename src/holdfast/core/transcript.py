"""The conversation as people and agents see it, folded from the log. The one place that knows what the events mean together."""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from holdfast.core import approvals, elicitation, notices, processes, usage
from holdfast.core import events as e
from holdfast.core.approvals import Approval
from holdfast.core.delivery import DeliveryState
from holdfast.core.effects import ToolOutcome
from holdfast.core.journals import State
from holdfast.core.messages import Answered, Awaited, Compacted, Delivery, Failure, Link, Message, Question, ToolCall, Turn, answer_id
from holdfast.core.processes import Process
from holdfast.core.rows import Rows
from holdfast.core.signs import Signs
from holdfast.core.spools import stream_id
from holdfast.core.steps import LAST, Key, Step, Steps, key
from holdfast.core.turns import MOVES, TABLE, Outcome, TurnState

__all__ = ["Failure", "Message", "Question", "ToolCall", "Transcript", "Turn", "answer_id", "model_name"]

_DECIDED = {Outcome.CANCELLED: "cancelled", Outcome.SET_ASIDE: "set aside"}


class _Work:
    """What is known of one turn while it is folded. `at`: the place of the event that is being applied."""

    __slots__ = ("answer", "approvals", "at", "cuts", "late", "opened", "row", "signs", "steps", "superseded", "turn")

    def __init__(self, turn: Turn, at: Key, started_at: int) -> None:
        self.turn, self.at = turn, at
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
        self.late: dict[str, Message] = {}  # By the journal that is late: the row that tells of its interruption.
        self.superseded: dict[str, Message] = {}  # By the same: what was said in it, where another attempt has continued.


class Transcript:
    """Apply events in the order of the log; read `messages`, `turns`, `questions`, `queued` at any time. What comes in pieces is joined
    when it is read, so that folding costs as much as the log is long. Within a turn the order is that of (epoch, position): what a lease
    wrote that is over already belongs before what the next one wrote, however late it comes.
    """

    def __init__(self) -> None:
        self._rows = Rows()
        self.turns: list[Turn] = []
        self.queued: dict[str, Message] = {}
        self._questions: dict[str, Question] = {}
        self.processes: dict[str, Process] = {}  # Of the background, in the order of their starts.
        self.seq = 0
        self.last_at = 0
        self._works: dict[str, _Work] = {}
        self._deliveries: dict[str, Delivery] = {}
        self._unjoined: set[_Work] = set()  # Turns that have said or put out something since their answer was read.
        self.compacted: Compacted | None = None  # What agents are given instead of the earliest turns.
        self.links: dict[str, Link] = {}  # To agents that are other programs, by their names.
        self.trimmed: set[str] = set()  # Calls whose results they are given shortened.
        self._epoch = -1
        self._holes = False  # Something of the newest turn, or of what came after it, could not be read.

    def extend(self, logged: Iterable[e.Logged]) -> "Transcript":
        for item in logged:
            self.apply(item)
        return self

    @property
    def messages(self) -> list[Message]:
        self._join()
        return self._rows.read()

    def find(self, message_id: str) -> Message | None:
        """The message of this id, also while it waits."""
        return self.queued.get(message_id) or self._rows.newest((message_id,))

    @property
    def questions(self) -> list[Question]:
        """The open ones, oldest first."""
        return list(self._questions.values())

    @property
    def calls(self) -> list[ToolCall]:
        """The tool calls of the newest turn."""
        self._join()
        return list(self._newest.steps.calls) if self._newest else []

    @property
    def approvals(self) -> dict[str, Approval]:
        """What people said about calls of the newest turn that have not started since, by call."""
        return dict(self._newest.approvals) if self._newest else {}

    @property
    def steps(self) -> list[Step]:
        """The steps of the newest turn."""
        return self._newest.steps.steps if self._newest else []

    def steps_of(self, turn_id: str) -> list[Step]:
        return self._works[turn_id].steps.steps

    def thoughts_of(self, turn_id: str) -> list[tuple[int, str]]:
        """By step."""
        return self._works[turn_id].steps.thoughts()

    @property
    def request(self) -> Message | None:
        """The message that began the newest turn."""
        ids = self.turns[-1].causes if self.turns else ()
        return self._rows.newest(ids)

    @property
    def anchor(self) -> str | None:
        """What a reply of the newest turn hangs on."""
        return self.request.anchor if self.request else None

    @property
    def above_answer(self) -> Message | None:
        """The message below which the answer of the open turn will be read, while it has not said anything yet."""
        work = self._newest
        return self._rows.above(work.answer) if work and work.turn.state is not TurnState.ENDED else None

    @property
    def spent(self) -> usage.Spent:
        """What the models of all turns used."""
        return sum((turn.spent for turn in self.turns if turn.spent.requests), usage.NOTHING)

    @property
    def answer_text(self) -> str:
        """The newest turn's answer so far."""
        self._join()
        return self._newest.answer.text if self._newest else ""

    @property
    def _newest(self) -> _Work | None:
        return self._works[self.turns[-1].id] if self.turns else None

    def _join(self) -> None:
        for work in self._unjoined:
            work.answer.content = work.steps.content
            work.steps.join()
        self._unjoined.clear()

    def apply(self, item: e.Logged) -> None:
        event = item.event
        self.seq, self.last_at = item.seq, item.at or self.last_at
        if item.turn_id is None:
            if free := _FREE.get(type(event)):
                free(self, item, event)
        elif work := self._meet(item, event):
            if item.kind in MOVES:  # Where a damaged record left a hole the table has no entry: the conversation stays readable.
                work.turn.state = TABLE.get((work.turn.state, event.move), work.turn.state)
            work.signs.note(work.turn, event, work.at, item.at)
            if in_turn := _IN_TURN.get(type(event)):
                in_turn(self, work, item, event)
            elif free := _FREE.get(type(event)):
                free(self, item, event)

    def _meet(self, item: e.Logged, event: e.Event) -> _Work | None:
        """The turn it belongs to, which need not be the newest. A turn whose start is damaged begins with the first of its events that
        reads; a late event of a turn whose beginning is not read at all stands nowhere.
        """
        at = key(item)
        work = None if type(event) is e.TurnStarted else self._works.get(item.turn_id or "")
        if work is not None:
            work.at = at
        elif isinstance(event, e.TurnStarted):
            work = self._start(item, event)
        elif at[0] >= self._epoch:
            generation = self.turns[-1].generation + 1 if self.turns else 1
            started = e.TurnStarted(generation=generation, attempt=item.attempt, cause="message", causes=(), owner=0, epoch=0)
            work = self._start(item, started)
            self._holes = True
        if at[0] > self._epoch:
            self._epoch = at[0]
        return work

    def _start(self, item: e.Logged, event: e.TurnStarted) -> _Work:
        self._holes = False
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
        for cause_id in event.causes:
            if message := self.queued.pop(cause_id, None):
                message.turn_id = turn.id
                self._rows.take(message)
        work = self._works[turn.id] = _Work(turn, key(item), item.at)
        self._rows.begin(work.answer)
        return work

    def _open(self, work: _Work, item: e.Logged) -> None:
        """Its answer has something to show from here on."""
        if work.opened is None or (work.at < work.opened and work.answer.status == "partial"):
            work.opened, work.answer.created_at = work.at, item.at
            self._rows.show(work.answer)

    # messages and causes

    def _accept(self, item: e.Logged, event: e.MessageAccepted) -> None:
        self._wait(item, event, event.message_id, role="user")

    def _record_cause(self, item: e.Logged, event: e.CauseRecorded) -> None:
        self._wait(item, event, event.cause_id, role="cause", cause=event.what, schedule=event.schedule)

    def _wait(self, item: e.Logged, event: e.MessageAccepted | e.CauseRecorded, id_: str, **more: Any) -> None:
        self.queued[id_] = Message(
            id=id_,
            content=event.content,
            turn_id=None,
            created_at=item.at,
            sender=event.sender,
            anchor=event.anchor,
            seq=item.seq,
            **more,
        )

    def _refuse(self, item: e.Logged, event: e.MessageRefused) -> None:
        if refused := self.queued.pop(event.message_id, None):
            refused.status = "refused"
            self._rows.append(refused)

    def _edit(self, item: e.Logged, event: e.MessageEdited) -> None:
        if message := self.find(event.message_id):
            message.content, message.edited_at, message.seq = event.content, item.at, item.seq

    def _drop(self, item: e.Logged, event: e.CauseDropped) -> None:
        self.queued.pop(event.cause_id, None)

    def _take(self, work: _Work, item: e.Logged, event: e.CauseTaken) -> None:
        """Its message stands above the answer, which continues, and the answer says where it took it."""
        if message := self.queued.pop(event.cause_id, None):
            message.turn_id = work.turn.id
            self._rows.insert_above(work.answer, message)
            work.steps.take(event)
            self._open(work, item)

    def _write(self, item: e.Logged, event: e.MessageWritten) -> None:
        """Outside of any turn: a command, or what the gateway says."""
        self._rows.append(self._written(item, event, "command" if event.role == "user" else "complete"))

    def _written(self, item: e.Logged, event: e.MessageWritten, status: str = "complete") -> Message:
        waiting = self.queued.pop(event.message_id, None)
        return Message(
            id=event.message_id,
            role=event.role,
            content=event.content,
            turn_id=item.turn_id,
            created_at=waiting.created_at if waiting else item.at,
            edited_at=waiting.edited_at if waiting else None,
            status=status,
            seq=item.seq,
            delivery=self._owed(event),
        )

    def _owed(self, event: e.MessageWritten) -> Delivery | None:
        if event.delivery_id is None:
            return None
        return self._deliveries.setdefault(event.delivery_id, Delivery(delivery_id=event.delivery_id, states=[DeliveryState.PENDING]))

    def _plan_delivery(self, item: e.Logged, event: e.DeliveryPlanned) -> None:
        if found := self._deliveries.get(event.delivery_id):
            found.states += [DeliveryState.PENDING] * (len(event.pieces) - len(found.states))

    def _deliver(self, item: e.Logged, event: e.DeliveryChanged) -> None:
        found = self._deliveries.get(event.delivery_id)
        if found is not None and event.part < len(found.states):
            found.states[event.part] = event.state
            found.tries, found.retry_at, found.error = event.tries, event.retry_at, event.error

    def _write_in_turn(self, work: _Work, item: e.Logged, event: e.MessageWritten) -> None:
        if event.role == "assistant":
            work.steps.write(event.content)
            self._open(work, item)
            answer = work.answer
            answer.content, answer.status, answer.created_at, answer.seq = event.content, "complete", item.at, item.seq
            answer.delivery = self._owed(event)
        elif event.role == "user":
            self._request(work, item, event)
        else:
            self._rows.append(self._written(item, event))

    def _request(self, work: _Work, item: e.Logged, event: e.MessageWritten) -> None:
        turn = work.turn
        if event.message_id in turn.causes and self._rows.newest((event.message_id,)):
            return  # It stands there since the turn started.
        turn.causes = turn.causes or (event.message_id,)
        self._rows.insert_above(work.answer, self._written(item, event))

    # background processes

    def _start_process(self, item: e.Logged, event: e.ProcessStarted) -> None:
        self.processes[event.process_id] = processes.started(event, session_id=item.session_id, at=item.at)

    def _consume_process(self, item: e.Logged, event: e.ProcessConsumed) -> None:
        if (known := self.processes.get(event.process_id)) and known.consumed is None:
            self.processes[event.process_id] = msgspec.structs.replace(known, consumed=event.how)

    def _end_process(self, item: e.Logged, event: e.ProcessEnded) -> None:
        if known := self.processes.get(event.process_id):
            self.processes[event.process_id] = msgspec.structs.replace(known, end=event)

    # steps and calls

    def _say(self, work: _Work, item: e.Logged, event: e.Text) -> None:
        if work.superseded and stream_id(work.turn.id, work.at[0]) in work.superseded:
            return
        work.steps.say(work.at, event)
        if event.offset == 0:
            _begin_again(work, event.step, item.attempt)
        self._unjoined.add(work)
        self._open(work, item)

    def _think(self, work: _Work, item: e.Logged, event: e.Reasoning) -> None:
        if work.turn.state is not TurnState.ENDED:
            work.steps.think(event)

    def _respond(self, work: _Work, item: e.Logged, event: e.ModelResponded) -> None:
        work.steps.respond(event)
        _begin_again(work, event.step, item.attempt)
        work.turn.steps = max(work.turn.steps, event.step + 1)
        work.turn.spent += usage.of(event)
        work.turn.model = model_name(event.provider, event.model) or work.turn.model
        self._unjoined.add(work)
        self._open(work, item)

    def _fail(self, work: _Work, item: e.Logged, event: e.ModelFailed) -> None:
        work.turn.failures.append(Failure(item.at, event))
        work.steps.stop_thinking()

    def _compact(self, work: _Work, item: e.Logged, event: e.ContextCompacted) -> None:
        """For those who read, everything stays; a row tells that a model no longer gets all of it."""
        work.turn.spent += usage.of(event)
        self.trimmed.update(event.trimmed)
        covers = event.summary or event.problem is not None
        if covers and (self.compacted is None or event.through >= self.compacted.event.through):
            self.compacted = Compacted(work.turn.id, work.turn.generation, event)
        told = notices.compacted(summarised=bool(event.summary), problem=event.problem, trimmed=len(event.trimmed))
        what = event.trimmed[0] if event.trimmed else event.through  # A turn gives up nothing twice.
        row = Message(id=f"{work.turn.id}.compacted.{what}", role="notice", content=told, turn_id=work.turn.id, created_at=item.at)
        self._rows.insert_above(work.answer, row)

    def _start_agent(self, work: _Work, item: e.Logged, event: e.AgentStarted) -> None:
        before = self.links.get(event.agent) or Link(process=event.process)
        again = before.starts if before.started_in == work.turn.id else 0
        self.links[event.agent] = msgspec.structs.replace(before, process=event.process, started_in=work.turn.id, starts=again + 1)

    def _read_agent(self, work: _Work, item: e.Logged, event: e.AgentRead) -> None:
        before = self.links.get(event.agent) or Link(process=event.process)
        self.links[event.agent] = msgspec.structs.replace(before, read=event, turn_id=work.turn.id)

    def _call(self, work: _Work, item: e.Logged, event: e.ToolStarted) -> None:
        work.steps.start(work.at, item, event)
        work.approvals.pop(event.call_id, None)
        self._open(work, item)

    def _put_out(self, work: _Work, item: e.Logged, event: e.ToolOutput) -> None:
        work.steps.put_out(work.at, event)
        self._unjoined.add(work)

    def _finish(self, work: _Work, item: e.Logged, event: e.ToolFinished) -> None:
        work.steps.finish(work.at, item.attempt, event.call_id, event.outcome, event.content, item.at)

    # questions

    def _ask(self, work: _Work, item: e.Logged, event: e.QuestionAsked) -> None:
        self._questions[event.question_id] = Question(
            question_id=event.question_id,
            turn_id=work.turn.id,
            call_id=event.call_id,
            content=event.content,
            asked_at=item.at,
            expires_at=event.expires_at,
            form=event.form,
            choices=event.choices,
            call=event.call or work.steps.call(event.call_id) or work.steps.proposed(event.call_id),
            fingerprint=event.fingerprint,
            pattern=event.pattern,
            live=event.elicited is not None and event.elicited.live,
        )
        if event.elicited is not None:
            work.steps.rest(event.call_id, event.elicited)
        work.approvals.pop(event.call_id, None)  # What is asked once more is not answered yet.

    def _answer(self, work: _Work, item: e.Logged, event: e.QuestionAnswered) -> None:
        self._answered(work, item, event, work.at, item.attempt)

    def _answer_held(self, item: e.Logged, event: e.QuestionAnswered) -> None:
        """An answer that came while a process held the turn: the places in the turn are that process's, and nothing undoes the answer."""
        question = self._questions.get(event.question_id)
        if question is not None and (work := self._works.get(question.turn_id)):
            work.signs.note(work.turn, event, work.at, item.at)
            self._answered(work, item, event, LAST, work.turn.attempt)

    def _answered(self, work: _Work, item: e.Logged, event: e.QuestionAnswered, at: Key, attempt: int) -> None:
        question = self._questions.pop(event.question_id, None)
        if event.verdict is None:  # The answer is the call's result.
            work.steps.finish(at, attempt, event.call_id, ToolOutcome.DONE, event.content, item.at)
        elif event.verdict == elicitation.GIVEN:
            work.steps.hear(event.call_id, event.content)
        else:
            work.approvals[event.call_id] = approvals.given(event, None if question is None else question.fingerprint)
        work.turn.asked = work.turn.asked or work.turn.state is TurnState.INTERRUPTED  # Who answers wants it to continue.
        said = self.queued.pop(event.message_id, None) if event.message_id else None
        message = Message(
            id=event.message_id or f"{event.question_id}.answer",
            role="user",
            content=event.content,
            turn_id=work.turn.id,
            created_at=said.created_at if said else item.at,
            seq=item.seq,
            answers=None if question is None else _answered(question, event),
        )
        if work.turn.state is TurnState.RUNNING:
            self._rows.insert_above(work.answer, message)
        else:
            self._rows.append(message)

    def _close(self, work: _Work, item: e.Logged, event: e.QuestionClosed) -> None:
        self._questions.pop(event.question_id, None)

    # the turn's own way

    def _interrupt(self, work: _Work, item: e.Logged, event: e.TurnInterrupted) -> None:
        work.turn.reason, work.turn.asked, work.turn.died = event.reason, False, event.died
        if event.written > 0:
            self._open(work, item)  # Also where its pieces are not read: it stands above the row that tells of its interruption.
        written, worked = event.written > 0, bool(work.steps.calls)
        work.row = Message(
            id=f"{work.turn.id}.cut.{item.attempt}",
            role="interruption",
            content=notices.interrupted(event.reason, written=written, worked=worked, holes=self._holes),
            turn_id=work.turn.id,
            created_at=item.at,
            state=State.RECOVERED if written or worked else State.NEUTRAL,
            reason=event.reason,
            written=event.written or None,
            step=work.turn.steps,
            offset=None if work.turn.steps else event.written,
            cause=None if work.turn.cause == "message" else work.turn.cause,
        )
        if event.stream_id is not None:
            work.late[event.stream_id] = work.row
            _show_journal(work.row, State.RECOVERING, Awaited(event.stream_id, 0, item.at))
        work.cuts.append(work.row)
        self._rows.append(work.row)

    def _change_journal(self, item: e.Logged, event: e.JournalChanged) -> None:
        """A late journal was looked for, or some of it has arrived: that is shown above the row that waits for it. Where the turn has not
        continued since, the events that follow complete its answer; otherwise what was said in them is a message of its own.
        """
        work = self._works.get(event.turn_id)
        if work is None:
            return
        row = work.late.get(event.stream_id)
        for call_id in event.call_ids:
            if call := work.steps.call(call_id):
                call.recovered = True
        if event.text and row is not None and row is work.row:
            work.answer.recovered = True
        elif event.text:
            self._supersede(work, item, event, row or work.answer)
        if row is not None:
            since = row.awaits.first_seen if row.awaits else item.at
            _show_journal(row, State(event.state), Awaited(event.stream_id, event.tries, since))

    def _supersede(self, work: _Work, item: e.Logged, event: e.JournalChanged, above: Message) -> None:
        said = work.superseded.get(event.stream_id)
        if said is not None:
            said.content = f"{said.text}{event.text}"
            return
        said = work.superseded[event.stream_id] = Message(
            id=f"{event.stream_id}.recovered",
            role="assistant",
            content=event.text,
            turn_id=work.turn.id,
            created_at=item.at,
            status="superseded",
            recovered=True,
        )
        self._rows.insert_above(above, said)

    def _resume(self, work: _Work, item: e.Logged, event: e.TurnResumed) -> None:
        turn = work.turn
        turn.attempt, turn.attempt_started_at, turn.asked, turn.spoke = event.attempt, item.at, False, False
        work.signs.attempt = work.at
        self._decide(work, event.rule, event.why, "resumed", event.attempt)
        work.row = None
        work.steps.stop_thinking()
        self._rows.move_down(work.answer)

    def _leave(self, work: _Work, item: e.Logged, event: e.TurnLeft) -> None:
        self._decide(work, event.rule, event.why, "left")

    def _end(self, work: _Work, item: e.Logged, event: e.TurnEnded) -> None:
        turn = work.turn
        if self._questions:
            self._questions = {asked: question for asked, question in self._questions.items() if question.turn_id != turn.id}
        turn.outcome, turn.error, turn.ended_at = event.outcome, event.error, item.at
        turn.unread_results = event.unread_results
        if event.rule:
            self._decide(work, event.rule, event.why, _DECIDED.get(event.outcome, "ended"))
        work.row, work.answer.status = None, "complete"
        work.steps.stop_thinking()

    def _decide(self, work: _Work, rule: str, why: str | None, decision: str, attempt: int | None = None) -> None:
        """On the turn, and on the row that tells of its interruption. A turn that was left is decided again."""
        work.turn.rule = rule
        if work.row is not None:
            told = notices.decision(rule, why) if why else f"rule {rule}"
            work.row.rule, work.row.decision, work.row.attempt = rule, f"{decision}: {told}", attempt

    def _branch(self, item: e.Logged, event: e.SessionBranched) -> None:
        told = notices.branched(event.title, event.left_out)
        self._rows.append(Message(id=f"branched.{item.seq}", role="notice", content=told, turn_id=None, created_at=item.at))

    def _wish(self, item: e.Logged, event: e.SessionResumed) -> None:
        if self.turns:
            self.turns[-1].asked = True

    def _stop(self, item: e.Logged, event: e.StopRequested) -> None:
        if work := self._works.get(event.turn_id):
            work.turn.stop_requested = True
            work.turn.stopped_because = work.turn.stopped_because or event.why

    def _await_trial(self, item: e.Logged, event: e.TrialAwaited) -> None:
        """Waiting for a trial does not age a turn."""
        if work := self._works.get(event.turn_id):
            work.turn.signed_at = item.at - event.aged_ms

    def _damage(self, item: e.Logged, event: e.Damaged) -> None:
        self._holes = True
        text = f"One record of this conversation could not be read: {event.reason}."
        self._rows.append(Message(id=f"notice.{item.seq}", role="notice", content=text, turn_id=item.turn_id, created_at=item.at))


def _begin_again(work: _Work, step: int, attempt: int) -> None:
    """A step that was interrupted is written from its beginning: the interruption stands before what is said now."""
    for row in work.cuts:
        if row.step == step and row.attempt is not None and attempt >= row.attempt:
            row.offset = 0


def _show_journal(row: Message, state: State, awaited: Awaited) -> None:
    """What a row waits for is shown only while it waits."""
    row.state, row.content = state, notices.journal(row.reason or "", state)
    row.awaits = awaited if state is State.RECOVERING else None


def _answered(question: Question, event: e.QuestionAnswered) -> Answered:
    call = question.call
    return Answered(
        question_id=question.question_id,
        form=question.form,
        text=question.text,
        name=None if call is None else call.name,
        arguments={} if call is None else call.arguments,
        by=event.by,
        verdict=event.verdict,
    )


def model_name(provider: str, model: str) -> str:
    """As it is configured: PROVIDER:NAME."""
    return f"{provider}:{model}" if provider and model else model


# What is done with an event of a turn, and with one that belongs to none. Kinds that are not here say nothing to people.
_IN_TURN: dict[type[e.Event], Callable[[Transcript, _Work, e.Logged, Any], None]] = {
    e.CauseTaken: Transcript._take,
    e.MessageWritten: Transcript._write_in_turn,
    e.Text: Transcript._say,
    e.Reasoning: Transcript._think,
    e.ModelResponded: Transcript._respond,
    e.ModelFailed: Transcript._fail,
    e.ContextCompacted: Transcript._compact,
    e.AgentStarted: Transcript._start_agent,
    e.AgentRead: Transcript._read_agent,
    e.ToolStarted: Transcript._call,
    e.ToolOutput: Transcript._put_out,
    e.ToolFinished: Transcript._finish,
    e.QuestionAsked: Transcript._ask,
    e.QuestionAnswered: Transcript._answer,
    e.QuestionClosed: Transcript._close,
    e.TurnInterrupted: Transcript._interrupt,
    e.TurnResumed: Transcript._resume,
    e.TurnLeft: Transcript._leave,
    e.TurnEnded: Transcript._end,
}
_FREE: dict[type[e.Event], Callable[[Transcript, e.Logged, Any], None]] = {
    e.MessageAccepted: Transcript._accept,
    e.MessageEdited: Transcript._edit,
    e.MessageRefused: Transcript._refuse,
    e.CauseRecorded: Transcript._record_cause,
    e.CauseDropped: Transcript._drop,
    e.ProcessStarted: Transcript._start_process,
    e.ProcessConsumed: Transcript._consume_process,
    e.ProcessEnded: Transcript._end_process,
    e.MessageWritten: Transcript._write,
    e.QuestionAnswered: Transcript._answer_held,
    e.SessionResumed: Transcript._wish,
    e.SessionBranched: Transcript._branch,
    e.StopRequested: Transcript._stop,
    e.TrialAwaited: Transcript._await_trial,
    e.JournalChanged: Transcript._change_journal,
    e.DeliveryPlanned: Transcript._plan_delivery,
    e.DeliveryChanged: Transcript._deliver,
    e.Damaged: Transcript._damage,
}
