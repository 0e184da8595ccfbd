"""The promises of Holdfast as invariants over everything that is left when a simulated world has come to rest.

Each function checks one promise against the log, the catalog and what was outside: the chat platform, the tools' effects,
the people. It raises an AssertionError that names the promise and what broke it.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator

from msgspec import UNSET

from holdfast.core import events as e
from holdfast.core import notices, turns
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.history import History, causes
from holdfast.core.plans.accept import BUSY
from holdfast.core.titles import MOST_TRIES
from holdfast.core.transcript import Transcript
from holdfast.core.turns import Outcome, TurnState
from holdfast.store.projection import DERIVED
from holdfast.store.sqlite.connection import connect, fetch
from holdfast.store.sqlite.tx import rebuild
from tests.fakes.agents_sim import IN_STEPS, whole_answer
from tests.fakes.power import Disk
from tests.sim.chats import CHAT_PROMISES, check_updates
from tests.sim.disk import DATABASE
from tests.sim.evidence import Evidence, SessionRecord, TurnRecord, cause_of
from tests.sim.far_side import FAR_SIDE_PROMISES
from tests.sim.models import MODEL_PROMISES
from tests.sim.people import as_shown
from tests.sim.processes import PROCESS_PROMISES
from tests.sim.rules import RULES
from tests.sim.spool import FOLDER
from tests.sim.world import World

EFFECTS = tuple(str(effect) for effect in Effect)
LAST_WRITES = ("end of ", "result of ")
FOR_OPERATORS = (
    *("safe mode", "session suspended", "a journal is late", "part of a journal is late"),
    "the platform refuses the credentials",
)
# Why a message is refused alone.
BY_ITSELF = (BUSY, "its sender has reached limits.")
# The last life of a world starts nothing more while it stops.
STOPPING_MS = 10_000
# What leaves an idle conversation idle: a reply on its way, a flag that is cleared, pieces that are cleared away, what becomes of a process
# in its background.
KEEPS_IDLE = (
    *(e.DeliveryOpened, e.DeliveryPlanned, e.DeliveryChanged, e.SessionChanged, e.JournalPruned, e.JournalChanged),
    *(e.ProcessEnded, e.ProcessMatched, e.ProcessConsumed),
    *(e.TitleAsked, e.TitleMade),
)
# What people do to it.
BY_PEOPLE = (
    e.StopRequested,  # One that came too late for its turn.
    e.SessionDeleted,
    e.SessionUndeleted,
    e.SessionCreated,
    e.MessageAccepted,
    e.MessageEdited,
    e.MessageRefused,
    e.CauseRecorded,
    e.CauseDropped,
    e.ScheduleAdded,
    e.ScheduleDue,  # They asked for it.
    e.ScheduleRemoved,
    e.MessageWritten,
    e.SessionResumed,
    e.RequestNoted,
)


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
    """P1, A20: what was acknowledged was stored once, and reached exactly one turn, answer or refusal, in the order it came. A refusal is
    told once, with the words; a command is answered once.
    """
    accepted: dict[str, e.MessageAccepted] = {}
    for _, event in found.log.of(e.MessageAccepted):
        assert event.message_id not in accepted, f"P1: {event.message_id} was accepted twice"
        accepted[event.message_id] = event
    used = Counter(_taken(found))
    resting = (
        "SELECT cause_id FROM inbox i JOIN head h USING (session) WHERE h.state = 'waiting' OR h.state = 'interrupted' AND h.stays = 1"
    )
    queued = {row[0] for row in fetch(found.db, resting)}
    for message_id, message in accepted.items():
        reached = used[message_id] + (message_id in queued)  # Behind a question it is still on its way.
        assert reached == 1, f"P1: {message_id} ({message.text!r}) reached {reached} turns or refusals"
    recorded = Counter(event.cause_id for _, event in found.log.of(e.CauseRecorded))
    assert all(times == 1 for times in recorded.values()), f"P1: {recorded} were recorded"
    for person in found.world.people:
        assert {f"c_{name}" for name in person.happened} <= recorded.keys(), f"P1: of {person.happened} something is gone"
    for cause_id in recorded:
        assert used[cause_id] + (cause_id in queued) == 1, f"P6: {cause_id} reached {used[cause_id]} turns, or was dropped as often"
    said = _commands(found)
    _check_page_posts(found, accepted, said)
    check_updates(found, [*accepted.values(), *said.values()])
    for session in found.sessions.values():
        _check_refusals(session, accepted)
    for session in found.sessions.values():
        _check_order(found, session)


def _check_order(found: Evidence, session: SessionRecord) -> None:
    """P1: turns start from what waits in the order in which it came, except that a message which interrupts comes first. What nobody said
    waits for the end of safe mode, and where a turn was left for a person to continue.
    """
    started = {cause_id for turn in session.turns for cause_id in turn.started.causes}
    waiting: dict[str, tuple[bool, bool]] = {}  # Whether it interrupts, and whether somebody said it.
    left = False
    for item, event in session.log:
        if isinstance(event, e.MessageAccepted | e.CauseRecorded) and cause_of(event) in started:
            said = isinstance(event, e.MessageAccepted) or event.what == "edit"
            waiting[cause_of(event)] = (isinstance(event, e.MessageAccepted) and event.mode == "interrupt", said)
        elif isinstance(event, e.TurnEnded):
            left = event.still_pending
        elif isinstance(event, e.TurnStarted):
            held = left or found.span(item.id).safe
            due = next((cause_id for cause_id, (interrupts, _) in waiting.items() if interrupts), next(iter(waiting), None))
            heard = next((cause_id for cause_id, (_, said) in waiting.items() if said), None) if held else due
            assert event.causes[0] in (due, heard), f"P1: {session.session_id} took its messages out of order"
            del waiting[event.causes[0]]


def _taken(found: Evidence) -> Iterator[str]:
    for _, event in found.log:
        match event:
            case e.TurnStarted(causes=message_ids):
                yield from message_ids
            case e.CauseTaken(cause_id=message_id) | e.CauseDropped(cause_id=message_id):
                yield message_id
            case e.QuestionAnswered(message_id=str(message_id)) | e.MessageRefused(message_id=message_id):
                yield message_id


def _commands(found: Evidence) -> dict[str, e.MessageWritten]:
    """Words to the gateway itself: no turn takes them, and each has one reply, right behind it."""
    said = {}
    for session in found.sessions.values():
        for place, (item, event) in enumerate(session.log):
            if isinstance(event, e.MessageWritten) and event.role == "user" and item.turn_id is None:
                assert event.message_id not in said, f"P1: {event} was taken twice"
                said[event.message_id] = event
                reply = session.log[place + 1].event
                assert isinstance(reply, e.MessageWritten) and reply.role == "notice" and reply.text, (
                    f"P1: {event} was answered with {reply}"
                )
                assert (reply.delivery_id is not None) == session.chats, f"P4: the answer to {event} is owed to the wrong place"
    return said


def _check_refusals(session: SessionRecord, accepted: dict[str, e.MessageAccepted]) -> None:
    """What was refused together is told together, in the next breath, with every one of the texts as it read then; what was refused by
    itself, because the conversation was busy or its sender had reached a limit, is told by itself.
    """
    refused: list[str] = []
    words = {message_id: message.text for message_id, message in accepted.items()}
    for place, (_, event) in enumerate(session.log):
        if isinstance(event, e.MessageEdited):
            words[event.message_id] = event.text
        if isinstance(event, e.MessageRefused) and event.reason.startswith(BY_ITSELF):
            told = session.log[place + 1].event
            assert isinstance(told, e.MessageWritten) and told.message_id == f"{event.message_id}.refused", f"P1: {event} without a word"
        elif isinstance(event, e.MessageRefused):
            refused.append(words[event.message_id])
        elif refused and not isinstance(event, e.CauseDropped):  # What nobody said may be turned away with them.
            assert isinstance(event, e.MessageWritten) and event.role == "notice", f"A20: {refused} were refused without a word"
            for text in refused:
                quoted = text[: notices.MAX_QUOTED].replace("\n", "\n> ")
                assert f"> {quoted}" in event.text, f"A20: {text!r} is missing from {event.text!r}"
            assert (event.delivery_id is not None) == session.chats, f"A20: {event} is owed to the wrong place"
            refused = []
    assert not refused, f"A20: {refused} were refused without a word"


def _check_page_posts(found: Evidence, accepted: dict[str, e.MessageAccepted], said: dict[str, e.MessageWritten]) -> None:
    for posted in (posted for person in found.world.people for number, posted in person.posted.items() if number not in person.refused):
        if posted.accepted is None:
            assert posted.client_id is None, f"P1: {posted} was never acknowledged"
            continue
        message_id = posted.accepted.message_id
        stored = accepted.get(message_id) or said.get(message_id)
        assert stored is not None, f"P1: {posted} was acknowledged and is gone"
        said_as = re.sub(r"^/(queue|steer|interrupt) ", "", posted.text)
        assert stored.text == said_as, f"P1: {posted} was stored as {stored.text!r}"
        names = [part.name for part in e.attached(stored)]
        assert names == ([] if posted.attach is None else [posted.attach]), f"P1: {posted} was stored with {names}"


def p2_one_turn_at_a_time(found: Evidence) -> None:
    """P2: no turn begins while another is open; epochs and generations only grow; only the living write; a lease leaves no gap."""
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
                turn_id, attempt = item.turn_id, 0
            if isinstance(event, e.TurnStarted | e.TurnTaken):
                assert event.epoch == epoch + 1, f"P2: epoch {event.epoch} after {epoch} in {session.session_id}"
                epoch, position = event.epoch, 0  # Each lease counts from 0.
                alive = found.alive(item.id)
                assert event.owner in alive, f"P2: owner {event.owner} took {item.turn_id} while {alive} were alive"
            if isinstance(event, e.TurnStarted | e.TurnResumed):
                assert event.attempt == attempt + 1, f"P2: attempt {event.attempt} of {turn_id} after {attempt}"
                attempt = event.attempt
            place = (item.turn_id, item.epoch, item.position)
            assert place == (turn_id, epoch, position), f"P2: {item} where {turn_id} stood at {position} of lease {epoch}"
            assert item.attempt == attempt, f"P2: {item} in attempt {attempt}"
            position += 1
            state = turns.after(state, event)


def p3_every_turn_ends_visibly(found: Evidence) -> None:
    """P3: every turn has one end and nothing after it, or waits for its user, or was left for a recorded reason that still holds."""
    for turn in found.turns:
        ends = turn.log.of(e.TurnEnded)
        if ends:
            assert len(ends) == 1 and turn.log[-1] == ends[0], f"P3: {turn.id} went on after its end"
            continue
        assert turn is turn.session.turns[-1], f"P3: {turn.id} has no end and is not the last one"
        assert turn.stopped_at is None, f"P3: {turn.id} was stopped and has no end"
        last = next(event for _, event in reversed(turn.log) if not _asks_again(event))
        lasting = ("R1", "R5", "R8") if found.world.settings.auto_resume else ("R1", "R5", "R7", "R8")
        left = isinstance(last, e.TurnLeft) and last.rule in lasting
        waits = isinstance(last, e.TurnWaiting) or (isinstance(last, e.QuestionAnswered) and not last.last)
        assert left or waits, f"P3: {turn.id} neither ended nor waits: {turn.log[-1]}"
        if isinstance(last, e.TurnLeft) and last.rule == "R1":  # One that waits for its user waits on once the session is resumed.
            still_waits = _state(turn) is TurnState.WAITING
            assert turn.session.suspended or still_waits, f"P3: {turn.id} was left for a suspension that is over"
    waiting = {turn.session.session_id for turn in found.turns if turn.end is None}
    for session in found.sessions.values():
        flag = fetch(found.db, "SELECT resume_pending FROM session WHERE session_id = ?", (session.session_id,))[0][0]
        last_end = session.turns[-1].end if session.turns else None
        known = session.session_id in waiting or (last_end is not None and last_end.still_pending)
        assert not flag or known, f"P3: {session.session_id} is still to be resumed, and nothing is there to resume"


def _asks_again(event: e.Event) -> bool:
    """A question whose delivery was given up is asked again, while its turn waits."""
    return isinstance(event, e.MessageWritten) and event.role == "notice"


def _state(turn: TurnRecord) -> TurnState:
    state = TurnState.NONE
    for _, event in turn.log:
        state = turns.after(state, event)
    return state


def one_request_is_one_change(found: Evidence) -> None:
    """A22: no key of a request is on record twice, however often it was made."""
    keyed = Counter(key for _, event in found.log if (key := getattr(event, "dedup_key", None)) is not None)
    twice = [key for key, times in keyed.items() if times > 1]
    assert not twice, f"A22: {twice} were carried out more than once"


def p8_a_stop_wins(found: Evidence) -> None:
    """P8, A21: a stop that was acknowledged is on record, its turn ends as cancelled, and is never brought back to life."""
    for turn in found.turns:
        if turn.stopped_at is None or turn.end is None:
            continue
        later = [item.kind for item, _ in turn.log if item.seq > turn.stopped_at]
        assert turn.end.outcome is Outcome.CANCELLED, f"A21: {turn.id} was stopped and ended as {turn.end}"
        assert e.TurnResumed.kind not in later, f"P8: {turn.id} was stopped and came back: {later}"
        if e.TurnTaken.kind in later:  # Without it the process that ran the turn ended it, even if it had marked it as cut by then.
            assert turn.end.rule == "R0", f"P8: {turn.id} was stopped, cut and ended by {turn.end}"
    turns_by_id = {turn.id: turn for turn in found.turns}
    for person in found.world.people:
        for stopped in person.stopped:
            assert turns_by_id[stopped.turn_id or ""].stopped_at is not None, (
                f"P8: the stop of {stopped.turn_id} was acknowledged and is gone"
            )


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
        assert done.log_id < finished.get(done.call_id, done.log_id + 1), f"P5: {done.call_id} ran again after its result was recorded"
    for item, started in found.log.of(e.ToolStarted):
        assert item.id < finished.get(started.call_id, item.id + 1), f"P5: {item} after its result"
    for turn in found.turns:
        for call_id, call in turn.calls.items():
            outcome, _ = turn.results.get(call_id, (None, ""))
            assert outcome is not None or turn.end is None, f"P5: {turn.id} ended and left {call_id} open"
            if call.name in EFFECTS and turn.end is not None and not _cut_off(turn, call):
                assert outcome in (ToolOutcome.DONE, ToolOutcome.UNKNOWN), f"P5: {call_id} is said to be {outcome}"
                assert outcome is not ToolOutcome.DONE or effects[call_id], f"P5: {call_id} is said to be done and never was"


def _cut_off(turn: TurnRecord, call: e.ToolStarted) -> bool:
    """A response can end within its last call."""
    calls = turn.responses[call.step].calls if turn.responses else ()
    return bool(calls) and calls[-1].problem is not None and call.call_id == f"{turn.id}.{call.step}.{len(calls)}"


def p5_a_step_is_done_once(found: Evidence) -> None:
    """P5: the steps of a turn are on record once each, in order, each before any of its calls starts. A completed turn has a result for
    every call that was proposed, and no call ran that nobody proposed.
    """
    for turn in found.turns:
        if not turn.text.startswith(IN_STEPS):
            assert not turn.responses, f"P5: {turn.id} has steps, and its agent knows none"
            continue
        assert [response.step for response in turn.responses] == list(range(len(turn.responses))), f"P5: the steps of {turn.id}"
        responded: set[int] = set()
        for item, event in turn.log:
            if isinstance(event, e.ModelResponded):
                responded.add(event.step)
            elif isinstance(event, e.ToolStarted):
                assert event.step in responded, f"P5: {item} before its step was on record"
        proposed = {
            f"{turn.id}.{response.step}.{number}": call for response in turn.responses for number, call in enumerate(response.calls, 1)
        }
        assert turn.calls.keys() <= proposed.keys(), f"P5: {turn.id} ran {turn.calls.keys() - proposed.keys()}, which nobody proposed"
        for call_id, started in turn.calls.items():
            assert started.name == proposed[call_id].name, f"P5: {call_id} was proposed as {proposed[call_id]} and ran as {started}"
        if turn.end is not None and turn.end.outcome is Outcome.COMPLETED:
            assert turn.results.keys() == proposed.keys(), f"P5: {turn.id} completed without {proposed.keys() - turn.results.keys()}"


def questions_are_asked_and_answered_once(found: Evidence) -> None:
    """A27, R5: one question for a call, and one answer; `last` says truly that no other is open. A turn that waits names its open
    questions, runs nothing, and continues after the last answer.
    """
    for turn in found.turns:
        asked: dict[str, str] = {}
        open_now: set[str] = set()
        waiting = False
        for item, event in turn.log:
            match event:
                case e.QuestionAsked():
                    assert event.call_id not in asked.values(), f"A27: {item} asks again"
                    asked[event.question_id] = event.call_id
                    open_now.add(event.question_id)
                case e.QuestionAnswered():
                    assert event.question_id in open_now, f"A27: {item} answers what is not open"
                    open_now.remove(event.question_id)
                    assert event.last is (not open_now), f"A27: {item} while {open_now} are open"
                case e.TurnWaiting():
                    assert set(event.question_ids) == open_now != set(), f"R5: {item} while {open_now} are open"
                    waiting = True
                case e.TurnResumed():
                    assert not waiting or not open_now, f"R5: {item} while {open_now} are open"
                    waiting = False
                case e.ToolStarted() | e.ToolOutput() | e.Text() | e.ModelResponded():
                    assert not waiting, f"R5: {item} of a turn that waits"
        assert turn.end is None or turn.end.outcome is not Outcome.COMPLETED or not open_now, f"R5: {turn.id} completed, {open_now} open"


def p6_no_phantom_turns(found: Evidence) -> None:
    """P6, E5: as many turns as messages that were taken, each for a message somebody wrote, at most one for each. In a conversation that
    rests nothing happens but what people do and what is still owed to them, however often the gateway starts.
    """
    taken = [message_id for turn in found.turns for message_id in turn.started.causes]
    assert len(taken) == len(set(taken)) == len(list(found.turns)), f"P6: {len(list(found.turns))} turns for {taken}"
    known = {event.message_id: "message" for _, event in found.log.of(e.MessageAccepted)}
    known |= {event.cause_id: event.what for _, event in found.log.of(e.CauseRecorded)}
    assert set(taken) <= known.keys(), "P6: a turn for a message nobody wrote"
    for turn in found.turns:
        assert all(turn.started.cause == known[cause] for cause in turn.started.causes), f"P6: {turn.started} for another cause"
    for session in found.sessions.values():
        state, waiting = TurnState.NONE, set[str]()
        for item, event in session.log:
            if state in (TurnState.NONE, TurnState.ENDED):
                begins = isinstance(event, e.TurnStarted) and set(event.causes) <= waiting
                assert begins or (item.turn_id is None and isinstance(event, KEEPS_IDLE + BY_PEOPLE)), f"P6: {item} in a session at rest"
            if item.turn_id is not None:
                state = turns.after(state, event)
            if isinstance(event, e.MessageAccepted | e.CauseRecorded):
                waiting.add(cause_of(event))
            elif isinstance(event, e.TurnStarted):
                waiting -= set(event.causes)


def p6_each_time_is_told_once(found: Evidence) -> None:
    """P6, E7: a time of a schedule is one cause at most, not before it has come and not while nothing may begin; what was planned is due
    once it has come; and in safe mode nothing but a message starts a turn.
    """
    added = {event.schedule_id: (item, event) for item, event in found.log.of(e.ScheduleAdded)}
    assert {made for person in found.world.people for made in person.planned.values()} <= added.keys(), "P1: what was planned is gone"
    causes = {event.cause_id: (item, event) for item, event in found.log.of(e.CauseRecorded) if event.schedule is not None}
    times: set[tuple[str, int]] = set()
    over: set[str] = set()
    for item, due in found.log.of(e.ScheduleDue):
        assert due.schedule_id not in over, f"P6: {due} after its schedule was over"
        if due.next_at is None:
            over.add(due.schedule_id)
        if due.cause_id is None:
            continue
        assert (due.schedule_id, due.due_at) not in times, f"P6: {due} is told twice"
        times.add((due.schedule_id, due.due_at))
        at, cause = causes.pop(due.cause_id)
        assert at.id == item.id + 1 or at.session_id != item.session_id, f"P6: {due} and {cause} are not one transaction"
        assert item.at >= due.due_at and cause.sender == added[due.schedule_id][1].sender, f"P6: {cause} came too early or is another's"
    assert not [cause for cause in causes if ".again." not in cause], f"P6: {causes} of no time that had come"
    removed = {event.schedule_id for _, event in found.log.of(e.ScheduleRemoved)}
    deleted = {item.session_id for item, _ in found.log.of(e.SessionDeleted)}
    last = found.world.spans[-1]
    now = found.world.wall_ms(last.began + last.lasted_s) - STOPPING_MS
    for schedule_id, (item, event) in added.items():
        due_once = event.once_at is not None and event.once_at < now and item.session_id not in deleted
        assert schedule_id in over | removed or not due_once, f"P6: {event} was due and nothing came of it"
    for item, started in found.log.of(e.TurnStarted):
        span = found.span(item.id)
        safe = span.safe and (span.left_safe_mode is None or item.id <= span.left_safe_mode[0]) and not span.asked_to_leave
        assert not safe or started.cause in ("message", "edit"), f"B14: {started} in safe mode"


def a_title_is_made_once(found: Evidence) -> None:
    """P5, P6: each request is on record before it is made and has one outcome; a model is asked again only after a death, and once."""
    asked_of_all = 0
    for session in found.sessions.values():
        records = [event for _, event in session.log if isinstance(event, e.TitleAsked | e.TitleMade | e.SessionChanged)]
        asked = [event for event in records if isinstance(event, e.TitleAsked)]
        made = [event for event in records if isinstance(event, e.TitleMade)]
        named = [event.title for event in records if isinstance(event, e.SessionChanged) and event.title is not UNSET]
        asked_of_all += len(asked)
        assert [event.tries for event in asked] == list(range(1, len(asked) + 1)) and len(asked) <= MOST_TRIES, f"P5: {asked}"
        assert len(made) <= 1 and (made or not asked), f"P5: {session.session_id} was asked for as {asked}, and {made} came of it"
        assert all(named.count(event.title) == 1 for event in made if event.title is not None), f"P6: {session.session_id} became {named}"
    assert len(found.world.titles_asked) <= asked_of_all, "P5: a model was asked for a title that nobody recorded"


def p7_what_you_saw_is_what_is_stored(found: Evidence) -> None:
    """P7: everything any reader was ever shown is in the log, in the same place and byte by byte, and nothing was left out."""
    logs = {session.session_id: [(item.seq, as_shown(item)) for item, _ in session.whole] for session in found.sessions.values()}
    for items in logs.values():
        assert [seq for seq, _ in items] == list(range(1, len(items) + 1)), "P7: a sequence has a hole"
    for person in found.world.people:
        for reader in person.readers:
            stored = logs[reader.session_id]
            wrong = next((pair for pair in zip(reader.shown, stored, strict=False) if pair[0] != pair[1]), None)
            assert wrong is None, f"P7: {person.name} was shown {wrong}"
            assert len(stored) == len(reader.shown), f"P7: {person.name} was shown {len(reader.shown)} events of {len(stored)}"


def a_page_that_loads_late_shows_the_same(found: Evidence) -> None:
    """P7: the conversation folded from the records alone is the one a reader saw grow, piece by piece."""
    for session in found.sessions.values():
        if any(turn.end is None for turn in session.turns):
            continue  # An open turn is always read with its pieces.
        grown = Transcript().extend(item for item, _ in session.whole)
        loaded = Transcript().extend(item for item, event in session.whole if not event.stream)
        shown = {message.id: message for message in loaded.messages}
        assert shown.keys() == {message.id for message in grown.messages}, f"P7: {session.session_id} shows other messages when it loads"
        for seen in grown.messages:
            read = shown[seen.id]
            for call in seen.tool_calls:
                call.output, call.output_omitted = "", 0  # Shown while the call runs; the record has its result.
            seen.created_at = read.created_at  # Its first piece, or its record: the text is the same.
            assert seen.answer == read.answer, f"P7: a reader saw {seen.answer}; a page that loads shows {read.answer}"
            seen.made_of = read.made_of = None
            assert seen == read, f"P7: a reader saw {seen}; a page that loads shows {read}"


def behind_a_summary_nothing_is_missing(found: Evidence) -> None:
    """An agent is given the same of a conversation that is read from where its newest summary leaves off as of the whole one."""
    for session in found.sessions.values():
        for _, compacted in session.whole.of(e.ContextCompacted)[-1:]:
            whole = Transcript().extend(item for item, _ in session.whole)
            short = Transcript(compacted.recall).extend(item for item, _ in session.whole if item.seq > compacted.recall)
            assert short.turns, f"P5: of {session.session_id} no turn is read behind {compacted}"
            given = [(list(History(one)), causes(one), one.calls, one.questions, one.queued) for one in (short, whole)]
            assert given[0] == given[1], f"P5: of {session.session_id} an agent is given {given[0]} behind its summary, not {given[1]}"


def answers_are_whole(found: Evidence) -> None:
    """A completed turn's answer is the one an uninterrupted run would have given, with the results that are on record."""
    for turn in found.turns:
        if turn.end is not None and turn.end.outcome is Outcome.COMPLETED:
            whole = whole_answer(turn.id, turn.text, turn.results, turn.steered)
            said = turn.answer.text if turn.answer else ""
            assert said == whole, f"P7: {turn.id} answered {said!r}; the whole answer is {whole!r}"


