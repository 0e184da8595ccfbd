"""What a service is, on any service manager: one value from which every unit, plist and script is printed. Reads and writes nothing."""

import math
import os
import re
from collections.abc import Mapping, Sequence

import msgspec

from holdfast.core.errors import Refused

# A stop that takes longer ends itself and says what hung; its supervisor kills it this much later, so the two never disagree.
MARGIN_S = 15
# What a stop needs after the drain: agents end, replies are recorded, the store is closed.
CLOSING_S = 45
WATCHDOG_S = 60
# How long a start may take: upgrading a large database takes a while.
START_S = 90
# Between an exit and the next start. The gateway slows crash loops down itself; a supervisor never gives up.
PAUSE_S = 1

# Tells the process that a supervisor restarts it, if it cannot see that otherwise: for a restart it exits with 75.
SUPERVISOR = "HOLDFAST_SUPERVISOR"
STOP_TIMEOUT = "HOLDFAST_STOP_TIMEOUT_S"

FIT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")


class Service(msgspec.Struct, frozen=True, kw_only=True):
    """`user` is None where the user's own supervisor runs it. `folder` is where its tools work. A stop is over within `stop_timeout_s`."""

    name: str
    command: tuple[str, ...]
    home: str
    folder: str
    user: str | None
    stop_timeout_s: int
    watchdog_s: int
    environment: dict[str, str]

    @property
    def killed_after_s(self) -> int:
        return self.stop_timeout_s + MARGIN_S

    @property
    def variables(self) -> dict[str, str]:
        """What its process finds in its environment in addition to what every process finds there."""
        return {**self.environment, STOP_TIMEOUT: str(self.stop_timeout_s)}


class BadName(Refused):
    code = "bad_name"

    def __init__(self, name: str) -> None:
        super().__init__(f"{name!r} cannot name a service: use letters, digits, - and _, at most 63 of them.")


class Unprintable(Refused):
    code = "unprintable"

    def __init__(self, what: str, value: str) -> None:
        super().__init__(f"The {what} {value!r} contains a line break or another control character, which a service cannot have.")


def describe(
    *,
    name: str,
    python: str,
    home: str,
    folder: str,
    user: str | None,
    drain_timeout_s: float,
    environment: Mapping[str, str],
) -> Service:
    """The service of this version. Only the search path is taken along: without it tools are not found that the user's shell finds."""
    service = Service(
        name=checked(name),
        command=(python, "-P", "-m", "holdfast", "--home", home, "serve"),
        home=home,
        folder=folder,
        user=user,
        stop_timeout_s=math.ceil(drain_timeout_s) + CLOSING_S,
        watchdog_s=WATCHDOG_S,
        environment={"PATH": search_path(environment["PATH"])} if environment.get("PATH") else {},
    )
    for what, value in (("interpreter", python), ("home folder", home), ("folder", folder), *service.environment.items()):
        if any(character < " " or character == "\x7f" for character in value):
            raise Unprintable(what, value)
    return service


def checked(name: str) -> str:
    """A name becomes a part of a path: one that would lead elsewhere is refused."""
    if not FIT_NAME.fullmatch(name):
        raise BadName(name)
    return name


def search_path(path: str) -> str:
    """Each absolute folder once: a relative one would mean another place in a service."""
    return os.pathsep.join(dict.fromkeys(part for part in path.split(os.pathsep) if os.path.isabs(part)))


def left_behind(environment: Mapping[str, str], known: Sequence[str]) -> list[str]:
    """Our variables that are set here and do not reach the service, to explain why its settings differ."""
    return sorted(name for name in known if environment.get(name))
