"""What a person sees in the terminal where the gateway runs: its address, and how it ended. Everything else is in the log."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from holdfast import __version__
from holdfast.core import sentences
from holdfast.core.lifecycle import GatewayState


class Console:
    """`watched`: a person is at this terminal, and no supervisor stores what is printed. `as_typed` puts hints as they are typed there."""

    def __init__(self, *, watched: bool, as_typed: Callable[[str], str]) -> None:
        self.watched, self._as_typed = watched, as_typed
        self._draining = False

    def serving(self, url: str, home: Path, log: Path, *, agent: str, code: str | None) -> None:
        """`agent`: the model or module that answers; empty for the demo agent. `code` signs one browser in; None if others may read what
        is printed.
        """
        self._print(f"Holdfast {__version__} serves {agent or 'the demo agent'}. Try to break it.\n")
        if code:
            self._print(f"  open  {url}/#code={code}")
            self._print("        (signs one browser in, within five minutes; `holdfast open` prints a new one)")
        else:
            self._print(f"  open  {url}  (`holdfast link` prints a link that signs you in)")
        self._print(f"  home  {home}")
        self._print(f"  log   {log}")
        self._print("  stop  Ctrl-C, or `holdfast stop`")
        self._print(f"  kill  kill -9 {os.getpid()}")
        if not agent:
            self._print("  next  `holdfast setup` lets a real model answer")
        self._print("")
        sys.stdout.flush()

    def failed(self, error: Exception) -> None:
        self._tell(f"{sentences.NAME}: {error}")

    def moved(self, state: GatewayState, *, answers: int, window_s: float) -> None:
        """Says once that a stop waits for running answers. Without a window it does not wait."""
        if state is GatewayState.DRAINING and self.watched and answers and window_s > 0 and not self._draining:
            self._draining = True
            what = "1 answer that is" if answers == 1 else f"{answers} answers that are"
            self._tell(f"Stopping. Waiting up to {window_s:.0f} s for {what} being written. Ctrl-C again stops now.")

    def stopped(self, *, answers: int, messages: int, resumes: bool) -> None:
        if self.watched:
            self._tell(end(answers=answers, messages=messages, resumes=resumes))

    def broken(self) -> None:
        if self.watched:
            self._tell("Holdfast stopped because a part of it failed. No accepted message is lost; `holdfast logs` shows what failed.")

    def _tell(self, sentence: str) -> None:
        """At a terminal it is wrapped between words, and written over the ^C that the terminal shows."""
        text = self._as_typed(sentence)
        if sys.stderr.isatty():
            text = "\r" + sentences.fold(text, shutil.get_terminal_size().columns)
        print(text, file=sys.stderr, flush=True)

    def _print(self, line: str) -> None:
        print(self._as_typed(line))


def end(*, answers: int, messages: int, resumes: bool) -> str:
    """`answers` were interrupted, `messages` wait for an answer. `resumes`: interrupted answers continue automatically."""
    continued = f"{answers} {'answer continues' if answers == 1 else 'answers continue'}" if answers and resumes else ""
    answered = f"{messages} {'message is' if messages == 1 else 'messages are'} answered" if messages else ""
    told = [f"{' and '.join(part for part in (continued, answered) if part)} at the next start."] if continued or answered else []
    if answers and not resumes:
        told.insert(
            0, f"{answers} {'answer was' if answers == 1 else 'answers were'} interrupted; a message or `holdfast resume` continues it."
        )
    return " ".join(["Stopped.", *told])
