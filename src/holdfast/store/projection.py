"""The catalog: which rows change when an event is written. Pure: it reads no row, and what it needs to know of its session is the head.

The same function serves those who append and those who rebuild the catalog from the log.
"""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET

from holdfast.core import approvals, elicitation, turns, usage
from holdfast.core import events as e
from holdfast.core.busy import Mode
from holdfast.core.content import digest, outline
from holdfast.core.delivery import IN_FLIGHT, DeliveryState
from holdfast.core.journals import State
from holdfast.core.plans.edit import REPLACED
from holdfast.core.plans.repeats import CONTINUES, NOTHING, REFUSED, RESET, RESUME, STOP
from holdfast.core.recitals import Recital
from holdfast.core.sessions import title_of
from holdfast.core.spools import parse_stream_id
from holdfast.store.heads import Head
from holdfast.store.rows import Change, Delete, Form, Insert, Update

DERIVED = (
    *("head", "session", "lane", "inbox", "dedup", "forgotten", "outbox", "question", "rule", "process", "schedule"),
    *("blob_use", "spent", "recital", "journal"),
)
# What people would call a sign of life in a conversation; other records do not move it up in the list.
LIVELY = {
    "session.created",
    "session.resumed",
    "session.branched",
    "session.undeleted",
    "message.accepted",
    "message.written",
    "turn.started",
    "turn.ended",
    "turn.interrupted",
    "question.asked",
}
# Modes of a message that may be taken before those that came earlier.
AHEAD = (Mode.STEER, Mode.INTERRUPT)
# Why a message that showed an answer is no longer known.
LOST = "nobody knows whether it arrived"
# Outside a turn these are words to and from the gateway itself: a conversation does not live by them.
ASIDE = {"message.written"}

THIS = "id = ?"
KEY_OF = "session_key = (SELECT session_key FROM session WHERE id = ?)"
EMPTY_HEAD = ("session", "seq", "state", "epoch", "attempt", "position", "turn_seq", "stop")

HEAD_NEW = Insert("head", *EMPTY_HEAD)
HEAD_SURE = Insert("head", *EMPTY_HEAD, conflict="DO NOTHING")
SESSION_NEW = Insert("session", "id", "session_id", "session_key", "log", "title", "created_at", "auto_reset_reason")
SESSION_GONE = Delete("session", where=THIS)
SESSION_BURIED = Insert(
    "session", *("id", "session_id", "session_key", "log", "created_at", "generation", "deleted_at", "deleted_by", "purge_at", "purged")
)
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
RELEASED = Update("session", "suspended = 0", "interrupted_restarts = 0", where=THIS)
RELOGGED = Update("session", "log", where=THIS)
TITLED = Update("session", "title", where="id = ? AND title IS NULL")
PRUNED = Update("session", "pruned_seq", where="id = ? AND pruned_seq < ?")
ALL_PRUNED = Update("session", "journal_since = NULL", where=THIS)
DELETED = Update("session", "deleted_at", "deleted_by", "purge_at", where=THIS)
UNDELETED = Update("session", "deleted_at = NULL", "deleted_by = NULL", "purge_at = NULL", where=THIS)
PURGED = Update("session", "purge_at = NULL", where=THIS)
CHANGED = {
    field: Update("session", field, where=THIS)
    for field in ("title", "pinned", "suspended", "resume_pending", "resume_reason", "last_resume_marked_at", "rule", "model")
}

LANE_GENERATION = Update("lane", "generation", where=KEY_OF)
LANE_SESSION = Update("lane", "session", where=KEY_OF)
LANE_NEW = Insert("lane", "session_key", "session", "generation", conflict="(session_key) DO UPDATE SET session = excluded.session")
_NEWEST = "generation = CASE WHEN lane.generation < excluded.generation THEN excluded.generation ELSE lane.generation END"
LANE_BURIED = Insert("lane", "session_key", "session", "generation", conflict=f"(session_key) DO UPDATE SET {_NEWEST}")
LANE_BURIED_CURRENT = Insert(
    *("lane", "session_key", "session", "generation"), conflict=f"(session_key) DO UPDATE SET {_NEWEST}, session = excluded.session"
)

