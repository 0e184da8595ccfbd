"""Putting a backup in the place of a home's database: checked and made ready next to it, then swapped in by one rename.

The home must belong to nobody else while this runs; the caller sees to that. A kill at any moment leaves the old database or the new one.
"""

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import apsw

from holdfast import files
from holdfast.core import events as e
from holdfast.core.blobs import FOLDER
from holdfast.core.errors import Refused, StoreFull
from holdfast.core.plans import restore as plans
from holdfast.core.resume import FRESH_FOR_S
from holdfast.core.turns import TurnState
from holdfast.ports.owners import Owner
from holdfast.spool import FOLDER as SPOOLS
from holdfast.store import queries as q
from holdfast.store import reads
from holdfast.store.log import Finding, number, read
from holdfast.store.sqlite import packing, spooled
from holdfast.store.sqlite.connection import SCHEMA_VERSION, check_place, connect, fetch, migrate
from holdfast.store.sqlite.packing import Unpacking
from holdfast.store.sqlite.spooled import Spool
from holdfast.store.sqlite.store import DATABASE, RESTORING
from holdfast.store.sqlite.tx import SqliteTx, rebuild
from holdfast.store.upkeep import register_owner, set_pause
from holdfast.store.work.turns import take_turn

COMPANIONS = ("", "-wal", "-shm", "-journal")
HEADER = b"SQLite format 3\0"
PAGE = 1000


class Restored(NamedTuple):
    """`newest_at`: when the last event of the backup was stored. `interrupted`: turns that ran when it was made. `unsure`: replies that may
    have been sent since, and are sent again with a label. `dropped`: those too old for that. `lost`: attachments that the backup does not
    have. `aside`: where the old database is now. `late`: how many spools in the backup cannot be read, or
    not all of them.
    """

    sessions: int
    newest_at: int
    interrupted: int
    unsure: int
    dropped: int
    damaged: int
    lost: int
    aside: Path | None
    late: int = 0


class NoBackup(Refused):
    code = "no_backup"

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path} cannot be restored: {why}. Nothing was changed.")


def restore(home: Path, backup: Path, *, now: int, new_log: Callable[[], str], stamp: str, damage: bool) -> Restored:
    """`damage`: whether a backup with damaged events is taken as it is. Raises `Refused` with nothing changed."""
    check_place(home)
    making = home / RESTORING
    _remove(making)
    blobs = home / FOLDER
    known, unpacking = _names(blobs), Unpacking(blobs)
    try:
        _copy(backup, making)
        try:
            restored, late = _make_ready(making, backup, unpacking, now=now, new_log=new_log, damage=damage)
        except apsw.FullError as error:
            raise StoreFull from error
        except apsw.Error as error:
            raise NoBackup(backup, f"it is damaged or not a database of Holdfast ({error})") from error
        aside = _keep_aside(home, _free_name(home / f"replaced-{stamp}"), known)
        with _spools_aside(home, aside), spooled.put_back(home, late):
            files.put_in_place(making, home / DATABASE)
    except BaseException:
        unpacking.undo()
        raise
    finally:
        _remove(making)
    return restored._replace(aside=aside)


