-- From schema 1 to 2. A test holds the outcome against schema.sql.
DROP INDEX event_record;
CREATE INDEX event_record ON event (session, seq) WHERE kind <> 'text' AND kind <> 'reasoning' AND kind <> 'tool.output' AND kind <> 'turn.alive';
ALTER TABLE head ADD COLUMN left INTEGER NOT NULL DEFAULT 0;
ALTER TABLE head ADD COLUMN asked_seq INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN rule TEXT;
ALTER TABLE session ADD COLUMN why TEXT;
CREATE INDEX session_suspended ON session (id) WHERE suspended = 1;
CREATE INDEX session_pending ON session (id) WHERE resume_pending = 1;
CREATE TABLE start (
    owner INTEGER PRIMARY KEY,
    at    INTEGER NOT NULL,
    ended INTEGER NOT NULL DEFAULT 0,
    sound INTEGER NOT NULL DEFAULT 0
);
