-- From schema 2 to 3: work can be paused.
CREATE TABLE pause (
    id     INTEGER PRIMARY KEY CHECK (id = 1),
    holder TEXT NOT NULL,
    since  INTEGER NOT NULL,
    until  INTEGER NOT NULL
);
