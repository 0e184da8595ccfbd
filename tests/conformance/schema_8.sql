-- The log. A rowid table: new events land at one end whatever their session, and `id` is the order of commits over all sessions and
-- processes. Ids are never given twice, because a turn's pruned stream events always lie below its end, which stays.
CREATE TABLE event (
    id       INTEGER PRIMARY KEY,
    session  INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    turn     TEXT,
    attempt  INTEGER NOT NULL,
    position INTEGER NOT NULL,
    kind     TEXT NOT NULL,
    at       INTEGER NOT NULL,
    body     BLOB NOT NULL,
    checksum INTEGER NOT NULL,
    epoch    INTEGER,                    -- The lease under which it was written, 0 outside a turn. NULL: version 0.1 wrote the row.
    stream   INTEGER NOT NULL DEFAULT 0, -- 1: a piece, which may be pruned. 0: a record.
    UNIQUE (session, seq)
);
-- Records, without the stream events between them.
CREATE INDEX event_record ON event (session, seq) WHERE stream = 0;

-- What was decided about turns, and how they ended, by time.
CREATE INDEX event_mark ON event (at) WHERE kind IN ('turn.ended', 'turn.interrupted', 'turn.resumed', 'turn.left');
-- Up to where a session is copied from another one.
CREATE INDEX event_branched ON event (session, seq) WHERE kind = 'session.branched';

-- The catalog: everything below this line up to the next is derived from the log and can be rebuilt from it.

-- Where a session's log stands, who may write its turn, and its place in the list. Narrow, because every append touches it.
CREATE TABLE head (
    session    INTEGER PRIMARY KEY,
    seq        INTEGER NOT NULL,
    state      TEXT NOT NULL,
    epoch      INTEGER NOT NULL,
    owner      INTEGER,
    turn       TEXT,
    attempt    INTEGER NOT NULL,
    position   INTEGER NOT NULL,
    turn_seq   INTEGER NOT NULL,
    stop       INTEGER NOT NULL,
    archived   INTEGER NOT NULL DEFAULT 0,
    updated_at INTEGER NOT NULL DEFAULT 0,
    stays      INTEGER NOT NULL DEFAULT 0, -- It was decided that the turn stays as it is.
    asked_seq  INTEGER NOT NULL DEFAULT 0, -- The message that started the turn.
    deleted    INTEGER NOT NULL DEFAULT 0  -- The record that deleted or purged it; 0 while it is there.
);
CREATE INDEX head_newest ON head (archived, updated_at) WHERE deleted = 0;
CREATE INDEX head_open ON head (state) WHERE state IN ('running', 'answered', 'interrupted');

CREATE TABLE session (
    id                    INTEGER PRIMARY KEY,
    session_id            TEXT NOT NULL UNIQUE,
    session_key           TEXT NOT NULL,
    log                   TEXT NOT NULL,
    title                 TEXT,
    created_at            INTEGER NOT NULL,
    generation            INTEGER NOT NULL DEFAULT 0,
    pinned                INTEGER NOT NULL DEFAULT 0,
    suspended             INTEGER NOT NULL DEFAULT 0,
    resume_pending        INTEGER NOT NULL DEFAULT 0,
    resume_reason         TEXT,
    last_resume_marked_at INTEGER,
    auto_reset_reason     TEXT,
    interrupted_restarts  INTEGER NOT NULL DEFAULT 0,
    pruned_seq            INTEGER NOT NULL DEFAULT 0,
    journal_since         INTEGER, -- When the last turn ended whose stream events are still there.
    rule                  TEXT,    -- The last decision over the newest turn, and why.
    why                   TEXT,
    stop_turn             TEXT,    -- The turn that people stopped last, where they first did, and the delivery of the newest reply to them.
    stop_seq              INTEGER,
    stop_reply            TEXT,
    deleted_at            INTEGER,
    deleted_by            TEXT,
    purge_at              INTEGER, -- From then on its content may be removed; NULL where there is none to remove.
    purged                INTEGER NOT NULL DEFAULT 0,
    attempt_at            INTEGER NOT NULL DEFAULT 0, -- When the newest attempt began.
    on_trial              INTEGER NOT NULL DEFAULT 0, -- The newest attempt runs on trial.
    tried_at              INTEGER,                    -- When the last trial began.
    lived_ms              INTEGER NOT NULL DEFAULT 0, -- How long the attempt lived that a restart interrupted last.
    deaths                INTEGER NOT NULL DEFAULT 0, -- Unclean deaths that interrupted the newest turn.
    model                 TEXT,                       -- The model that was chosen for it, if one was.
    folder                TEXT                        -- The folder that was chosen for its tools, if one was.
);
CREATE INDEX session_of_key ON session (session_key);
CREATE INDEX session_purge ON session (purge_at) WHERE purge_at IS NOT NULL;
CREATE INDEX session_journal ON session (journal_since) WHERE journal_since IS NOT NULL;

