"""Another program that holds a database: a real process with a real lock."""

import subprocess
import sys
from pathlib import Path

_HOLD = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=30)
db.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.readline()
db.execute("ROLLBACK")
db.close()
"""


class Locker:
    """Holds the lock from the beginning of the block to its end, or until `release`."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> "Locker":
        command = [sys.executable, "-c", _HOLD, str(self._database)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout and self._process.stdout.readline() == "held\n"
        return self

    def release(self) -> None:
        """Returns when the lock is free."""
        if self._process is None:
            return
        process, self._process = self._process, None
        process.communicate("\n", timeout=30)

    def __exit__(self, *_: object) -> None:
        self.release()
