"""`holdfast setup`: which model answers."""

import sys
from pathlib import Path

import click

from holdfast.cli.options import home_option
from holdfast.core.errors import Refused

LIMIT = 64 * 1024


class NoKey(Refused):
    code = "no_key"


@click.command("setup")
@home_option
@click.option("--provider", metavar="NAME", help="anthropic, openai, ollama and so on; docs/models.md lists them.")
@click.option("--model", metavar="NAME", help="The provider's name of the model, or PROVIDER:NAME.")
@click.option("--base-url", metavar="URL", help="The address of the server, if it is not the provider's own.")
@click.option("--key-file", type=click.Path(path_type=Path), metavar="PATH", help="Copy the key from this file.")
@click.option("--key-stdin", is_flag=True, help="Read the key from standard input.")
def command(provider: str | None, model: str | None, base_url: str | None, key_file: Path | None, key_stdin: bool) -> None:
    """Choose the model that answers, and try it.

    At a terminal it asks for what the options do not say. The model is tried with one real request; if it answers, its name is written to
    config.toml and the key to a file of its own that only you can read, both in the home folder. Everything else in config.toml stays as
    it is. There is no option for the key itself, because other users of the machine can read command lines.
    """
    if key_file and key_stdin:
        raise click.UsageError("Give --key-file or --key-stdin, not both.")
    from holdfast.cli import setup

    key = _from_file(key_file) if key_file else _from_stdin() if key_stdin else None
    setup.run(setup.Wanted(provider=provider, model=model, base_url=base_url, key=key, asks=sys.stdin.isatty()))


def _from_file(path: Path) -> str:
    try:
        with path.expanduser().open(encoding="utf-8") as file:
            return _given(file.read(LIMIT), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise NoKey(f"The key file {path} cannot be read: {getattr(error, 'strerror', None) or error}.") from error


def _from_stdin() -> str:
    """At a terminal it is typed unseen."""
    if sys.stdin.isatty():
        return _given(str(click.prompt("Key (not shown)", hide_input=True)), "what you typed")
    return _given(sys.stdin.read(LIMIT), "standard input")


def _given(text: str, source: str) -> str:
    if not text.strip():
        raise NoKey(f"There is no key in {source}: it is empty.")
    return text.strip()