CREATE INDEX session_suspended ON session (id) WHERE suspended = 1;
CREATE INDEX session_pending ON session (id) WHERE resume_pending = 1;
CREATE INDEX session_pinned ON session (id) WHERE pinned = 1;

CREATE TABLE lane (
    session_key TEXT PRIMARY KEY,
    session     INTEGER NOT NULL,
    generation  INTEGER NOT NULL
) WITHOUT ROWID;

-- Causes that no turn has taken yet. `what`: message, steer, interrupt, or another kind of cause.
CREATE TABLE inbox (
    session  INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    cause_id TEXT NOT NULL,
    what     TEXT NOT NULL DEFAULT 'message',
    edited   INTEGER, -- Where its newest words stand, if its sender changed them.
    PRIMARY KEY (session, seq)
) WITHOUT ROWID;

CREATE TABLE dedup (
    dedup_key TEXT PRIMARY KEY,
    digest    BLOB NOT NULL,
    session   INTEGER NOT NULL,
    ref       TEXT NOT NULL
) WITHOUT ROWID;

-- Digests of the dedup keys of purged sessions: what was said there and comes again is not taken for new.
CREATE TABLE forgotten (
    key     BLOB PRIMARY KEY,
    session INTEGER NOT NULL
) WITHOUT ROWID;

-- A message that is owed to a chat, or one piece of it. `seq`: where it is written; of one that shows an answer while it is being written
-- (`live`), where that began. `at`: when it was written. `owner`: who sends it, while it is being sent.
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

CREATE TABLE question (
    question_id TEXT PRIMARY KEY,
    session     INTEGER NOT NULL,
    turn        TEXT NOT NULL,
    call_id     TEXT NOT NULL,
    state       TEXT NOT NULL,
    expires_at  INTEGER NOT NULL,
    form        TEXT NOT NULL DEFAULT 'question', -- Or approval, or elicitation.
    message     TEXT, -- The message that answered it, if one did.
    seq         INTEGER NOT NULL DEFAULT 0, -- Where in its session's log it was asked.
    verdict     TEXT -- What was said to an approval.
) WITHOUT ROWID;
CREATE INDEX question_open ON question (expires_at) WHERE state = 'open';
CREATE INDEX question_message ON question (message) WHERE message IS NOT NULL;
CREATE INDEX question_session ON question (session) WHERE state = 'open';

