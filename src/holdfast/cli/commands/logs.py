"""`holdfast logs`: the end of the log file, and what is added to it."""

import os
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import click

from holdfast.cli.options import home, home_option
from holdfast.cli.terminal.layout import clean
from holdfast.core.errors import Refused

LOOK_S = 0.2


class NoLog(Refused):
    code = "no_log"

    def __init__(self, path: Path) -> None:
        super().__init__(f"There is no log yet: {path} does not exist. `holdfast serve` writes it.")


@click.command("logs")
@home_option
@click.option("--lines", type=click.IntRange(min=0), default=50, show_default=True, metavar="N", help="How many lines.")
@click.option("--follow", "-f", is_flag=True, help="Show new lines as they come, until Ctrl-C.")
def command(lines: int, follow: bool) -> None:
    """Show the gateway's log: the last lines of holdfast.log in the home folder.

    The lines are shown as they were written, as text or JSON. Works with and without a running gateway.
    """
    from holdfast.config import LOG

    path = home() / LOG
    try:
        file = path.open(errors="replace")
    except FileNotFoundError:
        raise NoLog(path) from None
    last = deque(file, lines)
    if len(last) < lines:
        last = deque([*_end(path.with_name(f"{path.name}.1"), lines - len(last)), *last], lines)
    for line in last:
        click.echo(clean(line), nl=False)
    if follow:
        for text in _added(path, file):
            click.echo(clean(text), nl=False)


def _end(path: Path, lines: int) -> deque[str]:
    """From the previous log file."""
    try:
        with path.open(errors="replace") as file:
            return deque(file, lines)
    except FileNotFoundError:
        return deque()


def _added(path: Path, file: TextIO) -> Iterator[str]:
    """Never ends. A full file is replaced by a new one of the same name, which is read from its start."""
    while True:
        if text := file.read():
            yield text
            continue
        try:
            if not os.path.samestat(path.stat(), os.fstat(file.fileno())):
                new = path.open(errors="replace")
                yield file.read()  # What was added between the last look and the replacement.
                file.close()
                file = new
                continue
        except FileNotFoundError:
            pass
        time.sleep(LOOK_S)