WAITS = Insert("inbox", "session", "seq", "cause_id", "what")
EDITED = Update("inbox", "edited", where="session = ? AND cause_id = ?")
TAKEN = Delete("inbox", where="session = ? AND cause_id = ?")
BEGUN = Delete("inbox", where="session = ? AND cause_id = ?", returning="seq", into="asked_seq")
INBOX_GONE = Delete("inbox", where="session = ?")
REMEMBERED = Insert("dedup", "dedup_key", "digest", "session", "ref")
FORGOTTEN = Insert("forgotten", "key", "session", conflict="DO NOTHING")
OWED = Insert("outbox", "delivery_id", "session", "seq", "at", "state", "tries", "retry_at", "turn")
OPENED = Insert("outbox", "delivery_id", "session", "seq", "at", "state", "tries", "retry_at", "owner", "turn", "live", "tried_at")
PIECE = "delivery_id = ? AND part = ?"
_MOVED = ("state", "tries", "retry_at", "owner", "receipt", "error")
DELIVERY = Update("outbox", *_MOVED, where=PIECE)
DELIVERY_TRIED = Update("outbox", *_MOVED, "tried_at", where=PIECE)
DELIVERY_ANEW = Update("outbox", "target = NULL", where=PIECE)
PLANNED = Update("outbox", "planned", "target", where="delivery_id = ? AND part = 0")
PIECE_OWED = Form(
    "outbox",
    "INSERT INTO outbox (delivery_id, part, session, seq, at, state, tries, retry_at, turn, planned, target)"
    " SELECT delivery_id, ?, session, seq, at, 'pending', 0, 0, turn, ?, ? FROM outbox WHERE delivery_id = ? AND part = 0",
)
NO_LONGER_LIVE = Update("outbox", "state", "owner = NULL", "error", where="delivery_id = ? AND live = 1")
ASKED = Insert("question", "question_id", "session", "turn", "call_id", "state", "expires_at", "form", "seq")
ANSWERED = Update("question", "state", "message", "verdict", where="question_id = ?")
USED_UP = Update("question", "state = 'used'", where="question_id = ?")
QUESTION_ENDED = Update("question", "state = 'ended'", where="question_id = ? AND state = 'open'")
CLOSED = Update(
    "question", "state = CASE WHEN expires_at <= ? THEN 'expired' ELSE ? END", where="session = ? AND turn = ? AND state = 'open'"
)
QUESTIONS_GONE = Delete("question", where="session = ? AND state = 'open'")
RULE = Insert("rule", "rule_id", "session", "pattern", "author", "at", conflict="DO NOTHING")
RULE_GONE = Delete("rule", where="rule_id = ?")
RULES_GONE = Delete("rule", where="session = ?")
STARTS = Insert("process", "process_id", "session", "seq", "state", conflict="DO NOTHING")
MATCHES = Update("process", "scanned", "matched_at", "streak", where="process_id = ?")
CONSUMES = Update("process", "consumed", where="process_id = ? AND consumed IS NULL")
ENDS = Update("process", "state = 'ended'", "ended_seq", where="process_id = ? AND state = 'running'")
PROCESSES_GONE = Delete("process", where="session = ?")
SCHEDULED = Insert("schedule", "schedule_id", "session", "seq", "at", "due", "noted", conflict="DO NOTHING")
NEXT_DUE = Update("schedule", "due", "noted", "last", "skipped", where="schedule_id = ?")
SCHEDULE_GONE = Delete("schedule", where="schedule_id = ?")
SCHEDULES_GONE = Delete("schedule", where="session = ?")
SUMS = ("requests", "input", "output", "cached", "stored", "thought", "cost", "unpriced")
_ADDED = ", ".join(f"{name} = spent.{name} + excluded.{name}" for name in SUMS)
SPENT = Insert("spent", "session", "turn", "day", "model", "sender", *SUMS, conflict=f"(session, turn, day, model) DO UPDATE SET {_ADDED}")
NONE_SPENT = msgspec.structs.astuple(usage.NOTHING)
SPENT_GONE = Delete("spent", where="session = ?")
RECITED = Insert("recital", "digest", "session", "seq", "message", "instructions")
RECITALS_GONE = Delete("recital", where="session = ?")
JOURNAL = ("session", "turn", "epoch", "state", "tries", "size", "filled", "first_seen", "changed_at")
JOURNAL_LATE = Insert("journal", *JOURNAL, conflict="DO NOTHING")
_ARRIVED = "filled = CASE WHEN excluded.filled = 1 THEN 1 ELSE journal.filled END"
_AS_NOW = ", ".join(f"{name} = excluded.{name}" for name in ("state", "tries", "size", "changed_at"))
JOURNAL_CHANGED = Insert("journal", *JOURNAL, conflict=f"(session, turn, epoch) DO UPDATE SET {_AS_NOW}, {_ARRIVED}")
JOURNALS_GONE = Delete("journal", where="session = ?")
USED = Insert("blob_use", "digest", "session", conflict="DO NOTHING")
UNUSED = Delete("blob_use", where="session = ?")


