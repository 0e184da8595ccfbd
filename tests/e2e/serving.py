"""A real Holdfast process on a home folder of its own: started, killed, started again; and a client that follows a session over it all."""

import asyncio
import contextlib
import fcntl
import json
import os
import pty
import signal
import ssl
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import apsw
import httpx
import psutil

from holdfast import tool_processes
from holdfast.store import SqliteStore, open_store
from tests.ports import free_port

ROOT = Path(__file__).parents[2]
INSTALLED = Path(__file__).parent / "installed"
START_S = 60.0
SOON_S, LATER_S = 0.005, 0.05
# Nothing here is encrypted, and a context with every certificate of the system costs as much as the start of a server.
NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
T = TypeVar("T")


def now() -> int:
    return time.time_ns() // 1_000_000


def looks(timeout_s: float) -> Iterator[None]:
    """The moments to look whether something has happened: often at first, then less, because looking takes processor time."""
    deadline, pause_s = time.monotonic() + timeout_s, SOON_S
    while True:
        yield
        if time.monotonic() > deadline:
            return
        time.sleep(pause_s)
        pause_s = min(1.3 * pause_s, LATER_S)


def wait_until(happened: Callable[[], bool], timeout_s: float = 60.0) -> None:
    assert any(happened() for _ in looks(timeout_s)), "it did not happen"


def files_with(folder: Path, words: str) -> list[str]:
    """The names of the files in it, at any depth, in which these words stand. Those that go while they are read hold nothing."""
    found = []
    for place, _, names in os.walk(folder):
        for path in (Path(place, name) for name in names):
            with contextlib.suppress(FileNotFoundError):
                if path.is_file() and words.encode() in path.read_bytes():
                    found.append(path.name)
    return sorted(found)


CTRL_C = "\x03"
# Between two presses of a hasty person.
PRESSES_S = 0.1