-- What people have allowed for a conversation.
CREATE TABLE rule (
    rule_id TEXT PRIMARY KEY,
    session INTEGER NOT NULL,
    pattern TEXT NOT NULL,
    author  TEXT NOT NULL,
    at      INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX rule_session ON rule (session);

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

-- What starts turns at certain times: where its words and times stand in the log, when it is due next, when its newest record was written,
-- the last time that came, why no turn started then, if none did, and since when it is paused.
CREATE TABLE schedule (
    schedule_id TEXT PRIMARY KEY,
    session     INTEGER NOT NULL,
    seq         INTEGER NOT NULL,
    at          INTEGER NOT NULL,
    due         INTEGER NOT NULL,
    noted       INTEGER NOT NULL,
    last        INTEGER,
    skipped     TEXT,
    paused      INTEGER
) WITHOUT ROWID;
CREATE INDEX schedule_due ON schedule (due);
CREATE INDEX schedule_noted ON schedule (noted);
CREATE INDEX schedule_session ON schedule (session);

-- Titles from models. `state`: due since the first completed turn, asked (by the process `owner`, so many `tries`), done; or given by
-- somebody, so that no model is asked.
CREATE TABLE titling (
    session INTEGER PRIMARY KEY,
    state   TEXT NOT NULL,
    since   INTEGER NOT NULL,
    owner   INTEGER,
    tries   INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX titling_open ON titling (since) WHERE state IN ('due', 'asked');

-- What models used and cost: of a turn, on a day, which one, for whom. Of a purged session the sums of its days are left, under no turn.
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

-- Which session names which blob: what a conversation's content refers to stays for as long as its log does.
CREATE TABLE blob_use (
    digest  TEXT NOT NULL,
    session INTEGER NOT NULL,
    PRIMARY KEY (digest, session)
) WITHOUT ROWID;
CREATE INDEX blob_use_session ON blob_use (session);

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

-- Not derived: who lives, what was found damaged, and what may be searched.

-- `draining`: the reason of the stop this life has begun, set before anything of it is interrupted. `told`: the stop that another process
-- of this home passed on to it, as JSON.
CREATE TABLE owner (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    name       TEXT NOT NULL UNIQUE,
    pid        INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    boot_id    TEXT NOT NULL,
    socket     TEXT,
    draining   TEXT,
    told       TEXT
);

-- The last few lives that served. `ended`: on purpose, `gone`: when; `handed`: when it gave way to a successor, if it did. `sound`: it
-- completed a turn, or was healthy for long enough. `explained`: a session was suspended for its death.
CREATE TABLE start (
    owner INTEGER PRIMARY KEY,
    at    INTEGER NOT NULL,
    ended INTEGER NOT NULL DEFAULT 0,
    sound INTEGER NOT NULL DEFAULT 0,
    explained INTEGER NOT NULL DEFAULT 0,
    pid INTEGER,
    version TEXT,
    handed INTEGER,
    gone INTEGER
);

-- At most one: who holds up the work of this home, and until when.
CREATE TABLE pause (
    id     INTEGER PRIMARY KEY CHECK (id = 1),
    holder TEXT NOT NULL,
    since  INTEGER NOT NULL,
    until  INTEGER NOT NULL
);

-- The last few pauses. `ended`: when, NULL while it holds, and where that is not on record.
CREATE TABLE paused (
    since  INTEGER NOT NULL,
    holder TEXT NOT NULL,
    until  INTEGER NOT NULL,
    ended  INTEGER,
    PRIMARY KEY (since, holder)
) WITHOUT ROWID;

-- `event_id` is 0 for an event that is missing. `row` is what was found, as text.
CREATE TABLE quarantine (
    session  INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    event_id INTEGER NOT NULL,
    reason   TEXT NOT NULL,
    row      BLOB NOT NULL,
    found_at INTEGER NOT NULL,
    PRIMARY KEY (session, seq, event_id)
) WITHOUT ROWID;

-- Bytes that content names by their digest lie in files of the folder `blobs`. A file is on disk before its row is, and its row is gone
-- before it is. `touched_at`: since when it may be waiting to be named; NULL once something named it, 0 when nothing does any more.
CREATE TABLE blob (
    digest     TEXT PRIMARY KEY,
    size       INTEGER NOT NULL,
    media_type TEXT NOT NULL,
    file       TEXT NOT NULL UNIQUE,
    touched_at INTEGER
) WITHOUT ROWID;
CREATE INDEX blob_loose ON blob (touched_at) WHERE touched_at IS NOT NULL;

-- What was uploaded for messages. `session`: one whose message named it; NULL while none did.
CREATE TABLE upload (
    attachment_id TEXT PRIMARY KEY,
    digest        TEXT NOT NULL,
    media_type    TEXT NOT NULL,
    name          TEXT NOT NULL,
    at            INTEGER NOT NULL,
    dedup_key     TEXT UNIQUE,
    session       INTEGER
) WITHOUT ROWID;
CREATE INDEX upload_digest ON upload (digest);
CREATE INDEX upload_unused ON upload (at) WHERE session IS NULL;
CREATE INDEX upload_session ON upload (session) WHERE session IS NOT NULL;

-- All sessions whose messages named an upload: it stays until the last of them is gone.
CREATE TABLE upload_use (
    attachment_id TEXT NOT NULL,
    session       INTEGER NOT NULL,
    PRIMARY KEY (attachment_id, session)
) WITHOUT ROWID;
CREATE INDEX upload_use_session ON upload_use (session);

-- What is typed and not sent in a conversation, and up to where its user has seen it.
CREATE TABLE desk (
    session INTEGER PRIMARY KEY,
    draft   TEXT NOT NULL DEFAULT '',
    rev     INTEGER NOT NULL DEFAULT 0, -- Grows with every change of the draft.
    seen    INTEGER NOT NULL DEFAULT 0
);

-- How far the search index has come.
CREATE TABLE indexed (
    session INTEGER PRIMARY KEY,
    seq     INTEGER NOT NULL
);

CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;
-- `identity`: a random number by which a process knows the database it opened. A copy gets another one.
INSERT INTO meta VALUES ('searchable_id', 0), ('commit_mark', 0), ('settled', 0), ('identity', random()), ('scrub', 0);

-- Sign-ins of browsers that were ended before their time. Their cookies carry their own proof, so this is all there is to keep.
CREATE TABLE signed_out (
    sign_in TEXT PRIMARY KEY,
    until   INTEGER NOT NULL
) WITHOUT ROWID;

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

CREATE VIRTUAL TABLE search USING fts5 (text, content = '', contentless_delete = 1, prefix = '2 3', tokenize = "unicode61 remove_diacritics 2");
