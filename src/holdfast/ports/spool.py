"""The spool: where a process keeps what its turns record while the store cannot be written, until it can."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from holdfast.core.spools import Contents, Header, Spooled


class Group(NamedTuple):
    """What one turn adds at once. `size`: how long its spool is so far; 0 begins it."""

    header: Header
    size: int
    events: Sequence[Spooled]


class SpoolFile(NamedTuple):
    """A spool that is there, whether it can be read or not."""

    owner: str
    name: str
    turn_id: str
    epoch: int
    size: int
    changed_at: int


class Hidden(NamedTuple):
    """A folder of spools that nobody can look into: that of an owner, or (`owner` is None) of all of them."""

    owner: str | None
    why: str


class Listing(NamedTuple):
    """`files`: every spool that can be seen, the oldest first. `hidden`: where there may be more."""

    files: list[SpoolFile]
    hidden: list[Hidden]


class Spool(Protocol):
    """One file for each lease of a turn, `<owner>/<turn>.<epoch>`, written by its owner alone. What is in it has no sequence and is on no
    stream before it is shipped.
    """

    async def append(self, groups: Sequence[Group]) -> list[int | Exception]:
        """Adds to each spool what its group says; for each its new size once all of it is durable, or why it is not, and then nothing of
        the group counts. One failure does not touch the rest.
        """

    async def found(self) -> Listing:
        """The spools of every owner. Raises nothing: one folder that cannot be listed hides its own spools and no others."""

    async def read(self, file: SpoolFile) -> Contents:
        """Raises `Gone` if it is not there any more, and `Unreadable` for every other reason, also where it holds something else than its
        place says.
        """

    async def seal(self, file: SpoolFile) -> None:
        """Says in it that nothing more will come: its owner is gone, or about to go. Raises `Gone`, `Unreadable`."""

    async def remove(self, owner: str, stream_id: str) -> None:
        """All of it is in the store, or nobody may ever read it again. Does nothing if it is not there. Raises nothing: what cannot be
        removed is found again, and shipping it again changes nothing.
        """
