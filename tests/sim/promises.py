"""The promises of Holdfast as invariants over everything that is left when a simulated world has come to rest.

Each function checks one promise against the log, the catalog and what was outside: the chat platform, the tools' effects,
the people. It raises an AssertionError that names the promise and what broke it.
"""

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import NamedTuple, TypeVar

import apsw

from holdfast.core import events as e
from holdfast.core import keys, turns
from holdfast.core.delivery import MAX_TRIES, REPEAT_LABEL, DeliveryState
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.transcript import Transcript
from holdfast.core.turns import Outcome, TurnState
from holdfast.store.catalog import DERIVED, rebuild
from holdfast.store.connection import connect, fetch
from tests.fakes.agents_sim import whole_answer
from tests.fakes.power import Disk
from tests.sim.disk import DATABASE
from tests.sim.people import as_shown
from tests.sim.world import World

EFFECTS = tuple(str(effect) for effect in Effect)
E = TypeVar("E", bound=e.Event)


class Entry(NamedTuple):
    """An event of the log, in its place and decoded."""

    item: e.Logged
    event: e.Event


class Entries(list[Entry]):
    def of(self, kind: type[E]) -> list[tuple[e.Logged, E]]:
        return [(item, event) for item, event in self if isinstance(event, kind)]


class TurnRecord:
    """One turn as the log has it."""

    def __init__(self, session: "SessionRecord", first: e.Logged, started: e.TurnStarted) -> None:
        self.session, self.id, self.started = session, first.turn_id or "", started
        self.log = Entries()
        self.text = ""
        self.answer: e.MessageWritten | None = None
        self.end: e.TurnEnded | None = None
        self.calls: dict[str, e.ToolStarted] = {}
        self.results: dict[str, tuple[ToolOutcome, str]] = {}
        self.stopped_at: int | None = None


class SessionRecord:
    def __init__(self, created: e.SessionCreated) -> None:
        self.session_id, self.session_key = created.session_id, created.session_key
        self.chats = keys.parse(created.session_key).platform != "web"
        self.log = Entries()
        self.turns: list[TurnRecord] = []


class Evidence:
    """The log of a world at rest, read from a copy of its disk by SQL alone."""

    def __init__(self, world: World, db: apsw.Connection) -> None:
        self.world, self.db = world, db
        self.sessions: dict[int, SessionRecord] = {}
        self.log = Entries()
        rows = fetch(db, "SELECT id, session, seq, turn, attempt, position, kind, at, body FROM event ORDER BY id")
        for id_, session, seq, turn, attempt, position, kind, at, body in rows:
            event = e.decode(kind, body)
            if isinstance(event, e.SessionCreated):
                self.sessions[session] = SessionRecord(event)
            record = self.sessions[session]
            item = e.Logged(id_, record.session_id, seq, turn, attempt, position, kind, at, body)
            record.log.append(Entry(item, event))
            self.log.append(Entry(item, event))
        for record in self.sessions.values():
            _read_turns(record)

    @property
    def turns(self) -> Iterator[TurnRecord]:
        return itertools.chain.from_iterable(session.turns for session in self.sessions.values())


def _read_turns(session: SessionRecord) -> None:
    for item, event in session.log:
        if isinstance(event, e.TurnStarted):
            session.turns.append(TurnRecord(session, item, event))
        turn = session.turns[-1] if session.turns else None
        if isinstance(event, e.StopRequested) and turn is not None and turn.stopped_at is None:
            turn.stopped_at = item.seq
        if item.turn_id is None or turn is None:
            continue
        turn.log.append(Entry(item, event))
        match event:
            case e.MessageWritten(role="user"):
                turn.text = event.text
            case e.MessageWritten(role="assistant"):
                turn.answer = event
            case e.ToolStarted():
                turn.calls[event.call_id] = event
            case e.ToolFinished():
                turn.results[event.call_id] = (event.outcome, event.result)
            case e.QuestionAnswered():
                turn.results[event.call_id] = (ToolOutcome.DONE, event.text)
            case e.TurnEnded():
                turn.end = event


def check(world: World) -> Evidence:
    """Every promise, on what is left of a world at rest."""
    disk = Disk(world.files)
    with disk.mounted() as vfs:
        db = connect(DATABASE, vfs=vfs, exclusive=True)
        try:
            evidence = Evidence(world, db)
            for promise in PROMISES:
                promise(evidence)
        finally:
            db.close()
    return evidence


