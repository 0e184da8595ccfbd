"""The full-text index. A row of it has the number of its event, which is nobody else's business."""

import apsw

from holdfast.store.sqlite.connection import fetch

PAGE, PAGES, MOST_SESSIONS = 500, 40, 500
MAX_ROWID = 2**62


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
    sessions: dict[int, None] = {}
    below, page = MAX_ROWID, PAGE
    for _ in range(PAGES):
        if page < PAGE or len(sessions) >= MOST_SESSIONS:
            break
        found = finds(db, query, below, PAGE)
        page = len(found)
        sessions.update(dict.fromkeys(session for _, session in found))
        below = found[-1][0] if found else 0
    return list(sessions)[:MOST_SESSIONS]


def finds(db: apsw.Connection, query: str, below: int, limit: int) -> list[tuple[int, int]]:
    """The events that hold all the words, with their sessions: those of a lower number than `below`, the newest first."""
    words = _words(query)
    if not words:
        return []
    return fetch(
        db,
        "SELECT f.id, e.session FROM (SELECT rowid AS id FROM search WHERE search MATCH ? AND rowid < ? ORDER BY rowid DESC LIMIT ?) f"
        " JOIN event e ON e.id = f.id ORDER BY f.id DESC",
        (words, below, limit),
    )


def forget(db: apsw.Connection, session: int, first: int, last: int) -> None:
    db.execute(
        "DELETE FROM search WHERE rowid IN (SELECT id FROM event WHERE session = ? AND seq >= ? AND seq <= ?)", (session, first, last)
    )
