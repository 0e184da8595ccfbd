"""The rows that follow from the course of a turn."""

from holdfast.core import events as e
from holdfast.core import turns
from holdfast.core.plans.repeats import STOP
from holdfast.store.heads import Head
from holdfast.store.projection import journals, spending, titles
from holdfast.store.projection.common import KEY_OF, THIS, Rows, remember
from holdfast.store.rows import Change, Delete, Update

STARTED = Update("session", "attempt_at", "on_trial", "generation", "rule = NULL", "why = NULL", "deaths = 0", where=THIS)
RESUMED = Update("session", "attempt_at", "on_trial", "rule", "why", where=THIS)
TRIED = Update("session", "tried_at", where=THIS)
DECIDED = Update("session", "rule", "why", where=THIS)
OFF_TRIAL = Update("session", "on_trial = 0", where="id = ? AND on_trial = 1")
INTERRUPTED = Update("session", "interrupted_restarts", "deaths", "on_trial = 0", where=THIS)
LIVED = Update("session", "lived_ms", where=THIS)
# Suspended wins: such a session is never marked.
MARKED = Update("session", "resume_pending = 1", "resume_reason", "last_resume_marked_at", where="id = ? AND suspended = 0")
UNMARKED = ("resume_pending = 0", "resume_reason = NULL", "last_resume_marked_at = NULL")
# A trial is passed by whatever end the turn comes to, as long as its process survives it.
PASSED = "interrupted_restarts = CASE WHEN on_trial = 1 THEN 0 ELSE interrupted_restarts END"
COMPLETED = Update("session", "journal_since", "interrupted_restarts = 0", "on_trial = 0", where=THIS)
COMPLETED_UNMARKED = Update("session", "journal_since", "interrupted_restarts = 0", "on_trial = 0", *UNMARKED, where=THIS)
ENDED = Update("session", "journal_since", PASSED, "on_trial = 0", where=THIS)
ENDED_UNMARKED = Update("session", "journal_since", PASSED, "on_trial = 0", *UNMARKED, where=THIS)
SOUND = Update("start", "sound = 1", where="owner = ? AND sound = 0")
EXPLAINED = Update("start", "explained = 1", where="owner = ?")
TRUSTED = Update("session", "interrupted_restarts = 0", "on_trial = 0", where=THIS)
STOPPED = Update("session", "stop_seq = CASE WHEN stop_turn = ? THEN stop_seq ELSE ? END", "stop_turn", "stop_reply", where=THIS)
LANE_GENERATION = Update("lane", "generation", where=KEY_OF)
BEGUN = Delete("inbox", where="session = ? AND cause_id = ?", returning="seq", into="asked_seq")
CLOSED = Update(
    "question", "state = CASE WHEN expires_at <= ? THEN 'expired' ELSE ? END", where="session = ? AND turn = ? AND state = 'open'"
)


def _turn_started(head: Head, event: e.TurnStarted, at: int, in_turn: bool) -> list[Change]:
    head.attempt, head.owner, head.epoch, head.stop, head.left = event.attempt, event.owner, event.epoch, 0, 0
    return [
        (STARTED, (at, int(event.trial), event.generation, head.session)),
        *([(TRIED, (at, head.session))] if event.trial else []),
        (LANE_GENERATION, (event.generation, head.session)),
        *((BEGUN, (head.session, cause_id)) for cause_id in event.causes),
        *([spending.counted(head, event.day, event.sender)] if event.day else []),
    ]


def _turn_taken(head: Head, event: e.TurnTaken, at: int, in_turn: bool) -> list[Change]:
    head.owner, head.epoch = event.owner, event.epoch
    return []


def _turn_resumed(head: Head, event: e.TurnResumed, at: int, in_turn: bool) -> list[Change]:
    head.attempt, head.left = event.attempt, 0
    begun: list[Change] = [(RESUMED, (at, int(event.trial), event.rule, event.why, head.session))]
    return [*begun, (TRIED, (at, head.session))] if event.trial else begun


def _turn_left(head: Head, event: e.TurnLeft, at: int, in_turn: bool) -> list[Change]:
    head.owner, head.left = None, 1
    return [(DECIDED, (event.rule, event.why, head.session))]


def _turn_interrupted(head: Head, event: e.TurnInterrupted, at: int, in_turn: bool) -> list[Change]:
    if event.died is not None:
        head.owner = None
    return [
        (INTERRUPTED, (event.restarts, event.deaths, head.session)),
        *([(LIVED, (event.lived_ms, head.session))] if event.lived_ms else []),
        (MARKED, (event.reason, at, head.session)),
        *journals.late(head, event, at),
    ]


def released(head: Head) -> list[Change]:
    """The attempt is over: the turn waits for its user, and belongs to no process."""
    head.owner = None
    return [(OFF_TRIAL, (head.session,))]


def _turn_waiting(head: Head, event: e.TurnWaiting, at: int, in_turn: bool) -> list[Change]:
    return released(head)


def _turn_ended(head: Head, event: e.TurnEnded, at: int, in_turn: bool) -> list[Change]:
    completed = event.outcome is turns.Outcome.COMPLETED
    closed = (0, "cancelled") if event.outcome is turns.Outcome.CANCELLED else (at, "ended")
    changes: list[Change] = [(CLOSED, (*closed, head.session, head.turn))]
    if completed:
        changes += [(SOUND, (head.owner,)), titles.due(head, at)]
    if event.blamed_for is not None:
        changes.append((EXPLAINED, (event.blamed_for,)))
    if event.still_pending:
        changes.append((COMPLETED if completed else ENDED, (at, head.session)))
    else:
        changes.append((COMPLETED_UNMARKED if completed else ENDED_UNMARKED, (at, head.session)))
    if event.rule:
        changes.append((DECIDED, (event.rule, event.why, head.session)))
    head.owner, head.stop, head.left = None, 0, 0
    return changes


def _stop_requested(head: Head, event: e.StopRequested, at: int, in_turn: bool) -> list[Change]:
    if event.turn_id == head.turn and head.state in turns.OPEN:
        head.stop = 1
    return [
        (STOPPED, (event.turn_id, head.seq, event.turn_id, event.reply, head.session)),
        *remember(event.dedup_key, STOP, head, event.turn_id),
    ]


def _trial_passed(head: Head, event: e.TrialPassed, at: int, in_turn: bool) -> list[Change]:
    return [(TRUSTED, (head.session,))]


ROWS: Rows = {
    e.TurnStarted: _turn_started,
    e.TurnTaken: _turn_taken,
    e.TurnResumed: _turn_resumed,
    e.TurnLeft: _turn_left,
    e.TurnInterrupted: _turn_interrupted,
    e.TurnWaiting: _turn_waiting,
    e.TurnEnded: _turn_ended,
    e.StopRequested: _stop_requested,
    e.TrialPassed: _trial_passed,
}
