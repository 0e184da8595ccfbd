"""After a purge: the search index and the write-ahead log still hold the words of what was removed. They are rewritten in small steps."""

from pathlib import Path

import apsw

from holdfast.store.deletion import TO_SCRUB
from holdfast.store.sqlite.connection import connect
from holdfast.store.sqlite.tx import SqliteTx
from holdfast.store.sqlite.wal import checkpoint

MERGED_PAGES = 16
# The stages: whatever was purged since is still in the search index, or still in the write-ahead log.
CLEAN, TO_MERGE, MERGING, TO_TRUNCATE = 0, TO_SCRUB, 2, 3


def scrub_step(tx: SqliteTx) -> int:
    """Rewrites the search index, a few pages at a time: until then it still holds the words of what was removed from it."""
    stage = scrub_stage(tx)
    if stage in (TO_MERGE, MERGING):
        before = tx.db.total_changes()
        tx.execute("INSERT INTO search (search, rank) VALUES ('merge', ?)", -MERGED_PAGES if stage == TO_MERGE else MERGED_PAGES)
        stage = TO_TRUNCATE if stage == MERGING and tx.db.total_changes() - before < 2 else MERGING
        tx.execute("UPDATE meta SET value = ? WHERE name = 'scrub'", stage)
    return stage


def scrub_stage(tx: SqliteTx) -> int:
    return int(tx.query("SELECT value FROM meta WHERE name = 'scrub'")[0][0])


def truncate_log(tx: SqliteTx) -> bool:
    """Empties the write-ahead log. False when somebody reads in it; on a connection of its own, because a reader's may write nothing."""
    truncating = connect(Path(tx.db.filename), create=False)
    try:
        return checkpoint(truncating, apsw.SQLITE_CHECKPOINT_TRUNCATE)
    finally:
        truncating.close()


def scrubbed(tx: SqliteTx) -> None:
    """Unless something was purged in the meantime."""
    tx.execute("UPDATE meta SET value = ? WHERE name = 'scrub' AND value = ?", CLEAN, TO_TRUNCATE)
