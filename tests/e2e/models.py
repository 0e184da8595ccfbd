"""A model server as a process of its own, and a Holdfast that is configured to ask it."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec

from tests.e2e.serving import ROOT, Serving
from tests.fakes.models.script import Script


class ModelProcess:
    """`url`: its address, as a client of this wire wants it. It stays where it is when Holdfast is killed."""

    def __init__(self, folder: Path, script: Script, *, wire: str = "chat") -> None:
        self._folder, self._wire, self._script = folder, wire, script
        self.record = folder / "requests.jsonl"

    def __enter__(self) -> "ModelProcess":
        self._folder.mkdir(exist_ok=True)
        script = self._folder / "script.json"
        script.write_bytes(msgspec.json.encode(self._script))
        words = ("--script", str(script), "--record", str(self.record), "--wire", self._wire)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.fakes.models", *words],
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "src")))},
        )
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().decode().strip()
        assert self.url, "the model server did not start"
        return self

    def __exit__(self, *exc: object) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    @property
    def requests(self) -> list[dict[str, Any]]:
        return [msgspec.json.decode(line) for line in self.record.read_bytes().splitlines()] if self.record.exists() else []


def asking(home: Path, server: ModelProcess, *, model: str = "chat:test", **settings: str) -> Serving:
    """A Holdfast that asks this server. Its tools run without asking, and nobody asks for titles unless a test wants them."""
    serving = Serving(home, model=model, model_base_url=server.url, model_api_key="sk-of-the-test", policy_allow="terminal")
    serving.configure(**settings)
    return serving
