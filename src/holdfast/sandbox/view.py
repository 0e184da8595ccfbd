"""What a command in a sandbox may see and change. The same for every kind of sandbox."""

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

# The system's own programs and settings. `/lib*` is added as it is found.
SYSTEM = ("/usr", "/bin", "/sbin", "/etc", "/nix")
PROGRAMS = ("bin", "sbin", "shims")
# Right in the user's own folder, and with nothing but programs in it.
TOOLCHAINS = (".asdf", ".bun", ".deno", ".nodenv", ".pyenv", ".rbenv", ".volta")
RESOLVER = Path("/etc/resolv.conf")


class View(msgspec.Struct, frozen=True, kw_only=True):
    """`readable` and `writable` are folders or files by the names under which commands know them. `hidden` is the home folder of
    Holdfast: none of it may be read, except what lies in it and is writable.
    """

    readable: tuple[Path, ...]
    writable: tuple[Path, ...]
    hidden: Path
    folder: Path
    tmp: Path
    network: bool


def readable(path: str, *, user_home: Path, hidden: Path, network: bool) -> tuple[Path, ...]:
    """The system, and where the programs of `path` (a PATH) come from."""
    found = [Path(name) for name in SYSTEM if os.path.exists(name)] + sorted(Path("/").glob("lib*"))
    for entry in path.split(os.pathsep):
        if entry.startswith("/") and os.path.isdir(entry):
            found += [each for each in _origin(Path(entry), user_home, hidden) if not _covered(each, found)]
    if network and not _covered(target := Path(os.path.realpath(RESOLVER)), found) and target.exists():
        found.append(target)
    return tuple(found)


def _origin(entry: Path, user_home: Path, hidden: Path) -> Iterator[Path]:
    """A program in PREFIX/bin needs its PREFIX/lib and PREFIX/share. Folders right in the user's own (~/.local, ~/.cargo) also hold keys
    and passwords: of those only the programs and their libraries are shown.
    """
    prefix = entry.parent if entry.name in PROGRAMS else entry
    if any(is_beneath(private, entry) for private in (user_home, hidden)):
        return
    if any(is_beneath(private, prefix) for private in (user_home, hidden)) or prefix == Path("/"):
        yield entry
    elif prefix != entry and prefix.parent == user_home and prefix.name not in TOOLCHAINS:
        yield entry
        if (prefix / "lib").is_dir():
            yield prefix / "lib"
    else:
        yield prefix


def _covered(path: Path, shown: list[Path]) -> bool:
    return any(is_beneath(path, each) for each in shown)


def is_beneath(path: Path, folder: Path) -> bool:
    """Whether it is that folder or lies in it, whatever links lead there."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))
