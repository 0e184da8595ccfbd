"""The command `holdfast`: which commands there are, and how their errors are shown.

A command's module is loaded when the command is called, and slow imports (the store, HTTP) stand inside the functions that need them:
`--help` must not wait for them.
"""

import importlib
import io
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

import click

from holdfast import __version__
from holdfast.cli.options import home, home_option
from holdfast.cli.terminal import program
from holdfast.cli.terminal.output import as_typed, complain
from holdfast.core.errors import HoldfastError

DONE, FAILED, BAD_CONFIG = 0, 1, 78
MAX_ERROR_LOG = 1024 * 1024


# A command is the module of its name in `commands/`; here is its line in the list.
COMMANDS = {
    "serve": "Run the gateway in the foreground until it is stopped.",
    "setup": "Choose the model that answers, and try it.",
    "open": "Open the web page in a browser, signed in.",
    "link": "Print a link that signs one browser in.",
    "status": "Show whether the gateway is running, and its state.",
    "stop": "Stop the running gateway, or the turn of one conversation.",
    "restart": "Restart the gateway without interrupting a turn.",
    "upgrade": "Restart with the version that is installed now.",
    "pause": "Start no turns for a while; messages are saved.",
    "unpause": "Resume after a pause.",
    "sessions": "List conversations, newest first.",
    "show": "Show one conversation.",
    "usage": "Show what models used and cost.",
    "send": "Send a message and print the answer.",
    "resume": "Go back to a conversation, or leave safe mode.",
    "suspend": "Suspend a conversation until it is resumed.",
    "delete": "Delete a conversation, or undo that.",
    "acp": "Let an editor use Holdfast as its agent.",
    "approve": "Let a tool call run that waits for your approval.",
    "deny": "Refuse a tool call that waits for your approval.",
    "telegram": "Connect a Telegram bot.",
    "slack": "Connect a Slack app.",
    "discord": "Connect a Discord bot.",
    "matrix": "Connect an account on Matrix.",
    "pair": "Show who may talk in chats, let somebody in, or shut them out.",
    "outbox": "List messages to chats that have not arrived.",
    "schedules": "List what is planned for later, plan more, or remove it.",
    "processes": "List background processes, read what one prints, or end it.",
    "rules": "List what was allowed for conversations, or take it back.",
    "journal": "Look at, check and store what turns recorded while the database was locked.",
    "logs": "Show the gateway's log.",
    "token": "Print or replace the token of the page and the HTTP API.",
    "doctor": "Check everything the gateway needs, and say what to do.",
    "backup": "Copy all conversations to a file, even while the gateway runs.",
    "restore": "Replace all conversations with a backup.",
    "service": "Let the system run the gateway and restart it when it dies.",
    "config": "Show the settings and where each one comes from.",
}

# What people try who know other programs.
SYNONYMS = {
    "start": "serve",
    "up": "serve",
    "kill": "stop",
    "down": "stop",
    "ls": "sessions",
    "list": "sessions",
    "cat": "show",
    "chat": "send",
    "ask": "send",
    "login": "open",
    "log": "logs",
    "rm": "delete",
    "ps": "processes",
    "remind": "schedules",
    "cron": "schedules",
    "remove": "delete",
    "settings": "config",
    "cost": "usage",
    "spend": "usage",
    "configure": "setup",
    "init": "setup",
    "version": "--version",
    "help": "--help",
}
EXAMPLES = (
    ("serve", "start it"),
    ("setup", "choose the model that answers"),
    ("open", "open its page in a browser"),
    ('send new "count 5"', "talk to it from here"),
    ("doctor", "when something is wrong"),
)


class Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"holdfast.cli.commands.{cmd_name}")
        command: click.Command = module.command
        _name_as_typed(command)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as error:  # Click suggests from a list of its own, which is empty here.
            import difflib

            name = error.command_name
            known = [SYNONYMS[name]] if name in SYNONYMS else difflib.get_close_matches(name, [*COMMANDS, *program.own_words()])
            meant = f" Did you mean {' or '.join(repr(each) for each in known)}?" if known else ""
            raise click.UsageError(f"There is no command {name!r}.{meant}", ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))
        if own := program.own_words():
            with formatter.section("In this folder only"):
                formatter.write_dl(list(own.items()))

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        examples = [(f"{program.typed()} {words}", line) for words, line in EXAMPLES]
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(self.help or "")
            formatter.write_paragraph()
            formatter.write_dl(examples, col_max=50)

    def invoke(self, ctx: click.Context) -> Any:
        """The boundary of the program: here an error becomes one sentence and an exit code."""
        try:
            return super().invoke(ctx)
        except (click.UsageError, click.Abort, click.exceptions.Exit):
            raise
        except (click.ClickException, HoldfastError) as error:
            return _failed(error, str(error))
        except BrokenPipeError:
            # Nobody reads our output any more, as after `head`: nothing more may be flushed.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 128 + signal.SIGPIPE
        except Exception as error:
            return _failed(error, _unexpected(error))


def _name_as_typed(command: click.Command) -> None:
    """Help is wrapped when it is printed, so its hints are rewritten before that."""
    if command.help:
        command.help = as_typed(command.help)
    for parameter in command.params:
        if isinstance(parameter, click.Option) and parameter.help:
            parameter.help = as_typed(parameter.help)
    for part in command.commands.values() if isinstance(command, click.Group) else ():
        _name_as_typed(part)


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@home_option
@click.version_option(__version__, message="Holdfast %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Holdfast puts an AI agent behind chats and a web page, and the conversation holds."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        ctx.color = False


def main() -> None:
    sys.exit(run(sys.argv[1:]))


def run(words: list[str]) -> int:
    """Runs one command and returns its exit code. Errors are one sentence, never a stack trace."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character must not lose the rest of the output.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        code = cli.main(words, prog_name=program.typed(), standalone_mode=False)
        return code if isinstance(code, int) else DONE
    except click.UsageError as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return 128 + signal.SIGINT


def _failed(error: Exception, sentence: str) -> int:
    from holdfast.config import BadConfig

    if os.environ.get("HOLDFAST_DEBUG"):
        traceback.print_exc()
    complain(sentence)
    return BAD_CONFIG if isinstance(error, BadConfig) else FAILED


def _unexpected(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"The system refused: {error.strerror}{f' ({error.filename})' if error.filename else ''}."
    what = f"Something unexpected went wrong ({type(error).__name__}: {error})."
    where = _write_down()
    return f"{what} The details are in {where}." if where else f"{what} Run it again with HOLDFAST_DEBUG=1 to see the details."


def _write_down() -> Path | None:
    """Keeps the trace in the home folder, if there is one."""
    path = home() / "errors.log"
    try:
        if path.exists() and path.stat().st_size > MAX_ERROR_LOG:
            path.unlink()
        descriptor = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
        with os.fdopen(descriptor, "w", errors="replace") as file:
            file.write(f"Holdfast {__version__}\n{traceback.format_exc()}\n")
    except OSError:
        return None
    return path
