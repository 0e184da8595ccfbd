"""What must be true of all conversations once they have come to rest, from what HTTP shows of them. What is wrong, in sentences."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import msgspec

from bench.oracle.account import Account, Kind, Said

# Decisions that end a turn without an answer, each of which its user was told of.
GIVEN_UP = ("R2", "R4", "R6")


class Shown(msgspec.Struct, frozen=True):
    """One event, as a reader sees it. `mark` stands for its bytes."""

    id: str
    name: str
    data: dict[str, Any]
    mark: int = 0

    @property
    def turn_id(self) -> str:
        return str(self.data.get("turn_id"))


Logs = dict[str, list[Shown]]


class Turn(msgspec.Struct):
    id: str
    session_id: str
    causes: list[str]
    events: list[Shown]

    def of(self, name: str) -> list[dict[str, Any]]:
        return [event.data for event in self.events if event.name == name]

    @property
    def outcome(self) -> str | None:
        ends = self.of("turn.ended")
        return str(ends[0]["outcome"]) if ends else None

    @property
    def rules(self) -> set[str]:
        return {str(event.data["rule"]) for event in self.events if event.data.get("rule")}


def judge(account: Account, logs: Logs, lines: Counter[str]) -> list[str]:
    turns = _turns(logs)
    return [
        *account.faults,
        *_messages(account, logs, turns),
        *_order_of_turns(logs),
        *_ends(account, logs, turns),
        *_effects(account, logs, turns, lines),
    ]


def _turns(logs: Logs) -> dict[str, Turn]:
    turns: dict[str, Turn] = {}
    for session_id, log in logs.items():
        for event in log:
            if event.name == "turn.started":
                turns[event.turn_id] = Turn(event.turn_id, session_id, list(event.data["causes"]), [])
            if event.turn_id in turns:
                turns[event.turn_id].events.append(event)
    return turns


def _messages(account: Account, logs: Logs, turns: dict[str, Turn]) -> Iterator[str]:
    """P1, P6: acknowledged means stored once, and one turn, one refusal or one question answered; no turn for what nobody said."""
    accepted: Counter[str] = Counter()
    where: dict[str, str] = {}
    texts: dict[str, str] = {}
    ends: Counter[str] = Counter()
    known = account.by_text()
    for session_id, log in logs.items():
        for event in log:
            message_id = str(event.data.get("message_id"))
            if event.name == "message.accepted":
                accepted[message_id] += 1
                where[message_id], texts[message_id] = session_id, str(event.data["text"])
            elif event.name == "message.refused":
                ends[message_id] += 1
            elif event.name == "question.answered" and event.data.get("message_id"):
                if message_id not in where:
                    accepted[message_id] += 1
                    where[message_id], texts[message_id] = session_id, str(event.data["text"])
                ends[message_id] += 1
    for turn in turns.values():
        ends.update(turn.causes)
        if not turn.causes:
            yield f"{turn.id} was started by nothing"
    for message_id, text in texts.items():
        if text not in known:
            yield f"{message_id} was accepted, and nobody had said it: {text[:80]!r}"
    again = Counter(texts.values())
    for said in account.said.values():
        if said.message_id is None:
            if again[said.text] > 1:
                yield f"{said.name} was never acknowledged and accepted {again[said.text]} times"
        elif (accepted[said.message_id], again[said.text], texts.get(said.message_id)) != (1, 1, said.text):
            yield f"{said.name} was acknowledged as {said.message_id} and is {accepted[said.message_id]} times in the log"
        elif where[said.message_id] != said.session_id:
            yield f"{said.name} was acknowledged for {said.session_id} and is in {where[said.message_id]}"
    for message_id in accepted:
        if ends[message_id] != 1:
            yield f"{message_id} ({texts[message_id][:40]!r}) has {ends[message_id]} turns, refusals and questions; it must have one"


def _order_of_turns(logs: Logs) -> Iterator[str]:
    """P2: one turn at a time; each is started by the oldest message that waits, and ends once."""
    for session_id, log in logs.items():
        waiting: list[str] = []
        running: str | None = None
        for event in log:
            match event.name:
                case "message.accepted":
                    waiting.append(str(event.data["message_id"]))
                case "message.refused" | "question.answered":
                    if event.data.get("message_id") in waiting:
                        waiting.remove(str(event.data["message_id"]))
                case "turn.started":
                    if running is not None:
                        yield f"{event.turn_id} of {session_id} started while {running} was not over"
                    for message_id in event.data["causes"]:
                        if waiting[:1] != [message_id]:
                            yield f"{event.turn_id} of {session_id} took {message_id}; {waiting[:1]} was next"
                        waiting = [each for each in waiting if each != message_id]
                    running = event.turn_id
                case "turn.ended":
                    if event.turn_id != running:
                        yield f"{event.turn_id} of {session_id} ended while {running} was running"
                    running = None
        if running is not None or waiting:
            yield f"{session_id} came to rest with {running} running and {len(waiting)} waiting"


def _ends(account: Account, logs: Logs, turns: dict[str, Turn]) -> Iterator[str]:
    """P3, A21: each turn has the end that its message and its people asked for."""
    said_by_id = {said.message_id: said for said in account.said.values() if said.message_id}
    by_text = account.by_text()
    stopped = {str(order.said["turn_id"]) for order in account.orders if order.what == "stop" and order.said and "turn_id" in order.said}
    for turn_id in stopped:
        if turn_id in turns and turns[turn_id].outcome != "cancelled":
            yield f"a stop of {turn_id} was acknowledged, and it ended as {turns[turn_id].outcome}"
    named = {event.turn_id for log in logs.values() for event in log if event.name == "stop.requested"}
    unnamed = sum(order.what == "stop" and (order.said is None or "turn_id" not in order.said) for order in account.orders)
    spare = unnamed + account.tried("reset", "resume", "delete")
    for turn_id in named - stopped:
        spare -= 1
        if spare < 0:
            yield f"{turn_id} was stopped, and nobody had asked for it"
    for turn in turns.values():
        said = said_by_id.get(turn.causes[0]) or by_text.get(_request(turn))
        if turn.outcome == "cancelled" and turn.id not in named:
            yield f"{turn.id} was cancelled without a stop"
        elif turn.outcome == "set_aside" and not turn.rules & {*GIVEN_UP, "R1", "R7", "R8"}:
            yield f"{turn.id} was set aside by {turn.rules}"
        elif turn.outcome == "failed" and (said is None or said.kind is not Kind.FAIL) and "R4" not in turn.rules:
            yield f"{turn.id} ({said.text if said else ''}) failed: {turn.of('turn.ended')[0].get('error')}"
        elif turn.outcome == "completed" and said is not None:
            yield from _answer(turn, said)


def _request(turn: Turn) -> str:
    written = [event for event in turn.of("message.written") if event["role"] == "user"]
    return str(written[0]["text"]) if written else ""


def _answer(turn: Turn, said: Said) -> Iterator[str]:
    answers = [str(event["text"]) for event in turn.of("message.written") if event["role"] == "assistant"]
    if len(answers) != 1:
        yield f"{said.name} has {len(answers)} answers"
    elif said.answer is not None and answers[0] != said.answer:
        yield f"{said.name} was answered with {answers[0][-60:]!r}, not with {said.answer[-60:]!r}"
    elif (
        said.kind is Kind.ASK
        and turn.of("question.answered")
        and f"You answered: {turn.of('question.answered')[0]['text']}" not in answers[0]
    ):
        yield f"{said.name} was answered with {answers[0][-60:]!r}"


def _effects(account: Account, logs: Logs, turns: dict[str, Turn], lines: Counter[str]) -> Iterator[str]:
    """P5: a command runs once; one whose outcome is unknown may have run or not."""
    names = {said.text: said.name for said in account.said.values() if said.kind is Kind.RUN}
    started: dict[str, list[str]] = defaultdict(list)
    for turn in turns.values():
        name = names.get(_request(turn))
        calls = turn.of("tool.started")
        if name is None or not calls:
            continue
        started[name] += [str(event["outcome"]) for event in turn.of("tool.finished")]
        if len(calls) != 1 or len(turn.of("tool.finished")) != 1:
            yield f"the command of {name} was started {len(calls)} times and has {len(turn.of('tool.finished'))} results"
    for name, outcomes in started.items():
        if lines[name] > 1 or (outcomes == ["done"] and lines[name] != 1):
            yield f"the command of {name} is {outcomes} and ran {lines[name]} times"
    for name in lines.keys() - started.keys():
        yield f"the command of {name} ran and is not on record"
