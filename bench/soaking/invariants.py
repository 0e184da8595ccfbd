"""What must be true of the store of a soak that has come to rest: nothing lost, nothing doubled, and every cut turn the work of a kill."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import msgspec

from bench import prepared
from bench.soaking.clients import seen
from bench.soaking.notebook import Notebook, Sent
from holdfast.core import events as e
from holdfast.core.effects import ToolOutcome
from holdfast.core.turns import Outcome
from holdfast.store.projection import DERIVED
from holdfast.store.sqlite.connection import connect, fetch
from holdfast.store.sqlite.store import DATABASE
from holdfast.store.sqlite.tx import rebuild
from holdfast.web import frames

SKEW_MS = 1000
# By which a turn may be given up on, and why that is no loss: its user was told, and can go on.
GIVEN_UP = ("R2", "R7")


class Turn(msgspec.Struct):
    turn_id: str
    session_id: str
    causes: tuple[str, ...]
    events: list[tuple[e.Logged, e.Event]]

    def of(self, kind: type[e.Event]) -> list[e.Event]:
        return [event for _, event in self.events if isinstance(event, kind)]


class Record(msgspec.Struct):
    """Everything the store has of a soak."""

    log: list[e.Logged]
    turns: dict[str, Turn]

    @property
    def cuts(self) -> list[tuple[e.Logged, int]]:
        """Each with the owner that ran the turn. Whoever finds it cut takes it over first, and then says so."""
        found: list[tuple[e.Logged, int]] = []
        runs: dict[str, list[int]] = defaultdict(list)
        for item in self.log:
            match item.event:
                case e.TurnStarted(owner=owner) | e.TurnTaken(owner=owner):
                    runs[item.turn_id or ""].append(owner)
                case e.TurnInterrupted():
                    found.append((item, runs[item.turn_id or ""][-2:][0]))
        return found

    @property
    def rules(self) -> Counter[str]:
        decided = (e.TurnResumed, e.TurnLeft, e.TurnEnded)
        return Counter(event.rule for item in self.log if isinstance(event := item.event, decided) and event.rule)

    @property
    def suspended(self) -> int:
        return sum(isinstance(event := item.event, e.SessionChanged) and event.suspended is True for item in self.log)


def read(home: Path) -> Record:
    log = prepared.log(home)
    turns: dict[str, Turn] = {}
    for item in log:
        event = item.event
        if item.turn_id is None:
            continue
        if isinstance(event, e.TurnStarted):
            turns[item.turn_id] = Turn(item.turn_id, item.session_id, event.causes, [])
        turns[item.turn_id].events.append((item, event))
    return Record(log, turns)


def given_up(notes: Notebook, record: Record) -> set[str]:
    """What was said and is not answered, because a rule says so."""
    names = {sent.message_id: name for name, sent in notes.sent.items()}
    turns = (turn for turn in record.turns.values() if _by_rule(turn))
    return {names[cause] for turn in turns for cause in turn.causes if cause in names}


def _by_rule(turn: Turn) -> bool:
    ends = [event for event in turn.of(e.TurnEnded) if isinstance(event, e.TurnEnded)]
    rules = {rule for _, event in turn.events if (rule := getattr(event, "rule", None))}
    return any(end.outcome is not Outcome.COMPLETED for end in ends) and bool(rules.intersection(GIVEN_UP))


def check(home: Path, lines: Path, notes: Notebook, record: Record) -> list[str]:
    """What is wrong, in sentences."""
    return [
        *_messages(notes, record),
        *_answers(notes, record),
        *_commands(notes, record, Counter(lines.read_text().split()) if lines.exists() else Counter()),
        *_cuts(notes, record),
        *_shown(notes, record),
        *_catalog(home),
    ]


def _messages(notes: Notebook, record: Record) -> Iterator[str]:
    """P1, P6: acknowledged means one turn that ended, or one refusal; no turn for what nobody said."""
    accepted = Counter(event.message_id for item in record.log if isinstance(event := item.event, e.MessageAccepted))
    reached = Counter(message_id for turn in record.turns.values() for message_id in turn.causes)
    refused = Counter(event.message_id for item in record.log if isinstance(event := item.event, e.MessageRefused))
    for name, sent in notes.sent.items():
        if sent.message_id is None:
            yield f"{name} was never acknowledged, in {sent.tries} tries"
        elif accepted[sent.message_id] != 1:
            yield f"{name} was acknowledged and is {accepted[sent.message_id]} times in the store"
        elif reached[sent.message_id] + refused[sent.message_id] != 1:
            yield f"{name} reached {reached[sent.message_id]} turns and {refused[sent.message_id]} refusals"
    known = {sent.message_id for sent in notes.sent.values()}
    for message_id in (accepted.keys() | reached.keys()) - known:
        yield f"{message_id} was accepted, and nobody had it acknowledged"
    for turn in record.turns.values():
        ends = turn.of(e.TurnEnded)
        if len(ends) != 1 or turn.events[-1][1] is not ends[0]:
            yield f"{turn.turn_id} of {turn.session_id} has {len(ends)} ends; its last event is {turn.events[-1][0].kind}"


def _answers(notes: Notebook, record: Record) -> Iterator[str]:
    """One answer each, whole, however many attempts it took. What was given up on was so by a rule that says so."""
    said = {sent.message_id: sent for sent in notes.sent.values()}
    for turn in record.turns.values():
        answers = [event.text for event in turn.of(e.MessageWritten) if isinstance(event, e.MessageWritten) and event.role == "assistant"]
        ends = [event for event in turn.of(e.TurnEnded) if isinstance(event, e.TurnEnded)]
        sent = said.get(turn.causes[0]) if len(turn.causes) == 1 else None
        if sent is None or not ends:
            continue  # Said above.
        name = f"{turn.turn_id} ({sent.saying.client_id})"
        if ends[0].outcome is not Outcome.COMPLETED:
            if not _by_rule(turn):
                yield f"{name} ended as {ends[0].outcome}: {ends[0].error or ends[0].why}"
        elif len(answers) != 1:
            yield f"{name} was answered {len(answers)} times"
        elif sent.saying.answer is not None and answers[0] != sent.saying.answer:
            yield f"{name} was answered with {answers[0][-80:]!r}, not with {sent.saying.answer[-80:]!r}"


def _commands(notes: Notebook, record: Record, written: Counter[str]) -> Iterator[str]:
    """P5: a command runs once. One that was cut may have run or not, and is never said to be done."""
    results: dict[str, list[ToolOutcome]] = defaultdict(list)
    started: Counter[str] = Counter()
    said = {sent.message_id: sent for sent in notes.sent.values()}
    for turn in record.turns.values():
        sent: Sent | None = said.get(turn.causes[0])
        if sent is None or sent.saying.line is None:
            continue
        for _, event in turn.events:
            if isinstance(event, e.ToolStarted):
                started[sent.saying.line] += 1
            elif isinstance(event, e.ToolFinished):
                results[sent.saying.line].append(event.outcome)
    for line, times in started.items():
        if times != 1 or len(results[line]) != 1:
            yield f"the command of {line} was started {times} times and has the results {results[line]}"
        elif results[line] == [ToolOutcome.FAILED]:
            yield f"the command of {line} failed"
        elif written[line] > 1 or (results[line] == [ToolOutcome.DONE] and written[line] != 1):
            yield f"the command of {line} is {results[line][0]} and ran {written[line]} times"
    for line in written.keys() - started.keys():
        yield f"the command of {line} ran and is not on record"


def _cuts(notes: Notebook, record: Record) -> Iterator[str]:
    """Whoever ran a turn that was cut had been killed, before."""
    killed = notes.killed
    for item, owner in record.cuts:
        kill = killed.get(owner)
        when = f"at {item.at / 1000 - notes.began:.1f} s"
        if kill is None:
            yield f"{when} {item.turn_id} was cut in life {owner}, which nobody had ended"
        elif item.at + SKEW_MS < 1000 * kill.at:
            yield f"{when} {item.turn_id} was cut in life {owner}, before it was killed"


def _shown(notes: Notebook, record: Record) -> Iterator[str]:
    """P7: every reader was shown what is stored, all of it, each event once."""
    stored: dict[str, list[int]] = defaultdict(list)
    for item in record.log:
        _, name, data, *_ = frames.encode(item).split(b"\n")
        stored[item.session_id].append(seen(name.removeprefix(b"event: ").decode(), data.removeprefix(b"data: ")))
    for session_id, shown in notes.shown.items():
        if shown != stored[session_id]:
            same = sum(1 for one, other in zip(shown, stored[session_id], strict=False) if one == other)
            yield f"the reader of {session_id} was shown {len(shown)} events, {same} as stored; the store has {len(stored[session_id])}"


def _catalog(home: Path) -> Iterator[str]:
    """The catalog follows from the log alone."""
    db = connect(home / DATABASE)
    try:
        before = {table: sorted(fetch(db, f"SELECT * FROM {table}"), key=repr) for table in DERIVED}
        db.execute("BEGIN IMMEDIATE")
        rebuild(db)
        after = {table: sorted(fetch(db, f"SELECT * FROM {table}"), key=repr) for table in DERIVED}
        db.execute("ROLLBACK")
    finally:
        db.close()
    for table in DERIVED:
        if before[table] != after[table]:
            yield f"the catalog's {table} is not what the log says"