def no_error_was_logged(found: Evidence) -> None:
    """But those that say what an operator must know: that a session is suspended, or the gateway in safe mode; or that a process ended
    before its store, which was away, took the end of a turn, or a result.
    """
    errors = [entry for entry in found.world.logged_errors() if not entry["event"].startswith(FOR_OPERATORS)]
    if found.world.weather.away or found.world.weather.away_after:
        errors = [entry for entry in errors if not all(name.startswith(LAST_WRITES) for name in entry.get("tasks", ("",)))]
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


def what_was_spooled_is_stored(found: Evidence) -> None:
    """P5, P7: what a turn counted as recorded while the store was away is in the log, in its place and once; a result before anything was
    decided about its turn, unless its spool could not be read then. Nothing is left in a spool.
    """
    placed = Counter((item.turn_id, item.epoch, item.position) for session in found.sessions.values() for item, _ in session.whole)
    late = {(item.turn_id, item.epoch, item.position) for item, _ in found.late}
    for turn_id, epoch, item in found.world.spooled:
        times = placed[turn_id, epoch, item.position]
        assert times == 1, f"P7: {item} of {turn_id} was spooled and is stored {times} times"
        assert found.world.unreadable or (turn_id, epoch, item.position) not in late, f"P5: {item} of {turn_id} came late"
    waits = [
        event for session in found.sessions.values() for _, event in session.log if isinstance(event, e.TurnInterrupted) and event.stream_id
    ]
    assert not found.late or waits, "F2: something came late, and no row waited for it"
    left = [name for name in found.world.files if name.startswith(FOLDER) and found.world.files[name]]
    assert not left or found.world.unreadable, f"spools are left: {left}"


