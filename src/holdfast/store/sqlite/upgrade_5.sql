-- From schema 4 to 5. A program of schema 4 cannot run next to this one: it takes kinds of events that it does not know for damage.

-- Rows that are there keep their checksum, which covers neither of the two.
ALTER TABLE event ADD COLUMN epoch INTEGER;
ALTER TABLE event ADD COLUMN stream INTEGER NOT NULL DEFAULT 0;
UPDATE event SET stream = 1 WHERE kind IN ('text', 'reasoning', 'tool.output', 'turn.alive');
DROP INDEX event_record;
CREATE INDEX event_record ON event (session, seq) WHERE stream = 0;

ALTER TABLE head RENAME COLUMN left TO stays;

ALTER TABLE inbox RENAME COLUMN message_id TO cause_id;
ALTER TABLE inbox ADD COLUMN what TEXT NOT NULL DEFAULT 'message';

-- What is in flight has no owner: its sender knew nothing of owners, and is gone.
ALTER TABLE outbox RENAME TO outbox_4;
CREATE TABLE outbox (
    delivery_id TEXT PRIMARY KEY,
    session     INTEGER NOT NULL,
    seq         INTEGER NOT NULL,
    at          INTEGER NOT NULL,
    state       TEXT NOT NULL,
    tries       INTEGER NOT NULL,
    retry_at    INTEGER NOT NULL,
    owner       INTEGER,
    receipt     TEXT,
    error       TEXT
) WITHOUT ROWID;
INSERT INTO outbox (delivery_id, session, seq, at, state, tries, retry_at, receipt, error)
    SELECT o.delivery_id, o.session, o.seq, coalesce(e.at, 0), o.state, o.tries, o.retry_at, o.receipt, o.error
    FROM outbox_4 o LEFT JOIN event e ON e.session = o.session AND e.seq = o.seq;
DROP TABLE outbox_4;
CREATE INDEX outbox_due ON outbox (state, retry_at) WHERE state NOT IN ('sent', 'dead');

ALTER TABLE question ADD COLUMN form TEXT NOT NULL DEFAULT 'question';
ALTER TABLE question ADD COLUMN message TEXT;
UPDATE question SET message = (
    SELECT json_extract(CAST(e.body AS TEXT), '$.message_id') FROM event e
    WHERE e.session = question.session AND e.stream = 0 AND e.kind = 'question.answered' AND json_valid(CAST(e.body AS TEXT))
    AND json_extract(CAST(e.body AS TEXT), '$.question_id') = question.question_id
) WHERE state = 'answered';
CREATE INDEX question_message ON question (message) WHERE message IS NOT NULL;

-- Which session names which blob: what a conversation's content refers to stays for as long as its log does.
CREATE TABLE blob_use (
    digest  TEXT NOT NULL,
    session INTEGER NOT NULL,
    PRIMARY KEY (digest, session)
) WITHOUT ROWID;
CREATE INDEX blob_use_session ON blob_use (session);

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

-- What was uploaded for messages. `session`: the one a message named it in; NULL while none did.
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

CREATE TABLE indexed (
    session INTEGER PRIMARY KEY,
    seq     INTEGER NOT NULL
);
INSERT INTO indexed SELECT session, max(seq) FROM event WHERE id <= (SELECT value FROM meta WHERE name = 'searchable_id') GROUP BY session;