def project(head: Head, event: e.Event, at: int, *, in_turn: bool) -> list[Change]:
    """What follows from an event that stands at the head: the head moves on, and these rows change, in this order."""
    if in_turn:
        head.position += 1
        head.state = turns.after(head.state, event)
    if event.stream:
        return []
    rows = _ROWS.get(type(event))
    changes = rows(head, event, at, in_turn) if rows is not None else []
    if event.says:
        changes += [(USED, (part.blob, head.session)) for part in e.attached(event)]
    if event.kind in LIVELY and (in_turn or event.kind not in ASIDE):
        head.updated_at = at
    return changes


def _recite(recital: Recital | None, head: Head, message_id: str) -> list[Change]:
    return [] if recital is None else [(RECITED, (recital.digest, head.session, head.seq, message_id, recital.instructions))]


def _remember(key: str | None, content: bytes, head: Head, ref: str) -> list[Change]:
    return [] if key is None else [(REMEMBERED, (key, content, head.session, ref))]


# a turn


def _turn_started(head: Head, event: e.TurnStarted, at: int, in_turn: bool) -> list[Change]:
    head.attempt, head.owner, head.epoch, head.stop, head.left = event.attempt, event.owner, event.epoch, 0, 0
    return [
        (STARTED, (at, int(event.trial), event.generation, head.session)),
        *([(TRIED, (at, head.session))] if event.trial else []),
        (LANE_GENERATION, (event.generation, head.session)),
        *((BEGUN, (head.session, cause_id)) for cause_id in event.causes),
        *([(SPENT, (head.session, head.turn or "", event.day, "", event.sender or "", *NONE_SPENT))] if event.day else []),
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
        *_late(head, event, at),
    ]


def _late(head: Head, event: e.TurnInterrupted, at: int) -> list[Change]:
    stream = parse_stream_id(event.stream_id or "")
    return [(JOURNAL_LATE, (head.session, *stream, State.RECOVERING.value, 0, 0, 0, at, at))] if stream else []


def _journal_changed(head: Head, event: e.JournalChanged, at: int, in_turn: bool) -> list[Change]:
    stream, filled = parse_stream_id(event.stream_id), int(bool(event.text or event.call_ids))
    return [(JOURNAL_CHANGED, (head.session, *stream, event.state, event.tries, event.size, filled, at, at))] if stream else []


def _released(head: Head) -> list[Change]:
    """The attempt is over: the turn waits for its user, and belongs to no process."""
    head.owner = None
    return [(OFF_TRIAL, (head.session,))]


def _turn_waiting(head: Head, event: e.TurnWaiting, at: int, in_turn: bool) -> list[Change]:
    return _released(head)


def _question_asked(head: Head, event: e.QuestionAsked, at: int, in_turn: bool) -> list[Change]:
    released = _released(head) if event.ends_attempt else []
    row = (event.question_id, head.session, head.turn, event.call_id, "open", event.expires_at, event.form, head.seq)
    return [*released, (ASKED, row)]


def _question_answered(head: Head, event: e.QuestionAnswered, at: int, in_turn: bool) -> list[Change]:
    head.left = 0
    return [
        (ANSWERED, ("answered", event.message_id, event.verdict, event.question_id)),
        *_remember(event.dedup_key, _said(event), head, event.question_id),
        *([(TAKEN, (head.session, event.message_id))] if event.message_id else []),
    ]


def _said(event: e.QuestionAnswered) -> bytes:
    if event.verdict == elicitation.GIVEN:
        return approvals.known_by(event.content, None, None)
    return approvals.known_by((event.reason or "") if event.verdict else event.content, event.verdict, event.scope)


def _question_closed(head: Head, event: e.QuestionClosed, at: int, in_turn: bool) -> list[Change]:
    return [(QUESTION_ENDED, (event.question_id,))]


def _tool_started(head: Head, event: e.ToolStarted, at: int, in_turn: bool) -> list[Change]:
    return [] if event.approval is None else [(USED_UP, (event.approval,))]


