"""What the options of several commands share: `--home`, `--json`, paths, numbers of seconds, and what sets up a chat platform."""

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])
HOME = "holdfast.home"


class Seconds(click.FloatRange):
    """A number of seconds that a clock can count: neither infinite nor "not a number", which no limit refuses by itself."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        seconds = float(super().convert(value, param, ctx))
        if not math.isfinite(seconds):
            self.fail(f"{value!r} is not a number of seconds. Give a number, such as 30.", param, ctx)
        return seconds


def _remember_home(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    if value == "":
        raise click.BadParameter("it is empty. Name a folder.", ctx, param)
    if value is not None:
        ctx.meta[HOME] = value  # Shared by the group and its commands: the one nearest to the command wins.


def home_option(function: F) -> F:
    return click.option(
        "--home",
        metavar="DIR",
        expose_value=False,
        is_eager=True,
        callback=_remember_home,
        help="The folder where Holdfast keeps everything. [default: $HOLDFAST_HOME, or ~/.holdfast]",
    )(function)


def json_option(function: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")(function)


def setup_options(*, token: str = "", base_url: str = "") -> Callable[[F], F]:
    """What `holdfast PLATFORM setup` takes on every platform. `token`: what to call it, where there is one alone (`token_file`,
    `token_stdin`). `base_url`: what that option is for, where there is one.
    """
    options: list[Callable[[Any], Any]] = [home_option]
    if token:
        path = click.Path(path_type=Path)
        options.append(click.option("--token-file", type=path, metavar="PATH", help=f"Copy {token} from this file."))
        options.append(click.option("--token-stdin", is_flag=True, help=f"Read {token} from standard input."))
    if base_url:
        options.append(click.option("--base-url", metavar="URL", help=base_url))
    users = "Let this person talk to the agent. May be given several times."
    options.append(click.option("--user", "users", multiple=True, metavar="ID", help=users))

    def add(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return add


def path_argument(function: F) -> F:
    """A file or folder that the person names, as an absolute path."""
    kind = click.Path(path_type=Path)
    return click.argument("path", type=kind, callback=lambda ctx, param, value: value.expanduser().absolute())(function)


def keep_files_private() -> None:
    """What this command writes is for the user who runs it: conversations, copies of them, the token."""
    os.umask(0o077)


def chosen_home() -> str | None:
    """The folder given by `--home`, before or after the command."""
    ctx = click.get_current_context(silent=True)
    return ctx.meta.get(HOME) if ctx else None


def home() -> Path:
    """The home folder, whatever the other settings are: a wrong setting must not prevent `stop`."""
    from holdfast.config import home_folder

    return home_folder(os.environ, chosen_home())
