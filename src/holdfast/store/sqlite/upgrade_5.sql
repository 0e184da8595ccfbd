-- From schema 4 to 5. A program of schema 4 cannot run next to this one: it takes kinds of events that it does not know for damage.

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
