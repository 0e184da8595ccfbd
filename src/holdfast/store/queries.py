"""SQL by name, in words that every engine takes: ON CONFLICT instead of OR IGNORE, CASE instead of iif and max of two, no numbered marks,
in ON CONFLICT the columns of the row that is there by the name of their table, groups by the key of what is shown. What only one of them
understands lies in its own folder. Bools are bound as numbers.
"""

INSERT = (
    "INSERT INTO event (session, seq, turn, epoch, attempt, position, kind, stream, at, body, checksum)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
# Text is read as bytes: one that is no longer UTF-8 is damage to report, not an error of the whole read.
EVENT = "id, session, seq, CAST(turn AS BLOB), epoch, attempt, position, CAST(kind AS BLOB), stream, at, body, checksum"
# Word for word the condition of the index `event_record`.
RECORDS = "stream = 0"
STREAMS = "stream = 1"

# Which session, and everything that is known of it.
SESSIONS = """
    SELECT s.session_id, s.session_key, s.log, h.seq, s.title, s.created_at, h.updated_at, s.generation, s.pinned, h.archived, s.suspended,
           s.resume_pending, s.resume_reason, s.last_resume_marked_at, s.auto_reset_reason, s.interrupted_restarts,
           (SELECT count(*) FROM inbox i WHERE i.session = s.id), h.state, h.turn, h.attempt, h.position, h.turn_seq, h.owner, h.epoch,
           h.stop, s.pruned_seq, h.stays, s.rule, s.why, (SELECT l.session FROM lane l WHERE l.session_key = s.session_key) = s.id,
           s.deleted_at, s.purge_at, s.purged,
           s.attempt_at, s.on_trial, s.tried_at, s.lived_ms, s.deaths, s.model, s.folder,
           (SELECT count(*) FROM process p WHERE p.session = s.id AND p.state = 'running'), s.id
    FROM session s JOIN head h ON h.session = s.id
"""
# The order in which recovery looks at sessions: by the time of the message that started the turn.
_OLDEST = " ORDER BY (SELECT e.at FROM event e WHERE e.session = h.session AND e.seq = h.asked_seq), s.id"
# A deleted session owes only what was written about its deletion; the rest waits for an undo.
OWED = "o.seq > h.deleted"
_UPLOAD = "SELECT u.attachment_id, u.digest, b.size, u.media_type, u.name FROM upload u JOIN blob b ON b.digest = u.digest"

# removing

OLDEST_AT_REST = (
    "SELECT h.updated_at, s.session_id FROM head h JOIN session s ON s.id = h.session"
    " WHERE h.deleted = 0 AND h.archived = ? AND h.updated_at < ? AND h.state IN ('none', 'ended') AND s.pinned = 0"
    " AND s.resume_pending = 0 AND NOT EXISTS (SELECT 1 FROM inbox i WHERE i.session = h.session)"
    " AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.state NOT IN ('sent', 'dead') AND o.session = h.session)"
    " AND NOT EXISTS (SELECT 1 FROM process p WHERE p.session = h.session AND p.state = 'running')"
    " AND NOT EXISTS (SELECT 1 FROM schedule c WHERE c.session = h.session)"
    " ORDER BY h.updated_at LIMIT ?"
)
SIZES = "SELECT (SELECT count(*) FROM head WHERE deleted = 0), (SELECT count(*) FROM session WHERE purge_at IS NOT NULL)"
PURGE_DUE = "SELECT id FROM session WHERE purge_at <= ? ORDER BY purge_at, id LIMIT ?"
SESSION_PURGED = "SELECT session_id FROM session WHERE session_id = ? AND purged <> 0"
PURGE_STATE = "SELECT purge_at, purged FROM session WHERE id = ?"
DELETED_BY = "SELECT s.deleted_by, l.session FROM session s JOIN lane l USING (session_key) WHERE s.id = ?"
UNTOLD = "SELECT 1 FROM outbox WHERE state NOT IN ('sent', 'dead') AND state <> 'sending' AND session = ? AND seq > ? LIMIT 1"
OUTBOX_FORGET = "DELETE FROM outbox WHERE delivery_id = ?"
QUESTION_FORGET = "DELETE FROM question WHERE question_id = ?"
DEDUP_FORGET = "DELETE FROM dedup WHERE dedup_key = ?"
EVENTS_REMOVE = "DELETE FROM event WHERE session = ? AND seq >= ? AND seq < ?"
EVENTS_REMOVE_BEHIND = "DELETE FROM event WHERE session = ? AND seq > ?"
QUARANTINE_CLEAR = "DELETE FROM quarantine WHERE session = ?"
DESK_CLEAR = "DELETE FROM desk WHERE session = ?"
SCRUB_STAGE = "UPDATE meta SET value = ? WHERE name = 'scrub'"
EVENT_SIZES = "SELECT seq, length(body) FROM event WHERE session = ? AND seq < ? ORDER BY seq DESC LIMIT ?"
EVENTS_BACKWARDS = f"SELECT {EVENT} FROM event WHERE session = ? AND seq >= ? AND seq < ? ORDER BY seq DESC"

# rows of the log

SESSION_NUMBER = "SELECT id FROM session WHERE session_id = ?"
EVENT_BY_ID = f"SELECT {EVENT} FROM event WHERE id = ?"
SESSION_NAME = "SELECT session_id FROM session WHERE id = ?"
IN_LOG = "SELECT 1 FROM head WHERE session = ? AND ? BETWEEN 1 AND seq"
EVENT_AT = f"SELECT {EVENT} FROM event WHERE session = ? AND seq = ?"
EVENT_REMOVE = "DELETE FROM event WHERE session = ? AND seq = ?"
QUARANTINE = "INSERT INTO quarantine (session, seq, event_id, reason, row, found_at) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"

# reading

SESSION = f"{SESSIONS} WHERE s.session_id = ?"
SESSION_CURRENT = f"{SESSIONS} WHERE s.id = (SELECT session FROM lane WHERE session_key = ?) AND h.deleted = 0"
KNOWN = "SELECT d.digest, s.session_id, d.ref FROM dedup d JOIN session s ON s.id = d.session WHERE dedup_key = ?"
FORGOTTEN = "SELECT s.session_id FROM forgotten f JOIN session s ON s.id = f.session WHERE key = ?"
_RECITAL = (
    "SELECT r.session, s.session_id, r.message, r.seq, e.at, r.digest, r.instructions,"
    " (SELECT max(n.seq) FROM recital n WHERE n.session = r.session)"
    " FROM recital r JOIN session s ON s.id = r.session JOIN head h ON h.session = r.session"
    " LEFT JOIN event e ON e.session = r.session AND e.seq = r.seq"
)
RECITED = f"{_RECITAL} WHERE r.message = ?"
RECITING = (
    f"{_RECITAL} WHERE r.digest = ? AND h.deleted = 0"
    " AND r.seq = (SELECT max(n.seq) FROM recital n WHERE n.session = r.session) ORDER BY r.session DESC LIMIT ?"
)
RECITED_LAST = f"{_RECITAL} WHERE s.session_id = ? ORDER BY r.seq DESC LIMIT 1"
TURN_BEFORE = (
    f"SELECT seq, kind FROM event WHERE session = ? AND seq <= ? AND {RECORDS} AND kind IN ('turn.started', 'turn.ended')"
    " ORDER BY seq DESC LIMIT 1"
)
CONVERSATIONS = f"{SESSIONS} WHERE s.session_key = ? ORDER BY s.id DESC"
CONVERSATION_NUMBER = "SELECT count(*) FROM session WHERE session_key = (SELECT session_key FROM session WHERE id = ?) AND id <= ?"
CONVERSATIONS_COUNT = "SELECT count(*) FROM session WHERE session_key = ?"
LOG_BOUNDS = "SELECT s.id, h.seq, s.purged FROM session s JOIN head h ON h.session = s.id WHERE s.session_id = ?"
PRUNED_SEQ = "SELECT pruned_seq FROM session WHERE id = ?"
OPEN_TURNS = (
    f"{SESSIONS} WHERE h.state IN ('running', 'answered', 'interrupted')"
    " AND NOT (h.state = 'running' AND h.owner = ? AND h.stop = 0 AND s.suspended = 0)"
    " AND NOT (h.stays = 1 AND h.stop = 0 AND NOT EXISTS (SELECT 1 FROM inbox i WHERE i.session = h.session))" + _OLDEST
)
UNDECIDED = (
    f"{SESSIONS} WHERE h.session IN ("
    "SELECT l.session FROM head l JOIN session s ON s.id = l.session WHERE l.state IN ('running', 'answered', 'interrupted')"
    " AND l.state = 'interrupted' AND l.stays = 1 AND s.suspended = 0"
    " UNION SELECT q.session FROM question q JOIN head w ON w.session = q.session"
    " WHERE q.state = 'open' AND w.state = 'waiting' AND w.stays = 0"
    " UNION SELECT m.id FROM session m JOIN head n ON n.session = m.id WHERE m.resume_pending = 1 AND n.state IN ('none', 'ended'))"
    " AND h.deleted = 0" + _OLDEST
)
EVENTS_BEHIND = f"SELECT {EVENT} FROM event WHERE session = ? AND seq > ? ORDER BY seq"
COMPACTED_LAST = f"SELECT {EVENT} FROM event WHERE session = ? AND seq <= ? AND kind = 'context.compacted' ORDER BY seq DESC LIMIT 1"
LAST_INTERRUPTION = (
    f"SELECT body FROM event WHERE session = ? AND seq >= ? AND {RECORDS} AND kind = 'turn.interrupted' ORDER BY seq DESC LIMIT 1"
)
STARTS_BEFORE = "SELECT ended, sound, explained FROM start WHERE owner < ? ORDER BY owner DESC"
DEATHS = "SELECT count(*) FROM start WHERE owner < ? AND at >= ? AND ended = 0"
LAST_END = "SELECT ended FROM start WHERE owner <> ? ORDER BY owner DESC LIMIT 1"
_IN_LANES = (
    " JOIN head h ON h.session = i.session JOIN session s ON s.id = i.session"
    " LEFT JOIN event e ON e.session = i.session AND e.seq = i.seq"
    " WHERE h.state IN ('none', 'ended') ORDER BY e.at, i.session LIMIT ?"
)
WAITING_LANES = "SELECT s.session_id FROM (SELECT session, min(seq) AS seq FROM inbox GROUP BY session) i" + _IN_LANES
# Those in which a person said something.
WAITING_LANES_SAID = (
    "SELECT s.session_id FROM (SELECT session, min(seq) AS seq FROM inbox WHERE what IN ('message', 'steer', 'interrupt', 'edit')"
    " GROUP BY session) i" + _IN_LANES
)
PRUNABLE = (
    "SELECT s.session_id FROM session s JOIN head h ON h.session = s.id"
    " WHERE s.journal_since IS NOT NULL AND s.journal_since < ? AND h.state IN ('none', 'ended') ORDER BY s.journal_since LIMIT ?"
)
RUNNING_BY_OWNER = (
    "SELECT owner, count(*) FROM head WHERE state IN ('running', 'answered', 'interrupted') AND state = 'running'"
    " AND owner IS NOT NULL GROUP BY owner"
)
PAUSE = "SELECT holder, since, until FROM pause WHERE until > ?"
TOLD_TO_STOP = "SELECT 1 FROM owner WHERE id = ? AND told IS NOT NULL"
OWNERS = "SELECT id, name, pid, started_at, boot_id, socket, draining, told FROM owner ORDER BY id"
COUNTS = (
    "SELECT (SELECT count(*) FROM head WHERE deleted = 0), (SELECT count(*) FROM inbox),"
    f" (SELECT count(*) FROM outbox o JOIN head h ON h.session = o.session WHERE o.state NOT IN ('sent', 'dead') AND {OWED}), "
    " (SELECT count(*) FROM head WHERE state IN ('running', 'answered', 'interrupted') AND state = 'running'),"
    " (SELECT count(*) FROM session WHERE suspended = 1 AND deleted_at IS NULL),"
    " (SELECT count(*) FROM session WHERE resume_pending = 1 AND deleted_at IS NULL)"
)
SIGNED_OUT = "SELECT sign_in FROM signed_out WHERE until > ?"

# rebuilding

LOG_IN_ORDER = f"SELECT {EVENT} FROM event WHERE id > ? ORDER BY id LIMIT ?"
HEAD_SKIP = "UPDATE head SET seq = ? WHERE session = ? AND seq = ?"
HEAD_THERE = "SELECT 1 FROM head WHERE session = ?"

# processes, pauses, the search index, pruning

OWNER_REGISTER = (
    "INSERT INTO owner (name, pid, started_at, boot_id, socket) VALUES (?, ?, ?, ?, ?)"
    " ON CONFLICT (name) DO UPDATE SET pid = excluded.pid, started_at = excluded.started_at, boot_id = excluded.boot_id,"
    " socket = excluded.socket RETURNING id"
)
START_ADD = "INSERT INTO start (owner, at, pid, version) VALUES (?, ?, (SELECT pid FROM owner WHERE id = ?), ?) ON CONFLICT DO NOTHING"
STARTS_KEEP = "DELETE FROM start WHERE owner NOT IN (SELECT owner FROM start ORDER BY owner DESC LIMIT ?)"
START_SOUND = "UPDATE start SET sound = 1 WHERE owner = ?"
OWNER_DRAINS = "UPDATE owner SET draining = ? WHERE id = ?"
OWNERS_TOLD = "SELECT id, told FROM owner WHERE id IS DISTINCT FROM ?"
OWNER_TELL = "UPDATE owner SET told = ? WHERE id = ?"
START_ENDED = "UPDATE start SET ended = 1, gone = ? WHERE owner = ?"
START_STOPPED = "UPDATE start SET ended = 1 WHERE owner = ?"  # When it died is not known.
START_HANDED = "UPDATE start SET ended = 1, handed = ? WHERE owner = ?"
START_GOES_ON = "UPDATE start SET ended = 0, handed = NULL, gone = NULL WHERE owner = ?"
OWNER_STOPPED = "UPDATE owner SET draining = ? WHERE id = ? AND draining IS NULL"
PAUSE_END = "DELETE FROM pause"
PAUSE_BEGIN = "INSERT INTO pause VALUES (1, ?, ?, ?)"
PAUSED_ADD = "INSERT INTO paused (since, holder, until) SELECT since, holder, until FROM pause WHERE true ON CONFLICT DO NOTHING"
PAUSED_BEGIN = (
    "INSERT INTO paused (since, holder, until) VALUES (?, ?, ?) ON CONFLICT (since, holder) DO UPDATE SET"
    " until = excluded.until, ended = NULL"
)
# By a clock that may have stepped back.
PAUSED_OVER = (
    "UPDATE paused SET ended = CASE WHEN until < ? THEN until WHEN since > ? THEN since ELSE ? END"
    " WHERE ended IS NULL AND EXISTS (SELECT 1 FROM pause c WHERE c.since = paused.since AND c.holder = paused.holder)"
)
PAUSED_KEEP = "DELETE FROM paused WHERE since < (SELECT since FROM paused ORDER BY since DESC LIMIT 1 OFFSET ?)"
SIGN_INS_FORGET = "DELETE FROM signed_out WHERE until <= ?"
SIGN_OUT = "INSERT INTO signed_out VALUES (?, ?) ON CONFLICT (sign_in) DO UPDATE SET until = excluded.until"
OWNER_FORGET = (
    "DELETE FROM owner WHERE id = ? AND NOT EXISTS (SELECT 1 FROM head WHERE state IN ('running', 'answered', 'interrupted') AND owner = ?)"
)
SEARCH_MARK = "SELECT value FROM meta WHERE name = 'searchable_id'"
SEARCH_MARK_SET = "UPDATE meta SET value = ? WHERE name = 'searchable_id'"
INDEXED = "SELECT h.seq, coalesce(i.seq, 0) FROM head h LEFT JOIN indexed i ON i.session = h.session WHERE h.session = ?"
INDEXED_SET = "INSERT INTO indexed (session, seq) VALUES (?, ?) ON CONFLICT (session) DO UPDATE SET seq = excluded.seq"
SEARCHED = (
    f"SELECT seq, kind, body FROM event WHERE session = ? AND seq > ? AND seq <= ? AND {RECORDS}"
    " AND kind IN ('message.written', 'message.accepted', 'message.edited', 'question.answered', 'session.created', 'session.changed')"
    " ORDER BY seq"
)
SAID_BETWEEN = (
    f"SELECT {EVENT} FROM event WHERE session = ? AND seq > ? AND seq < ? AND {RECORDS}"
    " AND kind IN ('message.written', 'message.accepted', 'message.edited', 'question.answered') ORDER BY seq"
)
RECORD_PLACES = f"SELECT id, session, seq FROM event WHERE session = ? AND seq > ? AND seq <= ? AND {RECORDS} ORDER BY seq"
FIRST_PIECE_KEPT = f"SELECT seq FROM event WHERE session = ? AND seq > ? AND seq <= ? AND {STREAMS} ORDER BY seq LIMIT 1 OFFSET ?"
PIECES_REMOVE = f"DELETE FROM event WHERE session = ? AND seq > ? AND seq <= ? AND {STREAMS}"

# blobs and uploads

BLOB_PUT = (
    "INSERT INTO blob (digest, size, media_type, file, touched_at) VALUES (?, ?, ?, ?, ?)"
    " ON CONFLICT (digest) DO UPDATE SET touched_at = excluded.touched_at,"
    " file = CASE WHEN blob.file = ? THEN excluded.file ELSE blob.file END,"
    " media_type = CASE WHEN blob.media_type = 'application/octet-stream' THEN excluded.media_type ELSE blob.media_type END"
)
BLOB = "SELECT digest, size, media_type, file FROM blob WHERE digest = ?"
UPLOAD_BY_KEY = f"{_UPLOAD} WHERE u.dedup_key = ?"
UPLOAD_ADD = "INSERT INTO upload (attachment_id, digest, media_type, name, at, dedup_key) VALUES (?, ?, ?, ?, ?, ?)"
UPLOAD = f"{_UPLOAD} WHERE u.attachment_id = ?"
UPLOAD_USED = "UPDATE upload SET session = ? WHERE digest = ? AND name = ? AND media_type = ? AND session IS NULL"
BLOB_THERE = "SELECT 1 FROM blob WHERE digest = ?"
UPLOAD_USED_IN = (
    "INSERT INTO upload_use (attachment_id, session) SELECT attachment_id, ? FROM upload WHERE digest = ? AND name = ? AND media_type = ?"
    " ON CONFLICT DO NOTHING"
)
BLOB_NAMED = "UPDATE blob SET touched_at = NULL WHERE digest = ? RETURNING 1"
BLOB_NAMED_BY = "SELECT 1 FROM blob_use WHERE digest = ? AND session = ?"
BLOB_VISIBLE = (
    "SELECT digest, size, media_type, file FROM blob WHERE digest = ? AND EXISTS"
    " (SELECT 1 FROM blob_use u JOIN head h ON h.session = u.session WHERE u.digest = ? AND h.deleted = 0)"
)
BLOBS_LOOSE = "UPDATE blob SET touched_at = 0 WHERE touched_at IS NULL AND digest IN (SELECT digest FROM blob_use WHERE session = ?)"
UPLOAD_USES_GONE = "DELETE FROM upload_use WHERE session = ?"
UPLOADS_USED_ELSEWHERE = (
    "UPDATE upload SET session = (SELECT min(u.session) FROM upload_use u WHERE u.attachment_id = upload.attachment_id)"
    " WHERE session = ? AND EXISTS (SELECT 1 FROM upload_use u WHERE u.attachment_id = upload.attachment_id)"
)
UPLOADS_GONE = "DELETE FROM upload WHERE session = ?"
BLOBS_DUE_ANY = (
    "SELECT EXISTS (SELECT 1 FROM upload WHERE session IS NULL AND at <= ?)"
    " OR EXISTS (SELECT 1 FROM blob WHERE touched_at IS NOT NULL AND touched_at <= ?)"
)
UPLOADS_EXPIRED = "DELETE FROM upload WHERE session IS NULL AND at <= ?"
BLOBS_DUE = (
    "SELECT digest, file, EXISTS (SELECT 1 FROM blob_use u WHERE u.digest = b.digest),"
    " (SELECT max(at) FROM upload u WHERE u.digest = b.digest AND u.session IS NULL)"
    " FROM blob b WHERE touched_at IS NOT NULL AND touched_at <= ? ORDER BY touched_at LIMIT ?"
)
BLOB_TOUCH = "UPDATE blob SET touched_at = ? WHERE digest = ?"
BLOB_REMOVE = "DELETE FROM blob WHERE digest = ?"
FILE_NAMED = "SELECT 1 FROM blob WHERE file = ?"
BLOB_BYTES_HELD = "SELECT coalesce(sum(size), 0) FROM blob WHERE touched_at IS NULL OR touched_at > 0"
BLOB_USAGE = "SELECT count(*), coalesce(sum(size), 0) FROM blob"

# questions

QUESTIONS_EXPIRED = (
    "SELECT s.session_id FROM question q JOIN session s ON s.id = q.session JOIN head h ON h.session = q.session"
    " WHERE q.state = 'open' AND q.expires_at <= ? AND h.state = 'waiting' ORDER BY q.expires_at LIMIT ?"
)

QUESTION = (
    "SELECT s.session_id, q.session, q.call_id, q.state, q.expires_at, q.form, q.seq,"
    " (SELECT count(*) FROM question o WHERE o.session = q.session AND o.state = 'open' AND o.question_id <> q.question_id)"
    " FROM question q JOIN session s ON s.id = q.session WHERE q.question_id = ?"
)

# sessions

ACTIVE = (
    "SELECT s.session_id FROM head h JOIN session s ON s.id = h.session WHERE h.deleted = 0 AND h.archived IN (0, 1)"
    " AND h.updated_at >= (SELECT max(updated_at) FROM head WHERE deleted = 0) - ? AND s.suspended = 0 AND s.resume_pending = 0"
    " AND (h.state <> 'none' OR EXISTS (SELECT 1 FROM inbox i WHERE i.session = h.session))"
)

# background processes

_PROCESSES = (
    "SELECT p.process_id, p.session, s.session_id, p.seq, p.ended_seq, p.consumed, p.scanned, p.matched_at, p.streak,"
    " (SELECT e.at FROM event e WHERE e.session = p.session AND e.seq = p.seq) FROM process p JOIN session s ON s.id = p.session"
)
PROCESS = f"{_PROCESSES} WHERE p.process_id = ?"
PROCESSES_OF = f"{_PROCESSES} WHERE s.session_id = ? ORDER BY p.seq"
PROCESSES_RUNNING = f"{_PROCESSES} WHERE p.state = 'running' ORDER BY p.session, p.seq"
PROCESSES_COUNT = "SELECT count(*) FROM process WHERE state = 'running'"
PROCESSES_UNCONSUMED = "SELECT process_id FROM process WHERE session = ? AND consumed IS NULL ORDER BY seq"
CAUSES_NAMED = "SELECT cause_id FROM inbox WHERE session = ? AND cause_id >= ? AND cause_id < ? ORDER BY seq"

# snapshots for plans

INBOX = "SELECT seq, cause_id, edited FROM inbox WHERE session = ? ORDER BY seq"
WAITS = "SELECT seq, edited FROM inbox WHERE session = ? AND cause_id = ?"
GRANTED = "SELECT turn, call_id, state, verdict, seq FROM question WHERE question_id = ? AND session = ?"
RULES = "SELECT r.rule_id, s.session_id, r.pattern, r.author, r.at FROM rule r JOIN session s ON s.id = r.session"
RULES_OF = f"{RULES} WHERE s.session_id = ? ORDER BY r.at, r.rule_id"
RULES_ALL = f"{RULES} JOIN head h ON h.session = r.session WHERE h.deleted = 0 ORDER BY r.at, r.rule_id"
RULE = f"{RULES} WHERE r.rule_id = ?"
RULE_IDS = "SELECT rule_id FROM rule WHERE session = ? ORDER BY at, rule_id"

# titles that a model is to be asked for

TITLES_OPEN = (
    "SELECT s.session_id, t.state, t.since, t.owner, t.tries FROM titling t JOIN session s ON s.id = t.session"
    " JOIN head h ON h.session = t.session WHERE t.state IN ('due', 'asked') AND t.since >= ? AND h.deleted = 0 ORDER BY t.since LIMIT ?"
)
NAMINGS = f"SELECT {EVENT} FROM event WHERE session = ? AND {RECORDS} AND kind IN ('session.created', 'session.changed') ORDER BY seq"
TITLING = "SELECT state, since, owner, tries FROM titling WHERE session = ?"

# schedules: those of deleted sessions rest until that is undone

_SCHEDULES = "FROM schedule c JOIN session s ON s.id = c.session JOIN head h ON h.session = c.session WHERE h.deleted = 0"
SCHEDULES = (
    f"SELECT c.schedule_id, s.session_id, s.session_key, c.session, c.seq, c.at, c.due, c.noted, c.last, c.skipped, c.paused {_SCHEDULES}"
)
SCHEDULE = f"{SCHEDULES} AND c.schedule_id = ?"
SCHEDULES_ALL = f"{SCHEDULES} ORDER BY c.due, c.schedule_id"
SCHEDULES_OF = f"{SCHEDULES} AND s.session_key = ? ORDER BY c.due, c.schedule_id"
SCHEDULES_COUNT = f"SELECT count(*) {_SCHEDULES} AND s.session_key = ?"
SCHEDULES_DUE = (
    f"{SCHEDULES} AND c.paused IS NULL AND c.schedule_id IN (SELECT d.schedule_id FROM schedule d WHERE d.due <= ?"
    " UNION SELECT n.schedule_id FROM schedule n WHERE n.noted > ?) ORDER BY c.due, c.schedule_id LIMIT ?"
)
NEXT_DUE = f"SELECT min(c.due) {_SCHEDULES} AND c.paused IS NULL AND c.due > ?"
WAITS_FROM = "SELECT 1 FROM inbox WHERE session = ? AND cause_id >= ? AND cause_id < ? LIMIT 1"

_SUMS = "sum(requests), sum(input), sum(output), sum(cached), sum(stored), sum(thought), sum(cost), sum(unpriced)"
_SESSION_OF = "session = (SELECT id FROM session WHERE session_id = ?)"
ACCOUNT = (
    f"SELECT 'turn', count(*), {_SUMS} FROM spent WHERE {_SESSION_OF} AND turn = ?"
    f" UNION ALL SELECT 'session', count(*), {_SUMS} FROM spent WHERE {_SESSION_OF}"
    f" UNION ALL SELECT 'day', count(*), {_SUMS} FROM spent WHERE day = ?"
    f" UNION ALL SELECT 'sender', count(DISTINCT CASE WHEN turn <> ? THEN turn END), {_SUMS} FROM spent WHERE day = ? AND sender = ?"
)
# A purged session's turns are not known any more, only what they used. One that asked no model only counts for its sender's limit.
_TURNS = "count(DISTINCT CASE WHEN turn <> '' THEN turn END)"
SPENT_BY_DAY = f"SELECT day, sender, {_TURNS}, {_SUMS} FROM spent WHERE day >= ? AND requests > 0 GROUP BY day, sender ORDER BY day, sender"
SPENT_BY_MODEL = f"SELECT day, model, {_TURNS}, {_SUMS} FROM spent WHERE day >= ? AND requests > 0 GROUP BY day, model ORDER BY day, model"
# Most first.
SPENT_BY_SESSION = (
    f"SELECT s.session_id, s.title, {_TURNS}, {_SUMS} FROM spent JOIN session s ON s.id = spent.session"
    " WHERE spent.day >= ? AND spent.requests > 0 AND s.deleted_at IS NULL"
    " GROUP BY s.id ORDER BY sum(spent.input) + sum(spent.output) DESC, s.session_id LIMIT ?"
)
SPENT_OF_SESSION = f"SELECT day, {_SUMS} FROM spent WHERE session = ? AND requests > 0 GROUP BY day ORDER BY day"
QUESTIONS_OPEN = (
    "SELECT question_id, call_id, expires_at, form FROM question WHERE session = ? AND state = 'open' ORDER BY expires_at, question_id"
)
QUESTION_ANSWERED_BY = "SELECT question_id FROM question WHERE message = ?"
QUESTIONS_OPEN_OF = (
    "SELECT q.session, q.question_id, q.call_id, q.expires_at, q.form, q.seq FROM question q JOIN session s ON s.id = q.session"
    " WHERE s.session_id = ? AND q.state = 'open' ORDER BY q.expires_at, q.question_id"
)
TELLINGS = (
    "SELECT delivery_id, state, seq, receipt FROM outbox WHERE session = ? AND delivery_id >= ? AND delivery_id <= ? ORDER BY seq, part"
)
LAST_STOP = (
    "SELECT s.stop_turn, (SELECT e.at FROM event e WHERE e.session = s.id AND e.seq = s.stop_seq), h.asked_seq < s.stop_seq,"
    " (SELECT o.state FROM outbox o WHERE o.delivery_id = s.stop_reply)"
    " FROM session s JOIN head h ON h.session = s.id WHERE s.session_id = ?"
)
PREVIOUS = "SELECT session_id FROM session WHERE session_key = ? AND session_id <> ? AND deleted_at IS NULL ORDER BY id DESC LIMIT 1"
LANE = (
    "SELECT s.session_id, s.session_key, s.suspended, s.rule, s.why, s.model, l.session = s.id, l.generation, s.generation,"
    " EXISTS (SELECT 1 FROM owner o WHERE o.id = ? AND o.told IS NOT NULL),"
    " EXISTS (SELECT 1 FROM inbox i WHERE i.session = s.id),"
    " EXISTS (SELECT 1 FROM session n JOIN head h ON h.session = n.id WHERE n.session_key = s.session_key AND n.id <> s.id"
    " AND h.stop = 1 AND h.state IN ('running', 'interrupted'))"
    " FROM session s JOIN lane l USING (session_key) WHERE s.id = ?"
)
# A message that interrupted the turn before comes first.
# The oldest one that interrupts, else the oldest.
NEXT_CAUSE = (
    "SELECT seq, cause_id, edited FROM inbox WHERE session = ? AND seq ="
    " (SELECT coalesce(min(CASE WHEN what = 'interrupt' THEN seq END), min(seq)) FROM inbox WHERE session = ? AND seq > ?)"
)
STANDING = "SELECT interrupted_restarts, on_trial, deaths FROM session WHERE id = ?"
DELIVERY_STATE = "SELECT state FROM outbox WHERE delivery_id = ? AND part = ? AND session = ?"
UNPLANNED = "SELECT state FROM outbox WHERE delivery_id = ? AND part = 0 AND session = ? AND planned IS NULL"
STILL_LIVE = "SELECT state FROM outbox WHERE delivery_id = ? AND session = ? AND live = 1"
OWES = (
    "SELECT 1 FROM outbox o JOIN session s ON s.id = o.session JOIN head h ON h.session = o.session"
    f" WHERE s.session_key = ? AND o.live = 0 AND o.state NOT IN ('sent', 'dead') AND {OWED} LIMIT 1"
)

# what is owed to chats

_DELIVERY = (
    "SELECT o.delivery_id, o.part, s.session_id, s.session_key, o.state, o.tries, o.retry_at, o.owner, o.session, o.seq, o.at, o.tried_at,"
    " o.turn, o.live, o.planned, o.target, o.receipt, o.error FROM outbox o JOIN session s ON s.id = o.session"
)


def _written(row: str) -> str:
    """Where a row of the outbox was written, in the order of commits: the order of whatever is said in a chat, whichever of its
    conversations says it. No clock has a say in it. Of a record that was lost, what stands before it.
    """
    return f"(SELECT e.id FROM event e WHERE e.session = {row}.session AND e.seq <= {row}.seq ORDER BY e.seq DESC LIMIT 1)"


_DELIVERY_ORDER = f" ORDER BY {_written('o')}, o.session, o.seq, o.part"


# What stands behind the profile in a session key, from the colon on: the platform, and the rest. `ltrim` takes away whatever is no colon:
# the engines have no common word that finds one.
_LANE = "ltrim(substr(s.session_key, 7), replace(substr(s.session_key, 7), ':', ''))"


def deliveries(states: int, platforms: int) -> str:
    """Of any platform if there are none; for each a length and as many characters, `:<platform>:`."""
    on_these = f" AND ({' OR '.join([f'substr({_LANE}, 1, ?) = ?'] * platforms)})" if platforms else ""
    return (
        f"{_DELIVERY} JOIN head h ON h.session = o.session WHERE o.state IN ({', '.join('?' * states)}) AND o.state NOT IN ('sent', 'dead')"
        f" AND o.live = 0 AND {OWED}{on_these} AND o.retry_at <= ?{_DELIVERY_ORDER} LIMIT ?"
    )


LIVE = f"{_DELIVERY} WHERE o.state NOT IN ('sent', 'dead') AND o.live = 1{_DELIVERY_ORDER}"
# Something stands below a message if it was written later: in the same conversation, or in another one of the same chat.
LIVE_OF_TURN = (
    "SELECT o.delivery_id, o.state, o.seq, o.receipt, o.owner,"
    " EXISTS (SELECT 1 FROM outbox n WHERE n.session = o.session AND n.live = 0 AND n.seq > o.seq AND n.seq < ?)"
    " OR EXISTS (SELECT 1 FROM session t JOIN head h ON h.session = t.id JOIN outbox n ON n.session = t.id"
    " WHERE t.session_key = s.session_key AND t.id <> s.id AND n.live = 0"
    f" AND (SELECT e.id FROM event e WHERE e.session = h.session AND e.seq = h.seq) > {_written('o')}"
    f" AND {_written('n')} > {_written('o')} AND {_written('n')} <"
    f" coalesce((SELECT e.id FROM event e WHERE e.session = o.session AND e.seq >= ? ORDER BY e.seq LIMIT 1), {2**62}))"
    " FROM outbox o JOIN session s ON s.id = o.session"
    " WHERE s.session_id = ? AND o.turn = ? AND o.live = 1 AND o.state NOT IN ('sent', 'dead') ORDER BY o.seq"
)
DELIVERY = f"{_DELIVERY} WHERE o.delivery_id = ? ORDER BY o.part"

# what came from chats

ARRIVED = "INSERT INTO arrived (account, body, at) VALUES (?, ?, ?)"
CURSOR_SET = (
    "INSERT INTO account (account, cursor) VALUES (?, ?) ON CONFLICT (account) DO UPDATE SET"
    " cursor = coalesce(excluded.cursor, account.cursor)"
)
CURSOR = "SELECT cursor FROM account WHERE account = ?"
WAITING_UPDATES = "SELECT id, account, body, at, refused FROM arrived WHERE account = ? AND refused IS NULL AND id > ? ORDER BY id LIMIT ?"
UPDATE_GONE = "DELETE FROM arrived WHERE id = ?"
UPDATE_REFUSED = "UPDATE arrived SET refused = ? WHERE id = ?"
REFUSED_UPDATES = "SELECT id, account, body, at, refused FROM arrived WHERE refused IS NOT NULL ORDER BY id DESC LIMIT ?"
REFUSED_FORGET = (
    "DELETE FROM arrived WHERE refused IS NOT NULL"
    " AND id <= (SELECT id FROM arrived WHERE refused IS NOT NULL ORDER BY id DESC LIMIT 1 OFFSET ?)"
)
QUIET = (
    "INSERT INTO account (account, quiet_until) VALUES (?, ?) ON CONFLICT (account) DO UPDATE SET quiet_until ="
    " CASE WHEN account.quiet_until < excluded.quiet_until THEN excluded.quiet_until ELSE account.quiet_until END"
)
QUIET_UNTIL = "SELECT quiet_until FROM account WHERE account = ?"
PLACE_CLOSE = (
    "INSERT INTO dead_place (platform, chat, thread, since, why) VALUES (?, ?, ?, ?, ?)"
    " ON CONFLICT (platform, chat, thread) DO UPDATE SET why = excluded.why"
)
PLACE_OPEN = "DELETE FROM dead_place WHERE platform = ? AND chat = ?"
DEAD_PLACES = "SELECT platform, chat, thread, since, why FROM dead_place ORDER BY since DESC"
CHAT_KEPT_AS = "SELECT chat FROM moved_chat WHERE account = ? AND now = ?"
CHAT_MOVED = "INSERT INTO moved_chat (account, chat, now) VALUES (?, ?, ?) ON CONFLICT (account, chat) DO UPDATE SET now = excluded.now"
CHAT_NAMES = "SELECT chat, now FROM moved_chat WHERE account = ?"

# who may talk

PAIRING_PUT = (
    "INSERT INTO pairing (platform, person, name, salt, digest, made_at, told, denied) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (platform, person) DO UPDATE SET name = excluded.name, salt = excluded.salt, digest = excluded.digest,"
    " made_at = excluded.made_at, told = excluded.told, denied = excluded.denied"
)
PAIRINGS = "SELECT platform, person, name, salt, digest, made_at, told, denied FROM pairing ORDER BY made_at"
PAIRING_GONE = "DELETE FROM pairing WHERE platform = ? AND person = ?"
PAIRINGS_FORGET = "DELETE FROM pairing WHERE made_at + denied * ? < ?"
PAIR = (
    "INSERT INTO paired (platform, person, name, at) VALUES (?, ?, ?, ?) ON CONFLICT (platform, person) DO UPDATE SET name = excluded.name"
)
UNPAIR = "DELETE FROM paired WHERE platform = ? AND person = ?"
PAIRED = "SELECT platform, person, name, at FROM paired ORDER BY at, person"
IS_PAIRED = "SELECT 1 FROM paired WHERE platform = ? AND person = ?"
WRONG_CODE = "INSERT INTO wrong_code (at) VALUES (?)"
WRONG_CODES = "SELECT at FROM wrong_code ORDER BY at DESC LIMIT ?"
WRONG_CODES_FORGET = "DELETE FROM wrong_code WHERE id <= (SELECT id FROM wrong_code ORDER BY id DESC LIMIT 1 OFFSET ?)"

# journals that are late

_JOURNAL = "s.session_id, j.turn, j.epoch, j.state, j.tries, j.size, j.filled, j.first_seen, j.changed_at"
JOURNAL = f"SELECT {_JOURNAL} FROM journal j JOIN session s ON s.id = j.session WHERE j.session = ? AND j.turn = ? AND j.epoch = ?"
JOURNAL_NAMED = f"SELECT {_JOURNAL} FROM journal j JOIN session s ON s.id = j.session WHERE j.turn = ? AND j.epoch = ?"
JOURNALS_LATE = (
    f"SELECT {_JOURNAL} FROM journal j JOIN session s ON s.id = j.session JOIN head h ON h.session = j.session"
    " WHERE j.state = 'recovering' AND h.deleted = 0 ORDER BY j.first_seen LIMIT ?"
)
# A turn that is over has its places in the log alone; there is no index by turn, and nobody is in a hurry.
PLACES = "SELECT position FROM event WHERE session = ? AND seq >= ? AND turn = ? AND epoch = ?"
OF_TURN = f"SELECT min(seq), max(seq) FROM event WHERE session = ? AND {RECORDS} AND turn = ?"
TURN_OF = (
    "SELECT s.session_id FROM head h JOIN session s ON s.id = h.session WHERE h.turn = ?"
    " UNION SELECT s.session_id FROM journal j JOIN session s ON s.id = j.session WHERE j.turn = ?"
)

# pieces of a turn, fenced by its lease

FENCED = (
    "UPDATE head SET seq = seq + ?, position = position + ?"
    " WHERE session = (SELECT id FROM session WHERE session_id = ?) AND epoch = ? AND owner = ? AND turn = ? AND attempt = ?"
    " AND position = ? AND state = 'running' RETURNING session, seq"
)

# heads

HEAD = (
    "SELECT session, seq, state, epoch, owner, turn, attempt, position, turn_seq, stop, archived, updated_at, stays, asked_seq, deleted"
    " FROM head WHERE session = ?"
)
HEAD_MOVED = (
    "UPDATE head SET seq = ?, epoch = ?, owner = ?, turn = ?, attempt = ?, position = ?, turn_seq = ?, stop = ?, stays = ?,"
    " asked_seq = ? WHERE session = ?"
)
# A column that is named in an UPDATE has its index written, changed or not.
HEAD_STATE = "UPDATE head SET state = ? WHERE session = ?"
HEAD_LISTED = "UPDATE head SET archived = ?, updated_at = ?, deleted = ? WHERE session = ?"

# the desk

LAST_SAID = (
    f"SELECT {EVENT} FROM event WHERE session = ? AND {RECORDS}"
    " AND kind IN ('message.written', 'message.accepted', 'question.asked') ORDER BY seq DESC LIMIT 3"
)
SEEN = "SELECT seen FROM desk WHERE session = ?"
FIRST_OPEN = "SELECT form FROM question WHERE session = ? AND state = 'open' ORDER BY seq LIMIT 1"
UNSURE = "SELECT DISTINCT session FROM outbox WHERE state IN ('unknown', 'repeating') AND state NOT IN ('sent', 'dead')"
# The newest message to its chat was given up, and no person has said that this is well.
LOST = (
    "SELECT 1 FROM outbox WHERE session = ? AND state = 'dead' AND error IS DISTINCT FROM ?"
    " AND seq = (SELECT max(seq) FROM outbox WHERE session = ? AND live = 0) LIMIT 1"
)
DRAFT = "SELECT draft, rev FROM desk WHERE session = ?"
DRAFT_PUT = (
    "INSERT INTO desk (session, draft, rev) VALUES (?, ?, 1) ON CONFLICT (session) DO UPDATE SET draft = excluded.draft, rev = desk.rev + 1"
)
SEE = (
    "INSERT INTO desk (session, seen) VALUES (?, ?)"
    " ON CONFLICT (session) DO UPDATE SET seen = excluded.seen WHERE desk.seen < excluded.seen"
)
RECORDS_OF_TURN = f"SELECT {EVENT} FROM event WHERE session = ? AND {RECORDS} AND turn = ? ORDER BY seq LIMIT ?"
SENDINGS_AFTER = (
    f"SELECT {EVENT} FROM event WHERE session = ? AND {RECORDS} AND seq > ? AND seq <= ? AND kind = 'delivery.changed' ORDER BY seq LIMIT ?"
)

# what an operator asks

RUNNING = (
    "SELECT s.session_id FROM head h JOIN session s ON s.id = h.session"
    " WHERE h.state IN ('running', 'answered', 'interrupted') AND h.state = 'running' LIMIT ?"
)
NEWEST_RECORDS = f"SELECT {EVENT} FROM event WHERE session = ? AND {RECORDS} AND seq >= ? ORDER BY seq DESC LIMIT ?"
NEWEST = f"SELECT {EVENT} FROM event WHERE session = ? AND seq >= ? ORDER BY seq DESC LIMIT ?"
EVENT_TIME = "SELECT at FROM event WHERE session = ? AND seq = ?"
ASKS = (
    "SELECT s.session_id, o.question_id, o.form, o.expires_at, o.session, o.seq"
    " FROM question o JOIN session s ON s.id = o.session WHERE o.state = 'open' ORDER BY o.expires_at LIMIT ?"
)
LANES = (
    "SELECT s.session_id, count(*), min(ev.at) FROM inbox i JOIN session s ON s.id = i.session"
    " JOIN event ev ON ev.session = i.session AND ev.seq = i.seq GROUP BY s.id ORDER BY 3 LIMIT ?"
)
_OWED_ROWS = (
    "SELECT o.delivery_id, o.part, s.session_id, o.state, o.tries, o.retry_at, o.error, o.at FROM outbox o"
    f" JOIN session s ON s.id = o.session JOIN head h ON h.session = o.session WHERE o.live = 0 AND {OWED}"
)
NOT_SENT = f"{_OWED_ROWS} AND o.state NOT IN ('sent', 'dead') ORDER BY o.at, o.session, o.seq, o.part LIMIT ?"
# Of what is over, the newest.
GIVEN_UP = f"{_OWED_ROWS} AND o.state = 'dead' ORDER BY o.at DESC, o.session, o.seq, o.part LIMIT ?"
SENT = f"{_OWED_ROWS} AND o.state = 'sent' ORDER BY o.at DESC, o.session, o.seq, o.part LIMIT ?"
# The row of an owner that is gone is removed before long; an earlier version did not note its pid here.
LIVES = (
    "SELECT coalesce(s.pid, o.pid, 0), s.at, s.ended, s.version, s.handed, s.gone, s.owner FROM start s"
    " LEFT JOIN owner o ON o.id = s.owner ORDER BY s.owner"
)
PAUSES = (
    "SELECT p.since, p.holder, p.until, p.ended, EXISTS (SELECT 1 FROM pause c WHERE c.since = p.since AND c.holder = p.holder)"
    " FROM paused p UNION ALL SELECT c.since, c.holder, c.until, NULL, 1 FROM pause c"
    " WHERE NOT EXISTS (SELECT 1 FROM paused p WHERE p.since = c.since AND p.holder = c.holder) ORDER BY 1, 2"
)
# Word for word the conditions of the indexes `event_mark` and `event_branched`. What stands before `session.branched` is copied, with the
# times at which it happened in another session: it is told there.
MARKS = (
    f"SELECT {EVENT} FROM event WHERE kind IN ('turn.ended', 'turn.interrupted', 'turn.resumed', 'turn.left') AND at >= ? AND NOT EXISTS"
    " (SELECT 1 FROM event b WHERE b.kind = 'session.branched' AND b.session = event.session AND b.seq > event.seq)"
    " ORDER BY at DESC LIMIT ?"
)

# lists

SESSIONS_NAMED = (
    f"{SESSIONS} WHERE s.session_id >= ? AND s.session_id < ? AND s.purged = 0 ORDER BY h.updated_at DESC, h.session DESC LIMIT ?"
)
IN_STATE = {
    "suspended": "h.session IN (SELECT id FROM session WHERE suspended = 1)",
    "pending": "h.session IN (SELECT id FROM session WHERE resume_pending = 1)",
    "running": "h.session IN (SELECT session FROM head WHERE state IN ('running', 'answered', 'interrupted') AND state <> 'interrupted')",
    "waiting": "h.session IN (SELECT session FROM question WHERE state = 'open')",
    "pinned": "h.session IN (SELECT id FROM session WHERE pinned = 1)",
    "deleted": "h.session IN (SELECT id FROM session WHERE purge_at IS NOT NULL AND purged = 0)",
}


def listed(state: str | None, among: int) -> str:
    """A page of the list: those in a state of `IN_STATE`, or all that are not deleted; among so many sessions, or any if there are none."""
    plain = "" if state is None else "+"  # The few in a state are found by their own index, and sorted after.
    where = f"{plain}h.archived = ? AND ({plain}h.updated_at, h.session) < (?, ?)"
    if state != "deleted":
        where += " AND h.deleted = 0"
    if state is not None:
        where += f" AND {IN_STATE[state]}"
    if among:
        where += f" AND h.session IN ({', '.join('?' * among)})"
    return f"{SESSIONS} WHERE {where} ORDER BY {plain}h.updated_at DESC, h.session DESC LIMIT ?"


def _page(columns: str, only: str = "") -> str:
    return f"SELECT {columns} FROM event WHERE session = ? AND seq > ? AND seq <= ?{only} ORDER BY seq LIMIT ?"


PAGE, PAGE_RECORDS = _page(EVENT), _page(EVENT, f" AND {RECORDS}")
PAGE_PLACES, PAGE_RECORD_PLACES = _page("id, session, seq"), _page("id, session, seq", f" AND {RECORDS}")
