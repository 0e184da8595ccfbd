-- From schema 6 to 7. Nothing that a program of schema 6 reads or writes changes, so one may still run next to this.

-- Since when a schedule is paused.
ALTER TABLE schedule ADD COLUMN paused INTEGER;

-- In which version a life served, when it gave way to a successor, and when it ended.
ALTER TABLE start ADD COLUMN version TEXT;
ALTER TABLE start ADD COLUMN handed INTEGER;
ALTER TABLE start ADD COLUMN gone INTEGER;

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
INSERT INTO titling (session, state, since)
    SELECT f.session, 'due', e.at FROM (
        SELECT n.session, min(n.seq) AS seq FROM event n JOIN session s ON s.id = n.session
        WHERE n.stream = 0 AND s.purged = 0 AND CASE  -- No other body is read.
            WHEN n.kind = 'turn.ended'
                THEN json_valid(CAST(n.body AS TEXT)) AND json_extract(CAST(n.body AS TEXT), '$.outcome') = 'completed'
            WHEN n.kind IN ('session.created', 'session.changed')
                THEN json_valid(CAST(n.body AS TEXT)) AND json_extract(CAST(n.body AS TEXT), '$.title') IS NOT NULL
        END GROUP BY n.session
    ) f JOIN event e ON e.session = f.session AND e.seq = f.seq;
UPDATE titling SET state = 'given' WHERE EXISTS (
    SELECT 1 FROM event e WHERE e.session = titling.session AND e.stream = 0 AND e.kind IN ('session.created', 'session.changed')
    AND json_valid(CAST(e.body AS TEXT)) AND json_extract(CAST(e.body AS TEXT), '$.title') IS NOT NULL
);

-- The folder that was chosen for the tools of a conversation.
ALTER TABLE session ADD COLUMN folder TEXT;