def _main_thread(process: int) -> tuple[bool, bool, int]:
    """Whether SIGINT is pending there, whether it sleeps, and how often it went to sleep. A process that is gone has handled everything."""
    try:
        text = Path(f"/proc/{process}/task/{process}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False, True, sys.maxsize
    status = dict(line.split(":", 1) for line in text.splitlines())
    pending = (int(status["SigPnd"], 16) | int(status["ShdPnd"], 16)) >> (signal.SIGINT - 1) & 1
    return bool(pending), status["State"].split()[0] in "SZ", int(status["voluntary_ctxt_switches"])


class Terminal:
    """A terminal of its own for one process after the other, each in its foreground."""

    def __enter__(self) -> "Terminal":
        self._open()
        return self

    def __exit__(self, *exc: object) -> None:
        self._close()

    def _open(self) -> None:
        self._ours, self.theirs = pty.openpty()

    def _close(self) -> None:
        for descriptor in (self.theirs, self._ours):
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def take(self) -> None:
        """In the process that is to have it, which leads a session already."""
        fcntl.ioctl(self.theirs, termios.TIOCSCTTY, 0)

    def press(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def press_ctrl_c(self, process: int) -> None:
        """And wait until the process in front has handled it: a signal that comes while the same one is pending is lost, and a busy
        machine may take longer to handle one than a person takes to press again. Python handles a signal only some time after the system
        has delivered it, which nobody outside can see: a person does not press again at once, either.
        """
        switches = _main_thread(process)[2]
        self.press(CTRL_C)

        def handled() -> bool:
            pending, sleeps, now = _main_thread(process)
            return not pending and sleeps and now > switches

        wait_until(handled)
        time.sleep(PRESSES_S)
        wait_until(handled)

    def hang_up(self) -> None:
        """Its window is closed."""
        self._close()


class Serving:
    """`holdfast serve` as a user starts it. The port stays the same over restarts. Another `module` is one that serves it with an agent of
    its own. `inside` is a command that starts it, as `unshare` does; `command` takes the place of the whole. `variables` are those that are
    not settings. `process` is the one that was started here: after a hand-over another one serves. It has the `terminal`, or none.
    """

    def __init__(
        self,
        home: Path,
        *,
        module: str = "holdfast",
        inside: Sequence[str] = (),
        variables: dict[str, str] | None = None,
        terminal: Terminal | None = None,
        command: Sequence[str] = (),
        **settings: str,
    ) -> None:
        self.home, self.port = home, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._inside, self._terminal = inside, terminal
        self._command = command or (sys.executable, "-m", module, "--home", str(home), "serve", "--port", str(self.port))
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST")}
        self._environment["PYTHONPATH"] = os.pathsep.join((str(INSTALLED), str(ROOT), str(ROOT / "src")))
        self._environment |= variables or {}
        # Commands are confined where this machine can do it. What they write into this folder can be seen.
        self.folder = home.parent
        self.configure(tools_folder=str(self.folder), tools_shared="true")
        self.configure(**settings)
        self.process: subprocess.Popen[bytes] | None = None
        self.starts = 0

    def configure(self, **settings: str) -> None:
        """Counts from the next start on."""
        self._environment |= {f"HOLDFAST_{name.upper()}": value for name, value in settings.items()}

    def launch(self) -> subprocess.Popen[bytes]:
        """Starts it and does not wait for it."""
        self.home.mkdir(exist_ok=True)
        self.starts += 1
        with (self.home / f"output-{self.starts}.txt").open("wb") as output:
            self.process = subprocess.Popen(
                [*self._inside, *self._command],
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.home,
                env=self._environment,
                start_new_session=True,  # The terminal of whoever runs the tests is not theirs.
                preexec_fn=self._terminal.take if self._terminal else None,
            )
        return self.process

    def start(self) -> "Serving":
        self.process = self.launch()
        with httpx.Client(verify=NO_CERTIFICATES, trust_env=False, timeout=2) as client:
            for _ in looks(START_S):
                with contextlib.suppress(httpx.TransportError):
                    if client.get(f"{self.url}/healthz").status_code == 200:
                        return self
                if self.process.poll() is not None:
                    break
        raise AssertionError(f"Holdfast did not start:\n{self.output()}")

    def output(self) -> str:
        return (self.home / f"output-{self.starts}.txt").read_text()

    @property
    def token(self) -> str:
        return (self.home / "token").read_text().strip()

    def client(self, **options: Any) -> httpx.Client:
        signed = {"Authorization": f"Bearer {self.token}"}
        return httpx.Client(base_url=self.url, headers=signed, timeout=20, verify=NO_CERTIFICATES, trust_env=False, **options)

    def kill(self) -> None:
        """SIGKILL: no handler, no goodbye."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self, number: int = signal.SIGTERM, timeout_s: float = 30) -> int:
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(timeout_s)

    def __enter__(self) -> "Serving":
        return self.start()

    def __exit__(self, *exc: object) -> None:
        if self.process is not None and self.process.poll() is None:
            self.kill()
        for process in self.processes():
            process.kill()
        tool_processes.kill_chosen(self.home, lambda _: True, variable=tool_processes.KEPT)  # They outlive every gateway.

    # its processes

    def processes(self) -> list[psutil.Process]:
        """Every living one that was started to serve this home: the one in front, those that retire, the one that serves."""
        found = []
        for process in psutil.process_iter():
            try:
                if f"--home {self.home} serve" in " ".join(process.cmdline()) and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def tool(self, number: int) -> psutil.Process:
        """The process of a tool that knows itself by this number. In a sandbox it may have another one outside."""
        for process, _ in tool_processes.running(self.home):
            status = Path(f"/proc/{process.pid}/status")
            numbers = next((line.split()[1:] for line in status.read_text().splitlines() if line.startswith("NSpid:")), [])
            if not numbers or numbers[-1] == str(number):
                return psutil.Process(process.pid)
        raise AssertionError(f"no tool has the number {number}")

    @property
    def written(self) -> dict[str, Any]:
        """What the status file says."""
        return dict(json.loads((self.home / "status.json").read_text()))

    @property
    def pid(self) -> int:
        """The process that serves now, by its own word."""
        return int(self.written["pid"])

    def reaped(self) -> subprocess.Popen[bytes]:
        """What a terminal or a shell does: takes the exit code of the process it started, so that others see it gone."""
        assert self.process is not None
        threading.Thread(target=self.process.wait, daemon=True).start()
        return self.process

    # the few requests most tests make

    def new_session(self) -> str:
        with self.client() as client:
            answer = client.post("/api/sessions", json={})
            assert answer.status_code == 201, answer.text
            return str(answer.json()["session_id"])

    def post(self, session_id: str, text: str, **fields: Any) -> dict[str, Any]:
        with self.client() as client:
            answer = client.post(f"/api/sessions/{session_id}/messages", json={"text": text, **fields})
            assert answer.status_code in (200, 202), answer.text
            return dict(answer.json())

    def session(self, session_id: str) -> dict[str, Any]:
        with self.client() as client:
            answer = client.get(f"/api/sessions/{session_id}")
            assert answer.status_code == 200, answer.text
            return dict(answer.json())

    def wait_for(self, session_id: str, *, timeout_s: float = 60.0, state: str = "idle") -> dict[str, Any]:
        for _ in looks(timeout_s):
            session = self.session(session_id)
            if session["state"] == state:
                return session
        raise AssertionError(f"session is {session['state']}, not {state}: {json.dumps(session)[:2000]}\n{self.output()[-3000:]}")

    def order(self, path: str, **fields: Any) -> dict[str, Any]:
        """A POST that must be obeyed."""
        with self.client() as client:
            answer = client.post(path, json=fields)
            assert answer.status_code in (200, 202), answer.text
            return dict(answer.json())

    def status(self) -> dict[str, Any]:
        with self.client() as client:
            return dict(client.get("/api/status").json())

    def between_lives(self, work: Callable[[SqliteStore], Awaitable[T]]) -> T:
        """What is done to the store while no gateway serves."""

        async def do() -> T:
            store = await open_store(self.home, now=now)
            try:
                return await work(store)
            finally:
                await store.aclose()

        return asyncio.run(do())

    def log(self, session_id: str) -> list["Seen"]:
        """Every event of a session as a fresh reader sees it, up to the session's cursor."""
        until = int(self.session(session_id)["cursor"].split(".")[1])
        reader = Reader(self, session_id)
        reader.read_until(lambda seen: bool(seen) and seen[-1].seq >= until)
        return reader.seen


def complete_a_turn(serving: Serving) -> None:
    """A life that completed a turn is no part of a crash loop: kills after it do not add up to safe mode with those before."""
    session_id = serving.new_session()
    serving.post(session_id, "hello")
    serving.wait_for(session_id)


def running(serving: Serving, text: str) -> str:
    """A new session in which a turn runs."""
    session_id = serving.new_session()
    serving.post(session_id, text)
    serving.wait_for(session_id, state="running")
    return session_id


def hand_over(serving: Serving) -> int:
    """The pid of the process that serves from now on."""
    pid = int(serving.order("/api/admin/restart")["pid"])
    wait_until(lambda: serving.pid == pid)
    return pid


def freeze(serving: Serving, pid: int) -> None:
    """At a moment when this process does not hold the database: the others must be able to write."""
    while True:
        os.kill(pid, signal.SIGSTOP)
        wait_until(lambda: psutil.Process(pid).status() == psutil.STATUS_STOPPED)
        db = apsw.Connection(str(serving.home / "holdfast.db"))
        db.set_busy_timeout(2000)
        try:
            db.execute("BEGIN IMMEDIATE; ROLLBACK")
            return
        except apsw.BusyError:
            os.kill(pid, signal.SIGCONT)
        finally:
            db.close()


class Seen:
    def __init__(self, id_: str, event: str, data: str) -> None:
        self.id, self.event, self.data = id_, event, data
        self.seq = int(id_.split(".")[1]) if "." in id_ else 0

    @property
    def body(self) -> dict[str, Any]:
        return dict(json.loads(self.data))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Seen) and (self.id, self.event, self.data) == (other.id, other.event, other.data)

    def __hash__(self) -> int:
        return hash((self.id, self.event, self.data))

    def __repr__(self) -> str:
        return f"{self.id} {self.event} {self.data[:120]}"


class Reader:
    """Follows one session and comes back with its cursor whenever the connection breaks, as the page does."""

    def __init__(self, serving: Serving, session_id: str) -> None:
        self._serving, self._session_id = serving, session_id
        self.seen: list[Seen] = []
        self.connections = 0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def read_until(self, enough: Any, timeout_s: float = 60.0) -> None:
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline and not self._stop.is_set():
            try:
                self._read_once(enough, deadline)
            except httpx.TransportError:
                time.sleep(0.02)
            if enough(self.seen):
                return

    def _read_once(self, enough: Any, deadline: float) -> None:
        headers = {"Last-Event-ID": self.seen[-1].id} if self.seen else {}
        path = f"/api/sessions/{self._session_id}/events"
        with self._serving.client() as client, client.stream("GET", path, headers=headers, timeout=5) as answer:
            assert answer.status_code == 200, answer.read()
            self.connections += 1
            fields: dict[str, str] = {}
            for line in answer.iter_lines():
                if line:
                    name, _, value = line.partition(":")
                    fields[name] = value.removeprefix(" ")
                    continue
                if fields.get("event", "end") != "end":
                    self.seen.append(Seen(fields["id"], fields["event"], fields["data"]))
                fields = {}
                if self._stop.is_set() or time.monotonic() > deadline or enough(self.seen):
                    return

    def start(self) -> "Reader":
        self._thread = threading.Thread(target=self.read_until, args=(lambda seen: False, 600.0), daemon=True)
        self._thread.start()
        return self

    def stop(self) -> list[Seen]:
        self._stop.set()
        return list(self.seen)
