"""The gateway of a soak: started, handed over, killed and started again, as its operator and its supervisor would."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import psutil

from bench.load import Address, Api
from bench.serving import environment
from bench.soaking.notebook import HandOver, Kill, Lock, Notebook
from bench.soaking.schedule import Act, Target
from holdfast.ports.owners import Owner
from holdfast.store import reads
from holdfast.store.sqlite.connection import connect
from holdfast.store.sqlite.store import DATABASE
from holdfast.store.sqlite.tx import SqliteTx
from tests.fakes.locker import Locker
from tests.ports import free_port

ROOT = Path(__file__).parents[2]
START_S = 60.0
RESTART_PAUSE_S = 0.3  # As a supervisor waits.
HAND_OVER_S = 120.0
STOP_S = 60.0
FOUND_S = 5.0
OUTGOING = ("handing_over", "retiring")
FAILURES = (OSError, EOFError, TimeoutError)


class Gateway:
    """All processes of one home. The port stays the same over everything. `module` serves it; `settings`: as variables."""

    def __init__(self, home: Path, notes: Notebook, *, module: str = "holdfast", settings: Mapping[str, str] = {}) -> None:
        self.home, self._notes, self._module, self._settings = home, notes, module, settings
        self._port = free_port()
        self._children: list[subprocess.Popen[bytes]] = []
        self.address = Address("127.0.0.1", self._port, "")

    async def start(self) -> None:
        """Until it answers. One that another process still keeps from serving is started again, and that is remarked upon."""
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            child = self._spawn()
            while child.poll() is None and time.monotonic() < deadline:
                if await self._healthy():
                    self.address = Address("127.0.0.1", self._port, (self.home / "token").read_text().strip())
                    return
                await asyncio.sleep(0.01)
            self._notes.remark(f"a start ended with {child.returncode}: {self.output(len(self._children)).strip()[-200:]}")
            await asyncio.sleep(RESTART_PAUSE_S)
        raise RuntimeError(f"the gateway did not start within {START_S:.0f} s:\n{self.output(len(self._children))[-3000:]}")

    def _spawn(self) -> "subprocess.Popen[bytes]":
        self.home.mkdir(exist_ok=True)
        command = [sys.executable, "-m", self._module, "--home", str(self.home), "serve", "--port", str(self._port)]
        number, shared = len(self._children) + 1, str(self.home.parent)
        with self._output(number).open("wb") as output:
            child = subprocess.Popen(
                command,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.home.parent,
                # Its commands write where this one looks.
                env={
                    **environment(),
                    **self._settings,
                    "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "src"))),
                    "HOLDFAST_TOOLS_FOLDER": shared,
                    "HOLDFAST_TOOLS_SHARED": "true",
                },
            )
        self._children.append(child)
        return child

    def _output(self, number: int) -> Path:
        return self.home.parent / f"output-{number}.txt"

    def output(self, number: int) -> str:
        return self._output(number).read_text(errors="replace")

    def outputs(self) -> str:
        return "\n".join(self.output(number) for number in range(1, len(self._children) + 1))

    async def _healthy(self) -> bool:
        try:
            async with Api(self.address) as api:
                return (await api.request("GET", "/healthz"))[0] == 200
        except FAILURES:
            return False

    async def status(self) -> dict[str, Any]:
        return dict(await self.ask("GET", "/api/status"))

    async def _status_of_serving(self) -> dict[str, Any]:
        """For a moment after a hand-over the old process may still be the one that answers."""
        while (status := await self.status())["gateway_state"] in OUTGOING:  # noqa: ASYNC110 - it is another process that moves on.
            await asyncio.sleep(0.01)
        return status

    async def ask(self, method: str, path: str, body: Any = None, within_s: float = 20.0) -> Any:
        """One request on a connection of its own; what is not answered with success raises."""
        async with asyncio.timeout(within_s), Api(self.address) as api:
            status, answer = await api.request(method, path, body)
        if status >= 300:
            raise OSError(f"{status} {answer.decode(errors='replace')[:300]}")
        return msgspec.json.decode(answer)

    # what is done to it

    async def hand_over(self) -> HandOver:
        began, clock = time.time(), time.perf_counter()
        try:
            answer = await self.ask("POST", "/api/admin/restart", within_s=HAND_OVER_S)
            done = HandOver(began, time.perf_counter() - clock, int(answer["pid"]))
        except FAILURES as error:
            done = HandOver(began, time.perf_counter() - clock, None, f"{type(error).__name__}: {error}")
        self._notes.hand_overs.append(done)
        return done

    async def kill(self, act: Act) -> None:
        """SIGKILL to whom the act names. If that leaves nobody who serves, the next start follows, as by a supervisor."""
        assert act.target is not None
        if act.target.in_mid_hand_over:
            await self._kill_midway(act.target, act.midway_s)
            return
        status = await self._status_of_serving()
        if act.target.needs_retiring and not any(each["running_turns"] for each in status["retiring"]):
            await self.hand_over()
            status = await self._status_of_serving()
        retiring = sorted(status["retiring"], key=lambda each: each["running_turns"])[-1:]
        pids = [each["pid"] for each in retiring] if act.target.needs_retiring else []
        if act.target is not Target.RETIRING:
            pids.append(status["pid"])
        await self._kill(act.target, pids, serves=act.target is Target.RETIRING)

    async def _kill_midway(self, target: Target, midway_s: float) -> None:
        """By the time of the kill the successor may serve already: then it is a serving process that dies, or one that retires."""
        old = (await self._status_of_serving())["pid"]
        known = set(self.pids())
        began = asyncio.ensure_future(self.hand_over())
        await asyncio.wait({began}, timeout=midway_s)
        victims = [old]
        if target is Target.SUCCESSOR:
            victims = await self._newcomers(known, began)
        await self._kill(target, victims, serves=None)
        await began

    async def _newcomers(self, known: set[int], began: "asyncio.Future[HandOver]") -> list[int]:
        deadline = time.monotonic() + FOUND_S
        while time.monotonic() < deadline:
            if found := [pid for pid in self.pids() if pid not in known]:
                return found
            await asyncio.wait({began}, timeout=0.01)
        return []

    async def _kill(self, target: Target, pids: list[int], *, serves: bool | None) -> None:
        """`serves`: whether somebody still does; None where only a look can tell."""
        owners = [owner.id for owner in self._owners() if owner.pid in pids]
        now = time.time()
        kill = Kill(now, target, pids, owners, now)
        self._notes.kills.append(kill)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if not serves:
            await asyncio.sleep(RESTART_PAUSE_S)
            await self._back(kill)

    async def lock(self, seconds: float) -> None:
        """Another program holds the database for so long."""
        locker = Locker(self.home / DATABASE)
        await asyncio.to_thread(locker.__enter__)
        lock = Lock(time.time(), time.time() + seconds)
        self._notes.locks.append(lock)
        try:
            await asyncio.sleep(seconds)
        finally:
            await asyncio.to_thread(locker.release)
            lock.over_at = time.time()

    def _owners(self) -> list[Owner]:
        """Read before a kill: those that are gone and owe nothing are forgotten."""
        db = connect(self.home / DATABASE)
        try:
            return reads.owners(SqliteTx(db))
        finally:
            db.close()

    async def _back(self, kill: Kill) -> None:
        """Until somebody answers: a process that was not hit, or a new one."""
        kill.over_at = time.time() + START_S  # Until it is known, nothing that fails is a surprise.
        if not (await self._answers()):
            await self.start()
        kill.over_at = time.time()

    async def _answers(self) -> bool:
        try:
            return bool((await self.status())["pid"])
        except FAILURES:
            return False

    async def stop(self) -> list[int]:
        """As `holdfast stop` asks for it; the processes that were still there when its time was up."""
        await self.ask("POST", "/api/admin/stop")
        deadline = time.monotonic() + STOP_S
        while (left := self.pids()) and time.monotonic() < deadline:
            self.reap()
            await asyncio.sleep(0.05)
        return left

    def reap(self) -> None:
        """Takes the exit codes of those that have ended, so that nobody takes them for living."""
        for child in self._children:
            child.poll()

    def pids(self) -> list[int]:
        """The processes that serve this home, retire, start, or wait in front of those."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                command = process.cmdline()
                if command[1:3] == ["-m", self._module] and str(self.home) in command:
                    found.append(process.pid)
        return found

    def end(self) -> None:
        """Whatever is left of it, commands included."""
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if any(str(self.home.parent) in word for word in process.cmdline()) and process.pid != os.getpid():
                    process.kill()
        for child in self._children:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(10)
