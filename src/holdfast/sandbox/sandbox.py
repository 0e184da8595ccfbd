"""A sandbox as tools and people know it: the words that start a command in it, and what it keeps and does not keep."""

import enum
from pathlib import Path

import msgspec

from holdfast.sandbox import bubblewrap, landlock
from holdfast.sandbox.view import View

SHELL = "/bin/sh"
# In the home folder: what commands have there in a sandbox, and trials.
FOLDER = "sandboxes"


class Mode(enum.StrEnum):
    BUBBLEWRAP = "bubblewrap"
    LANDLOCK = "landlock"
    NONE = "none"


class Place(msgspec.Struct, frozen=True):
    """Where the commands of one session work: its folder, and a home folder and a folder for temporary files of its own. `others`: what
    they may change besides.
    """

    folder: Path
    home: Path
    tmp: Path
    others: tuple[Path, ...] = ()


class Sandbox(msgspec.Struct, frozen=True, kw_only=True):
    """`hidden` is the home folder of Holdfast, `readable` what commands see of the rest, `program` the path of bubblewrap. `missing` says
    why there is nothing better.
    """

    mode: Mode
    network: bool
    hidden: Path
    readable: tuple[Path, ...] = ()
    program: str = bubblewrap.PROGRAM
    missing: tuple[str, ...] = ()

    @property
    def confines(self) -> bool:
        return self.mode is not Mode.NONE

    def without(self) -> "Sandbox":
        """No sandbox, for what is to run without one."""
        return msgspec.structs.replace(self, mode=Mode.NONE)

    @property
    def hides_processes(self) -> bool:
        return self.mode is Mode.BUBBLEWRAP

    def runs_as(self, name: str) -> bool:
        """Whether a program of this name is the sandbox itself and not a command."""
        return self.mode is Mode.BUBBLEWRAP and name == bubblewrap.PROGRAM

    def command(self, line: str, place: Place) -> list[str]:
        """The words that run a line of shell in it."""
        shell = [SHELL, "-c", line]
        if self.mode is Mode.BUBBLEWRAP:
            return [*bubblewrap.arguments(self.program, self._view(place)), *shell]
        if self.mode is Mode.LANDLOCK:
            return [*landlock.arguments(self._view(place)), *shell]
        return shell

    def environment(self, place: Place) -> dict[str, str]:
        """What is different for commands inside."""
        if self.mode is Mode.NONE:
            return {}
        tmp = "/tmp" if self.mode is Mode.BUBBLEWRAP else str(place.tmp)
        return {"HOME": str(place.home), "TMPDIR": tmp, "SHELL": SHELL}

    def _view(self, place: Place) -> View:
        return View(
            readable=self.readable,
            writable=(place.folder, place.home, place.tmp, *place.others),
            hidden=self.hidden,
            folder=place.folder,
            tmp=place.tmp,
            network=self.network,
        )

    @property
    def words(self) -> str:
        """One line: which it is."""
        if self.mode is Mode.NONE:
            return "no sandbox"
        return f"{'bubblewrap' if self.mode is Mode.BUBBLEWRAP else 'Landlock'} sandbox, network {'on' if self.network else 'off'}"

    @property
    def gaps(self) -> tuple[str, ...]:
        """What it does not keep, one sentence each."""
        return (*_GAPS[self.mode], *(_NETWORK[self.mode] if self.network else ()))


_GAPS: dict[Mode, tuple[str, ...]] = {
    Mode.BUBBLEWRAP: ("Commands can use all the memory, processor time and disk space that you can.",),
    Mode.LANDLOCK: (
        "Commands see which other programs run, and with which arguments.",
        "Commands can change the permissions and times of your files, though neither read nor write them.",
        "On kernels before 6.12 commands can send signals to your other programs.",
        "Commands cannot use /tmp or sockets of the file system; $TMPDIR is a folder of their own.",
        "Commands can use all the memory, processor time and disk space that you can.",
    ),
    Mode.NONE: ("Commands can do everything that you can, so those of a model ask first.",),
}
_NETWORK: dict[Mode, tuple[str, ...]] = {
    Mode.BUBBLEWRAP: ("Commands reach the network and what listens on this machine, except through sockets of the file system.",),
    Mode.LANDLOCK: ("Commands reach the network and what listens on this machine, except through sockets of the file system.",),
    Mode.NONE: (),
}