def _spent(head: Head, event: e.ModelResponded | e.ContextCompacted, at: int, in_turn: bool) -> list[Change]:
    spent = usage.of(event)
    if not spent.requests:
        return []
    row = (head.session, head.turn or "", event.day or usage.day(at), event.model, event.sender or "")
    return [(SPENT, (*row, *msgspec.structs.astuple(spent)))]


def _rule_added(head: Head, event: e.RuleAdded, at: int, in_turn: bool) -> list[Change]:
    return [(RULE, (event.rule_id, head.session, event.pattern, event.by, at))]


def _rule_removed(head: Head, event: e.RuleRemoved, at: int, in_turn: bool) -> list[Change]:
    return [(RULE_GONE, (event.rule_id,))]


def _process_started(head: Head, event: e.ProcessStarted, at: int, in_turn: bool) -> list[Change]:
    return [(STARTS, (event.process_id, head.session, head.seq, "running"))]


def _process_matched(head: Head, event: e.ProcessMatched, at: int, in_turn: bool) -> list[Change]:
    return [(MATCHES, (event.through, at, event.streak, event.process_id))]


def _process_consumed(head: Head, event: e.ProcessConsumed, at: int, in_turn: bool) -> list[Change]:
    return [(CONSUMES, (event.how, event.process_id))]


def _process_ended(head: Head, event: e.ProcessEnded, at: int, in_turn: bool) -> list[Change]:
    return [(ENDS, (head.seq, event.process_id))]


def _schedule_added(head: Head, event: e.ScheduleAdded, at: int, in_turn: bool) -> list[Change]:
    row = (event.schedule_id, head.session, head.seq, at, event.due_at, at)
    return [(SCHEDULED, row), *_remember(event.dedup_key, digest(event.content), head, event.schedule_id)]


def _schedule_due(head: Head, event: e.ScheduleDue, at: int, in_turn: bool) -> list[Change]:
    if event.next_at is None:
        return [(SCHEDULE_GONE, (event.schedule_id,))]
    return [(NEXT_DUE, (event.next_at, at, event.due_at, event.skipped, event.schedule_id))]


def _schedule_removed(head: Head, event: e.ScheduleRemoved, at: int, in_turn: bool) -> list[Change]:
    return [(SCHEDULE_GONE, (event.schedule_id,))]


def _stop_requested(head: Head, event: e.StopRequested, at: int, in_turn: bool) -> list[Change]:
    if event.turn_id == head.turn and head.state in turns.OPEN:
        head.stop = 1
    return [
        (STOPPED, (event.turn_id, head.seq, event.turn_id, event.reply, head.session)),
        *_remember(event.dedup_key, STOP, head, event.turn_id),
    ]


def _trial_passed(head: Head, event: e.TrialPassed, at: int, in_turn: bool) -> list[Change]:
    return [(TRUSTED, (head.session,))]


def _turn_ended(head: Head, event: e.TurnEnded, at: int, in_turn: bool) -> list[Change]:
    completed = event.outcome is turns.Outcome.COMPLETED
    closed = (0, "cancelled") if event.outcome is turns.Outcome.CANCELLED else (at, "ended")
    changes: list[Change] = [(CLOSED, (*closed, head.session, head.turn))]
    if completed:
        changes.append((SOUND, (head.owner,)))
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


# a session


def _session_created(head: Head, event: e.SessionCreated, at: int, in_turn: bool) -> list[Change]:
    row = (head.session, event.session_id, event.session_key, event.log, event.title, at, event.auto_reset_reason)
    return [
        (HEAD_NEW, (head.session, 0, "", 0, 0, 0, 0, 0)),
        (SESSION_NEW, row),
        (LANE_NEW, (event.session_key, head.session, 0)),
        *_remember(event.dedup_key, RESET, head, event.session_id),
    ]


def _session_resumed(head: Head, event: e.SessionResumed, at: int, in_turn: bool) -> list[Change]:
    head.left = 0
    return [
        (RELEASED, (head.session,)),
        (LANE_SESSION, (head.session, head.session)),
        *_remember(event.dedup_key, RESUME, head, CONTINUES if event.goes_on else ""),
    ]


def _session_changed(head: Head, event: e.SessionChanged, at: int, in_turn: bool) -> list[Change]:
    changes = {field: value for field in CHANGED if (value := getattr(event, field, UNSET)) is not UNSET}
    if event.resume_pending is True:  # A mark has a reason and a time; both go with it.
        changes = {"resume_reason": "restart_timeout", "last_resume_marked_at": at} | changes
    elif event.resume_pending is False:
        changes |= {"resume_reason": None, "last_resume_marked_at": None}
    if event.archived is not UNSET:
        head.archived = int(event.archived)
    return [(CHANGED[field], (int(value) if isinstance(value, bool) else value, head.session)) for field, value in changes.items()]


