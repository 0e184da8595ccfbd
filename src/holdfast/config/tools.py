"""`[tools]`: where the commands of an agent work, what they may reach, and how long they may take."""

import ipaddress
from pathlib import Path

import msgspec

from holdfast.config.errors import BadConfig
from holdfast.core.addresses import Network

WORK = "work"


class Tools(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`docs/tools.md` says what each one does."""

    folder: str = ""
    shared: bool = False
    sandbox: str = "auto"
    network: bool = True
    timeout_s: float = 1800.0
    max_processes: int = 32
    process_output_mb: float = 64.0
    fetch_private: tuple[str, ...] = ()
    editor_files: bool = False


SANDBOXES = ("auto", "bubblewrap", "landlock", "none")


def folder(tools: Tools, home: Path) -> Path:
    """The folder of all sessions' folders, or the one they share."""
    return home / Path(tools.folder or WORK).expanduser()


def fetch_networks(tools: Tools) -> tuple[Network, ...]:
    """The private networks that `fetch_url` may fetch from. Raises `BadConfig`."""
    try:
        return tuple(ipaddress.ip_network(text, strict=False) for text in tools.fetch_private)
    except ValueError as error:
        raise BadConfig(f"Invalid tools.fetch_private: {error}. List addresses or networks, for example 192.168.1.0/24.") from None


def check(tools: Tools, home: Path) -> None:
    """Raises `BadConfig`."""
    fetch_networks(tools)
    if tools.shared and not tools.folder:
        raise BadConfig("[tools] has shared = true but no folder. Set folder to the one that all conversations should share.")
    if not tools.folder:
        return  # it is in the home folder, and what makes that one says what is wrong with it
    chosen, own = folder(tools, home).resolve(), home.resolve()
    in_the_way = next((place for place in (chosen, *chosen.parents) if place.exists()), chosen)
    if not in_the_way.is_dir() or in_the_way.is_relative_to("/proc"):
        raise BadConfig(f"Invalid tools.folder {tools.folder!r}: {in_the_way} is not a folder that commands can work in. Choose another.")
    if chosen.is_relative_to(own) and not chosen.is_relative_to(own / WORK):
        raise BadConfig(
            f"Invalid tools.folder {tools.folder!r}: commands would work among Holdfast's own files. Choose a folder outside of {home}, or"
            " leave it out."
        )
