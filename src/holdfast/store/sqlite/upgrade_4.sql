-- From schema 3 to 4. A program of schema 3 cannot run next to this one: it takes kinds of events that it does not know for damage.

ALTER TABLE owner ADD COLUMN draining TEXT;
ALTER TABLE session ADD COLUMN stop_turn TEXT;
ALTER TABLE session ADD COLUMN stop_seq INTEGER;
ALTER TABLE session ADD COLUMN stop_reply TEXT;

INSERT INTO meta VALUES ('identity', random());

-- Sign-ins of browsers that were ended before their time. Their cookies carry their own proof, so this is all there is to keep.
CREATE TABLE signed_out (
    sign_in TEXT PRIMARY KEY,
    until   INTEGER NOT NULL
) WITHOUT ROWID;
ALTER TABLE head ADD COLUMN deleted INTEGER NOT NULL DEFAULT 0;
DROP INDEX head_newest;
CREATE INDEX head_newest ON head (archived, updated_at) WHERE deleted = 0;
ALTER TABLE session ADD COLUMN deleted_at INTEGER;
ALTER TABLE session ADD COLUMN deleted_by TEXT;
ALTER TABLE session ADD COLUMN purge_at INTEGER;
ALTER TABLE session ADD COLUMN purged INTEGER NOT NULL DEFAULT 0;
CREATE INDEX session_purge ON session (purge_at) WHERE purge_at IS NOT NULL;
CREATE TABLE forgotten (
    key     BLOB PRIMARY KEY,
    session INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO meta VALUES ('scrub', 0);
ALTER TABLE session ADD COLUMN attempt_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN on_trial INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN tried_at INTEGER;
ALTER TABLE session ADD COLUMN lived_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN deaths INTEGER NOT NULL DEFAULT 0;

ALTER TABLE start ADD COLUMN explained INTEGER NOT NULL DEFAULT 0;
ALTER TABLE owner ADD COLUMN told TEXT;
