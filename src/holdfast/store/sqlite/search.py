"""The full-text index. A row of it has the number of its event, which is nobody else's business."""

import apsw

from holdfast.store.sqlite.connection import fetch


def index(db: apsw.Connection, session: int, seq: int, text: str) -> None:
    db.execute("INSERT INTO search (rowid, text) SELECT id, ? FROM event WHERE session = ? AND seq = ?", (text, session, seq))


def _words(query: str) -> str:
    """All of them, the last as the beginning of a word; empty where there is none."""
    plain = query.encode("utf-8", "replace").decode().replace("\0", " ")
    words = " ".join('"' + word.replace('"', '""') + '"' for word in plain.split()[:12])
    return words and words + "*"


def find(db: apsw.Connection, query: str) -> list[int]:
    """Sessions whose titles or messages hold all the words, the newest finds first. The last word may still be growing."""
    words = _words(query)
    if not words:
        return []
    rows = fetch(
        db,
        "SELECT e.session FROM (SELECT rowid AS id FROM search WHERE search MATCH ? ORDER BY rowid DESC LIMIT 500) f"
        " JOIN event e ON e.id = f.id",
        (words,),
    )
    return list(dict.fromkeys(row[0] for row in rows))


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
