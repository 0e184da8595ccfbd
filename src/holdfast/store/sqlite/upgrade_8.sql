-- From schema 7 to 8. Nothing that a program of schema 7 reads or writes changes, so one may still run next to this. A pause that it begins
-- or ends is in `pause` alone: readers take both together.

-- The few that are pinned, for the list.
CREATE INDEX session_pinned ON session (id) WHERE pinned = 1;

-- The last few pauses. `ended`: when, NULL while it holds, and where that is not on record.
CREATE TABLE paused (
    since  INTEGER NOT NULL,
    holder TEXT NOT NULL,
    until  INTEGER NOT NULL,
    ended  INTEGER,
    PRIMARY KEY (since, holder)
) WITHOUT ROWID;
INSERT INTO paused (since, holder, until) SELECT since, holder, until FROM pause;
