"""`holdfast send`: a message to a conversation, and the answer as it is written."""

import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.options import Seconds, home, home_option, json_option
from holdfast.cli.terminal.layout import clean, excerpt, one_line
from holdfast.cli.terminal.output import complain, note, print_json, say
from holdfast.cli.terminal.questions import how_to_judge, is_approval
from holdfast.core.errors import Refused

if TYPE_CHECKING:
    from holdfast.cli.messages.following import Following, Piece

# Those of `core.busy`, which would take long to load for a help text.
MODES = ("queue", "steer", "interrupt", "reject")


class Sentence(click.Command):
    """Its last argument is free text, in which a word may look like an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            told = f"{error.format_message()} To send it as text, put the message in quotes, or -- in front of it."
            raise click.UsageError(told, ctx) from None


def _readable_again(ctx: click.Context, option: click.Parameter, files: tuple[Path, ...]) -> tuple[Path, ...]:
    """A lost connection means that a file is read once more."""
    for file in files:
        if not file.is_file():
            raise click.BadParameter(f"{str(file)!r} is not a regular file. Save what it gives to a file, and attach that.")
    return files


@click.command("send", cls=Sentence)
@home_option
@click.argument("key_or_id")
@click.argument("text", nargs=-1)
@click.option(
    "--attach", "files", multiple=True, type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
    callback=_readable_again,
    help="Send a file with the message. May be given several times; TEXT may then be left out.",
)  # fmt: skip
@click.option(
    "--mode", type=click.Choice(MODES),
    help="What becomes of the message while the conversation is busy. [default: as configured; else queue]",
)  # fmt: skip
@click.option("--wait/--no-wait", default=True, help="Wait for the answer and print it. [default: --wait]")
@click.option("--timeout", "timeout_s", type=Seconds(min=0), metavar="S", help="Stop waiting after S seconds. The turn continues.")
@click.option("--client-id", metavar="ID", help="A name for this message. Sending it again under the same name does not send it twice.")
@json_option
def command(
    key_or_id: str,
    text: tuple[str, ...],
    files: tuple[Path, ...],
    mode: str | None,
    wait: bool,
    timeout_s: float | None,
    client_id: str | None,
    as_json: bool,
) -> int:
    """Send a message and print the answer as it is written.

    KEY_OR_ID is a session id, its beginning, `last`, or a session key; `new` starts a conversation. TEXT is the message, in quotes or as
    several words; `-` reads it from standard input. A command such as /status, /new or /help is answered by the gateway itself.

    The answer goes to standard output, everything else (such as the first lines of what tools print) to standard error. If the gateway
    restarts in the middle, the answer continues. Exit code 1 if the turn failed or was cancelled. If the agent asks a question, it is
    printed: answer it with another `send`, an approval with `approve` or `deny`.
    """
    from holdfast.cli.messages.following import Note
    from holdfast.cli.messages.sending import Sending

    words = _text(" ".join(text)) if text or not files else ""
    printer = Printer(quiet=as_json)
    sending = Sending(home(), timeout_s=timeout_s, put=printer.put)
    sent = sending.send(key_or_id, words, client_id or f"cli-{secrets.token_hex(10)}", files, mode)
    if not wait:
        if as_json:
            print_json({"session_id": sent.session_id, "message_id": sent.message_id})
        else:
            say(f"{sent.waits or 'Sent.'} `holdfast show {sent.session_id}` shows the answer.")
        return 0
    if key_or_id != sent.session_id:
        printer.put(Note(f"Session {sent.session_id}"))
    try:
        following = sending.follow(sent)
    except KeyboardInterrupt:
        printer.put(Note(f"No longer waiting; the turn continues. `holdfast show {sent.session_id}` shows it."))
        raise
    finally:
        printer.finish()
    if as_json:
        print_json({"session_id": sent.session_id, "message_id": sent.message_id} | _result(following))
    elif following.question:
        for question in following.questions.values():
            _tell(question, sent.session_id)
    elif not _is_well(following):
        complain(_what_went_wrong(following, sent.session_id))
    return 0 if _is_well(following) else 1


def _tell(question: dict[str, Any], session_id: str) -> None:
    """An open question, and how it is answered."""
    click.echo(clean(question["text"]))
    for choice in question.get("choices", ()):
        click.echo(f"- {one_line(choice)}")
    if is_approval(question):
        note("The agent needs an approval: " + "; ".join(how_to_judge(question)) + ".")
    else:
        note(f"The agent asks. Answer with `holdfast send {session_id} TEXT`.")


def _is_well(following: "Following") -> bool:
    return following.question is not None or following.outcome in ("completed", "command")


def _what_went_wrong(following: "Following", session_id: str) -> str:
    if following.outcome is None:
        todo = (
            f"`holdfast resume {session_id}` continues it, `holdfast send {session_id} TEXT` continues the conversation with a new message"
        )
        return f"The turn was interrupted and does not continue by itself ({following.left}). {todo}."
    why = f": {following.error}" if following.error else ""
    told = f"The message was not answered{why}" if following.outcome == "refused" else f"The turn ended as {following.outcome}{why}"
    return told if told.endswith((".", "?", "!")) else f"{told}."


def _text(text: str) -> str:
    if text == "-":
        text = sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Refused("The text is not valid UTF-8. Convert it first, for example with iconv.") from None
    if not text.strip():
        raise Refused("The text is empty. Write something.")
    return text


class Printer:
    """The answer goes to standard output as it comes, notes to standard error on their own lines. A pipe gets only the answer."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._piped = not sys.stdout.isatty()
        self._in_line = False

    def put(self, piece: "Piece") -> None:
        from holdfast.cli.messages.following import STARTS_OVER, Note, Printed, Text

        if self._quiet:
            return
        if isinstance(piece, Text):
            click.echo(piece.text if self._piped else clean(piece.text), nl=False)
            self._in_line = not piece.text.endswith("\n")
            return
        if self._in_line and (not self._piped or piece.text == STARTS_OVER):
            self.finish()
        if isinstance(piece, Printed):
            note("\n".join(excerpt(piece.text, "  ")), ours=False)
        else:
            note(one_line(piece.text), ours=isinstance(piece, Note))

    def finish(self) -> None:
        if self._in_line:
            click.echo()
            self._in_line = False


def _result(following: "Following") -> dict[str, Any]:
    return {
        "turn_id": following.turn_id,
        "outcome": following.outcome,
        "text": following.reply,
        "question": following.question["text"] if following.question else None,
        "error": following.error,
        "left": following.left,
    }
