"""The full-text index. A row of it has the number of its event, which is nobody else's business."""

from collections.abc import Iterator

import apsw

MOST_FOUND, MOST_SESSIONS = 20_000, 500
# CROSS: in the order of the index, not of the events.
_FINDS = "SELECT f.rowid, e.session FROM search f CROSS JOIN event e ON e.id = f.rowid WHERE f.search MATCH ? ORDER BY f.rowid DESC"
# One after the other as far as they are wanted, so that the many finds of a common word do not come up to Python.
_SESSIONS = (
    "SELECT DISTINCT session FROM (SELECT e.session AS session FROM search f CROSS JOIN event e ON e.id = f.rowid WHERE f.search MATCH ?"
    " ORDER BY f.rowid DESC LIMIT ?) LIMIT ?"
)

# Only between the first and the last event of the session.
_FINDS_IN = (
    "SELECT f.rowid, e.session FROM search f CROSS JOIN event e ON e.id = f.rowid WHERE f.search MATCH ? AND e.session = ?"
    " AND f.rowid >= (SELECT id FROM event WHERE session = ? ORDER BY seq LIMIT 1)"
    " AND f.rowid <= (SELECT id FROM event WHERE session = ? ORDER BY seq DESC LIMIT 1) ORDER BY f.rowid DESC"
)


def index(db: apsw.Connection, session: int, seq: int, text: str) -> None:
    db.execute("INSERT INTO search (rowid, text) SELECT id, ? FROM event WHERE session = ? AND seq = ?", (text, session, seq))


def _words(query: str) -> str:
    """All of them, the last as the beginning of a word; empty where there is none."""
    plain = query.encode("utf-8", "replace").decode().replace("\0", " ")
    words = " ".join('"' + word.replace('"', '""') + '"' for word in plain.split()[:12])
    return words and words + "*"


def find(db: apsw.Connection, query: str) -> list[int]:
    """Sessions whose titles or messages hold all the words, the newest finds first. The last word may still be growing. Grouped before it
    is limited: a session with many finds hides no other.
    """
    words = _words(query)
    return [session for (session,) in db.execute(_SESSIONS, (words, MOST_FOUND, MOST_SESSIONS))] if words else []


def finds(db: apsw.Connection, query: str, session: int | None = None) -> Iterator[tuple[int, int]]:
    """The events that hold all the words, with their sessions, the newest first; of one session, if it is given. One statement gives them
    all, however many are wanted: each new one would put the lists of all words together again that begin as the last one does.
    """
    words = _words(query)
    if not words:
        return
    if session is None:
        rows = db.execute(_FINDS, (words,))
    else:
        rows = db.execute(_FINDS_IN, (words, session, session, session))
    try:
        yield from rows
    finally:
        rows.close()


def forget(db: apsw.Connection, session: int, first: int, last: int) -> None:
    db.execute(
        "DELETE FROM search WHERE rowid IN (SELECT id FROM event WHERE session = ? AND seq >= ? AND seq <= ?)", (session, first, last)
    )
