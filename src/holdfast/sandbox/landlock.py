"""The words for Landlock: a program of ours restricts itself for good, then becomes the command (`confine.py`)."""

import sys
from pathlib import Path

import msgspec

from holdfast.sandbox.view import View

# The rest stays closed: root could write to disks, and other programs share memory in /dev/shm.
DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts")


class Spec(msgspec.Struct, frozen=True, kw_only=True):
    """What `confine.py` is told."""

    readable: tuple[str, ...]
    writable: tuple[str, ...]
    devices: tuple[str, ...]
    network: bool


def arguments(view: View) -> list[str]:
    """What stands before the command."""
    spec = Spec(
        readable=(*map(str, view.readable), "/proc"),
        writable=tuple(map(str, view.writable)),
        devices=tuple(f"/dev/{name}" for name in DEVICES),
        network=view.network,
    )
    # Nothing of ours or of the site's packages is loaded: the standard library is enough, and the start stays short.
    return [sys.executable, "-I", "-S", str(Path(__file__).with_name("confine.py")), msgspec.json.encode(spec).decode()]
