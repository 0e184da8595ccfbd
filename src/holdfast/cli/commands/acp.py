"""`holdfast acp`: Holdfast as an agent in an editor."""

import os
import sys
from functools import partial

import click

from holdfast.cli.options import chosen_home, home, home_option
from holdfast.cli.terminal import program
from holdfast.cli.terminal.output import note
from holdfast.core import sentences


@click.command("acp")
@home_option
def command() -> None:
    """Let an editor use Holdfast as its agent (Agent Client Protocol).

    Your editor starts this command: name it in the editor's settings as an ACP agent. It talks to the gateway that runs on this machine,
    so start that first (`holdfast serve`). Standard input and output carry the protocol; notes go to standard error. When the editor goes
    away, its turns continue.
    """
    from holdfast.cli.access import running
    from holdfast.cli.acp.agent import Agent
    from holdfast.cli.acp.editor import Editor

    # Nothing but the protocol may reach standard output, whatever is printed by accident.
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as writing:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        if not running.find(home()).alive:
            note(f"No gateway runs on {home()}. Start it with `holdfast serve`.")
        # Threads have no command line to look at.
        typed = partial(sentences.rewrite, program=program.typed(), home=chosen_home())
        Agent(home(), Editor(sys.stdin.buffer, writing), typed).serve()
