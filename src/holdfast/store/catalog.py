"""The catalog: rows derived from the log, in the transaction that writes the log. `rebuild` replays the log through the same code."""

from typing import Any

from msgspec import UNSET

from holdfast.core import events as e
from holdfast.core import turns
from holdfast.core.content import digest, outline
from holdfast.core.delivery import DeliveryState
from holdfast.core.plans.repeats import CONTINUES, NOTHING, RESET, RESUME, STOP
from holdfast.core.sessions import title_of
from holdfast.store import blobs
from holdfast.store.heads import Head
from holdfast.store.log import COLUMNS, Finding, insert, read
from holdfast.store.tx import Tx

DERIVED = ("head", "session", "lane", "inbox", "dedup", "forgotten", "outbox", "question", "blob_use")
# What people would call a sign of life in a conversation; other records do not move it up in the list.
LIVELY = {
    "session.created",
    "session.resumed",
    "session.undeleted",
    "message.accepted",
    "message.written",
    "turn.started",
    "turn.ended",
    "turn.interrupted",
    "question.asked",
}
# Outside a turn these are words to and from the gateway itself: a conversation does not live by them.
ASIDE = {"message.written"}
# What the beginning of an attempt (session ?1, at ?2, on trial ?3) changes.
_BEGUN = "attempt_at = ?2, on_trial = ?3, tried_at = iif(?3, ?2, tried_at)"
# The place of an event outside any turn: no turn, epoch, attempt or position.
OUTSIDE = (None, 0, 0, 0)
SQL_CHANGES = ("title", "pinned", "archived", "suspended", "resume_pending", "resume_reason", "rule")


def append(tx: Tx, head: Head, event: e.Event, at: int, *, in_turn: bool) -> None:
    """Writes one event behind the head, and everything that follows from it. Positions count within a lease, from its first event."""
    if isinstance(event, e.TurnStarted | e.TurnTaken):
        head.epoch, head.position = event.epoch, 0
        if isinstance(event, e.TurnStarted):
            head.turn_seq = head.seq + 1
    attempt = event.attempt if isinstance(event, e.TurnStarted | e.TurnResumed) else head.attempt
    if event.says:
        blobs.hold(tx, head.session, event)
    head.seq += 1
    place = (head.turn, head.epoch, attempt, head.position) if in_turn else OUTSIDE
    insert(tx, head.session, head.seq, place, event.kind, int(event.stream), e.encode(event), at)
    apply(tx, head, event, at, in_turn=in_turn)


def apply(tx: Tx, head: Head, event: e.Event, at: int, *, in_turn: bool) -> None:
    """What the catalog makes of an event that stands at the head."""
    if in_turn:
        head.position += 1
        head.state = turns.after(head.state, event)
    if event.stream:
        return
    _apply_turn(tx, head, event, at)
    _apply_session(tx, head, event, at, in_turn=in_turn)
    _apply_deletion(tx, head, event, at)
    if event.says:
        blobs.use(tx, head.session, event)
    if event.kind in LIVELY and (in_turn or event.kind not in ASIDE):
        head.updated_at = at


