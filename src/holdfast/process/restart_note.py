"""The restart note: a file in the home folder that says who asked for a restart and who is told about it. It outlives the process."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import structlog

from holdfast import files
from holdfast.core.restarts import NOTE, Request

log = structlog.get_logger()


class RestartNote:
    """One process's access to the note (`ports.Restarts`). A note that cannot be read or written does not prevent a restart."""

    def __init__(self, home: Path, *, cuts: bool, begin: Callable[[Request], None], now: Callable[[], int]) -> None:
        self._path, self.cuts, self._begin, self._now = home / NOTE, cuts, begin, now

    def note(self) -> Sequence[Request]:
        try:
            found: dict[str, Any] = files.read_json(self._path) or {}
            return msgspec.convert(found.get("requests", []), list[Request])
        except OSError as error:
            log.warning("the restart note cannot be read", error=str(error))
        except ValueError as error:
            log.warning("the restart note is damaged, and removed", error=str(error))
            self.keep([])
        return []

    def keep(self, requests: Sequence[Request]) -> None:
        try:
            if requests:
                files.replace_json(self._path, {"at": self._now(), "requests": msgspec.to_builtins(requests)})
            else:
                files.remove(self._path)
        except OSError as error:
            log.error("the restart note cannot be written: some people will not be told", error=str(error))

    def begin(self, request: Request) -> None:
        self._begin(request)
