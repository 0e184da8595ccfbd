"""`holdfast link`: a fresh link that signs one browser in."""

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import click

from holdfast.cli.options import home, home_option, json_option
from holdfast.cli.terminal.output import note, print_json


@click.command("link")
@home_option
@json_option
def command(as_json: bool) -> None:
    """Print a new link to the web page that signs one browser in.

    The link works once, within five minutes. `holdfast open` also opens it. Needs a running gateway.
    """
    made = fresh(home())
    if as_json:
        print_json(made)
        return
    click.echo(made["url"])
    note(lasts(made))


def fresh(folder: Path) -> dict[str, Any]:
    """`url`, and `expires_in_s`. Raises `NotRunning`."""
    from holdfast.cli.access import running
    from holdfast.cli.access.client import CALLED, connect

    client = connect(folder)
    made = client.post("/api/login/codes").body
    parts = urlsplit(running.require(folder).public_url or client.url)
    named = CALLED.get(parts.hostname or "")
    if named:  # It listens on every address; the loopback address always works here.
        parts = parts._replace(netloc=f"{f'[{named}]' if ':' in named else named}:{parts.port}")
    return {"url": urlunsplit(parts._replace(path="/", fragment=f"code={made['code']}")), "expires_in_s": made["expires_in_s"]}


def lasts(made: dict[str, Any]) -> str:
    return f"It signs one browser in, within {made['expires_in_s'] // 60} minutes."
