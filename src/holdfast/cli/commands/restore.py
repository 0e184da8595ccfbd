"""`holdfast restore`: a backup replaces the conversations of a home folder."""

import contextlib
import fcntl
import os
import secrets
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import click

from holdfast.cli.options import home, home_option, json_option, keep_files_private, path_argument
from holdfast.cli.terminal.layout import count
from holdfast.cli.terminal.output import print_json, say
from holdfast.core.errors import Held, Refused


class InUse(Held):
    code = "in_use"

    def __init__(self, folder: Path) -> None:
        super().__init__(f"A gateway runs on {folder}, so nothing can be restored there now. Stop it with `holdfast stop` first.")


@click.command("restore")
@home_option
@path_argument
@click.option("--damaged", is_flag=True, help="Restore a backup even if events in it are damaged.")
@json_option
def command(path: Path, damaged: bool, as_json: bool) -> None:
    """Replace all conversations with a backup.

    PATH is a file that `holdfast backup` made. It is checked first; the gateway must not run. The current conversations are kept in a
    folder named replaced-TIME in the home folder. Turns that were running when the backup was made count as interrupted.
    """
    from holdfast.config import prepare_home
    from holdfast.store.sqlite.restoring import restore

    keep_files_private()
    if not path.is_file():
        raise Refused(f"There is no file {path}.")
    prepare_home(home())
    with _nobody_serving(home()):
        done = restore(
            home(),
            path,
            now=time.time_ns() // 1_000_000,
            new_log=lambda: f"l_{secrets.token_hex(8)}",
            stamp=f"{datetime.now():%Y%m%d-%H%M%S}",
            damage=damaged,
        )
    if as_json:
        print_json(done._asdict() | {"aside": str(done.aside) if done.aside else None})
        return
    made = f", last changed {datetime.fromtimestamp(done.newest_at / 1000):%Y-%m-%d %H:%M:%S}" if done.newest_at else ""
    say(f"Restored {count(done.sessions, 'conversation')} from {path}{made}.")
    if done.interrupted:
        one = done.interrupted == 1
        say(
            f"{count(done.interrupted, 'turn')} {'was' if one else 'were'} running when the backup was made; the next start decides "
            f"whether {'it continues' if one else 'they continue'}."
        )
    if done.unsure or done.dropped:
        then = "are sent again with the words “may be a repeat”" if done.unsure else "are too old to be sent again"
        say(f"{count(done.unsure + done.dropped, 'reply', 'replies')} had not been sent yet: they {then}.")
    if done.damaged:
        say(f"{count(done.damaged, 'event')} in the backup could not be read and {'is' if done.damaged == 1 else 'are'} shown as damaged.")
    if done.lost:
        said = "is not in the backup: it" if done.lost == 1 else "are not in the backup: they"
        say(f"{count(done.lost, 'attachment')} {said} cannot be shown.")
    if done.late:
        say(f"{count(done.late, 'journal')} in the backup could not be read as a whole. `holdfast journal show` says more.")
    say(f"The previous conversations are in {done.aside}." if done.aside else "There were no conversations before.")
    say("Start the gateway with `holdfast serve`.")


@contextlib.contextmanager
def _nobody_serving(folder: Path) -> Iterator[None]:
    """Holds the lock of the home, so that nothing serves it or finishes its turns, and nothing starts to."""
    from holdfast import locks

    descriptor = os.open(folder / locks.SERVING, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InUse(folder) from None
        if locks.living(folder):
            raise InUse(folder)
        yield
    finally:
        os.close(descriptor)
