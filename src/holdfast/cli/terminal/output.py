"""How commands write: our own sentences with hints that can be copied, JSON for programs, notes on standard error."""

import json
import os
import sys
from typing import Any, TextIO

import click

from holdfast.cli.options import chosen_home
from holdfast.cli.terminal import program
from holdfast.core import sentences


def print_json(value: Any) -> None:
    click.echo(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def as_typed(text: str) -> str:
    """A sentence of ours, with its hints as a person types them here, including the chosen home folder."""
    return sentences.rewrite(text, program=program.typed(), home=chosen_home())


def columns(stream: TextIO) -> int | None:
    """The width of the terminal; None for anything else."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or None if stream.isatty() else None
    except (OSError, ValueError):
        return None


def say(text: str) -> None:
    """Our own words, with hints that can be copied. What people or agents wrote is printed unchanged, with `click.echo`."""
    click.echo(sentences.fold(as_typed(text), columns(sys.stdout)))


def complain(sentence: str) -> None:
    """What went wrong, on standard error: one line for programs, wrapped between words at a terminal."""
    click.echo(sentences.fold(f"{sentences.NAME}: {as_typed(sentence)}", columns(sys.stderr)), err=True)


def note(sentence: str, *, ours: bool = True) -> None:
    """For people, in addition to the output: on standard error, so that a pipe gets only the answer. `ours`: not an agent's words."""
    text = sentences.fold(as_typed(sentence), columns(sys.stderr)) if ours else sentence
    click.echo(click.style(text, dim=True), err=True)
