"""Background processes as invariants: started once, their ends on record once, told once, and never after they were consumed."""

from collections import Counter, defaultdict
from collections.abc import Callable

from holdfast.core import events as e
from holdfast.ports.keepers import Name
from tests.sim.evidence import Evidence

# How the words begin that say how a process ended.
ENDS = ("ended", "was ended", "was lost", "was not started", "could not be started")


def of_process(name: str) -> str:
    """The process that a cause or a notice is about."""
    return name.partition(".")[0]


def a_process_is_started_once_and_its_end_is_what_it_was(found: Evidence) -> None:
    """P5, E6: after its start is on record, whatever dies; its code is kept unless nobody was there to see it."""
    machine = found.world.machine
    if machine is None:
        return
    started = {event.process_id: item for item, event in found.log.of(e.ProcessStarted)}
    assert len(started) == len(found.log.of(e.ProcessStarted)), "P5: a process was recorded twice"
    assert {name.id for name in machine.starts} <= started.keys(), "P6: a process ran of which there is no record"
    assert all(times == 1 for times in machine.starts.values()), f"P5: {machine.starts}"
    ends = found.log.of(e.ProcessEnded)
    assert Counter(event.process_id for _, event in ends) == Counter(started.keys()), "E6: an end is missing, or on record twice"
    for _, ended in ends:
        simulated = machine.running.get(Name(started[ended.process_id].session_id, ended.process_id))
        if ended.by is not None:
            assert simulated is None or simulated.killed_at is not None, f"E6: {ended} and it still runs"
        elif simulated is None:
            assert ended.lost == "never_ran", f"E6: {ended} of one that never ran"
        elif simulated.lost_at is None and simulated.killed_at is None:
            assert ended.code == simulated.code and ended.lost is None, f"E6: {ended} of one that ended with {simulated.code}"


def an_end_is_told_once_unless_it_is_consumed(found: Evidence) -> None:
    """E2, E3, E6, A28: as a cause or as a notice, in the transaction that records it; one that was consumed first, or that nobody wants to
    hear of, not at all.
    """
    started = {event.process_id: event for _, event in found.log.of(e.ProcessStarted)}
    consumed = {event.process_id: item.id for item, event in reversed(found.log.of(e.ProcessConsumed))}
    told: dict[str, list[int]] = defaultdict(list)
    for item, event in found.log:
        name = ""
        if isinstance(event, e.CauseRecorded) and event.what == "process":
            name = event.cause_id
        elif isinstance(event, e.MessageWritten) and event.role == "notice" and event.message_id.endswith(".ended"):
            name = event.message_id
        if name:
            told[of_process(name)].append(item.id)
    for item, ended in found.log.of(e.ProcessEnded):
        places = told.pop(ended.process_id, [])
        silent = consumed.get(ended.process_id, item.id) < item.id
        wanted = started[ended.process_id].notify or ended.lost is not None or ended.by is not None
        assert places == ([] if silent or not wanted else [item.id + 1]), f"E6: {ended} was told at {places}"
    assert not told, f"P6: {told} of ends that are not on record"


def what_is_consumed_is_known(found: Evidence) -> None:
    """E2: a call of its conversation has killed it, or a result says how it ended; or its conversation was deleted. And what was killed by
    a call is on record as killed.
    """
    killed = {event.process_id for _, event in found.log.of(e.ProcessConsumed) if event.how == "killed"}
    results = {event.call_id: event.result for _, event in found.log.of(e.ToolFinished)}
    for _, event in found.log.of(e.ProcessConsumed):
        if event.how in ("read", "waited"):
            told = any(f"{event.process_id} {how}" in result for result in results.values() for how in ENDS)
            assert told, f"E2: {event} is said to be read, and nobody has read it"
    for _, call in found.log.of(e.ToolStarted):
        if call.arguments.get("action") == "kill" and "signal 15" in results.get(call.call_id, ""):
            process_id = call.arguments["process_id"]
            assert process_id in killed, f"E2: {process_id} was killed, and that is not on record"


def what_is_dropped_is_known_or_told(found: Evidence) -> None:
    """E2, E3: the end of a process is dropped only if it is consumed, deleted with its conversation, or told as a notice instead, which may
    also say that its sender has reached a limit. Nothing of a process is taken after it was consumed.
    """
    notices = {event.message_id: event.text for _, event in found.log.of(e.MessageWritten) if event.role == "notice"}
    consumed = {event.process_id: item.id for item, event in reversed(found.log.of(e.ProcessConsumed))}
    ends = {event.cause_id: event.text for _, event in found.log.of(e.CauseRecorded) if event.what == "process"}
    for item, event in found.log:
        if isinstance(event, e.CauseDropped) and event.cause_id in ends:
            gone = of_process(event.cause_id) in consumed
            told = any(ends[event.cause_id] in notices.get(f"{event.cause_id}.{how}", "") for how in ("told", "refused"))
            assert gone or told, f"E3: {event} and nobody was told"
        taken = event.causes if isinstance(event, e.TurnStarted) else (event.cause_id,) if isinstance(event, e.CauseTaken) else ()
        for cause_id in taken:
            assert consumed.get(of_process(cause_id), item.id) >= item.id, f"E2: {event} after it was consumed"


def watched_lines_are_for_the_turn_they_came_in(found: Evidence) -> None:
    """E3: those of a turn that was open start no other one, and none starts after another has."""
    for session in found.sessions.values():
        generation, recorded = 0, dict[str, e.CauseRecorded]()
        for item, event in session.log:
            if isinstance(event, e.CauseRecorded) and event.what == "watch":
                assert event.generation == generation, f"E3: {event} in generation {generation}"
                recorded[event.cause_id] = event
            if isinstance(event, e.TurnStarted):
                for cause_id in event.causes:
                    if cause_id in recorded:
                        cause = recorded[cause_id]
                        assert cause.generation == generation and not cause.during, f"E3: {item} from {cause}"
                generation = event.generation


PROCESS_PROMISES: tuple[Callable[[Evidence], None], ...] = (
    a_process_is_started_once_and_its_end_is_what_it_was,
    an_end_is_told_once_unless_it_is_consumed,
    what_is_consumed_is_known,
    what_is_dropped_is_known_or_told,
    watched_lines_are_for_the_turn_they_came_in,
)
