-- From schema 5 to 6. Nothing that a program of schema 5 reads or writes changes, so one may still run next to this.

ALTER TABLE question ADD COLUMN seq INTEGER NOT NULL DEFAULT 0;
ALTER TABLE question ADD COLUMN verdict TEXT;
UPDATE question SET seq = coalesce((
    SELECT e.seq FROM event e
    WHERE e.session = question.session AND e.stream = 0 AND e.kind = 'question.asked' AND json_valid(CAST(e.body AS TEXT))
    AND json_extract(CAST(e.body AS TEXT), '$.question_id') = question.question_id
), 0);

-- What people have allowed for a conversation.
CREATE TABLE rule (
    rule_id TEXT PRIMARY KEY,
    session INTEGER NOT NULL,
    pattern TEXT NOT NULL,
    author  TEXT NOT NULL,
    at      INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX rule_session ON rule (session);

-- All sessions whose messages named an upload: it stays until the last of them is gone.
CREATE TABLE upload_use (
    attachment_id TEXT NOT NULL,
    session       INTEGER NOT NULL,
    PRIMARY KEY (attachment_id, session)
) WITHOUT ROWID;
CREATE INDEX upload_use_session ON upload_use (session);
INSERT INTO upload_use SELECT attachment_id, session FROM upload WHERE session IS NOT NULL;

-- The model that was chosen for a conversation.
ALTER TABLE session ADD COLUMN model TEXT;

-- What models used and cost: of a turn, on a day, which one, for whom. Of a purged session the sums of its days are left, under no turn.
-- No earlier version asked a model, so there is nothing to add up.
CREATE TABLE spent (
    session  INTEGER NOT NULL,
    turn     TEXT NOT NULL,
    day      TEXT NOT NULL,
    model    TEXT NOT NULL, -- Empty in the row of a turn as such, and in those of a purged session.
    sender   TEXT NOT NULL,
    requests INTEGER NOT NULL,
    input    INTEGER NOT NULL,
    output   INTEGER NOT NULL,
    cached   INTEGER NOT NULL,
    stored   INTEGER NOT NULL,
    thought  INTEGER NOT NULL,
    cost     INTEGER NOT NULL, -- In millionths of a US dollar.
    unpriced INTEGER NOT NULL, -- How many of the requests have no known price.
    PRIMARY KEY (session, turn, day, model)
) WITHOUT ROWID;
CREATE INDEX spent_day ON spent (day, sender);

-- Where the newest words of a message stand that waits and was edited.
ALTER TABLE inbox ADD COLUMN edited INTEGER;

-- What clients recited with a message: the whole conversation up to it, by its digest, and the instructions that hold since. By this a
-- conversation is known again that its client names by nothing but its words.
CREATE TABLE recital (
    digest       TEXT NOT NULL,
    session      INTEGER NOT NULL,
    seq          INTEGER NOT NULL,
    message      TEXT NOT NULL,
    instructions TEXT,
    PRIMARY KEY (digest, session, seq)
) WITHOUT ROWID;
CREATE INDEX recital_session ON recital (session, seq);
CREATE INDEX recital_message ON recital (message);
-- Journals of interrupted turns that could not be read when it was decided about them. `filled`: something of it has arrived since.
CREATE TABLE journal (
    session    INTEGER NOT NULL,
    turn       TEXT NOT NULL,
    epoch      INTEGER NOT NULL,
    state      TEXT NOT NULL, -- recovering, recovered or neutral.
    tries      INTEGER NOT NULL,
    size       INTEGER NOT NULL,
    filled     INTEGER NOT NULL,
    first_seen INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    PRIMARY KEY (session, turn, epoch)
) WITHOUT ROWID;
CREATE INDEX journal_late ON journal (first_seen) WHERE state = 'recovering';
-- Background processes: where in its session's log each was started and ended. `state`: running or ended. `consumed`: how, if nothing of it
-- is told any more. `scanned`: up to which byte its output was read for lines to tell; `matched_at`, `streak`: when some were told last, and
-- how often in close succession.
CREATE TABLE process (
    process_id TEXT PRIMARY KEY,
    session    INTEGER NOT NULL,
    seq        INTEGER NOT NULL,
    state      TEXT NOT NULL,
    ended_seq  INTEGER,
    consumed   TEXT,
    scanned    INTEGER NOT NULL DEFAULT 0,
    matched_at INTEGER NOT NULL DEFAULT 0,
    streak     INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX process_session ON process (session, seq);
CREATE INDEX process_running ON process (session, seq) WHERE state = 'running';

-- What was decided about turns, and how they ended, by time.
CREATE INDEX event_mark ON event (at) WHERE kind IN ('turn.ended', 'turn.interrupted', 'turn.resumed', 'turn.left');
-- Up to where a session is copied from another one.
CREATE INDEX event_branched ON event (session, seq) WHERE kind = 'session.branched';

-- What is typed and not sent in a conversation, and up to where its user has seen it: what there is already counts as seen.
CREATE TABLE desk (
    session INTEGER PRIMARY KEY,
    draft   TEXT NOT NULL DEFAULT '',
    rev     INTEGER NOT NULL DEFAULT 0, -- Grows with every change of the draft.
    seen    INTEGER NOT NULL DEFAULT 0
);
INSERT INTO desk (session, seen) SELECT session, seq FROM head;

-- What starts turns at certain times: where its words and times stand in the log, when it is due next, when its newest record was written,
-- the last time that came, and why no turn started then, if none did.
CREATE TABLE schedule (
    schedule_id TEXT PRIMARY KEY,
    session     INTEGER NOT NULL,
    seq         INTEGER NOT NULL,
    at          INTEGER NOT NULL,
    due         INTEGER NOT NULL,
    noted       INTEGER NOT NULL,
    last        INTEGER,
    skipped     TEXT
) WITHOUT ROWID;
CREATE INDEX schedule_due ON schedule (due);
CREATE INDEX schedule_noted ON schedule (noted);
CREATE INDEX schedule_session ON schedule (session);

-- A message that is owed to a chat may be sent in pieces. What a program of schema 5 writes is a first piece.
ALTER TABLE outbox RENAME TO outbox_5;
DROP INDEX outbox_due;
CREATE TABLE outbox (
    delivery_id TEXT NOT NULL,
    part        INTEGER NOT NULL DEFAULT 0,
    session     INTEGER NOT NULL,
    seq         INTEGER NOT NULL,
    at          INTEGER NOT NULL,
    state       TEXT NOT NULL,
    tries       INTEGER NOT NULL,
    retry_at    INTEGER NOT NULL,
    owner       INTEGER,
    receipt     TEXT,
    error       TEXT,
    turn        TEXT,                       -- The turn that it was written in.
    live        INTEGER NOT NULL DEFAULT 0,
    planned     INTEGER,                    -- Where its pieces are recorded; NULL while it is sent as it is.
    target      TEXT,                       -- The platform's message that it is put into by an edit.
    tried_at    INTEGER NOT NULL DEFAULT 0, -- When it was last sent.
    PRIMARY KEY (delivery_id, part)
) WITHOUT ROWID;
CREATE INDEX outbox_due ON outbox (state, retry_at) WHERE state NOT IN ('sent', 'dead');
CREATE INDEX outbox_session ON outbox (session, seq);
CREATE INDEX outbox_owed ON outbox (session, seq) WHERE state NOT IN ('sent', 'dead');
INSERT INTO outbox (delivery_id, session, seq, at, state, tries, retry_at, owner, receipt, error, turn, tried_at)
    SELECT o.delivery_id, o.session, o.seq, o.at, o.state, o.tries, o.retry_at, o.owner, o.receipt, o.error,
        (SELECT e.turn FROM event e WHERE e.session = o.session AND e.seq = o.seq),
        coalesce((
            SELECT e.at FROM event e
            WHERE e.session = o.session AND e.stream = 0 AND e.kind = 'delivery.changed' AND json_valid(CAST(e.body AS TEXT))
            AND json_extract(CAST(e.body AS TEXT), '$.delivery_id') = o.delivery_id
            AND json_extract(CAST(e.body AS TEXT), '$.state') IN ('sending', 'repeating') ORDER BY e.seq DESC LIMIT 1
        ), 0)
    FROM outbox_5 o;
DROP TABLE outbox_5;

-- What came from chat platforms, as it came, until it has become part of a conversation. `refused`: why it did not; such a row is kept for
-- a while. An account is named `<platform>:<id>`.
CREATE TABLE arrived (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    account TEXT NOT NULL,
    body    BLOB NOT NULL,
    at      INTEGER NOT NULL,
    refused TEXT
);
CREATE INDEX arrived_waiting ON arrived (account, id) WHERE refused IS NULL;

-- `cursor`: from where an account is read next. `quiet_until`: its platform asked that nothing is sent before.
CREATE TABLE account (
    account     TEXT PRIMARY KEY,
    cursor      TEXT,
    quiet_until INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

-- Chats, and threads of chats ('' for none), in which nothing arrives any more.
CREATE TABLE dead_place (
    platform TEXT NOT NULL,
    chat     TEXT NOT NULL,
    thread   TEXT NOT NULL,
    since    INTEGER NOT NULL,
    why      TEXT NOT NULL,
    PRIMARY KEY (platform, chat, thread)
) WITHOUT ROWID;

-- By the name under which a chat is kept: what its platform calls it now.
CREATE TABLE moved_chat (
    account TEXT NOT NULL,
    chat    TEXT NOT NULL,
    now     TEXT NOT NULL,
    PRIMARY KEY (account, chat)
) WITHOUT ROWID;

-- Strangers with a pairing code, of which only the digest is kept. `told`: the code was sent. `denied`: an operator does not want them.
CREATE TABLE pairing (
    platform TEXT NOT NULL,
    person   TEXT NOT NULL,
    name     TEXT NOT NULL,
    salt     BLOB NOT NULL,
    digest   BLOB NOT NULL,
    made_at  INTEGER NOT NULL,
    told     INTEGER NOT NULL,
    denied   INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (platform, person)
) WITHOUT ROWID;

-- Those whom an operator let in.
CREATE TABLE paired (
    platform TEXT NOT NULL,
    person   TEXT NOT NULL,
    name     TEXT NOT NULL,
    at       INTEGER NOT NULL,
    PRIMARY KEY (platform, person)
) WITHOUT ROWID;

-- When wrong pairing codes were tried, the last few times.
CREATE TABLE wrong_code (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL
);

-- Which process it was, also once its owner is gone.
ALTER TABLE start ADD COLUMN pid INTEGER;
UPDATE start SET pid = (SELECT o.pid FROM owner o WHERE o.id = start.owner);
