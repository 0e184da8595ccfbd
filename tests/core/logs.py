"""Logs as the store writes them, for tests of what is folded from them."""

import itertools
import random
from collections.abc import Iterable
from typing import Any

import msgspec
from hypothesis import strategies as st

from holdfast.core import events as e
from holdfast.core import turns
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.events import Event, Logged, encode
from holdfast.core.messages import answer_id
from holdfast.core.transcript import Transcript
from holdfast.core.turns import Outcome, TurnState


class Log:
    """Writes a log as the store would. `turn`, `attempt` and `epoch` stand where the events say: a turn that continues has a new lease."""

    def __init__(self) -> None:
        self.items: list[Logged] = []
        self.turn: str | None = None
        self.attempt = self.position = self.epoch = 0

    def free(self, *events: Event) -> "Log":
        for event in events:
            self._write(event, None)
        return self

    def in_turn(self, *events: Event) -> "Log":
        for event in events:
            if isinstance(event, e.TurnStarted | e.TurnResumed):
                self.attempt = event.attempt
                self.epoch, self.position = self.epoch + 1, 0
            self._write(event, self.turn)
            self.position += 1
        return self

    def _write(self, event: Event, turn: str | None) -> None:
        seq = len(self.items) + 1
        logged = Logged(
            session_id="s",
            seq=seq,
            turn_id=turn,
            attempt=self.attempt if turn else 0,
            position=self.position if turn else 0,
            kind=event.kind,
            at=1000 + seq,
            body=encode(event),
            epoch=self.epoch if turn else None,
        )
        self.items.append(logged)

    def said(self, message_id: str, text: str, **more: Any) -> "Log":
        return self.free(e.MessageAccepted(message_id=message_id, content=text, **more))

    def started(self, turn: str, message_id: str, text: str, generation: int = 1) -> "Log":
        self.turn = turn
        started = e.TurnStarted(generation=generation, attempt=1, cause="message", causes=(message_id,), owner=1, epoch=1)
        return self.in_turn(started, e.MessageWritten(message_id=message_id, role="user", content=text))

    def ended(self, text: str, outcome: Outcome = Outcome.COMPLETED) -> "Log":
        written = e.MessageWritten(message_id=answer_id(self.turn or ""), role="assistant", content=text)
        return self.in_turn(written, e.TurnEnded(outcome=outcome))

    def cut(self, reason: str = "crash", *, written: int = 0, restarts: int = 1) -> "Log":
        return self.in_turn(e.TurnInterrupted(reason=reason, restarts=restarts, written=written))

    def resumed(self, attempt: int, rule: str = "R9", why: str | None = None) -> "Log":
        return self.in_turn(e.TurnResumed(attempt=attempt, rule=rule, reason="crash", why=why))

    def left(self, rule: str = "R7", why: str | None = None) -> "Log":
        return self.in_turn(e.TurnLeft(rule=rule, why=why))

    def without(self, *lost: int) -> list[Logged]:
        """The log as it is read when these sequences are damaged."""
        gone = {
            "turn_id": None,
            "attempt": 0,
            "position": 0,
            "epoch": None,
            "kind": "damaged",
            "at": 0,
            "body": encode(e.Damaged(reason="x")),
        }
        return [msgspec.structs.replace(item, **gone) if item.seq in lost else item for item in self.items]

    def records(self) -> list[Logged]:
        return [item for item in self.items if not item.event.stream]


def fold(items: Log | Iterable[Logged]) -> Transcript:
    return Transcript().extend(items.items if isinstance(items, Log) else items)


def shown(transcript: Transcript) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in transcript.messages]


def text(piece: str, offset: int, step: int = 0) -> e.Text:
    return e.Text(offset=offset, text=piece, step=step)


CALL = e.ToolStarted(call_id="c1", name="terminal", arguments={}, effect=Effect.UNSAFE)


def begun() -> Log:
    return Log().said("m1", "hi").started("t1", "m1", "hi")


def simple() -> Log:
    return begun().in_turn(text("one ", 0), text("two", 4)).ended("one two")


def asked() -> Log:
    """As version 0.1 asked: the question ends the attempt."""
    log = begun().in_turn(text("Well. ", 0))
    log.in_turn(e.ToolStarted(call_id="c1", name="ask", arguments={"question": "Which?"}, effect=Effect.PURE))
    return log.in_turn(e.QuestionAsked(question_id="q1", call_id="c1", content="Which?", expires_at=99))


