"""`holdfast open`: the page in a browser, signed in."""

import os
import shutil
import subprocess
import sys

import click

from holdfast.cli.options import home, home_option, json_option
from holdfast.cli.terminal.output import note, print_json

# A program that opens a browser ends at once, or stays as long as the browser: then it has started it.
STARTS_S = 3.0


@click.command("open")
@home_option
@json_option
def command(as_json: bool) -> None:
    """Open the web page in a browser, signed in.

    Prints a new link, which works once, within five minutes. At a terminal with a display it also opens the link. Needs a running
    gateway.
    """
    from holdfast.cli.commands import link

    made = link.fresh(home())
    if as_json:
        print_json(made)
        return
    click.echo(made["url"])
    note("Opened in your browser." if sys.stdout.isatty() and _open(made["url"]) else f"Open it in a browser. {link.lasts(made)}")


def _open(url: str) -> bool:
    program = _opener()
    if program is None:
        return False
    started = subprocess.Popen(
        [program, url], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        return started.wait(STARTS_S) == 0
    except subprocess.TimeoutExpired:
        return True


def _opener() -> str | None:
    """What opens a link on the desktop in front of which this command was typed; never a browser inside the terminal."""
    if sys.platform == "darwin":
        return shutil.which("open")
    if os.environ.get("WSL_DISTRO_NAME") and (found := shutil.which("wslview")):
        return found
    return shutil.which("xdg-open") if os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") else None
