"""The rows of blobs and uploads. A blob's row is not derived from the log; which session names it is (`blob_use`).

`touched_at` says since when a blob may be waiting to be named. It is NULL once that was found to have happened, so that looking for what
nothing names costs only what is new; a purge sets it to 0 for what its session named.
"""

from collections.abc import Sequence

from holdfast.core.blobs import UNUSED_FOR_MS
from holdfast.core.errors import AttachmentGone, BlobMissing, DuplicateOtherContent, NotFound
from holdfast.core.events import Event, MessageAccepted, attached
from holdfast.ports.blobs import Blob, BlobUsage, Upload
from holdfast.store.tx import Tx

_UPLOAD = "SELECT u.attachment_id, u.digest, b.size, u.media_type, u.name FROM upload u JOIN blob b ON b.digest = u.digest"


def put_blob(tx: Tx, blob: Blob, at: int, instead_of: str | None) -> Blob:
    """Of two types that the same bytes were sent under, the one that says more counts."""
    tx.write(
        "INSERT INTO blob (digest, size, media_type, file, touched_at) VALUES (?1, ?2, ?3, ?4, ?5)"
        " ON CONFLICT (digest) DO UPDATE SET touched_at = ?5, file = CASE WHEN blob.file = ?6 THEN ?4 ELSE blob.file END,"
        " media_type = CASE WHEN blob.media_type = 'application/octet-stream' THEN ?3 ELSE blob.media_type END",
        blob.digest, blob.size, blob.media_type, blob.file, at, instead_of,
    )  # fmt: skip
    rows = tx.query("SELECT digest, size, media_type, file FROM blob WHERE digest = ?", blob.digest)
    return _blob(rows[0])


def put_upload(tx: Tx, upload: Upload, dedup_key: str | None, at: int) -> Upload:
    if dedup_key is not None:
        known = tx.query(f"{_UPLOAD} WHERE u.dedup_key = ?", dedup_key)
        if known:
            first = _upload(known[0])
            if (first.digest, first.media_type, first.name) != (upload.digest, upload.media_type, upload.name):
                raise DuplicateOtherContent(dedup_key)
            return first
    _require(tx, upload.digest)
    tx.write(
        "INSERT INTO upload (attachment_id, digest, media_type, name, at, dedup_key) VALUES (?, ?, ?, ?, ?, ?)",
        upload.attachment_id, upload.digest, upload.media_type, upload.name, at, dedup_key,
    )  # fmt: skip
    return upload


def uploads(tx: Tx, attachment_ids: Sequence[str]) -> list[Upload]:
    found = []
    for attachment_id in attachment_ids:
        rows = tx.query(f"{_UPLOAD} WHERE u.attachment_id = ?", attachment_id)
        if not rows:
            raise AttachmentGone(attachment_id)
        found.append(_upload(rows[0]))
    return found


def hold(tx: Tx, session: int, event: Event) -> None:
    """An event is about to name blobs: their rows must be there, in the same transaction. Uploads that a message names stay from now on as
    long as its session, so that the same request again finds them.
    """
    for part in attached(event):
        _require(tx, part.blob)
        if isinstance(event, MessageAccepted):
            tx.write(
                "UPDATE upload SET session = ? WHERE digest = ? AND name = ? AND media_type = ? AND session IS NULL",
                session, part.blob, part.name, part.media_type,
            )  # fmt: skip


def _require(tx: Tx, digest: str) -> None:
    if not tx.write("SELECT 1 FROM blob WHERE digest = ?", digest):
        raise BlobMissing(digest)


def visible(tx: Tx, digest: str) -> Blob:
    rows = tx.query(
        "SELECT digest, size, media_type, file FROM blob WHERE digest = ?1 AND EXISTS"
        " (SELECT 1 FROM blob_use u JOIN head h ON h.session = u.session WHERE u.digest = ?1 AND h.deleted = 0)",
        digest,
    )
    if not rows:
        raise NotFound("blob", digest)
    return _blob(rows[0])


def leave(tx: Tx, session: int) -> None:
    """A session is purged: what it alone named may go at once."""
    tx.write("UPDATE blob SET touched_at = 0 WHERE digest IN (SELECT digest FROM blob_use WHERE session = ?)", session)
    tx.write("DELETE FROM upload WHERE session = ?", session)


def anything_due(tx: Tx, now: int) -> bool:
    before = now - UNUSED_FOR_MS
    rows = tx.query(
        "SELECT EXISTS (SELECT 1 FROM upload WHERE session IS NULL AND at <= ?1)"
        " OR EXISTS (SELECT 1 FROM blob WHERE touched_at IS NOT NULL AND touched_at <= ?1)",
        before,
    )
    return bool(rows[0][0])


def collect(tx: Tx, now: int, limit: int) -> list[str]:
    before = now - UNUSED_FOR_MS
    tx.write("DELETE FROM upload WHERE session IS NULL AND at <= ?", before)
    gone = []
    due = tx.query(
        "SELECT digest, file, EXISTS (SELECT 1 FROM blob_use u WHERE u.digest = b.digest),"
        " (SELECT max(at) FROM upload u WHERE u.digest = b.digest AND u.session IS NULL)"
        " FROM blob b WHERE touched_at IS NOT NULL AND touched_at <= ? ORDER BY touched_at LIMIT ?",
        before, limit,
    )  # fmt: skip
    for digest, file, used, awaited_since in due:
        if used or awaited_since is not None:
            tx.write("UPDATE blob SET touched_at = ? WHERE digest = ?", awaited_since, digest)
        else:
            tx.write("DELETE FROM blob WHERE digest = ?", digest)
            gone.append(file)
    return gone


def unnamed(tx: Tx, files: Sequence[str]) -> list[str]:
    return [file for file in files if not tx.query("SELECT 1 FROM blob WHERE file = ?", file)]


def held_bytes(tx: Tx) -> int:
    """Without what a purge gave up and the next collection removes."""
    return int(tx.query("SELECT coalesce(sum(size), 0) FROM blob WHERE touched_at IS NULL OR touched_at > 0")[0][0])


def usage(tx: Tx) -> BlobUsage:
    return BlobUsage(*tx.query("SELECT count(*), coalesce(sum(size), 0) FROM blob")[0])


def _blob(row: tuple[str, int, str, str]) -> Blob:
    return Blob(digest=row[0], size=row[1], media_type=row[2], file=row[3])


def _upload(row: tuple[str, str, int, str, str]) -> Upload:
    return Upload(attachment_id=row[0], digest=row[1], size=row[2], media_type=row[3], name=row[4])
