"""The rows of blobs and uploads. A blob's row is not derived from the log; which session names it is (`blob_use`).

`touched_at` says since when a blob may be waiting to be named. It is NULL once something names it, so that looking for what nothing names
costs only what is new; a purge sets it to 0 for what its session named. What was put again since it was named waits for its own message: a
purge leaves it alone.
"""

from collections.abc import Sequence

from holdfast.core.blobs import UNUSED_FOR_MS
from holdfast.core.errors import AttachmentGone, BlobMissing, DuplicateOtherContent, NotFound
from holdfast.core.events import Event, MessageAccepted, attached
from holdfast.ports.blobs import Blob, BlobUsage, Upload
from holdfast.store import queries as q
from holdfast.store.tx import Tx


def put_blob(tx: Tx, blob: Blob, at: int, instead_of: str | None) -> Blob:
    """Of two types that the same bytes were sent under, the one that says more counts."""
    tx.write(q.BLOB_PUT, blob.digest, blob.size, blob.media_type, blob.file, at, instead_of)  # fmt: skip
    rows = tx.query(q.BLOB, blob.digest)
    return _blob(rows[0])


def put_upload(tx: Tx, upload: Upload, dedup_key: str | None, at: int) -> Upload:
    if dedup_key is not None:
        dedup_key = tx.secrets.key(dedup_key)
        known = tx.query(q.UPLOAD_BY_KEY, dedup_key)
        if known:
            first = _upload(known[0])
            if (first.digest, first.media_type, first.name) != (upload.digest, upload.media_type, upload.name):
                raise DuplicateOtherContent(dedup_key)
            return first
    if not tx.write(q.BLOB_THERE, upload.digest):
        raise BlobMissing(upload.digest)
    tx.write(q.UPLOAD_ADD, upload.attachment_id, upload.digest, upload.media_type, upload.name, at, dedup_key)  # fmt: skip
    return upload


def uploads(tx: Tx, attachment_ids: Sequence[str]) -> list[Upload]:
    found = []
    for attachment_id in attachment_ids:
        rows = tx.query(q.UPLOAD, attachment_id)
        if not rows:
            raise AttachmentGone(attachment_id)
        found.append(_upload(rows[0]))
    return found


def hold(tx: Tx, session: int, event: Event) -> None:
    """An event is about to name blobs: their rows must be there, in the same transaction. What its session names already may be named
    again though a restore has lost it: the message that brought it still gets its turn. Uploads that a message names stay from now on as
    long as any session that names them, so that the same request again finds them.
    """
    for part in attached(event):
        if not tx.write(q.BLOB_NAMED, part.blob) and not tx.query(q.BLOB_NAMED_BY, part.blob, session):
            raise BlobMissing(part.blob)
        if isinstance(event, MessageAccepted):
            tx.write(q.UPLOAD_USED_IN, session, part.blob, part.name, part.media_type)  # fmt: skip
            tx.write(q.UPLOAD_USED, session, part.blob, part.name, part.media_type)  # fmt: skip


def visible(tx: Tx, digest: str) -> Blob:
    rows = tx.query(q.BLOB_VISIBLE, digest, digest)
    if not rows:
        raise NotFound("blob", digest)
    return _blob(rows[0])


def leave(tx: Tx, session: int) -> None:
    """A session is purged: what it alone named may go at once."""
    tx.write(q.BLOBS_LOOSE, session)
    tx.write(q.UPLOAD_USES_GONE, session)
    tx.write(q.UPLOADS_USED_ELSEWHERE, session)
    tx.write(q.UPLOADS_GONE, session)


def anything_due(tx: Tx, now: int) -> bool:
    before = now - UNUSED_FOR_MS
    rows = tx.query(q.BLOBS_DUE_ANY, before, before)
    return bool(rows[0][0])


def collect(tx: Tx, now: int, limit: int) -> list[str]:
    before = now - UNUSED_FOR_MS
    tx.write(q.UPLOADS_EXPIRED, before)
    gone = []
    due = tx.query(q.BLOBS_DUE, before, limit)  # fmt: skip
    for digest, file, used, awaited_since in due:
        if used or awaited_since is not None:
            tx.write(q.BLOB_TOUCH, awaited_since, digest)
        else:
            tx.write(q.BLOB_REMOVE, digest)
            gone.append(file)
    return gone


def unnamed(tx: Tx, files: Sequence[str]) -> list[str]:
    return [file for file in files if not tx.query(q.FILE_NAMED, file)]


def held_bytes(tx: Tx) -> int:
    """Without what a purge gave up and the next collection removes."""
    return int(tx.query(q.BLOB_BYTES_HELD)[0][0])


def usage(tx: Tx) -> BlobUsage:
    return BlobUsage(*tx.query(q.BLOB_USAGE)[0])


def _blob(row: tuple[str, int, str, str]) -> Blob:
    return Blob(digest=row[0], size=row[1], media_type=row[2], file=row[3])


def _upload(row: tuple[str, str, int, str, str]) -> Upload:
    return Upload(attachment_id=row[0], digest=row[1], size=row[2], media_type=row[3], name=row[4])