def _apply_turn(tx: Tx, head: Head, event: e.Event, at: int) -> None:
    match event:
        case e.TurnStarted():
            head.attempt, head.owner, head.epoch, head.stop, head.left = event.attempt, event.owner, event.epoch, 0, 0
            tx.write(
                f"UPDATE session SET {_BEGUN}, generation = ?4, rule = NULL, why = NULL, deaths = 0 WHERE id = ?1",
                head.session,
                at,
                event.trial,
                event.generation,
            )
            tx.write(
                "UPDATE lane SET generation = ? WHERE session_key = (SELECT session_key FROM session WHERE id = ?)",
                event.generation,
                head.session,
            )
            for message_id in event.causes:
                head.asked_seq = _take_from_inbox(tx, head, message_id)
        case e.TurnTaken():
            head.owner, head.epoch = event.owner, event.epoch
        case e.TurnResumed():
            head.attempt, head.left = event.attempt, 0
            tx.write(f"UPDATE session SET {_BEGUN} WHERE id = ?1", head.session, at, event.trial)
            _decided(tx, head, event.rule, event.why)
        case e.TurnLeft():
            head.owner, head.left = None, 1
            _decided(tx, head, event.rule, event.why)
        case e.TurnInterrupted():
            if event.died is not None:
                head.owner = None
            tx.write(
                "UPDATE session SET interrupted_restarts = ?, deaths = ?, on_trial = 0, lived_ms = iif(?3, ?3, lived_ms) WHERE id = ?4",
                event.restarts,
                event.deaths,
                event.lived_ms,
                head.session,
            )
            # Suspended wins: such a session is never marked.
            tx.write(
                "UPDATE session SET resume_pending = 1, resume_reason = ?, last_resume_marked_at = ? WHERE id = ? AND NOT suspended",
                event.reason,
                at,
                head.session,
            )
        case e.TurnWaiting():
            _release(tx, head)
        case e.QuestionAsked():
            if event.ends_attempt:
                _release(tx, head)
            tx.write(
                "INSERT INTO question VALUES (?, ?, ?, ?, 'open', ?)",
                event.question_id,
                head.session,
                head.turn,
                event.call_id,
                event.expires_at,
            )
        case e.QuestionAnswered():
            head.left = 0
            tx.write("UPDATE question SET state = 'answered' WHERE question_id = ?", event.question_id)
            remember(tx, event.dedup_key, digest(event.content), head.session, event.question_id)
            if event.message_id:
                _take_from_inbox(tx, head, event.message_id)
        case e.StopRequested():
            if event.turn_id == head.turn and head.state in turns.OPEN:
                head.stop = 1
            tx.write(
                "UPDATE session SET stop_seq = iif(stop_turn = ?1, stop_seq, ?2), stop_turn = ?1, stop_reply = ?3 WHERE id = ?4",
                event.turn_id,
                head.seq,
                event.reply,
                head.session,
            )
            remember(tx, event.dedup_key, STOP, head.session, event.turn_id)
        case e.TrialPassed():
            tx.write("UPDATE session SET interrupted_restarts = 0, on_trial = 0 WHERE id = ?", head.session)
        case e.TurnEnded():
            _end_turn(tx, head, event, at)
        case _:
            pass


def _release(tx: Tx, head: Head) -> None:
    """The attempt is over: the turn waits for its user, and belongs to no process."""
    head.owner = None
    tx.write("UPDATE session SET on_trial = 0 WHERE id = ? AND on_trial = 1", head.session)


def _decided(tx: Tx, head: Head, rule: str, why: str | None) -> None:
    tx.write("UPDATE session SET rule = ?, why = ? WHERE id = ?", rule, why, head.session)


def _end_turn(tx: Tx, head: Head, event: e.TurnEnded, at: int) -> None:
    closed = "cancelled" if event.outcome is turns.Outcome.CANCELLED else "expired"
    tx.write("UPDATE question SET state = ? WHERE session = ? AND turn = ? AND state = 'open'", closed, head.session, head.turn)
    completed = event.outcome is turns.Outcome.COMPLETED
    # A trial is passed by whatever end the turn comes to, as long as its process survives it.
    changes = "journal_since = ?1, interrupted_restarts = iif(?2 OR on_trial, 0, interrupted_restarts), on_trial = 0"
    if not event.still_pending:
        changes += ", resume_pending = 0, resume_reason = NULL, last_resume_marked_at = NULL"
    if completed:
        tx.write("UPDATE start SET sound = 1 WHERE owner = ? AND sound = 0", head.owner)
    if event.blamed_for is not None:
        tx.write("UPDATE start SET explained = 1 WHERE owner = ?", event.blamed_for)
    tx.write(f"UPDATE session SET {changes} WHERE id = ?3", at, completed, head.session)
    if event.rule:
        _decided(tx, head, event.rule, event.why)
    head.owner, head.stop, head.left = None, 0, 0


