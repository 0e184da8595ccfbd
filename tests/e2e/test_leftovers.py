"""What processes that died left behind, and a launcher that cannot begin."""

import os
import shutil
import subprocess
import time
from pathlib import Path

from tests.e2e.serving import ROOT, Serving, wait_until


def test_what_earlier_processes_left_behind_is_removed_by_the_next_start(tmp_path: Path) -> None:
    """Files that were never finished, sockets and locks without an owner, a damaged note; what is young or belongs to somebody stays."""
    home = tmp_path / "home"
    (home / "owners").mkdir(parents=True)
    (home / "run").mkdir()
    unfinished = (
        *(
            ".planned-stop.json.123",
            ".restart-pending.json.9",
            ".status.json.77",
            "status.making",
            ".token",
            ".writable",
            "owners/.o_making",
        ),
        *(".restoring.db", ".restoring.db-journal"),
    )
    orphaned = ("owners/o_dead", "run/o_dead.sock")
    for name in (*unfinished, *orphaned):
        (home / name).touch()
        os.utime(home / name, (time.time() - 100, time.time() - 100))
    (home / "restart-pending.json").write_text('{"requests": 5}')
    young, foreign = home / ".planned-stop.json.456", home / "notes.txt"
    young.touch()
    foreign.touch()
    os.utime(foreign, (0, 0))
    with Serving(home) as serving:
        assert serving.new_session()
        assert [name for name in (*unfinished, *orphaned) if (home / name).exists()] == []
        wait_until(lambda: not (home / "restart-pending.json").exists())
        assert young.exists() and foreign.exists()


def test_a_project_that_cannot_be_prepared_says_why_in_a_sentence(tmp_path: Path) -> None:
    """Here a file lies where the environment would be made."""
    root = tmp_path / "project"
    (root / "scripts").mkdir(parents=True)
    for name in ("run", "scripts/run.py", "requirements.lock"):
        shutil.copy(ROOT / name, root / name)
    (root / ".venv").touch()
    said = subprocess.run([root / "run", "status"], capture_output=True, text=True, timeout=60)
    assert said.returncode == 1 and "Traceback" not in said.stderr
    assert said.stderr.splitlines()[-1] == f"Could not start: {root / '.venv'}: Not a directory. Fix that, and run this again."