def _session_restored(head: Head, event: e.SessionRestored, at: int, in_turn: bool) -> list[Change]:
    return [(RELOGGED, (event.log, head.session))]


def _journal_pruned(head: Head, event: e.JournalPruned, at: int, in_turn: bool) -> list[Change]:
    changes: list[Change] = [(PRUNED, (event.through, head.session, event.through))]
    return [*changes, (ALL_PRUNED, (head.session,))] if event.through + 1 == head.seq else changes


def _session_deleted(head: Head, event: e.SessionDeleted, at: int, in_turn: bool) -> list[Change]:
    head.deleted = head.seq
    return [(DELETED, (at, event.by, event.purge_at, head.session))]


def _session_undeleted(head: Head, event: e.SessionUndeleted, at: int, in_turn: bool) -> list[Change]:
    head.deleted = 0
    return [(UNDELETED, (head.session,))]


def _session_purged(head: Head, event: e.SessionPurged, at: int, in_turn: bool) -> list[Change]:
    """Only what the record itself says is left, whatever stood before it and however much of that can still be read."""
    head.state, head.epoch, head.owner, head.turn, head.attempt, head.position = turns.TurnState.NONE, 0, None, None, 0, 0
    head.turn_seq = head.stop = head.archived = head.left = head.asked_seq = 0
    head.deleted, head.updated_at = head.seq, at
    known = (head.session, event.session_id, event.session_key, "", event.created_at, event.generation, event.deleted_at, event.by, 0, 1)
    return [
        (UNUSED, (head.session,)),
        (INBOX_GONE, (head.session,)),
        (QUESTIONS_GONE, (head.session,)),
        (RULES_GONE, (head.session,)),
        (RECITALS_GONE, (head.session,)),
        (PROCESSES_GONE, (head.session,)),
        (SCHEDULES_GONE, (head.session,)),
        (SPENT_GONE, (head.session,)),
        (JOURNALS_GONE, (head.session,)),
        *((SPENT, (head.session, "", each.day, "", "", *msgspec.structs.astuple(each.spent))) for each in event.spent),
        (SESSION_GONE, (head.session,)),
        (SESSION_BURIED, known),
        (LANE_BURIED_CURRENT if event.current else LANE_BURIED, (event.session_key, head.session, event.generation)),
        (HEAD_SURE, (head.session, 0, "", 0, 0, 0, 0, 0)),
    ]


def _session_forgotten(head: Head, event: e.SessionForgotten, at: int, in_turn: bool) -> list[Change]:
    changes: list[Change] = [(FORGOTTEN, (bytes.fromhex(key), head.session)) for key in event.keys]
    return [*changes, (PURGED, (head.session,))] if event.done else changes


# what is said


def _message_accepted(head: Head, event: e.MessageAccepted, at: int, in_turn: bool) -> list[Change]:
    what = event.mode if event.mode in AHEAD else "message"
    ref = event.message_id if event.mode != Mode.REJECT else REFUSED + event.message_id
    return [
        (WAITS, (head.session, head.seq, event.message_id, what)),
        *_remember(event.dedup_key, digest(event.content), head, ref),
        *_recite(event.recital, head, event.message_id),
        (TITLED, (title_of(event.text or outline(event.content)), head.session)),
    ]


def _message_edited(head: Head, event: e.MessageEdited, at: int, in_turn: bool) -> list[Change]:
    waits: list[Change] = [(EDITED, (head.seq, head.session, event.message_id))] if event.effect == REPLACED else []
    return [*waits, *_remember(event.dedup_key, digest(event.text), head, event.effect)]


def _message_refused(head: Head, event: e.MessageRefused, at: int, in_turn: bool) -> list[Change]:
    return [(TAKEN, (head.session, event.message_id))]


def _cause_recorded(head: Head, event: e.CauseRecorded, at: int, in_turn: bool) -> list[Change]:
    waits: Change = (WAITS, (head.session, head.seq, event.cause_id, event.what))
    return [waits, *_remember(event.dedup_key, digest(event.content), head, event.cause_id)]


def _cause_gone(head: Head, event: e.CauseTaken | e.CauseDropped, at: int, in_turn: bool) -> list[Change]:
    return [(TAKEN, (head.session, event.cause_id))]


