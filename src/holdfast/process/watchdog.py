"""Threads that no tool and no blocked event loop can delay: one notices a loop that hangs, one ends a stop that does not end."""

import asyncio
import contextlib
import faulthandler
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from holdfast.core.lifecycle import HUNG_AFTER_S
from holdfast.process.deadline import Deadline
from holdfast.process.supervisor import Supervisor

BEAT_S = 1.0
LAST_WORDS_S = 2.0


class Watchdog:
    """While the loop answers, the file `beats` is touched and the service manager is told. When the deadline has passed, `last_words` is
    called, the stacks of all threads are printed, to `log` as well, and the process exits with `code`, whatever it is doing.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        supervisor: Supervisor,
        deadline: Deadline,
        *,
        beats: Path,
        log: Path,
        last_words: Callable[[], None],
        code: Callable[[], int],
    ) -> None:
        self._loop, self._supervisor, self._deadline, self._beats, self._log = loop, supervisor, deadline, beats, log
        self._last_words, self._code = last_words, code
        self._answered = time.monotonic()
        self._told = 0.0
        self._hung = False
        self._over = threading.Event()

    def start(self) -> None:
        # The thread that keeps the deadline touches no file and no stream: a disk or a reader that hangs must not delay it.
        threading.Thread(target=self._keep_deadline, name="deadline", daemon=True).start()
        threading.Thread(target=self._watch, name="watchdog", daemon=True).start()

    def close(self) -> None:
        self._over.set()

    def _keep_deadline(self) -> None:
        while not self._over.is_set():
            if self._deadline.passes_within(BEAT_S) and not self._over.is_set():
                self._end_now()

    def _end_now(self) -> None:
        telling = threading.Thread(target=self._end, name="last words", daemon=True)
        telling.start()
        telling.join(LAST_WORDS_S)
        os._exit(self._code())

    def _watch(self) -> None:
        while not self._over.wait(BEAT_S):
            now = time.monotonic()
            try:
                self._loop.call_soon_threadsafe(self._answer)
            except RuntimeError:
                return  # The loop is closed: the process is as good as over.
            self._look(now)

    def _answer(self) -> None:
        self._answered = time.monotonic()

    def _look(self, now: float) -> None:
        silent_s = now - self._answered
        if silent_s < HUNG_AFTER_S:
            self._hung = False
            try:
                os.utime(self._beats)
            except OSError:
                pass  # `holdfast status` will say that it hangs.
            if self._supervisor.watchdog_s is not None and now - self._told >= min(self._supervisor.watchdog_s, HUNG_AFTER_S):
                self._told = now
                self._supervisor.alive()
        elif not self._hung:
            self._hung = True
            self._show(f"the event loop has not answered for {silent_s:.0f} s")

    def _end(self) -> None:
        """It may hang itself, so what matters most comes first."""
        self._last_words()
        if not self._deadline.forced:
            self._show(f"the stop did not end in time, at the step {self._deadline.step!r}")

    def _show(self, what: str) -> None:
        """Not through the log, whose thread or locks may be what hangs."""
        with contextlib.suppress(OSError):
            _show(what, sys.stderr)
        with contextlib.suppress(OSError), self._log.open("a") as file:
            _show(what, file)


def _show(what: str, file: TextIO) -> None:
    print(f"holdfast: {what}; this is where it stands:", file=file, flush=True)
    faulthandler.dump_traceback(file=file)
