"""Real Holdfast processes for the bench: started as a user starts them, on homes of their own."""

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from bench import processes
from bench.load import Address
from bench.profiling import Profiles

ROOT = Path(__file__).parents[1]
START_S = 60.0
# A bare signal asks to be started again; a version from before that ended with 0.
ENDED = (0, 75)
STOP_S = 120.0
POLL_S = 0.001


def environment() -> dict[str, str]:
    """Ours, without settings of a Holdfast of this machine, and with compiled modules allowed."""
    return {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST") and name != "PYTHONDONTWRITEBYTECODE"}


class Serving:
    """`holdfast serve` on a free port. `scripted` gives it the bench's agent, which knows a few words more than the demo. `variables`: its
    settings.
    """

    def __init__(self, home: Path, *, profiles: Profiles, scripted: bool = False, variables: Mapping[str, str] = {}) -> None:
        self._home, self._profiles, self._variables = home, profiles, variables
        self._module = "bench.served" if scripted or profiles.wanted else "holdfast"
        self._process: subprocess.Popen[bytes] | None = None
        self.imported_s = 0.0
        self.healthy_s = 0.0

    def __enter__(self) -> "Serving":
        self._home.mkdir(exist_ok=True)
        variables = environment() | self._profiles.environment() | dict(self._variables)
        if self._module == "bench.served":
            variables["PYTHONPATH"] = os.pathsep.join((str(ROOT), str(ROOT / "src")))
        command = [sys.executable, "-m", self._module, "--home", str(self._home), "serve", "--port", "0"]
        self._began = time.perf_counter()
        with (self._home / "output.txt").open("wb") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=self._home, env=variables)
        try:
            self.address = self._wait_until_healthy()
        except BaseException:
            self._process.kill()
            self._process.wait()
            raise
        self.healthy_s = time.perf_counter() - self._began
        return self

    def _wait_until_healthy(self) -> Address:
        """Its status file is the first thing a process does once everything is imported and the socket listens; the first answer comes when
        the gateway is ready to give it.
        """
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline and self._running.poll() is None:
            url = self._told_url()
            if url is not None:
                self.imported_s = self.imported_s or time.perf_counter() - self._began
                host, port = urlsplit(url).hostname or "", urlsplit(url).port or 0
                connection = http.client.HTTPConnection(host, port, timeout=START_S)
                connection.request("GET", "/healthz")
                status = connection.getresponse().status
                connection.close()
                if status == 200:
                    return Address(host, port, (self._home / "token").read_text().strip())
            time.sleep(POLL_S)
        raise RuntimeError(f"Holdfast did not start:\n{self.output()[-3000:]}")

    def _told_url(self) -> str | None:
        try:
            status = json.loads((self._home / "status.json").read_text())
        except (FileNotFoundError, ValueError):
            return None
        return str(status["url"]) if status["pid"] == self.pid else None

    def __exit__(self, *exc: object) -> None:
        if self._running.poll() is None:
            if self._profiles.wanted:
                self.stop()  # Its profile is written at its end.
            else:
                self._running.kill()
                self._running.wait()

    @property
    def _running(self) -> "subprocess.Popen[bytes]":
        assert self._process is not None
        return self._process

    @property
    def pid(self) -> int:
        return self._running.pid

    @property
    def age_s(self) -> float:
        return time.perf_counter() - self._began

    def output(self) -> str:
        return (self._home / "output.txt").read_text(errors="replace")

    def stop(self) -> float:
        """SIGTERM; the seconds until the process was gone."""
        began = time.perf_counter()
        self._running.send_signal(signal.SIGTERM)
        code = self._running.wait() if not self._profiles.wanted else self._running.wait(STOP_S)
        took = time.perf_counter() - began
        if code not in ENDED:
            raise RuntimeError(f"Holdfast ended with {code}:\n{self.output()[-3000:]}")
        return took

    # what the kernel knows of it

    def cpu_s(self) -> float:
        return processes.cpu_s(self.pid)

    def memory_mb(self) -> float:
        return processes.memory_mb(self.pid)

    def written_bytes(self) -> int:
        return processes.written_bytes(self.pid)
