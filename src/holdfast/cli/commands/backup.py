"""`holdfast backup`: a copy of all conversations, checked before it counts."""

import contextlib
import fcntl
import os
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import click

from holdfast.cli.options import home, home_option, json_option, keep_files_private, path_argument
from holdfast.cli.terminal.layout import count, size
from holdfast.cli.terminal.output import note, print_json
from holdfast.core.errors import Refused

# The names under which a backup makes its copy, and SQLite what it needs next to one.
MAKING = re.compile(r"\..+\.\d+\.making(\.partial)?(-journal|-wal|-shm)?")


class Damaged(Refused):
    code = "backup_damaged"

    def __init__(self, found: str) -> None:
        super().__init__(f"The copy is damaged and was deleted: {found}. `holdfast doctor` checks the original.")


@click.command("backup")
@home_option
@path_argument
@click.option("--force", is_flag=True, help="Replace an existing file.")
@json_option
def command(path: Path, force: bool, as_json: bool) -> None:
    """Copy all conversations to a file, even while the gateway runs.

    PATH is the file, or a folder: then the file is named after the current time. The copy is checked before it gets its name. `holdfast
    restore` puts it back.
    """
    from holdfast import files
    from holdfast.cli.access import offline
    from holdfast.store.sqlite import inspection

    keep_files_private()
    target = _target(path, force)
    making = target.with_name(f".{target.name}.{os.getpid()}.making")
    with _writing_to(target.parent):
        try:
            copied = offline.read(home(), lambda store, _: store.backup(str(making)))
            found = inspection.check_copy(making)
            if found != inspection.SOUND:
                raise Damaged(found)
            files.put_in_place(making, target)
        finally:
            making.unlink(missing_ok=True)
            making.with_name(f"{making.name}.partial").unlink(missing_ok=True)
    if as_json:
        print_json({"path": str(target), "bytes": target.stat().st_size, "lost_attachments": copied.lost, "missed_spools": copied.missed})
        return
    click.echo(f"Copied to {target} ({size(target.stat().st_size)}), and checked.")
    if copied.lost:
        note(f"{count(copied.lost, 'attachment')} could not be copied: missing or damaged on disk. `holdfast doctor` says more.")
    if copied.missed:
        note(f"{count(copied.missed, 'spool')} could not be copied: unreadable. `holdfast journal verify` says more.")


@contextlib.contextmanager
def _writing_to(folder: Path) -> Iterator[None]:
    """All backups to a folder share its lock while they write. A backup that has the lock alone knows that unfinished copies in the folder
    belong to backups that were killed.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        if _lock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB):
            _clean(folder)
        _lock(descriptor, fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, how: int) -> bool:
    """False if another backup has it, or if this file system has no such lock."""
    try:
        fcntl.flock(descriptor, how)
    except OSError:
        return False
    return True


def _clean(folder: Path) -> None:
    left = [path for path in folder.iterdir() if MAKING.fullmatch(path.name) and path.is_file()]
    if not left:
        return
    try:
        for path in left:
            path.unlink(missing_ok=True)
    except OSError as error:
        note(f"An interrupted backup left {path.name} in {folder}, and it cannot be removed: {error.strerror}. Remove it yourself.")
    else:
        note(f"Removed {count(len(left), 'file')} that an interrupted backup had left in {folder}.")


def _target(path: Path, force: bool) -> Path:
    target = path / f"holdfast-{datetime.now():%Y%m%d-%H%M%S}.db" if path.is_dir() else path
    original = home() / "holdfast.db"
    if target.exists() and original.exists() and target.samefile(original):
        raise Refused(f"{target} is the database itself. Name another file.")
    if target.exists() and not force:
        raise Refused(f"{target} already exists. Name another file, or replace it with --force.")
    if not target.parent.is_dir():
        raise Refused(f"There is no folder {target.parent}. Make it first.")
    return target
