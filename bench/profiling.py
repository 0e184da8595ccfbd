"""Where the time goes: cProfile of the event loop's thread and of the store's threads, each by itself, as its ten dearest functions."""

import cProfile
import io
import os
import pstats
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TOP = 10
THREADS = "holdfast-"
VARIABLE = "BENCH_PROFILE"


class Profiles:
    """Profiles of one row, as files in a folder: of this process and of the servers it starts."""

    def __init__(self, folder: Path, *, wanted: bool) -> None:
        self.folder, self.wanted = folder, wanted
        if wanted:
            folder.mkdir()

    def environment(self) -> dict[str, str]:
        """What tells a server started by `bench.served` to profile itself."""
        return {VARIABLE: str(self.folder)} if self.wanted else {}

    @contextmanager
    def of_this_process(self) -> Iterator[None]:
        if not self.wanted:
            yield
            return
        with profiled(self.folder):
            yield

    def report(self) -> Iterator[str]:
        """The dearest functions of the process that ran last, thread by thread; threads that do the same are taken together."""
        paths = sorted(self.folder.glob("*.prof"), key=lambda path: path.stat().st_mtime)
        last = paths[-1].name.partition("-")[0] if paths else ""
        threads: dict[str, list[str]] = {}
        for path in paths:
            pid, _, thread = path.stem.partition("-")
            if pid == last:
                threads.setdefault(thread.removeprefix(THREADS).rstrip("-0123456789"), []).append(str(path))
        for thread, files in sorted(threads.items()):
            text = io.StringIO()
            pstats.Stats(*files, stream=text).sort_stats("tottime").print_stats(TOP)
            lines = text.getvalue().splitlines()
            table = next(number for number, line in enumerate(lines) if line.lstrip().startswith("ncalls"))
            yield f"{thread}\n" + "\n".join(_short(line) for line in lines[table:] if line.strip())
        if paths:
            yield "Waiting counts too: for a thread in acquire or get, for the loop in whichever coroutine waited last."


def _short(line: str) -> str:
    """Without the folders before a file's own package."""
    head, slash, name = line.rpartition(" ")
    return f"{head}{slash}{os.sep.join(name.split(os.sep)[-2:])}"[:140]


@contextmanager
def profiled(folder: Path) -> Iterator[None]:
    """Profiles this thread, and every thread of the store that starts meanwhile."""
    run = threading.Thread.run

    def run_profiled(thread: threading.Thread) -> None:
        if thread.name.startswith(THREADS):
            _profile(folder / f"{os.getpid()}-{thread.name}.prof", lambda: run(thread))
        else:
            run(thread)

    threading.Thread.run = run_profiled  # type: ignore[assignment, method-assign]
    profile = cProfile.Profile()
    profile.enable()
    try:
        yield
    finally:
        profile.disable()
        threading.Thread.run = run  # type: ignore[method-assign]
        profile.dump_stats(folder / f"{os.getpid()}-loop.prof")


def _profile(path: Path, work: Callable[[], Any]) -> None:
    profile = cProfile.Profile()
    try:
        profile.enable()
    except ValueError:  # From Python 3.12 on only one thread at a time can be profiled.
        work()
        return
    try:
        work()
    finally:
        profile.disable()
        profile.dump_stats(path)
