"""The log of the process: one line per decision, for people or for machines. All of it goes to a file in the home folder. Standard error
gets the same, except at a terminal, where a person wants to see only what is wrong.
"""

import contextlib
import fcntl
import logging
import os
import queue
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import structlog

from holdfast.core.redaction import NO_SECRETS, Secrets

MAX_BYTES = 10_000_000
KEPT = 3
MAX_WAITING = 10_000
CLOSE_S = 1.0
FORMAT = "%(asctime)s %(name)s %(levelname)s: %(message)s"


class LogFile:
    """Lines appended by a thread of its own, so that a disk that hangs delays nobody who logs. Several processes may
    append: each writes whole lines at the end, the one that fills the file renames it, and the others follow. `secrets` are not written.
    """

    def __init__(self, path: Path, *, max_bytes: int = MAX_BYTES, kept: int = KEPT, secrets: Secrets = NO_SECRETS) -> None:
        self._path, self._max_bytes, self._kept, self._secrets = path, max_bytes, kept, secrets
        self._lines: queue.Queue[str | None] = queue.Queue(MAX_WAITING)
        self._descriptor: int | None = None
        self._lost = 0
        self._told = False
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)
        self._thread.start()

    def write(self, text: str) -> int:
        try:
            self._lines.put_nowait(self._secrets.text(text))
        except queue.Full:
            self._lost += 1
        return len(text)

    def flush(self) -> None:
        """For `logging`, which asks for it. Lines are written as soon as the disk takes them."""

    def close(self) -> None:
        """Waits a moment for lines that are not written yet."""
        with contextlib.suppress(queue.Full):
            self._lines.put_nowait(None)
        self._thread.join(CLOSE_S)

    def _run(self) -> None:
        over = False
        while not over:
            waiting = [self._lines.get()]
            with contextlib.suppress(queue.Empty):
                while waiting[-1] is not None:
                    waiting.append(self._lines.get_nowait())
            over = waiting[-1] is None
            text = "".join(line for line in waiting if line is not None)
            lost, self._lost = self._lost, 0
            if lost:
                text += f"{lost} lines were lost here: the disk did not take them in time.\n"
            if text:
                self._append(text.encode("utf-8", "replace"))
        if self._descriptor is not None:
            os.close(self._descriptor)

    def _append(self, data: bytes) -> None:
        try:
            descriptor = self._current()
            if os.fstat(descriptor).st_size >= self._max_bytes:
                self._rotate(descriptor)
                descriptor = self._current()
            while data:
                data = data[os.write(descriptor, data) :]
        except OSError as error:
            if not self._told:
                self._told = True
                print(f"holdfast: the log {self._path} cannot be written: {error.strerror}.", file=sys.stderr, flush=True)

    def _current(self) -> int:
        """The file of that name: another process may have put a new one in its place."""
        if self._descriptor is not None:
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.stat(self._path), os.fstat(self._descriptor)):
                    return self._descriptor
            os.close(self._descriptor)
            self._descriptor = None
        self._descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return self._descriptor

    def _rotate(self, descriptor: int) -> None:
        with _locked(descriptor) as held:
            # Another process may have done it while this one waited for the lock.
            if held and os.path.samestat(os.stat(self._path), os.fstat(descriptor)):
                for number in range(self._kept, 0, -1):
                    older = self._numbered(number - 1) if number > 1 else self._path
                    with contextlib.suppress(FileNotFoundError):
                        os.replace(older, self._numbered(number))

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")


@contextlib.contextmanager
def _locked(descriptor: int) -> Iterator[bool]:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        yield False
        return
    try:
        yield True
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


class _ToFile:
    """Every event goes to the file; those below `shown` go no further."""

    def __init__(self, file: LogFile, renderer: structlog.typing.Processor, shown: int) -> None:
        self._file, self._renderer, self._shown = file, renderer, shown

    def __call__(self, logger: Any, method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
        self._file.write(str(self._renderer(logger, method, dict(event))) + "\n")
        if getattr(logging, event["level"].upper()) < self._shown:
            raise structlog.DropEvent
        return event


def set_up(path: Path, *, level: str, shown: str, form: str, secrets: Secrets) -> LogFile:
    """`level`: the least important level that is written to the file. `shown`: the same for standard error."""
    file = LogFile(path, secrets=secrets)
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *([structlog.processors.format_exc_info] if form == "json" else []),
            _ToFile(file, _renderer(form, colours=False), getattr(logging, shown.upper())),
            _renderer(form, colours=sys.stderr.isatty()),
            lambda logger, method, line: secrets.text(str(line)),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(min(getattr(logging, level.upper()), getattr(logging, shown.upper()))),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    handlers: list[logging.Handler] = [logging.StreamHandler(sys.stderr), logging.StreamHandler(file)]
    for handler in handlers:
        handler.setFormatter(_Discreet(secrets))
    logging.basicConfig(level=logging.WARNING, handlers=handlers)
    return file


def _renderer(form: str, *, colours: bool) -> structlog.typing.Processor:
    if form == "json":
        return structlog.processors.JSONRenderer()
    return structlog.dev.ConsoleRenderer(colors=colours, pad_event_to=24, exception_formatter=structlog.dev.plain_traceback)


class _Discreet(logging.Formatter):
    def __init__(self, secrets: Secrets) -> None:
        super().__init__(FORMAT)
        self._secrets = secrets

    def format(self, record: logging.LogRecord) -> str:
        return self._secrets.text(super().format(record))