def _copy(backup: Path, making: Path) -> None:
    for ending in COMPANIONS[1:]:
        with contextlib.suppress(FileNotFoundError):
            if Path(f"{backup}{ending}").stat().st_size and ending != "-shm":
                raise NoBackup(backup, f"{backup.name}{ending} lies next to it, so it is or was in use. `holdfast backup` makes copies")
    os.close(os.open(making, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    shutil.copyfile(backup, making)


def _make_ready(
    making: Path, backup: Path, unpacking: Unpacking, *, now: int, new_log: Callable[[], str], damage: bool
) -> tuple[Restored, list[Spool]]:
    db = connect(making, create=False)
    try:
        _check(db, backup)
        migrate(db, rebuild)
        tx = SqliteTx(db)
        damaged = _count_damaged(tx)
        if damaged and not damage:
            raise NoBackup(backup, f"{damaged} of its events are damaged. With --damaged it is restored as it is")
        with db:
            # What was set aside by an earlier restore has its spools next to it.
            beside = spooled.gather(backup.parent).spools if backup.name == DATABASE else []
            late = spooled.ship_all(tx, spooled.packed(db) or beside, now)
            restored = _renew(tx, now=now, new_log=new_log, late={spool.name for spool in late})
            tx.flush()
            lost = unpacking.unpack(db, backup.parent / FOLDER)
            spooled.drop(db)
        fetch(db, "PRAGMA journal_mode = DELETE")  # One file, at rest.
        packing.drop(db)
    finally:
        db.close()
    return restored._replace(damaged=damaged, lost=lost, late=len(late)), late


def _check(db: apsw.Connection, backup: Path) -> None:
    found = fetch(db, "PRAGMA integrity_check(1)")[0][0]
    if found != "ok":
        raise NoBackup(backup, f"it is damaged ({' '.join(found.split())})")
    version = int(db.pragma("user_version"))
    if version > SCHEMA_VERSION:
        raise NoBackup(
            backup, f"it has schema {version}, and this Holdfast knows up to {SCHEMA_VERSION}. Use the newer Holdfast that wrote it"
        )
    if not version or not fetch(db, "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'event'"):
        raise NoBackup(backup, "it is not a database of Holdfast")


def _count_damaged(tx: SqliteTx) -> int:
    found: list[Finding] = []
    after = 0
    while rows := tx.query(q.LOG_IN_ORDER, after, PAGE):
        read(tx, rows, {}, found)
        after = rows[-1][0]
    return len(found)


def _renew(tx: SqliteTx, *, now: int, new_log: Callable[[], str], late: set[str]) -> Restored:
    """Makes a copy of a store another store: readers of the first start from a snapshot, and what was under way in it is over."""
    newest = tx.query("SELECT max(at) FROM event")[0][0] or 0
    interrupted = _interrupt(tx, now, late)
    sessions = tx.query("SELECT id FROM session WHERE purged = 0")
    for (session,) in sessions:
        tx.append(tx.head(session), e.SessionRestored(log=new_log()), now, in_turn=False)
    unsure, dropped = _doubt_deliveries(tx, fresh=now - newest <= FRESH_FOR_S * 1000, at=now)
    set_pause(tx, None, now)
    tx.execute("UPDATE start SET ended = 1")  # Nobody is to blame for a life that went on elsewhere.
    tx.execute("UPDATE meta SET value = random() WHERE name = 'identity'")
    return Restored(len(sessions), newest, interrupted, unsure, dropped, 0, 0, None)


def _interrupt(tx: SqliteTx, at: int, late: set[str]) -> int:
    running = tx.query("SELECT s.session_id FROM head h JOIN session s ON s.id = h.session WHERE h.state = ?", str(TurnState.RUNNING))
    if not running:
        return 0
    owner = register_owner(tx, Owner(name=f"{plans.RESTORED}-{at}", pid=0, started_at=at, boot_id=""))
    for (session_id,) in running:
        session = tx.session(session_id)
        written = len(reads.open_turn(tx, tx.head(number(tx, session_id))).answer_text)
        cut = plans.interrupted(session, written=written, late=late)
        take_turn(tx, session_id, owner, session.turn_id or "", session.epoch, [cut], at)
    return len(running)


def _doubt_deliveries(tx: SqliteTx, *, fresh: bool, at: int) -> tuple[int, int]:
    """What was owed when the backup was made may have been sent since. (How many are sent again with a label, how many are not.)"""
    rows = tx.query("SELECT session, delivery_id, part, state, tries, target, receipt FROM outbox WHERE state NOT IN ('sent', 'dead')")
    for session, delivery_id, part, state, tries, target, receipt in rows:
        owed = e.DeliveryChanged(delivery_id=delivery_id, part=part, state=state, tries=tries, receipt=receipt)
        change = plans.doubted(owed, edits=target is not None, fresh=fresh)
        tx.append(tx.head(session), change, at, in_turn=False)
    return (len(rows), 0) if fresh else (0, len(rows))


def _names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder)) if folder.is_dir() else []


def _keep_aside(home: Path, aside: Path, blobs: list[str]) -> Path | None:
    """The database that is there and its blobs, whole, under another name as well. From here until the swap it stays usable where it is;
    after that, blobs which no row names any more are swept by the next start.
    """
    old = home / DATABASE
    if not old.exists():
        return None
    _come_to_rest(old)
    aside.mkdir(mode=0o700)
    for ending in COMPANIONS:
        file = Path(f"{old}{ending}")
        if file.exists():
            _also(file, aside / file.name)
    if blobs:
        (aside / FOLDER).mkdir(mode=0o700)
        for name in blobs:
            _also(home / FOLDER / name, aside / FOLDER / name)
        files.sync(aside / FOLDER)
    files.sync(aside)
    files.sync(home)
    # Only a database that could not be opened still has these. Left there, they would be taken for the new one's.
    for ending in COMPANIONS[1:]:
        Path(f"{old}{ending}").unlink(missing_ok=True)
    return aside


@contextlib.contextmanager
def _spools_aside(home: Path, aside: Path | None) -> Iterator[None]:
    """What was spooled belongs to the database that is being replaced. If it is not replaced after all, everything is where it was."""
    spools = home / SPOOLS
    if aside is None or not spools.is_dir():
        yield
        return
    spools.rename(aside / SPOOLS)
    files.sync(aside)
    try:
        yield
    except BaseException:
        (aside / SPOOLS).rename(spools)
        raise


def _free_name(wanted: Path) -> Path:
    name, number = wanted, 1
    while name.exists():
        number += 1
        name = wanted.with_name(f"{wanted.name}-{number}")
    return name


def _come_to_rest(path: Path) -> None:
    """Everything in one file, if it is a database at all. SQLite would throw away what lies next to another file."""
    with path.open("rb") as file:
        if file.read(len(HEADER)) != HEADER:
            return
    with contextlib.suppress(apsw.Error):
        db = connect(path, create=False)
        try:
            fetch(db, "PRAGMA journal_mode = DELETE")
        finally:
            db.close()


def _also(file: Path, name: Path) -> None:
    try:
        os.link(file, name)
    except OSError:  # Not every file system can give a file two names.
        shutil.copy2(file, name)
        files.sync(name)


def _remove(database: Path) -> None:
    for ending in COMPANIONS:
        Path(f"{database}{ending}").unlink(missing_ok=True)