def _apply_session(tx: Tx, head: Head, event: e.Event, at: int, *, in_turn: bool) -> None:
    match event:
        case e.SessionCreated():
            tx.write(
                "INSERT INTO head (session, seq, state, epoch, attempt, position, turn_seq, stop) VALUES (?, 0, '', 0, 0, 0, 0, 0)",
                head.session,
            )
            tx.write(
                "INSERT INTO session (id, session_id, session_key, log, title, created_at, auto_reset_reason) VALUES (?, ?, ?, ?, ?, ?, ?)",
                head.session,
                event.session_id,
                event.session_key,
                event.log,
                event.title,
                at,
                event.auto_reset_reason,
            )
            tx.write(
                "INSERT INTO lane VALUES (?, ?, 0) ON CONFLICT (session_key) DO UPDATE SET session = excluded.session",
                event.session_key,
                head.session,
            )
            remember(tx, event.dedup_key, RESET, head.session, event.session_id)
        case e.SessionResumed():
            head.left = 0
            tx.write("UPDATE session SET suspended = 0, interrupted_restarts = 0 WHERE id = ?", head.session)
            tx.write("UPDATE lane SET session = ?1 WHERE session_key = (SELECT session_key FROM session WHERE id = ?1)", head.session)
            remember(tx, event.dedup_key, RESUME, head.session, CONTINUES if event.goes_on else "")
        case e.SessionChanged():
            changes = {field: value for field in SQL_CHANGES if (value := getattr(event, field)) is not UNSET}
            if changes.get("resume_pending") is True:  # A mark has a reason and a time; both go with it.
                changes = {"resume_reason": "restart_timeout", "last_resume_marked_at": at} | changes
            elif changes.get("resume_pending") is False:
                changes |= {"resume_reason": None, "last_resume_marked_at": None}
            head.archived = int(changes.pop("archived", head.archived))
            for field, value in changes.items():
                tx.write(f"UPDATE session SET {field} = ? WHERE id = ?", value, head.session)
        case e.MessageAccepted():
            what = "steer" if event.mode == "steer" else "message"
            tx.write("INSERT INTO inbox VALUES (?, ?, ?, ?)", head.session, head.seq, event.message_id, what)
            remember(tx, event.dedup_key, digest(event.content), head.session, event.message_id)
            tx.write(
                "UPDATE session SET title = ? WHERE id = ? AND title IS NULL", title_of(event.text or outline(event.content)), head.session
            )
        case e.SessionRestored():
            tx.write("UPDATE session SET log = ? WHERE id = ?", event.log, head.session)
        case e.RequestNoted():
            remember(tx, event.dedup_key, event.what.encode(), head.session, NOTHING)
        case e.MessageRefused():
            _take_from_inbox(tx, head, event.message_id)
        case e.CauseRecorded():
            tx.write("INSERT INTO inbox VALUES (?, ?, ?, ?)", head.session, head.seq, event.cause_id, event.what)
            remember(tx, event.dedup_key, digest(event.content), head.session, event.cause_id)
        case e.CauseTaken() | e.CauseDropped():
            _take_from_inbox(tx, head, event.cause_id)
        case e.MessageWritten():
            remember(tx, event.dedup_key, digest(event.content), head.session, event.message_id)
            if event.delivery_id and not (head.deleted and in_turn):  # Nobody is owed what a turn of a deleted session said.
                tx.write(
                    "INSERT INTO outbox (delivery_id, session, seq, at, state, tries, retry_at) VALUES (?, ?, ?, ?, ?, 0, 0)",
                    event.delivery_id,
                    head.session,
                    head.seq,
                    at,
                    str(DeliveryState.PENDING),
                )
        case e.DeliveryChanged():
            tx.write(
                "UPDATE outbox SET state = ?, tries = ?, retry_at = ?, owner = ?, receipt = ?, error = ? WHERE delivery_id = ?",
                event.state,
                event.tries,
                event.retry_at,
                event.owner,
                event.receipt,
                event.error,
                event.delivery_id,
            )
        case e.JournalPruned():
            done = ", journal_since = NULL" if event.through + 1 == head.seq else ""
            tx.write(f"UPDATE session SET pruned_seq = max(pruned_seq, ?){done} WHERE id = ?", event.through, head.session)
        case _:
            pass


