"""The conversation as people and agents see it, folded from the log. The one place that knows what the events mean together."""

from collections.abc import Iterable
from typing import Any

import msgspec

from holdfast.core import events as e
from holdfast.core import notices
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.output import SHOWN_HEAD, SHOWN_TAIL, Ends
from holdfast.core.texts import Growing
from holdfast.core.turns import TABLE, Outcome, TurnState

# What only the turn's own process, or its user, can add to it. Nothing that a recovery writes is a sign of life.
_SIGNS = (e.TurnStarted, e.TurnAlive, e.Text, e.Reasoning, e.ToolStarted, e.ToolOutput, e.QuestionAsked, e.QuestionAnswered)
_DECIDED = {Outcome.CANCELLED: "cancelled", Outcome.SET_ASIDE: "set aside", Outcome.FAILED: "ended"}


class ToolCall(msgspec.Struct, kw_only=True):
    """`output` is its beginning and its end, where it is long; `output_omitted` says how much of it is missing there. `seq`: where in the
    log the call started.
    """

    call_id: str
    name: str
    arguments: dict[str, Any]
    effect: Effect
    attempt: int
    outcome: ToolOutcome | None = None
    result: str | None = None
    output: str = ""
    output_omitted: int = 0
    finished_in: int = 0
    seq: int = 0


class Message(msgspec.Struct, kw_only=True):
    """`status`: complete, partial, refused, or command (one to the gateway, which no agent sees). An interruption row also has `reason`,
    `state` and, once decided, `rule`, `decision` (in words) and `attempt`. `seq`: where in the log its text stands whole.
    """

    id: str
    role: str
    text: str
    turn_id: str | None
    created_at: int
    status: str = "complete"
    tool_calls: list[ToolCall] = []
    state: str | None = None
    reason: str | None = None
    rule: str | None = None
    decision: str | None = None
    attempt: int | None = None
    sender: str | None = None
    anchor: str | None = None
    seq: int = 0


class Turn(msgspec.Struct, kw_only=True):
    """`signed_at`: its last sign of life, None where its time is not known. `reason`: what cut it last. `asked`: a human asked to go on
    since. `unread_results`: it stands at, or ended with, tool results that nobody processed. `spoke`: its newest attempt has something
    of its own to show. `died`: the owner whose death interrupted it last, if one did.
    """

    id: str
    generation: int
    attempt: int
    cause: str
    causes: tuple[str, ...]
    started_at: int
    attempt_started_at: int
    state: TurnState = TurnState.RUNNING
    outcome: Outcome | None = None
    rule: str | None = None
    ended_at: int | None = None
    error: str | None = None
    stop_requested: bool = False
    signed_at: int | None = None
    reason: str | None = None
    asked: bool = False
    unread_results: bool = False
    spoke: bool = False
    died: int | None = None


class Question(msgspec.Struct, kw_only=True):
    question_id: str
    turn_id: str
    call_id: str
    text: str
    asked_at: int
    expires_at: int


def answer_id(turn_id: str) -> str:
    """A turn has one answer, however many attempts it takes, and its id is known from the first piece on."""
    return f"{turn_id}.answer"