def p1_accepted_means_kept(found: Evidence) -> None:
    """P1: what was acknowledged was stored once, and reached exactly one turn, answer or refusal, in the order it came."""
    accepted: dict[str, e.MessageAccepted] = {}
    for _, event in found.log.of(e.MessageAccepted):
        assert event.message_id not in accepted, f"P1: {event.message_id} was accepted twice"
        accepted[event.message_id] = event
    used = Counter(_taken(found))
    queued = {row[0] for row in fetch(found.db, "SELECT message_id FROM inbox i JOIN head h USING (session) WHERE h.state = 'waiting'")}
    for message_id, message in accepted.items():
        reached = used[message_id] + (message_id in queued)  # Behind a question it is still on its way.
        assert reached == 1, f"P1: {message_id} ({message.text!r}) reached {reached} turns or refusals"
    _check_page_posts(found, accepted)
    _check_updates(found, accepted)
    for session in found.sessions.values():
        came = [event.message_id for _, event in session.log.of(e.MessageAccepted)]
        started = [message_id for turn in session.turns for message_id in turn.started.message_ids]
        assert started == [m for m in came if m in set(started)], f"P1: {session.session_id} took its messages out of order"


def _taken(found: Evidence) -> Iterator[str]:
    for _, event in found.log:
        match event:
            case e.TurnStarted(message_ids=message_ids):
                yield from message_ids
            case e.QuestionAnswered(message_id=str(message_id)) | e.MessageRefused(message_id=message_id):
                yield message_id


def _check_page_posts(found: Evidence, accepted: dict[str, e.MessageAccepted]) -> None:
    for posted in (posted for person in found.world.people for posted in person.posted.values()):
        if posted.accepted is None:
            assert posted.client_id is None, f"P1: {posted} was never acknowledged"
            continue
        stored = accepted.get(posted.accepted.message_id)
        assert stored is not None, f"P1: {posted} was acknowledged and is gone"
        assert stored.text == posted.text, f"P1: {posted} was stored as {stored.text!r}"


def _check_updates(found: Evidence, accepted: dict[str, e.MessageAccepted]) -> None:
    server = found.world.server
    by_key = Counter(message.dedup_key for message in accepted.values())
    for update in server.updates:
        assert update.dedup_key in server.confirmed, f"P1: {update.dedup_key} was never confirmed"
        assert by_key[f"update|{update.dedup_key}"] == 1, f"P1: {update} was accepted {by_key[f'update|{update.dedup_key}']} times"
    from_chats = sum(count for key, count in by_key.items() if (key or "").startswith("update|"))
    assert from_chats == len(server.updates), "P6: a message nobody wrote was accepted"


def p2_one_turn_at_a_time(found: Evidence) -> None:
    """P2: no turn begins while another is open; epochs and generations only grow; only the living write; positions have no gap."""
    spans = found.world.spans
    generations: dict[str, list[int]] = defaultdict(list)
    key_of = {session.session_id: session.session_key for session in found.sessions.values()}
    for item, started in found.log.of(e.TurnStarted):
        generations[key_of[item.session_id]].append(started.generation)
    for key, grown in generations.items():
        assert grown == list(range(1, len(grown) + 1)), f"P2: the generations of {key} are {grown}"
    for session in found.sessions.values():
        state, epoch, turn_id, position, attempt = TurnState.NONE, 0, None, 0, 0
        for item, event in session.log:
            if item.turn_id is None:
                continue
            if isinstance(event, e.TurnStarted):
                turn_id, position, attempt = item.turn_id, 0, 0
            if isinstance(event, e.TurnStarted | e.TurnTaken):
                assert event.epoch == epoch + 1, f"P2: epoch {event.epoch} after {epoch} in {session.session_id}"
                epoch = event.epoch
                alive = next(span.owner for span in reversed(spans) if span.after_id < item.id)
                assert event.owner == alive, f"P2: owner {event.owner} took {item.turn_id} while {alive} was the one alive"
            if isinstance(event, e.TurnStarted | e.TurnResumed):
                assert event.attempt == attempt + 1, f"P2: attempt {event.attempt} of {turn_id} after {attempt}"
                attempt = event.attempt
            assert (item.turn_id, item.position) == (turn_id, position), f"P2: {item} where {turn_id} stood at {position}"
            assert item.attempt == attempt, f"P2: {item} in attempt {attempt}"
            position += 1
            state = turns.after(state, event.kind)


