"""A program, `python -ISE keep.py FOLDER`: runs one command and outlives the process that wanted it. What to run (`ports.keepers.Command`)
it reads from its standard input, because environments hold secrets, which must not lie on a disk.

Standard library only; it runs without our packages. It returns as soon as the command runs, with exit code 0; with 3 if there is or was
another keeper for it; otherwise it says on standard error why it cannot. What stays behind is the keeper: a session leader of its own that
copies the command's output, passes its input on, and writes down how it ended. All else is said through files of FOLDER:

    lock        held by the keeper until it dies; touched once a minute
    pid.json    which processes the keeper and the command are; on disk before the command runs
    out.N       its output, where N is the offset of the file's first byte; err.N for its errors, if they are apart
    in          a pipe to its input, if the spec wants one
    exit.json   how it ended; on disk before the lock is free
    trouble     what the keeper itself had to complain about

A command is over when its first process is: what it leaves behind has a moment to end by itself, and is ended then. SIGTERM ends the
command and everything it started, SIGUSR1 closes its input.
"""

import fcntl
import json
import os
import select
import signal
import sys
import time
from typing import Any

LOCK, PID, EXIT, INPUT, TROUBLE = "lock", "pid.json", "exit.json", "in", "trouble"
EARLIER = "spec.json"
OUT, ERR = "out", "err"
RUNS, KNOWN = b"runs", b"known"
NOT_ANOTHER_ONE = 3
CHUNK = 64 * 1024
FILES = 4  # That an output is kept in; the oldest one goes when it is full.
BEAT_S, HELD_S, LOOK_S = 60.0, 0.05, 0.02
LOCKED_S = 2.0
LINGER_S, GONE_S = 0.3, 5.0
SET_CHILD_SUBREAPER, SET_PDEATHSIG = 36, 1
LINUX = sys.platform == "linux"


class Known(Exception):
    """There is or was a keeper for it."""


def main() -> int:
    os.chdir(sys.argv[1])
    try:
        spec = wanted()
    except (OSError, ValueError):  # Whoever wrote it has died, or there was none.
        print("It was not told what to run.", file=sys.stderr)
        return 1
    telling, told = os.pipe()
    if os.fork():
        os.close(told)
        said = b""
        while piece := os.read(telling, CHUNK):
            said += piece
        if said in (RUNS, KNOWN):
            return 0 if said == RUNS else NOT_ANOTHER_ONE
        print(said.decode(errors="replace") or "The keeper died.", file=sys.stderr)
        return 1
    os.close(telling)
    os.setsid()
    try:
        Keeper(spec, told).keep()
    except Known:
        os.write(told, KNOWN)
    except OSError as error:
        os.write(told, str(error).encode(errors="replace"))
    return 0


def wanted() -> dict[str, Any]:
    """What to run. Raises `ValueError` if it is not whole."""
    given = sys.stdin.buffer.read()
    if not given:  # A gateway that was started before an upgrade has put it into a file.
        with open(EARLIER, "rb") as file:
            given = file.read()
    return dict(json.loads(given))