class Transcript:
    """Apply events in the order of the log; read `messages`, `turns`, `question`, `queued` at any time. What comes in pieces is joined when
    it is read, so that folding costs as much as the log is long.
    """

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self.turns: list[Turn] = []
        self.queued: dict[str, Message] = {}
        self.question: Question | None = None
        self.seq = 0
        self.last_at = 0
        self._answer: Message | None = None
        self._cut: Message | None = None
        self._holes = False  # Something of the newest turn, or of what came after it, could not be read.
        self._text: Growing | None = None  # The text of `_answer`, while it comes in pieces that were not joined yet.
        self._calls: dict[str, ToolCall] = {}  # Those of the newest turn.
        self._outputs: dict[str, Ends] = {}  # What they have put out, while it was not joined yet.

    def extend(self, logged: Iterable[e.Logged]) -> "Transcript":
        for item in logged:
            self.apply(item)
        return self

    @property
    def messages(self) -> list[Message]:
        self._join()
        return self._messages

    @property
    def calls(self) -> list[ToolCall]:
        """The tool calls of the newest turn."""
        self._join()
        return self._answer.tool_calls if self._answer else []

    @property
    def request(self) -> Message | None:
        """The message that began the newest turn."""
        ids = self.turns[-1].causes if self.turns else ()
        return next((message for message in reversed(self._messages) if message.id in ids), None)

    @property
    def anchor(self) -> str | None:
        """What a reply of the newest turn hangs on."""
        return self.request.anchor if self.request else None

    @property
    def answer_text(self) -> str:
        """The newest turn's answer so far."""
        self._join()
        return self._answer.text if self._answer else ""

    def _join(self) -> None:
        if self._text is not None and self._answer is not None:
            self._answer.text = self._text.read()
        for call_id, output in self._outputs.items():
            call = self._calls[call_id]
            call.output, call.output_omitted = output.read()

    def apply(self, item: e.Logged) -> None:
        event = item.event
        self.seq, self.last_at = item.seq, item.at or self.last_at
        self._meet(item)
        self._move(item, event)
        self._sign(item, event)
        match event:
            case e.MessageAccepted():
                self.queued[event.message_id] = Message(
                    id=event.message_id,
                    role="user",
                    text=event.text,
                    turn_id=None,
                    created_at=item.at,
                    sender=event.sender,
                    anchor=event.anchor,
                    seq=item.seq,
                )
            case e.MessageRefused():
                if refused := self.queued.pop(event.message_id, None):
                    refused.status = "refused"
                    self._messages.append(refused)
            case e.SessionResumed():
                if self.turns:
                    self.turns[-1].asked = True
            case e.TurnStarted():
                self._start(item, event)
            case e.MessageWritten():
                self._write(item, event)
            case e.Text():
                self._say(item, event)
            case e.ToolStarted():
                self._call(item, event)
            case e.ToolOutput():
                if event.call_id in self._calls:
                    ends = self._outputs.setdefault(event.call_id, Ends(SHOWN_HEAD, SHOWN_TAIL))
                    ends.add(event.text, event.omitted)
            case e.ToolFinished():
                if call := self._calls.get(event.call_id):
                    call.outcome, call.result, call.finished_in = event.outcome, event.result, item.attempt
            case e.QuestionAsked():
                self.question = Question(
                    question_id=event.question_id,
                    turn_id=item.turn_id or "",
                    call_id=event.call_id,
                    text=event.text,
                    asked_at=item.at,
                    expires_at=event.expires_at,
                )
            case e.QuestionAnswered():
                self._answered(item, event)
            case e.StopRequested():
                if self.turns and self.turns[-1].id == event.turn_id:
                    self.turns[-1].stop_requested = True
            case e.TurnInterrupted():
                self._interrupt(item, event)
            case e.TurnResumed():
                self._resume(item, event)
            case e.TrialAwaited():
                if self.turns and self.turns[-1].id == event.turn_id:  # Waiting for a trial does not age a turn.
                    self.turns[-1].signed_at = item.at - event.aged_ms
            case e.TurnLeft():
                self._decide(item, event.rule, event.why, "left")
            case e.TurnEnded():
                self._end(item, event)
            case e.Damaged():
                self._holes = True
                self._notice(item, f"One record of this conversation could not be read: {event.reason}.")
            case _:
                pass

    def _move(self, item: e.Logged, event: e.Event) -> None:
        # Where a damaged record left a hole the table has no entry: the conversation stays readable.
        if turn := self._turn(item):
            turn.state = TABLE.get((turn.state, event.move), turn.state)

    def _sign(self, item: e.Logged, event: e.Event) -> None:
        turn = self._turn(item)
        if turn is None:
            return
        result = isinstance(event, e.ToolFinished | e.QuestionAnswered)
        made_up = isinstance(event, e.ToolFinished) and event.outcome is ToolOutcome.UNKNOWN
        if (result and not made_up) or isinstance(event, _SIGNS):
            turn.signed_at = item.at or None
        if isinstance(event, e.Text | e.Reasoning) or (isinstance(event, e.ToolFinished) and not made_up):
            turn.spoke = True
        if result:
            turn.unread_results = True
        elif isinstance(event, e.Text | e.Reasoning | e.ToolStarted):
            turn.unread_results = False

    def _turn(self, item: e.Logged) -> Turn | None:
        return self.turns[-1] if self.turns and self.turns[-1].id == item.turn_id else None

    def _meet(self, item: e.Logged) -> None:
        """A turn whose start is damaged begins with the first of its events that reads. None of them belongs to the turn before."""
        if item.turn_id is None or item.kind == e.TurnStarted.kind or self._turn(item):
            return
        if all(turn.id != item.turn_id for turn in self.turns):
            generation = self.turns[-1].generation + 1 if self.turns else 1
            self._start(item, e.TurnStarted(generation=generation, attempt=item.attempt, cause="message", causes=(), owner=0, epoch=0))
            self._holes = True

    def _start(self, item: e.Logged, event: e.TurnStarted) -> None:
        self._join()
        self._answer = self._cut = self._text = None
        self._calls, self._outputs = {}, {}
        self._holes = False
        self.turns.append(
            Turn(
                id=item.turn_id or "",
                generation=event.generation,
                attempt=event.attempt,
                cause=event.cause,
                causes=event.causes,
                started_at=item.at,
                attempt_started_at=item.at,
                signed_at=item.at or None,
            )
        )
        for message_id in event.causes:
            if message := self.queued.pop(message_id, None):
                message.turn_id = item.turn_id
                self._place(message)

    def _place(self, message: Message) -> None:
        """Above what the gateway said and heard while it waited: a notice stands below the message it is about."""
        place = len(self._messages)
        while place > 0 and self._messages[place - 1].turn_id is None and self._messages[place - 1].created_at >= message.created_at:
            place -= 1
        self._messages.insert(place, message)

    def _write(self, item: e.Logged, event: e.MessageWritten) -> None:
        if event.role == "assistant":
            answer = self._open_answer(item)
            answer.text, answer.status, answer.created_at, answer.seq = event.text, "complete", item.at, item.seq
            self._text = None
            return
        turn = self._turn(item)
        if turn is not None and event.role == "user":
            if event.message_id in turn.causes and any(message.id == event.message_id for message in reversed(self._messages)):
                return  # It stands there since the turn started.
            turn.causes = turn.causes or (event.message_id,)
        waiting = self.queued.pop(event.message_id, None)
        self._messages.append(
            Message(
                id=event.message_id,
                role=event.role,
                text=event.text,
                turn_id=item.turn_id,
                created_at=waiting.created_at if waiting else item.at,
                status="command" if event.role == "user" and turn is None else "complete",
                seq=item.seq,
            )
        )

    def _say(self, item: e.Logged, event: e.Text) -> None:
        answer = self._open_answer(item)
        if self._text is None:
            self._text = Growing(answer.text)
        self._text.write(event.offset, event.text)

    def _open_answer(self, item: e.Logged) -> Message:
        if self._answer is None:
            turn_id = item.turn_id or ""
            self._answer = Message(
                id=answer_id(turn_id),
                role="assistant",
                text="",
                turn_id=turn_id,
                created_at=item.at,
                status="partial",
                tool_calls=[],
            )
            self._messages.insert(self._behind(turn_id), self._answer)
        return self._answer

    def _behind(self, turn_id: str) -> int:
        """Behind what belongs to the turn and what was said before it started; before what was said since. The same place, whether the
        pieces of its answer are read or not.
        """
        messages = self._messages
        place = next((place for place in range(len(messages), 0, -1) if messages[place - 1].turn_id == turn_id), None)
        if place is None:
            return len(messages)
        started_at = self.turns[-1].started_at
        while place < len(messages) and messages[place].turn_id is None and messages[place].created_at <= started_at:
            place += 1
        return place

    def _call(self, item: e.Logged, event: e.ToolStarted) -> None:
        if call := self._calls.get(event.call_id):
            call.attempt, call.output, call.output_omitted, call.seq = item.attempt, "", 0, item.seq
            self._outputs.pop(event.call_id, None)
            return
        call = self._calls[event.call_id] = ToolCall(
            call_id=event.call_id,
            name=event.name,
            arguments=event.arguments,
            effect=event.effect,
            attempt=item.attempt,
            seq=item.seq,
        )
        self._open_answer(item).tool_calls.append(call)

    def _answered(self, item: e.Logged, event: e.QuestionAnswered) -> None:
        self.question = None
        if call := self._calls.get(event.call_id):
            call.outcome, call.result, call.finished_in = ToolOutcome.DONE, event.text, item.attempt
        said = self.queued.pop(event.message_id, None) if event.message_id else None
        self._messages.append(
            Message(
                id=event.message_id or f"{event.question_id}.answer",
                role="user",
                text=event.text,
                turn_id=item.turn_id,
                created_at=said.created_at if said else item.at,
                seq=item.seq,
            )
        )

    def _interrupt(self, item: e.Logged, event: e.TurnInterrupted) -> None:
        if turn := self._turn(item):
            turn.reason, turn.asked, turn.died = event.reason, False, event.died
        if event.written > 0:
            self._open_answer(item)  # Also where its pieces are not read: it stands above the row that tells of its interruption.
        kept = event.written > 0 or bool(self._calls)
        self._cut = Message(
            id=f"{item.turn_id}.cut.{item.attempt}",
            role="interruption",
            text=notices.interrupted(event.reason, written=event.written > 0, worked=bool(self._calls), holes=self._holes),
            turn_id=item.turn_id,
            created_at=item.at,
            state="recovered" if kept else "neutral",
            reason=event.reason,
        )
        self._messages.append(self._cut)

    def _resume(self, item: e.Logged, event: e.TurnResumed) -> None:
        if turn := self._turn(item):
            turn.attempt, turn.attempt_started_at, turn.asked, turn.spoke = event.attempt, item.at, False, False
        self._decide(item, event.rule, event.why, "resumed", event.attempt)
        self._cut = None
        if self._answer is not None:  # The answer goes on below whatever came between its attempts.
            self._messages.remove(self._answer)
            self._messages.append(self._answer)

    def _end(self, item: e.Logged, event: e.TurnEnded) -> None:
        self.question = None
        turn = self._turn(item)
        if turn is None:
            return
        turn.outcome, turn.error, turn.ended_at = event.outcome, event.error, item.at
        turn.unread_results = event.unread_results
        if event.rule:
            self._decide(item, event.rule, event.why, _DECIDED.get(event.outcome, "ended"))
        self._cut = None
        if self._answer is not None:
            self._answer.status = "complete"

    def _decide(self, item: e.Logged, rule: str, why: str | None, decision: str, attempt: int | None = None) -> None:
        """On the turn, and on the row that tells of its interruption. A turn that was left is decided again."""
        if turn := self._turn(item):
            turn.rule = rule
        if self._cut is not None:
            told = notices.decision(rule, why) if why else f"rule {rule}"
            self._cut.rule, self._cut.decision, self._cut.attempt = rule, f"{decision}: {told}", attempt

    def _notice(self, item: e.Logged, text: str) -> None:
        self._messages.append(Message(id=f"notice.{item.seq}", role="notice", text=text, turn_id=item.turn_id, created_at=item.at))
