"""The files through which a keeper is spoken with. `keep.py` says what each of them is."""

import contextlib
import errno
import fcntl
import itertools
import json
import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from holdfast import files, locks, processes
from holdfast.core.errors import Held, Refused
from holdfast.core.process_id import ProcessId, process_in
from holdfast.keeper.keep import ERR, EXIT, INPUT, LOCK, OUT, PID
from holdfast.ports.keepers import Chunk, Command, End, Look, Loss

# Its input is closed: it reads no more.
CLOSED = "in.closed"


class InputClosed(Refused):
    code = "input_closed"

    def __init__(self, why: str) -> None:
        super().__init__(f"It cannot be written to: {why}.")


def prepare(folder: Path) -> None:
    """Where a keeper writes, on disk."""
    _make(folder)
    files.sync(folder.parent)


def spec(command: Command) -> bytes:
    """What a keeper is told to run."""
    wanted = {
        "words": list(command.words),
        "folder": command.folder,
        "environment": command.environment,
        "input": command.input,
        "apart": command.apart,
        "holds": command.holds,
        "most_bytes": command.most_bytes,
        "grace_s": command.grace_s,
    }
    return json.dumps(wanted).encode()


def _make(folder: Path) -> None:
    """HOME/KIND/GROUP/NAME."""
    files.make_folder(folder, within=folder.parents[2])


def look(folder: Path) -> Look:
    """Only the lock says that a keeper lives. It is free after the end is on disk, so the end is read once more after it."""
    end, kept = end_of(folder), False
    if end is None:
        kept = _is_kept(folder)
        end = None if kept else end_of(folder)
    if end is not None:
        return Look(end=end[0], out=end[1], err=end[2])
    return Look(lost=None if kept else _loss(folder), out=_size(folder, OUT), err=_size(folder, ERR))


def end_of(folder: Path) -> tuple[End, int, int] | None:
    """How it ended, and how much it had put out. A file that is damaged says nothing: the process is lost."""
    try:
        found = files.read_json(folder / EXIT)
        told = None if found is None else msgspec.convert(found, _Told)
    except ValueError:
        return None
    if told is None:
        return None
    end = End(at=told.ended_at, code=told.code, signal=told.signal, problem=told.problem, lost=told.lost, asked=told.asked)
    return end, told.out, told.err


class _Told(msgspec.Struct, kw_only=True):
    """As it is written down in `exit.json`."""

    ended_at: int
    code: int | None = None
    signal: int | None = None
    problem: str | None = None
    lost: Loss | None = None
    asked: bool = False
    out: int = 0
    err: int = 0


def give_up(folder: Path, kill_leftovers: Callable[[], object], *, problem: str | None = None) -> End:
    """As `ports.keepers`. While this holds the lock no keeper starts, and after it there is an end, over which none starts. `problem`: why
    it could not be started, where that is known.
    """
    _make(folder)
    lock = os.open(folder / LOCK, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        touched = os.fstat(lock).st_mtime_ns
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Held("The process runs.") from None
        if known := end_of(folder):
            return known[0]
        loss = None if problem is not None else _loss(folder)
        kill_leftovers()
        end = End(at=touched // 1_000_000, lost=loss, problem=problem)
        written = {"lost": loss, "problem": problem, "ended_at": end.at, OUT: _size(folder, OUT), ERR: _size(folder, ERR)}
        files.replace_json(folder / EXIT, written)
        return end
    finally:
        os.close(lock)


def keeper(folder: Path) -> ProcessId | None:
    """Which process keeps it; None if none does."""
    if not _is_kept(folder):
        return None
    found = _pids(folder)
    return None if found is None else process_in(found.get("keeper", {}))


def _loss(folder: Path) -> Loss:
    found = _pids(folder)
    if found is None and not (folder / EXIT).exists():
        return Loss.NEVER_RAN
    kept = process_in((found or {}).get("keeper", {}))
    if kept is None or (folder / EXIT).exists():
        return Loss.UNREADABLE
    return Loss.KEEPER if kept.boot_id == processes.boot_id() else Loss.MACHINE


def _pids(folder: Path) -> dict[str, Any] | None:
    """None if there are none on disk. A file that is damaged names none."""
    try:
        return files.read_json(folder / PID)
    except ValueError:
        return {}


def _is_kept(folder: Path) -> bool:
    return locks.is_held(folder / LOCK)


# output


def read(folder: Path, stream: str, offset: int, limit: int) -> Chunk:
    """A file that goes while it is looked for was the oldest one: the next look finds a later one."""
    while True:
        starts = _starts(folder, stream)
        at = next((start for start in reversed(starts) if start <= offset), starts[0] if starts else None)
        if at is None:
            return Chunk(offset, b"")
        try:
            with (folder / f"{stream}.{at}").open("rb") as file:
                file.seek(max(0, offset - at))
                data = file.read(limit)
        except FileNotFoundError:
            continue
        later = next((start for start in starts if start > max(at, offset)), None)
        if data or later is None:
            return Chunk(max(at, offset), data)
        offset = later  # Between the two files something is missing, or nothing.


def drop(folder: Path, stream: str, before: int) -> None:
    starts = _starts(folder, stream)
    for start, end in itertools.pairwise(starts):
        if end <= before:
            (folder / f"{stream}.{start}").unlink(missing_ok=True)


def _size(folder: Path, stream: str) -> int:
    starts = _starts(folder, stream)
    if not starts:
        return 0
    try:
        return starts[-1] + (folder / f"{stream}.{starts[-1]}").stat().st_size
    except FileNotFoundError:
        return starts[-1]


def _starts(folder: Path, stream: str) -> list[int]:
    """Where the files of an output begin, in order."""
    try:
        names = os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(int(start) for name, _, start in (name.partition(".") for name in names) if name == stream and start.isdigit())


# input


def write(folder: Path, data: bytes) -> int:
    """What does not fit into the pipe now is not taken."""
    if (folder / CLOSED).exists():
        raise InputClosed("its input was closed")
    if not _is_kept(folder):
        raise InputClosed("it has ended")
    try:
        pipe = os.open(folder / INPUT, os.O_WRONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        raise InputClosed("it was started without an input") from None
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        raise InputClosed("it reads no more") from None
    written = 0
    try:
        while written < len(data):
            written += os.write(pipe, data[written:])
    except BlockingIOError:
        pass
    except BrokenPipeError:
        raise InputClosed("it reads no more") from None
    finally:
        os.close(pipe)
    return written


def close_input(folder: Path) -> None:
    (folder / CLOSED).touch(mode=0o600)
    _send(folder, signal.SIGUSR1)


# its end


def ask_to_end(folder: Path) -> bool:
    """Asks a keeper to end its process; false if there is none."""
    return _send(folder, signal.SIGTERM)


def _send(folder: Path, number: int) -> bool:
    """A keeper that has just taken its lock may not have said yet which process it is."""
    until = time.monotonic() + 2.0
    while _is_kept(folder):
        kept = keeper(folder)
        if kept is not None:
            return _signal(kept, number)
        if time.monotonic() >= until:
            break
        time.sleep(0.01)
    return False


def _signal(process: ProcessId, number: int) -> bool:
    if process.boot_id:
        return processes.send_signal(process, number)
    with contextlib.suppress(ProcessLookupError):  # Its lock is held, so that the number is still its own.
        os.kill(process.pid, number)
        return True
    return False


def remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
    with contextlib.suppress(OSError):
        folder.parent.rmdir()
