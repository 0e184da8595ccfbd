"""The folders that the tools of a session work in: made when they are first used, removed with the session's content."""

import contextlib
import hashlib
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from holdfast.sandbox import FOLDER, Place

# As our own ids are. Whatever another one is, it must not lead out of the folder.
PLAIN = re.compile(r"[A-Za-z0-9_]{1,64}")


class Workspaces:
    """`folder` holds a folder for each session; or, `shared`, it is the folder of all. `home` is the home folder of Holdfast."""

    def __init__(self, home: Path, *, folder: Path, shared: bool = False) -> None:
        self._own, self._base, self._is_shared = home / FOLDER, folder, shared

    @property
    def shared(self) -> Path | None:
        return self._base if self._is_shared else None

    def folder(self, session_id: str) -> Path:
        return self._base if self._is_shared else self._base / _name(session_id)

    def make(self, session_id: str) -> Place:
        """Also what is missing of it. Raises `OSError`."""
        own = self._own / _name(session_id)
        place = Place(self.folder(session_id), own / "home", own / "tmp")
        for each in (place.folder, place.home, place.tmp):
            each.mkdir(mode=0o700, parents=True, exist_ok=True)
        return place

    def sessions(self) -> list[str]:
        """Those that have a folder, as far as their ids are plain."""
        found: set[str] = set()
        for around in (self._own, *(() if self._is_shared else (self._base,))):
            with contextlib.suppress(OSError):
                found |= {name for name in os.listdir(around) if PLAIN.fullmatch(name)}
        return sorted(found)

    def remove(self, session_id: str) -> None:
        """What is shared stays. Raises `OSError`."""
        for folder in (self._own / _name(session_id), *(() if self._is_shared else (self.folder(session_id),))):
            if folder.is_symlink():
                folder.unlink()
            elif folder.exists():
                shutil.rmtree(folder, onerror=_open_and_try_again)


def _name(session_id: str) -> str:
    return session_id if PLAIN.fullmatch(session_id) else hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()


def _open_and_try_again(remove: Callable[[str], object], path: str, why: object) -> None:
    """Commands may have closed a folder even to their own user."""
    os.chmod(os.path.dirname(path), 0o700)
    if os.path.isdir(path) and not os.path.islink(path):
        os.chmod(path, 0o700)
        shutil.rmtree(path)
    else:
        os.unlink(path)
