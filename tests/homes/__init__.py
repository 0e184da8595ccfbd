"""Homes that version 0.1 left behind, as they lay on the disk: files, write-ahead log and all. `make.py` says how they were made.

With each home comes what version 0.1 itself would have shown of it (`Shown`), exported by its own code after its death and before any
other code had touched the home.
"""

import io
import lzma
import tarfile
from pathlib import Path
from typing import Any

import msgspec

HERE = Path(__file__).parent
NAMES = ("killed", "stopped")
CHATS = "chats"
EXPORTED = "exported.json"


class Shown(msgspec.Struct, frozen=True):
    """`names`: what the sessions are there for, and their ids. `views` and `events`: by name, as the API and the event stream gave them.
    `sent`: what a chat had got, as (delivery, session key, text, anchor).
    """

    names: dict[str, str]
    views: dict[str, dict[str, Any]]
    events: dict[str, list[dict[str, Any]]]
    sent: list[tuple[str, str, str, str | None]] = []


def unpack(name: str, folder: Path) -> Shown:
    """The home in a folder that need not exist yet, and what was to be seen of it."""
    packed = lzma.decompress((HERE / f"{name}.tar.xz").read_bytes())
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    exported = folder / EXPORTED
    shown = msgspec.json.decode(exported.read_bytes(), type=Shown)
    exported.unlink()
    return shown


def pack(name: str, files: dict[str, bytes]) -> int:
    """How many bytes it takes. The same files make the same archive."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path, content in sorted(files.items()):
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(content), 0o600
            archive.addfile(entry, io.BytesIO(content))
    compressed = lzma.compress(packed.getvalue(), preset=9 | lzma.PRESET_EXTREME)
    (HERE / f"{name}.tar.xz").write_bytes(compressed)
    return len(compressed)


# Since then: what a name became. A question is one of `questions`.
RENAMED = {"message_ids": "causes"}
GONE = frozenset({"question"})


def missing(old: Any, new: Any, place: str = "") -> list[str]:
    """Where something that version 0.1 showed is not shown any more, or otherwise. What was added counts for nothing."""
    match old, new:
        case dict(), dict():
            pairs = ((name, value, RENAMED.get(name, name)) for name, value in old.items() if name not in GONE)
            return [line for name, value, now in pairs for line in missing(value, new.get(now), f"{place}.{name}")]
        case list(), list() if len(old) == len(new):
            pairs_ = enumerate(zip(old, new, strict=True))
            return [line for number, (before, after) in pairs_ for line in missing(before, after, f"{place}[{number}]")]
        case _:
            return [] if old == new else [f"{place}: {old!r} became {new!r}"]