def _apply_deletion(tx: Tx, head: Head, event: e.Event, at: int) -> None:
    match event:
        case e.SessionDeleted():
            head.deleted = head.seq
            tx.write(
                "UPDATE session SET deleted_at = ?, deleted_by = ?, purge_at = ? WHERE id = ?", at, event.by, event.purge_at, head.session
            )
        case e.SessionUndeleted():
            head.deleted = 0
            tx.write("UPDATE session SET deleted_at = NULL, deleted_by = NULL, purge_at = NULL WHERE id = ?", head.session)
        case e.SessionPurged():
            _bury(tx, head, event, at)
        case e.SessionForgotten():
            tx.write_many("INSERT OR IGNORE INTO forgotten VALUES (?, ?)", [(bytes.fromhex(key), head.session) for key in event.keys])
            if event.done:
                tx.write("UPDATE session SET purge_at = NULL WHERE id = ?", head.session)
        case _:
            pass


def _bury(tx: Tx, head: Head, event: e.SessionPurged, at: int) -> None:
    """Only what the record itself says is left, whatever stood before it and however much of that can still be read."""
    blobs.unuse(tx, head.session)
    tx.write("DELETE FROM inbox WHERE session = ?", head.session)
    tx.write("DELETE FROM question WHERE session = ? AND state = 'open'", head.session)
    tx.write(
        "INSERT OR REPLACE INTO session"
        " (id, session_id, session_key, log, created_at, generation, deleted_at, deleted_by, purge_at, purged)"
        " VALUES (?, ?, ?, '', ?, ?, ?, ?, 0, 1)",
        head.session,
        event.session_id,
        event.session_key,
        event.created_at,
        event.generation,
        event.deleted_at,
        event.by,
    )
    tx.write(
        "INSERT INTO lane VALUES (?1, ?2, ?3) ON CONFLICT (session_key) DO UPDATE SET generation = max(generation, ?3)"
        f"{', session = ?2' if event.current else ''}",
        event.session_key,
        head.session,
        event.generation,
    )
    tx.write(
        "INSERT OR IGNORE INTO head (session, seq, state, epoch, attempt, position, turn_seq, stop) VALUES (?, 0, '', 0, 0, 0, 0, 0)",
        head.session,
    )
    head.state, head.epoch, head.owner, head.turn, head.attempt, head.position = turns.TurnState.NONE, 0, None, None, 0, 0
    head.turn_seq = head.stop = head.archived = head.left = head.asked_seq = 0
    head.deleted, head.updated_at = head.seq, at


def _take_from_inbox(tx: Tx, head: Head, cause_id: str) -> int:
    """Where in the log the cause had been recorded."""
    rows = tx.write("DELETE FROM inbox WHERE session = ? AND cause_id = ? RETURNING seq", head.session, cause_id)
    return rows[0][0] if rows else head.asked_seq


def remember(tx: Tx, dedup_key: str | None, content: bytes, session: int, ref: str) -> None:
    if dedup_key is not None:
        tx.write("INSERT INTO dedup VALUES (?, ?, ?, ?)", dedup_key, content, session, ref)


def rebuild(tx: Tx) -> None:
    """Rebuilds the catalog from the log alone, in the order of commits. Runs inside the caller's transaction."""
    for table in DERIVED:
        tx.write(f"DELETE FROM {table}")
    after = 0
    while rows := tx.query(f"SELECT {COLUMNS} FROM event WHERE id > ? ORDER BY id LIMIT 1000", after):
        for row in rows:
            _replay(tx, row)
        after = rows[-1][0]


def _replay(tx: Tx, row: tuple[Any, ...]) -> None:
    session = row[1]
    found: list[Finding] = []
    logged = read(tx, [row], {session: ""}, found)
    if found or isinstance(logged[0].event, e.Damaged):
        # Its place stays taken; nothing follows from it.
        tx.execute("UPDATE head SET seq = ?1 WHERE session = ?2 AND seq = ?1 - 1", row[2], session)
        return
    item, event = logged[0], logged[0].event
    if isinstance(event, e.SessionCreated | e.SessionPurged):
        head = Head(session)
    elif tx.query("SELECT 1 FROM head WHERE session = ?", session):
        head = tx.head(session)
    else:
        return  # The record that made the session is damaged.
    head.seq = item.seq
    tx.changed(head)
    if item.turn_id is not None:
        if head.turn != item.turn_id:
            head.turn, head.turn_seq = item.turn_id, item.seq
        head.position, head.attempt = item.position, item.attempt
        head.state = turns.before(head.state, event)
    apply(tx, head, event, item.at, in_turn=item.turn_id is not None)
