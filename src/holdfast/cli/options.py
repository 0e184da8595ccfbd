"""What every command understands: `--home`, `--json`, and how to write to the terminal."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO, TypeVar

import click

from holdfast.cli import typed
from holdfast.core import sentences

F = TypeVar("F", bound=Callable[..., Any])
HOME = "holdfast.home"


def _remember_home(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    if value == "":
        raise click.BadParameter("it is empty; name a folder.", ctx, param)
    if value is not None:
        ctx.meta[HOME] = value  # Shared by the group and its commands: the one nearest to the command wins.


def home_option(function: F) -> F:
    return click.option(
        "--home",
        metavar="DIR",
        expose_value=False,
        is_eager=True,
        callback=_remember_home,
        help="The folder where this Holdfast keeps everything. [default: $HOLDFAST_HOME, or ~/.holdfast]",
    )(function)


def json_option(function: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")(function)


def chosen_home() -> str | None:
    """What `--home` said, on either side of the command."""
    ctx = click.get_current_context(silent=True)
    return ctx.meta.get(HOME) if ctx else None


def home() -> Path:
    """The home folder, whatever the other settings are: a wrong one must not keep `stop` from stopping."""
    from holdfast.config import home_folder

    return home_folder(os.environ, chosen_home())


def print_json(value: Any) -> None:
    click.echo(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def as_typed(text: str) -> str:
    """A sentence of ours with its hints as they are typed here, the chosen home folder included."""
    return sentences.rewrite(text, program=typed.program(), home=chosen_home())


def columns(stream: TextIO) -> int | None:
    """How wide the terminal is; None for anything else."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or None if stream.isatty() else None
    except (OSError, ValueError):
        return None


def say(text: str) -> None:
    """Words of our own, with hints that can be copied. What people or agents wrote is printed with `click.echo`, as it is."""
    click.echo(sentences.fold(as_typed(text), columns(sys.stdout)))


def complain(sentence: str) -> None:
    """What went wrong, on standard error: one line for programs, whole words at a terminal."""
    click.echo(sentences.fold(f"{sentences.NAME}: {as_typed(sentence)}", columns(sys.stderr)), err=True)


def note(sentence: str, *, ours: bool = True) -> None:
    """For people, in addition to the output: on standard error, so that a pipe gets only the answer. `ours`: not an agent's words."""
    text = sentences.fold(as_typed(sentence), columns(sys.stderr)) if ours else sentence
    click.echo(click.style(text, dim=True), err=True)
