"""Writes to a session as a whole: its names and marks, which one its key points at, and its deletion."""

from holdfast.core import events as e
from holdfast.core.plans import branch, delete, leave, marks, resume
from holdfast.core.plans.branch import Names, Origin
from holdfast.core.plans.delete import Deletion
from holdfast.core.plans.leave import Moved
from holdfast.core.plans.repeats import RESET, RESUME
from holdfast.core.sessions import Session
from holdfast.store import queries as q
from holdfast.store import reads
from holdfast.store.tx import Tx
from holdfast.store.work import run, snapshots
from holdfast.store.work.repeats import known


def create_session(tx: Tx, event: e.SessionCreated, at: int) -> Session:
    run(tx, leave.begin(event), at)
    return tx.session(event.session_id)


def change_session(tx: Tx, session_id: str, change: e.SessionChanged, at: int) -> Session:
    run(tx, leave.change(snapshots.underway(tx, reads.living(tx, session_id)), change), at)
    return tx.session(session_id)


def mark_pending(tx: Tx, session_key: str, reason: str, at: int) -> bool:
    return run(tx, marks.pending(reads.current_session(tx, session_key), reason), at)


def clear_mark(tx: Tx, session_id: str, turn_id: str | None, rule: str, at: int) -> bool:
    return run(tx, marks.cleared_by_rule(reads.living(tx, session_id), turn_id=turn_id, rule=rule), at)


def clear_pending(tx: Tx, session_key: str, at: int) -> bool:
    return run(tx, marks.cleared(reads.current_session(tx, session_key)), at)


def suspend_active(tx: Tx, window_ms: int, at: int) -> int:
    rows = tx.query(q.ACTIVE, window_ms)
    for (session_id,) in rows:
        change_session(tx, session_id, e.SessionChanged(suspended=True), at)
    return len(rows)


def reset(tx: Tx, session_id: str, names: tuple[str, str], by: str, dedup_key: str | None, at: int) -> Moved:
    repeated = known(tx, dedup_key, RESET)
    if repeated is not None:
        return leave.reset_again(repeated)
    session = snapshots.current(tx, session_id)
    fresh = snapshots.fresh(tx, session, names)
    return run(tx, leave.reset(snapshots.underway(tx, session), fresh, by=by, dedup_key=dedup_key), at)


def branch_session(tx: Tx, origin: Origin, names: Names, by: str, dedup_key: str | None, at: int) -> Session:
    repeated = known(tx, dedup_key, RESET)
    if repeated is not None:
        return tx.session(repeated.session_id)
    reads.living(tx, origin.session.session_id)
    return tx.session(run(tx, branch.plan(origin, names, by=by, dedup_key=dedup_key), at))


def resume_session(tx: Tx, session_id: str, by: str, dedup_key: str | None, at: int) -> Moved:
    repeated = known(tx, dedup_key, RESUME)
    found = snapshots.resuming(tx, session_id)
    return resume.again(repeated) if repeated is not None else run(tx, resume.plan(found, by=by, dedup_key=dedup_key), at)


def delete_session(tx: Tx, session_id: str, by: str, until: int, at: int, why: str | None = None) -> Deletion:
    found = snapshots.underway(tx, tx.session(session_id))
    return run(tx, delete.delete(found, by=by, until=until, why=why, at=at), at)


def undelete_session(tx: Tx, session_id: str, by: str, at: int) -> bool:
    return run(tx, delete.undelete(tx.session(session_id), by=by), at)
