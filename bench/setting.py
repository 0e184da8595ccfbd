"""Where a bench runs and how large: the working folder, full or quick sizes, and the repeats of the row under way."""

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from bench import prepared
from bench.floor import Steady
from bench.profiling import Profiles

T = TypeVar("T")
PAGE = 4096


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that `--quick` makes smaller. Figures taken with small sizes are not to be compared with the goals."""

    repeats: int = 3
    floor_samples: int = 1000
    samples: int = 2000
    seconds: float = 3.0
    producers: int = 100
    sessions: int = 10_000
    messages: int = 100_000
    conversation: int = 10_000
    interrupted: int = 1000
    stream: int = 10_000
    tail_samples: int = 300
    searches: int = 100
    tail_floor_samples: int = 5000
    turns: int = 20
    tokens_s: float = 10.0
    unpaced: int = 5000
    first_texts: int = 200
    history: int = 5000
    many: int = 1000
    many_pieces: int = 150
    readers: int = 200
    thoughts: int = 10_000
    stopping: int = 100
    hand_overs: int = 8
    starts: int = 5
    chats: int = 1000
    chat_messages: int = 1200


QUICK = Sizes(
    repeats=1,
    floor_samples=100,
    samples=300,
    seconds=0.5,
    sessions=300,
    messages=3000,
    conversation=600,
    interrupted=50,
    stream=2000,
    tail_samples=50,
    searches=20,
    tail_floor_samples=300,
    tokens_s=2.0,
    unpaced=1000,
    first_texts=30,
    history=300,
    many=100,
    many_pieces=15,
    readers=50,
    thoughts=2000,
    stopping=20,
    hand_overs=3,
    starts=2,
    chats=100,
    chat_messages=60,
)


class Setting:
    """One run of the bench. Each row gets new folders from it; what several rows need prepared is made once."""

    def __init__(self, folder: Path, *, quick: bool, profiles: Profiles) -> None:
        self.folder, self.profiles = folder, profiles
        self.sizes = QUICK if quick else Sizes()
        if profiles.wanted:
            self.sizes = msgspec.structs.replace(self.sizes, repeats=1)
        self.steady = self.new_steady()
        self.notes: list[str] = []
        self._made: dict[str, Path] = {}

    def new_steady(self) -> Steady:
        return Steady(self.folder, repeats=self.sizes.repeats, samples=self.sizes.floor_samples)

    def begin_row(self) -> None:
        self.steady, self.notes = self.new_steady(), []

    def measure(self, once: Callable[[], T], *, floor_samples: int | None = None) -> list[T]:
        """The repeats of a row: what `once` gives, as often as the floor held still and the sizes say."""
        self.steady.samples = floor_samples or self.sizes.floor_samples
        return self.steady.measure(once)

    @property
    def floor_p50(self) -> float:
        return sorted(each.p50 for each in self.steady.floors)[len(self.steady.floors) // 2]

    def home(self, name: str = "home") -> Path:
        """A new, empty folder."""
        return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self.folder))

    def big_home(self, name: str = "home") -> Path:
        """A home of its own with the many sessions and messages of the sizes in it."""
        if "big" not in self._made:
            made = self.home("big")
            prepared.make_big(made, sessions=self.sizes.sessions, messages=self.sizes.messages)
            self._made["big"] = made
        return self.copy(self._made["big"], name)

    def copy(self, made: Path, name: str = "home") -> Path:
        home = self.home(name)
        shutil.copytree(made, home, dirs_exist_ok=True, copy_function=_copy_in_pages)
        return home

    def drop(self, home: Path) -> None:
        shutil.rmtree(home, ignore_errors=True)


def _copy_in_pages(source: str, target: str) -> str:
    """One page per write: a file written in large pieces lies in the kernel's cache in large pieces too, and a change of one page of it
    would count as many bytes written. On disk when it returns, so that nothing of it is written during a measurement.
    """
    with open(source, "rb") as old, open(target, "wb", buffering=0) as new:
        while page := old.read(PAGE):
            new.write(page)
        os.fsync(new.fileno())
    return target