class Keeper:
    """`spec`: what to run. `told`: a pipe that those who wait for the start read."""

    def __init__(self, spec: dict[str, Any], told: int) -> None:
        self._spec, self._told = spec, told
        self._lock = hold()
        self._main = 0
        self._status: int | None = None
        self._terms = 0
        self._closes = False
        self._input: int | None = None
        self._streams: list[Stream] = []

    def keep(self) -> None:
        self._woken = listen(self._on_term, self._on_close)
        self._reserved = reserve()
        control(SET_CHILD_SUBREAPER, 1)
        problem = self._start()
        os.write(self._told, RUNS if problem is None else problem.encode(errors="replace"))
        leave_stdio(self._told)
        self._attend()
        self._record_end(problem)

    def _on_term(self, number: int, frame: object) -> None:
        self._terms += 1

    def _on_close(self, number: int, frame: object) -> None:
        self._closes = True

    # its start

    def _start(self) -> str | None:
        """Returns when the command runs; or why it does not."""
        theirs, ours = self._pipes()
        waits, goes = os.pipe()
        fails, failed = os.pipe()
        keeper = os.getpid()
        self._main = os.fork()
        if not self._main:
            os.close(goes)
            become(self._spec, theirs, keeper, waits, failed, closing=(self._lock, self._told, *ours))
        for descriptor in {*theirs, waits, failed}:
            os.close(descriptor)
        replace(PID, {"keeper": identity(keeper), "main": identity(self._main)})
        os.write(goes, b"g")  # From here on it has run.
        os.close(goes)
        problem = os.read(fails, CHUNK).decode(errors="replace")  # Nothing, once the command has taken the child's place.
        os.close(fails)
        return problem or None

    def _pipes(self) -> tuple[tuple[int, int, int], list[int]]:
        """The three ends that the command gets, and ours."""
        reads = os.open(os.devnull, os.O_RDONLY)
        if self._spec["input"]:
            os.close(reads)
            os.mkfifo(INPUT, 0o600)
            both = os.open(INPUT, os.O_RDWR)  # Neither of the others could be opened alone.
            reads, self._input = os.open(INPUT, os.O_RDONLY), os.open(INPUT, os.O_WRONLY)
            os.close(both)
        ours = [] if self._input is None else [self._input]
        writes = []
        for name in (OUT, ERR) if self._spec["apart"] else (OUT,):
            reading, writing = os.pipe()
            os.set_blocking(reading, False)
            holds = self._spec["holds"] and name == OUT  # What it complains about nobody reads but at its end.
            self._streams.append(Stream(name, reading, self._spec["most_bytes"], holds=holds))
            writes.append(writing)
            ours.append(reading)
        return (reads, writes[0], writes[-1]), ours

    # while it runs

    def _attend(self) -> None:
        """Returns when the command and everything it started are gone, and all that they put out is copied."""
        term_at = kill_at = None
        beat_at = time.monotonic()
        while True:
            self._wait(BEAT_S if term_at is None else LOOK_S)
            now = time.monotonic()
            self._reap()
            self._close_input()
            if self._terms:
                term_at = min(now, term_at or now)
            elif self._status is not None and term_at is None:
                term_at = now + LINGER_S
            if term_at is not None and self._status is not None and not descendants():
                break
            if term_at is not None and now >= term_at and kill_at is None:
                kill_at = now + self._spec["grace_s"]
                self._signal(signal.SIGTERM)
            if kill_at is not None and (now >= kill_at or self._terms > 1):
                self._signal(signal.SIGKILL)
                if now >= kill_at + GONE_S:
                    break  # The system does not let it die.
            if now >= beat_at:
                beat_at = now + BEAT_S
                beat()
        for stream in self._streams:
            stream.drain()

    def _close_input(self) -> None:
        if self._closes and self._input is not None:
            os.close(self._input)
            self._input = None

    def _wait(self, timeout_s: float) -> None:
        poll = select.poll()
        poll.register(self._woken, select.POLLIN)
        by_number = {}
        for stream in self._streams:
            if stream.full:
                timeout_s = min(timeout_s, HELD_S)
            elif not stream.closed:
                poll.register(stream.reading, select.POLLIN)
                by_number[stream.reading] = stream
        for number, _ in poll.poll(1000 * timeout_s):
            if number == self._woken:
                os.read(self._woken, CHUNK)
            else:
                by_number[number].copy()

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            if pid == self._main:
                self._status = status

    def _signal(self, number: int) -> None:
        """Everything that descends from it, wherever it went. What is killed may have started more: the next look finds that."""
        for pid, started in descendants():
            send(pid, started, number)
        if not LINUX:
            try:
                os.killpg(self._main, number)
            except OSError:
                pass

    # its end

    def _record_end(self, problem: str | None) -> None:
        code = None if self._status is None else os.waitstatus_to_exitcode(self._status)
        end = {
            "code": None if problem or code is None or code < 0 else code,
            "signal": -code if code is not None and code < 0 else None,
            "problem": problem,
            "asked": self._terms > 0,
            "ended_at": time.time_ns() // 1_000_000,
            **{stream.name: stream.offset for stream in self._streams},
        }
        for stream in self._streams:
            stream.close()
        while True:
            try:
                os.pwrite(self._reserved, json.dumps(end).encode(), 0)
                os.ftruncate(self._reserved, len(json.dumps(end)))
                put_in_place(self._reserved, EXIT)
                return
            except FileNotFoundError:
                return  # Its folder was removed: nobody wants to know.
            except OSError:  # Until it is on disk, nobody may think that nothing is known.
                time.sleep(1.0)