def p3_every_turn_ends_visibly(found: Evidence) -> None:
    """P3: every turn has one end and nothing after it, or waits for its user. A stopped one was not brought back to life."""
    for turn in found.turns:
        ends = turn.log.of(e.TurnEnded)
        if not ends:
            waits = isinstance(turn.log[-1].event, e.QuestionAsked)
            assert waits and turn is turn.session.turns[-1], f"P3: {turn.id} neither ended nor waits: {turn.log[-1]}"
            assert turn.stopped_at is None, f"P3: {turn.id} was stopped and still waits"
            continue
        assert len(ends) == 1 and turn.log[-1] == ends[0], f"P3: {turn.id} went on after its end"
        if turn.stopped_at is not None and turn.end is not None and turn.end.outcome is not Outcome.CANCELLED:
            later = [item.kind for item, _ in turn.log if item.seq > turn.stopped_at]
            assert e.TurnTaken.kind not in later and e.TurnResumed.kind not in later, f"P3: {turn.id} was stopped and came back: {later}"
    ended = {turn.id: turn for turn in found.turns}
    for person in found.world.people:
        for stopped in person.stopped:
            assert ended[stopped.turn_id].stopped_at is not None, f"P3: the stop of {stopped.turn_id} was acknowledged and is gone"
    left = fetch(found.db, "SELECT session, state FROM head WHERE state NOT IN ('none', 'ended', 'waiting')")
    assert not left, f"P3: {left} with nobody running them"
    pending = fetch(
        found.db, "SELECT session_id FROM session s JOIN head h ON h.session = s.id WHERE resume_pending AND state <> 'waiting'"
    )
    assert not pending, f"P3: {pending} are still to be resumed"


def p4_a_finished_answer_is_delivered(found: Evidence) -> None:
    """P4: what is owed to a chat arrived: once; or once more for each send of unknown outcome, and then labelled."""
    server = found.world.server
    states: dict[str, list[str]] = defaultdict(list)
    for _, changed in found.log.of(e.DeliveryChanged):
        states[changed.delivery_id].append(changed.state)
    owed = {event.delivery_id: event.text for _, event in found.log.of(e.MessageWritten) if event.delivery_id is not None}
    for sent in server.sent:
        assert sent.delivery_id in owed, f"P6: nobody asked for {sent}"
    for delivery_id, text in owed.items():
        copies = [sent.text for sent in server.sent if sent.delivery_id == delivery_id]
        history = states[delivery_id]
        tries = history.count(DeliveryState.SENDING) + history.count(DeliveryState.REPEATING)
        if history[-1:] == [DeliveryState.DEAD] and tries >= MAX_TRIES:
            continue  # Given up, visibly.
        assert history and history[-1] == DeliveryState.SENT, f"P4: {delivery_id} came to rest as {history}"
        assert copies, f"P4: {delivery_id} is recorded as sent and never arrived: {history}"
        plain = [copy for copy in copies if not copy.startswith(REPEAT_LABEL)]
        assert all(copy in (text, REPEAT_LABEL + text) for copy in copies), f"P4: {delivery_id} arrived as {copies}, not as {text!r}"
        assert len(plain) <= 1, f"P4: {delivery_id} arrived {len(plain)} times without a label: {history}"
        unknown = history.count(DeliveryState.UNKNOWN)
        if server.reconciles or not unknown:
            assert len(copies) == 1 and plain, f"P4: {delivery_id} arrived as {copies}: {history}"
        assert len(copies) <= 1 + unknown, f"P4: {delivery_id} arrived {len(copies)} times: {history}"
    for key in {sent.session_key for sent in server.sent}:
        arrived = list(dict.fromkeys(sent.delivery_id for sent in server.sent if sent.session_key == key))
        assert arrived == [delivery_id for delivery_id in owed if delivery_id in set(arrived)], f"P4: {key} was answered out of order"
    _check_chats_are_told(found)


def _check_chats_are_told(found: Evidence) -> None:
    for turn in found.turns:
        if not turn.session.chats:
            continue
        owed = [event for _, event in turn.log.of(e.MessageWritten) if event.delivery_id is not None]
        if turn.answer is not None:
            assert turn.answer in owed, f"P4: the answer of {turn.id} is owed to nobody"
        for _, question in turn.log.of(e.QuestionAsked):
            assert any(question.text in event.text for event in owed), f"P4: the chat was never asked {question.text!r}"
        if turn.end is not None and turn.end.outcome in (Outcome.FAILED, Outcome.SET_ASIDE):
            told = any(event.role == "notice" for event in owed)
            assert told, f"P3: the chat was not told that {turn.id} ended as {turn.end.outcome}"


def p5_finished_work_is_not_redone(found: Evidence) -> None:
    """P5: an unsafe effect happens at most once, an effect without a recorded result is said to be unknown, and nothing runs
    again once its result is on record.
    """
    effects = Counter(done.call_id for done in found.world.effects)
    results = found.log.of(e.ToolFinished)
    finished = {event.call_id: item.id for item, event in results}
    assert len(finished) == len(results), f"P5: a call has two results: {results}"
    calls = {call_id: call for turn in found.turns for call_id, call in turn.calls.items()}
    for call_id, times in effects.items():
        assert call_id in calls, f"P5: {call_id} had an effect and was never recorded as started"
        assert times == 1 or calls[call_id].effect is not Effect.UNSAFE, f"P5: the unsafe {call_id} was done {times} times"
    for done in found.world.effects:
        assert done.log_id < finished[done.call_id], f"P5: {done.call_id} ran again after its result was recorded"
    for item, started in found.log.of(e.ToolStarted):
        assert item.id < finished.get(started.call_id, item.id + 1), f"P5: {item} after its result"
    for turn in found.turns:
        for call_id, call in turn.calls.items():
            outcome, _ = turn.results.get(call_id, (None, ""))
            assert outcome is not None or turn.end is None, f"P5: {turn.id} ended and left {call_id} open"
            if call.name in EFFECTS:
                assert outcome in (ToolOutcome.DONE, ToolOutcome.UNKNOWN), f"P5: {call_id} is said to be {outcome}"
                assert outcome is not ToolOutcome.DONE or effects[call_id], f"P5: {call_id} is said to be done and never was"


