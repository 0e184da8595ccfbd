"""The folders that the tools of a session work in: made when they are first used, removed with the session's content. A folder that was
chosen for a session is its user's own: never made, never removed.
"""

import contextlib
import hashlib
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from holdfast import files
from holdfast.core.errors import UnfitFolder
from holdfast.sandbox import FOLDER, Place
from holdfast.sandbox.view import is_beneath

# As our own ids are. Whatever another one is, it must not lead out of the folder.
PLAIN = re.compile(r"[A-Za-z0-9_]{1,64}")
# Folders of the system in which nobody works.
SYSTEM = ("/proc", "/sys", "/dev")


class Workspaces:
    """`folder` holds a folder for each session; or, `shared`, it is the folder of all. `home` is the home folder of Holdfast."""

    def __init__(self, home: Path, *, folder: Path, shared: bool = False) -> None:
        self._home, self._own, self._base, self._is_shared = home, home / FOLDER, folder, shared

    @property
    def shared(self) -> Path | None:
        return self._base if self._is_shared else None

    def folder(self, session_id: str, chosen: str | None = None) -> Path:
        """`chosen`: the one that was chosen for it."""
        if chosen is not None:
            return Path(chosen)
        return self._base if self._is_shared else self._base / _name(session_id)

    def check(self, chosen: str) -> str:
        """The same folder without links. Raises `UnfitFolder`, also for one through which Holdfast's own files could be reached."""
        folder = Path(chosen)
        if not folder.is_absolute() or "\0" in chosen:
            raise UnfitFolder(chosen, "it is not an absolute path")
        if not folder.is_dir():
            raise UnfitFolder(chosen, "there is no such folder")
        if any(is_beneath(folder, Path(place)) for place in SYSTEM):
            raise UnfitFolder(chosen, "it belongs to the system")
        if is_beneath(folder, self._home) or is_beneath(self._home, folder):
            raise UnfitFolder(chosen, f"its tools would reach Holdfast's own files in {self._home}")
        return os.path.realpath(folder)

    def open(self, session_id: str, chosen: str | None = None) -> Path:
        """The folder, with what is missing of it. Raises `OSError`, `UnfitFolder`."""
        folder = self.folder(session_id, chosen)
        if chosen is not None:
            if self.check(chosen) != chosen:  # It was chosen without links.
                raise UnfitFolder(chosen, "it leads elsewhere now")
        elif folder.is_relative_to(self._home):
            files.make_folder(folder, within=self._home)
        else:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder

    def make(self, session_id: str, chosen: str | None = None) -> Place:
        """As `open`, with all that commands need. While the home folder is away there is none, and none is made."""
        own = self._own / _name(session_id)
        for each in (own / "home", own / "tmp"):
            files.make_folder(each, within=self._home)
        return Place(self.open(session_id, chosen), own / "home", own / "tmp")

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
