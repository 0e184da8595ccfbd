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

-- What models used and cost: of a turn, on a day, for whom. Of a purged session the sums of its days are left, under no turn.
-- No earlier version asked a model, so there is nothing to add up.
CREATE TABLE spent (
    session  INTEGER NOT NULL,
    turn     TEXT NOT NULL,
    day      TEXT NOT NULL,
    sender   TEXT NOT NULL,
    requests INTEGER NOT NULL,
    input    INTEGER NOT NULL,
    output   INTEGER NOT NULL,
    cached   INTEGER NOT NULL,
    stored   INTEGER NOT NULL,
    thought  INTEGER NOT NULL,
    cost     INTEGER NOT NULL, -- In millionths of a US dollar.
    unpriced INTEGER NOT NULL, -- How many of the requests have no known price.
    PRIMARY KEY (session, turn, day)
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
