"""The file `status.json` in the home folder: what the serving process says of itself, for those who cannot ask it."""

import errno
import json
import os
from pathlib import Path
from typing import Any

from holdfast import files

MAKING = "status.making"
FULL = (errno.ENOSPC, errno.EDQUOT)


class StatusFile:
    def __init__(self, home: Path) -> None:
        self._path = home / files.STATUS

    def write(self, status: dict[str, Any], *, durable: bool) -> None:
        """Replaced as a whole: a reader sees the old one or the new one. On a full disk there is no room for a second file; then it is
        written over, in one piece and in the block that it has. `durable`: it must be there after a power cut, too.
        """
        if durable:
            try:
                return files.replace(self._path, status)
            except OSError as error:
                if error.errno not in FULL:
                    raise
        text = json.dumps(status, indent=1) + "\n"
        making = self._path.with_name(MAKING)
        try:
            making.write_text(text)
            os.chmod(making, 0o600)
            os.replace(making, self._path)
        except OSError as error:
            making.unlink(missing_ok=True)
            if error.errno not in FULL:
                raise
            self._write_over(text.encode())

    def _write_over(self, content: bytes) -> None:
        descriptor = os.open(self._path, os.O_WRONLY)
        try:
            os.pwrite(descriptor, content.ljust(os.fstat(descriptor).st_size), 0)
            os.ftruncate(descriptor, len(content))
        finally:
            os.close(descriptor)