def p6_no_phantom_turns(found: Evidence) -> None:
    """P6: as many turns as messages that were taken, each for a message somebody wrote, at most one for each."""
    taken = [message_id for turn in found.turns for message_id in turn.started.message_ids]
    assert len(taken) == len(set(taken)) == len(list(found.turns)), f"P6: {len(list(found.turns))} turns for {taken}"
    accepted = {event.message_id for _, event in found.log.of(e.MessageAccepted)}
    assert set(taken) <= accepted, "P6: a turn for a message nobody wrote"
    assert all(turn.started.cause == "message" for turn in found.turns), "P6: a turn without a cause"


def p7_what_you_saw_is_what_is_stored(found: Evidence) -> None:
    """P7: everything any reader was ever shown is in the log, in the same place and byte by byte, and nothing was left out."""
    logs = {session.session_id: [(item.seq, as_shown(item)) for item, _ in session.log] for session in found.sessions.values()}
    for items in logs.values():
        assert [seq for seq, _ in items] == list(range(1, len(items) + 1)), "P7: a sequence has a hole"
    for person in found.world.people:
        reader = person.reader
        if reader.session_id is not None:
            stored = logs[reader.session_id]
            wrong = next((pair for pair in zip(reader.shown, stored, strict=False) if pair[0] != pair[1]), None)
            assert wrong is None, f"P7: {person.name} was shown {wrong}"
            assert len(stored) == len(reader.shown), f"P7: {person.name} was shown {len(reader.shown)} events of {len(stored)}"


def a_page_that_loads_late_shows_the_same(found: Evidence) -> None:
    """P7: the conversation folded from the records alone is the one a reader saw grow, piece by piece."""
    for session in found.sessions.values():
        if any(turn.end is None for turn in session.turns):
            continue  # An open turn is always read with its pieces.
        grown = Transcript().extend(item for item, _ in session.log)
        loaded = Transcript().extend(item for item, event in session.log if not event.stream)
        shown = {message.id: message for message in loaded.messages}
        assert shown.keys() == {message.id for message in grown.messages}, f"P7: {session.session_id} shows other messages when it loads"
        for seen in grown.messages:
            read = shown[seen.id]
            for call in seen.tool_calls:
                call.output = ""  # Shown while the call runs; the record has its result.
            seen.created_at = read.created_at  # Its first piece, or its record: the text is the same.
            assert seen == read, f"P7: a reader saw {seen}; a page that loads shows {read}"


def answers_are_whole(found: Evidence) -> None:
    """A completed turn's answer is the one an uninterrupted run would have given, with the results that are on record."""
    for turn in found.turns:
        if turn.end is not None and turn.end.outcome is Outcome.COMPLETED:
            whole = whole_answer(turn.id, turn.text, turn.results)
            said = turn.answer.text if turn.answer else ""
            assert said == whole, f"P7: {turn.id} answered {said!r}; the whole answer is {whole!r}"


def no_error_was_logged(found: Evidence) -> None:
    errors = found.world.logged_errors()
    assert not errors, f"the gateway reported {errors[0]}"


def the_catalog_follows_from_the_log(found: Evidence) -> None:
    """The catalog equals its rebuild from the log."""
    db = found.db
    before = {table: sorted(fetch(db, f"SELECT * FROM {table}"), key=repr) for table in DERIVED}
    db.execute("BEGIN IMMEDIATE")
    rebuild(db)
    after = {table: sorted(fetch(db, f"SELECT * FROM {table}"), key=repr) for table in DERIVED}
    db.execute("ROLLBACK")
    for table in DERIVED:
        assert before[table] == after[table], f"the catalog's {table} is {before[table]}; the log says {after[table]}"


PROMISES = (
    p1_accepted_means_kept,
    p2_one_turn_at_a_time,
    p3_every_turn_ends_visibly,
    p4_a_finished_answer_is_delivered,
    p5_finished_work_is_not_redone,
    p6_no_phantom_turns,
    p7_what_you_saw_is_what_is_stored,
    a_page_that_loads_late_shows_the_same,
    answers_are_whole,
    the_catalog_follows_from_the_log,
    no_error_was_logged,
)