def what_content_names_is_there(found: Evidence) -> None:
    """P1: a blob that any record names has its row, and is held by its session."""
    blobs = {row[0] for row in fetch(found.db, "SELECT digest FROM blob")}
    held = set(fetch(found.db, "SELECT u.digest, s.session_id FROM blob_use u JOIN session s ON s.id = u.session"))
    for item, event in found.log:
        for part in e.attached(event):
            assert part.blob in blobs, f"P1: {event} names a blob that is not there"
            assert (part.blob, item.session_id) in held, f"P1: {event} names a blob that its session does not hold"


PROMISES = (
    p1_accepted_means_kept,
    p2_one_turn_at_a_time,
    p3_every_turn_ends_visibly,
    p5_finished_work_is_not_redone,
    p5_a_step_is_done_once,
    questions_are_asked_and_answered_once,
    p6_no_phantom_turns,
    p6_each_time_is_told_once,
    *PROCESS_PROMISES,
    a_title_is_made_once,
    p7_what_you_saw_is_what_is_stored,
    p8_a_stop_wins,
    *FAR_SIDE_PROMISES,
    *CHAT_PROMISES,
    one_request_is_one_change,
    a_page_that_loads_late_shows_the_same,
    behind_a_summary_nothing_is_missing,
    answers_are_whole,
    what_content_names_is_there,
    what_was_spooled_is_stored,
    the_catalog_follows_from_the_log,
    *MODEL_PROMISES,
    *RULES,
    no_error_was_logged,
)
