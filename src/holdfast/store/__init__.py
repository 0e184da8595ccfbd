"""The log and its catalog on SQLite. SQL lives here and nowhere else."""

from holdfast.store.sqlite.store import SqliteStore, open_store, record_stop, tell_owners

__all__ = ["SqliteStore", "open_store", "record_stop", "tell_owners"]