def _request_noted(head: Head, event: e.RequestNoted, at: int, in_turn: bool) -> list[Change]:
    return _remember(event.dedup_key, event.what.encode(), head, NOTHING)


def _message_written(head: Head, event: e.MessageWritten, at: int, in_turn: bool) -> list[Change]:
    changes = _remember(event.dedup_key, digest(event.content), head, event.message_id) if event.dedup_key is not None else []
    changes += _recite(event.recital, head, event.message_id)
    if event.delivery_id and not (head.deleted and in_turn):  # Nobody is owed what a turn of a deleted session said.
        turn = head.turn if in_turn else None
        changes.append((OWED, (event.delivery_id, head.session, head.seq, at, str(DeliveryState.PENDING), 0, 0, turn)))
    return changes


def _delivery_opened(head: Head, event: e.DeliveryOpened, at: int, in_turn: bool) -> list[Change]:
    state = str(DeliveryState.SENDING)
    return [(OPENED, (event.delivery_id, head.session, head.seq, at, state, 1, 0, event.owner, event.turn_id, 1, at))]


def _delivery_planned(head: Head, event: e.DeliveryPlanned, at: int, in_turn: bool) -> list[Change]:
    name, first = event.delivery_id, event.pieces[0]
    return [
        (PLANNED, (head.seq, first.target, name)),
        *((PIECE_OWED, (part, head.seq, piece.target, name)) for part, piece in enumerate(event.pieces) if part),
        *((NO_LONGER_LIVE, (str(DeliveryState.SENT), None, live)) for live in event.live),
        *((NO_LONGER_LIVE, (str(DeliveryState.DEAD), LOST, lost)) for lost in event.lost),
    ]


def _delivery_changed(head: Head, event: e.DeliveryChanged, at: int, in_turn: bool) -> list[Change]:
    moved, piece = (event.state, event.tries, event.retry_at, event.owner, event.receipt, event.error), (event.delivery_id, event.part)
    changes: list[Change] = [(DELIVERY_TRIED, (*moved, at, *piece)) if event.state in IN_FLIGHT else (DELIVERY, (*moved, *piece))]
    return [*changes, (DELIVERY_ANEW, piece)] if event.anew else changes


# Kinds that are not here change no row but the head's.
_ROWS: dict[type[e.Event], Callable[[Head, Any, int, bool], list[Change]]] = {
    e.TurnStarted: _turn_started,
    e.TurnTaken: _turn_taken,
    e.TurnResumed: _turn_resumed,
    e.TurnLeft: _turn_left,
    e.TurnInterrupted: _turn_interrupted,
    e.TurnWaiting: _turn_waiting,
    e.TurnEnded: _turn_ended,
    e.QuestionAsked: _question_asked,
    e.QuestionAnswered: _question_answered,
    e.QuestionClosed: _question_closed,
    e.ModelResponded: _spent,
    e.ContextCompacted: _spent,
    e.ToolStarted: _tool_started,
    e.RuleAdded: _rule_added,
    e.RuleRemoved: _rule_removed,
    e.ProcessStarted: _process_started,
    e.ProcessMatched: _process_matched,
    e.ProcessConsumed: _process_consumed,
    e.ProcessEnded: _process_ended,
    e.ScheduleAdded: _schedule_added,
    e.ScheduleDue: _schedule_due,
    e.ScheduleRemoved: _schedule_removed,
    e.StopRequested: _stop_requested,
    e.TrialPassed: _trial_passed,
    e.SessionCreated: _session_created,
    e.SessionResumed: _session_resumed,
    e.SessionChanged: _session_changed,
    e.SessionRestored: _session_restored,
    e.JournalPruned: _journal_pruned,
    e.JournalChanged: _journal_changed,
    e.SessionDeleted: _session_deleted,
    e.SessionUndeleted: _session_undeleted,
    e.SessionPurged: _session_purged,
    e.SessionForgotten: _session_forgotten,
    e.MessageAccepted: _message_accepted,
    e.MessageEdited: _message_edited,
    e.MessageRefused: _message_refused,
    e.CauseRecorded: _cause_recorded,
    e.CauseTaken: _cause_gone,
    e.CauseDropped: _cause_gone,
    e.RequestNoted: _request_noted,
    e.MessageWritten: _message_written,
    e.DeliveryOpened: _delivery_opened,
    e.DeliveryPlanned: _delivery_planned,
    e.DeliveryChanged: _delivery_changed,
}