# What happens, and how often beside the rest.
HAPPENS = (
    {"say": 3, "cause": 1, "start": 5, "text": 8, "again": 2, "respond": 3, "think": 1, "alive": 1, "tool": 3, "output": 3, "finish": 3}
    | {"lost": 1, "cut": 3, "leave": 1, "resume": 5, "wish": 1, "ask": 1, "question": 1, "wait": 2, "answer": 3, "take": 2, "end": 2}
    | {"stop": 1, "notice": 1, "refuse": 1, "drop": 1, "command": 1}
)


def steps_of(seed: int, size: int) -> list[str]:
    """Drawn by a seed: left to itself, the search for examples hardly ever continues a turn that it interrupted."""
    return ["say", "start", *random.Random(seed).choices([*HAPPENS], [*HAPPENS.values()], k=size)]


STEPS = st.builds(steps_of, st.integers(0, 2**32), st.integers(0, 80))


class Writer:
    """Writes a log step by step, as the store allows it and the gateway writes it. What cannot be done now is not done."""

    def __init__(self) -> None:
        self.log = Log()
        self.state = TurnState.NONE
        self.waiting: list[str] = []
        self._ids = itertools.count(1)
        self._responses = 0

    def new(self, letter: str) -> str:
        return f"{letter}{next(self._ids)}"

    def add(self, *events: Event) -> None:
        for event in events:
            self.state = turns.after(self.state, event)
            self.log.in_turn(event)

    @property
    def found(self) -> Transcript:
        return fold(self.log)

    @property
    def length(self) -> int:
        """Of the text of the step that is open."""
        return next((len(step.text.read()) for step in self.found.steps if step.number == self._responses), 0)

    def step(self, step: str) -> None:
        running, idle = self.state is TurnState.RUNNING, self.state in (TurnState.NONE, TurnState.ENDED)
        match step:
            case "text" | "again" | "think" | "alive" | "respond" if running:
                self._speak(step)
            case "tool" | "output" | "finish" | "lost" | "notice" if running:
                self._work(step)
            case "ask" | "question" | "wait" if running:
                self._ask(step)
            case "answer" if not idle and self.found.questions:
                first, *others = self.found.questions
                said: dict[str, Any] = {"verdict": "approve", "scope": "once"} if first.form == "approval" else {}
                self.add(e.QuestionAnswered(question_id=first.question_id, call_id=first.call_id, content="a", last=not others, **said))
            case "start" if idle and self.waiting:
                self._start(self.waiting.pop(0))
            case "take" if running and self.waiting:
                self.add(e.CauseTaken(cause_id=self.waiting.pop(), **self._here()))
            case "leave" if self.state in (TurnState.INTERRUPTED, TurnState.WAITING):
                self.add(e.TurnLeft(rule=f"R{next(self._ids) % 10}", why="why"))
            case "cut" if running:
                self.add(e.TurnInterrupted(reason="crash", restarts=1, written=len(self.found.answer_text)))
            case "resume" if self.state in (TurnState.INTERRUPTED, TurnState.ANSWERED):
                self.add(e.TurnResumed(attempt=self.log.attempt + 1, rule="R9", reason="crash"))
            case "end" if not idle:
                self._end()
            case "stop" if not idle:
                why = "interrupted by a new message" if len(self.log.items) % 2 else None
                self.log.free(e.StopRequested(turn_id=self.log.turn or "", by="owner", why=why))
            case _:
                self._from_outside(step)

    def _here(self) -> dict[str, int]:
        """Where in the answer something stands that comes now."""
        return {"step": self._responses - 1} if self._responses else {"offset": self.length}

    def _start(self, cause: str) -> None:
        generation = 1 + len(self.found.turns)
        self.log.turn, self._responses = self.new("t"), 0
        self.add(e.TurnStarted(generation=generation, attempt=1, cause="message", causes=(cause,), owner=1, epoch=1))
        if cause.startswith("m"):
            self.add(e.MessageWritten(message_id=cause, role="user", content=f"text of {cause}"))

    def _speak(self, step: str) -> None:
        match step:
            case "text":
                self.add(text(f"<{self.new('')}>", self.length, self._responses))
            case "again":
                self.add(text(f"<{self.new('')}>", 0, self._responses))
            case "respond":
                said = next((step.text.read() for step in self.found.steps if step.number == self._responses), "")
                used = e.Usage(input=len(self.log.items), output=3, cached=1)
                cost = len(self.log.items) if len(self.log.items) % 3 else None
                self.add(e.ModelResponded(step=self._responses, text=said, usage=used, cost=cost, provider="chat", model="m"))
                self._responses += 1
            case "think" if len(self.log.items) % 3 == 0 and len(self.found.turns) > 1:
                asked: dict[str, Any] = (
                    {"usage": e.Usage(input=9, output=1), "model": "m"} if len(self.log.items) % 2 else {"problem": "it failed."}
                )
                self.add(e.ContextCompacted(through=len(self.found.turns) - 1, summary="" if "problem" in asked else "s", **asked))
            case "think":
                self.add(e.Reasoning(text="hm", step=self._responses))
            case "alive" if len(self.log.items) % 2:
                self.add(e.ModelFailed(step=self._responses, tries=1, error="busy", why="It is overloaded.", model="m", retry_at=99))
            case "alive":
                self.add(e.TurnAlive())

    def _call(self, name: str) -> str:
        call_id = self.new("c")
        call = e.ToolStarted(call_id=call_id, name=name, arguments={}, effect=Effect.PURE)
        self.add(msgspec.structs.replace(call, **self._here()))
        return call_id

    def _work(self, step: str) -> None:
        if step == "tool":
            self._call("n")
        elif calls := self.found.calls:
            if step == "output":
                self.add(e.ToolOutput(call_id=calls[-1].call_id, text="o"))
            elif step == "notice":
                self.add(e.MessageWritten(message_id=self.new("n"), role="notice", content="n"))
            else:
                outcome = ToolOutcome.DONE if step == "finish" else ToolOutcome.UNKNOWN
                self.add(e.ToolFinished(call_id=calls[-1].call_id, outcome=outcome, content="r"))

    def _ask(self, step: str) -> None:
        open_now = tuple(question.question_id for question in self.found.questions)
        if step == "wait":
            if open_now:
                self.add(e.TurnWaiting(question_ids=open_now))
        elif step == "question" and len(self.log.items) % 2:
            call = e.ProposedCall(name="deed", arguments={"n": len(open_now)})
            about: dict[str, Any] = {"call": call, "fingerprint": "f", "pattern": "deed"}
            self.add(
                e.QuestionAsked(
                    question_id=self.new("q"),
                    call_id=self.new("c"),
                    content="?",
                    expires_at=99,
                    form="approval",
                    ends_attempt=False,
                    **about,
                )
            )
        elif step == "question" or not open_now:  # Version 0.1 asked one at a time.
            call_id, ends = self._call("ask"), step == "ask"
            self.add(e.QuestionAsked(question_id=self.new("q"), call_id=call_id, content="?", expires_at=99, ends_attempt=ends))

    def _end(self) -> None:
        if answer := self.found.answer_text:
            self.add(e.MessageWritten(message_id=answer_id(self.log.turn or ""), role="assistant", content=answer))
        cut, unread = self.state is TurnState.INTERRUPTED, self.found.turns[-1].unread_results
        how = Outcome.SET_ASIDE if cut else Outcome.FAILED if unread else Outcome.COMPLETED
        self.add(e.TurnEnded(outcome=how, rule="R6" if cut else None, why="why" if cut else None, unread_results=unread))

    def _from_outside(self, step: str) -> None:
        match step:
            case "say":
                self.waiting.append(self.new("m"))
                who = {"sender": "telegram:7", "sender_name": "Ana"} if len(self.log.items) % 3 == 0 else {}
                self.log.said(self.waiting[-1], f"text of {self.waiting[-1]}", **who)
            case "cause":
                self.waiting.append(self.new("k"))
                self.log.free(e.CauseRecorded(cause_id=self.waiting[-1], what="process", content="It ended."))
            case "wish":
                self.log.free(e.SessionResumed(by="owner"))
            case "refuse" if self.waiting and self.waiting[-1].startswith("m"):
                self.log.free(e.MessageRefused(message_id=self.waiting.pop(), reason="reset"))
            case "drop" if self.waiting and self.waiting[-1].startswith("k"):
                self.log.free(e.CauseDropped(cause_id=self.waiting.pop(), reason="stale"))
            case "command":
                self.log.free(e.MessageWritten(message_id=self.new("m"), role="user", content="/status"))


def story(steps: list[str]) -> Log:
    writer = Writer()
    for step in steps:
        writer.step(step)
    return writer.log