class Stream:
    """One output. `offset`: how much of it has come. `full`: it holds, and as much is kept as may be."""

    def __init__(self, name: str, reading: int, most: int, *, holds: bool) -> None:
        self.name, self.reading, self._most, self._holds = name, reading, most, holds
        self.offset = 0
        self.closed = False
        self._chunk = min(CHUNK, max(1, most // FILES))
        self._file: int | None = None
        self._files: list[str] = []
        self._size = 0

    @property
    def full(self) -> bool:
        if not self._holds or len(self._files) < FILES:
            return False
        self._files = [name for name in self._files if os.path.exists(name)]  # A reader may remove one that it has read.
        return len(self._files) >= FILES

    def copy(self) -> bool:
        """At most a chunk; false where there is nothing."""
        try:
            data = os.read(self.reading, self._chunk)
        except BlockingIOError:
            return False
        if data:
            self._keep(data)
        else:
            self.closed = True
        return bool(data)

    def drain(self) -> None:
        while not self.closed and self.copy():
            pass

    def _keep(self, data: bytes) -> None:
        """What a full disk does not take is missing between two files."""
        at, self.offset = self.offset, self.offset + len(data)
        try:
            if self._file is None or FILES * (self._size + len(data)) > self._most:
                self._begin(at)
            while data and self._file is not None:
                written = os.write(self._file, data)
                self._size += written
                data = data[written:]
        except OSError:
            self._end_file()

    def _begin(self, at: int) -> None:
        self._end_file()
        name = f"{self.name}.{at}"
        self._file, self._size = os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), 0
        self._files.append(name)
        while len(self._files) > FILES and not self._holds:
            os.unlink(self._files.pop(0))

    def _end_file(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
            if not self._size:
                os.unlink(self._files.pop())

    def close(self) -> None:
        """The last file is on disk, as far as the disk takes it."""
        try:
            if self._file is not None:
                os.fsync(self._file)
            self._end_file()
        except OSError:
            pass
        os.close(self.reading)


def become(spec: dict[str, Any], theirs: tuple[int, int, int], keeper: int, waits: int, failed: int, *, closing: tuple[int, ...]) -> None:
    """In the child: waits until it may, and becomes the command. The end of its keeper is its own."""
    try:
        for descriptor in closing:
            os.close(descriptor)
        control(SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != keeper or not os.read(waits, 1):
            os._exit(1)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGCHLD, signal.SIGHUP, signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.setsid()
        for target, descriptor in enumerate(theirs):
            os.dup2(descriptor, target)
        os.chdir(spec["folder"])
        os.execvpe(spec["words"][0], spec["words"], spec["environment"])
    except OSError as error:
        os.write(failed, f"{error.strerror}: {error.filename or spec['words'][0]}".encode(errors="replace"))
    os._exit(127)


def hold() -> int:
    """The lock. One who only looks whether it is held, or gives the command up, holds it for a moment. Raises `Known`."""
    lock = os.open(LOCK, os.O_CREAT | os.O_RDWR, 0o600)
    until = time.monotonic() + LOCKED_S
    held = False
    while not held:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            held = True
        except BlockingIOError:
            time.sleep(LOOK_S)
        if os.path.exists(PID) or os.path.exists(EXIT) or time.monotonic() >= until:
            raise Known
    return lock


def listen(on_term: Any, on_close: Any) -> int:
    """A descriptor that has something to read after each signal."""
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    signal.signal(signal.SIGTERM, on_term)
    signal.signal(signal.SIGUSR1, on_close)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    return woken


def leave_stdio(told: int) -> None:
    """Those who waited for the start wait no longer."""
    nothing, trouble = os.open(os.devnull, os.O_RDWR), os.open(TROUBLE, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    for target, descriptor in enumerate((nothing, nothing, trouble)):
        os.dup2(descriptor, target)
    for descriptor in (nothing, trouble, told):
        os.close(descriptor)


def beat() -> None:
    """A sign of life: if the whole machine goes down, it says until when the command ran."""
    try:
        os.utime(LOCK)
    except OSError:
        pass


def reserve() -> int:
    """Room for the last file: it can be written also on a full disk."""
    reserved = os.open(f".{EXIT}", os.O_CREAT | os.O_RDWR | os.O_TRUNC, 0o600)
    os.write(reserved, b" " * 4096)
    os.fsync(reserved)
    return reserved


def replace(name: str, content: dict[str, Any]) -> None:
    making = os.open(f".{name}", os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    os.write(making, json.dumps(content).encode())
    put_in_place(making, name)
    os.close(making)


def put_in_place(made: int, name: str) -> None:
    """First its content is on disk, then its name."""
    os.fsync(made)
    os.rename(f".{name}", name)
    folder = os.open(".", os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def control(what: int, value: int) -> None:
    if LINUX:
        import ctypes  # The gateway, which reads this module for its names, has no use for it.

        ctypes.CDLL(None).prctl(what, value, 0, 0, 0)


def identity(pid: int) -> dict[str, Any]:
    """As `holdfast.core.process_id` names a process; where the system does not tell, by its number alone."""
    if not LINUX:
        return {"pid": pid, "process_started_at": 0, "boot_id": ""}
    with open("/proc/sys/kernel/random/boot_id") as file:
        boot_id = file.read().strip()
    started = stat_of(pid)[1] * 1000 // os.sysconf("SC_CLK_TCK")
    return {"pid": pid, "process_started_at": started, "boot_id": boot_id}


def stat_of(pid: int) -> tuple[int, int, bool]:
    """Its parent, when it started, and whether it is still alive. Raises `OSError` if it is gone."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    return int(fields[1]), int(fields[19]), fields[0] not in (b"Z", b"X")


def descendants() -> list[tuple[int, int]]:
    """What descends from this process and lives, with the times of their starts. Whatever loses its parent becomes this one's child."""
    if not LINUX:
        return []
    found: dict[int, tuple[int, int, bool]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                found[int(entry)] = stat_of(int(entry))
            except OSError:
                continue
    children: dict[int, list[int]] = {}
    for pid, (parent, _, _) in found.items():
        children.setdefault(parent, []).append(pid)
    below = children.get(os.getpid(), [])
    for pid in below:
        below += children.get(pid, [])
    return [(pid, found[pid][1]) for pid in below if found[pid][2]]


def send(pid: int, started: int, number: int) -> None:
    """Never to a later process with the same number."""
    handle = None
    try:
        handle = os.pidfd_open(pid)
    except OSError:  # It is gone, or the kernel is too old.
        pass
    try:
        if stat_of(pid)[1] == started:
            os.kill(pid, number) if handle is None else signal.pidfd_send_signal(handle, number)
    except OSError:
        pass
    if handle is not None:
        os.close(handle)


if __name__ == "__main__":
    sys.exit(main())
