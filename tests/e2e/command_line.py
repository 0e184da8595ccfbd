"""`holdfast` as people call it: a process of its own, its output and its exit code."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.processes import with_pid


class Said(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def environment(**more: str) -> dict[str, str]:
    """Ours, without anything that would change what a command says."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST") and name not in ("COLUMNS", "NO_COLOR")}
    return kept | more


def command(home: Path, *words: str) -> list[str]:
    return [sys.executable, "-m", "holdfast", "--home", str(home), *words]


def holdfast(home: Path, *words: str, given: str = "", **variables: str) -> Said:
    done = subprocess.run(command(home, *words), input=given.encode(), capture_output=True, env=environment(**variables), timeout=120)
    return Said(done.returncode, done.stdout.decode(), done.stderr.decode())


def is_one_sentence(text: str) -> bool:
    """What every error must be: a line of ours, and no trace of the program."""
    return text.startswith("holdfast: ") and text.count("\n") == 1 and text.endswith(".\n") and "Traceback" not in text


def process_fields(pid: int) -> dict[str, Any]:
    """The life that has this process id, as status file and marker name it."""
    process = with_pid(pid)
    assert process is not None
    return process.fields


def write_status(home: Path, **fields: Any) -> None:
    """A status file that names this very process, so that it is believed."""
    home.mkdir(mode=0o700, exist_ok=True)
    status = {
        **process_fields(os.getpid()),
        "gateway_state": "running",
        "url": "http://127.0.0.1:9",
        "started_at": "2026-01-01T00:00:00.000Z",
    }
    (home / "status.json").write_text(json.dumps(status | fields))
