"""The file `status.json` in the home folder: what the serving process says of itself, for those who cannot ask it."""

import json
import os
from pathlib import Path
from typing import Any

STATUS = "status.json"


class StatusFile:
    def __init__(self, home: Path) -> None:
        self._path = home / STATUS

    def write(self, status: dict[str, Any]) -> None:
        """Replaced as a whole: a reader sees the old one or the new one."""
        making = self._path.with_suffix(".making")
        making.write_text(json.dumps(status, indent=1) + "\n")
        os.chmod(making, 0o600)
        os.replace(making, self._path)
