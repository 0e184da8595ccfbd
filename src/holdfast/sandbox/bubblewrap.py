"""The words for bubblewrap: a file system with only what is shown, and namespaces of its own."""

import os
from pathlib import Path

from holdfast.sandbox.view import View, is_beneath

PROGRAM = "bwrap"


def arguments(program: str, view: View) -> list[str]:
    """What stands before the command. Without `--die-with-parent`: what a command leaves in the background continues, and is found and
    ended by the mark in its environment, like everything that tools start.
    """
    words = [program, "--unshare-all", *(["--share-net"] if view.network else []), "--cap-drop", "ALL"]
    words += ["--bind", str(view.tmp), "/tmp"]
    for path in view.readable:
        words += _shown(path)
    words += ["--proc", "/proc", "--dev", "/dev"]
    words += _writable(view)
    # What is written to a folder that is not there must fail, not be lost.
    return [*words, "--remount-ro", "/", "--chdir", str(view.folder), "--"]


def _shown(path: Path) -> list[str]:
    """On most systems /bin and /lib are links into /usr."""
    if path.is_symlink() and path.parent == Path("/"):
        return ["--symlink", os.readlink(path), str(path)]
    return ["--ro-bind", str(path), str(path)]


def _writable(view: View) -> list[str]:
    """Later words cover earlier ones: what lies in the hidden folder is put on top of the empty folder that stands for it."""
    outside = [path for path in view.writable if not is_beneath(path, view.hidden)]
    inside = [path for path in view.writable if is_beneath(path, view.hidden)]
    covers = any(is_beneath(view.hidden, shown) for shown in (*view.readable, *outside))
    return [
        *(word for path in outside for word in ("--bind", str(path), str(path))),
        *(("--tmpfs", str(view.hidden)) if covers else ()),
        *(word for path in inside for word in ("--bind", str(path), str(path))),
        *(("--remount-ro", str(view.hidden)) if covers else ()),
    ]
