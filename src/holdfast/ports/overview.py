"""What an operator asks of a store: what runs, who is waited for, what waits, and how the last hours went."""

from typing import Any, Protocol

import msgspec

from holdfast.core.sessions import Session


class Working(msgspec.Struct, frozen=True, kw_only=True):
    """An open turn that a process runs. `phase`: `tool` (with its `name`) or `model`, `since` a time. `signed_at`: its newest event."""

    session: Session
    phase: str
    name: str | None
    since: int
    signed_at: int
    started_at: int


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """An open question."""

    session: Session
    question_id: str
    form: str
    text: str
    asked_at: int
    expires_at: int


class Lane(msgspec.Struct, frozen=True, kw_only=True):
    """A session with messages that no turn has taken."""

    session: Session
    waiting: int
    oldest_at: int


class Life(msgspec.Struct, frozen=True, kw_only=True):
    """A process that served. `owner`: under which number it held leases. `ended`: on purpose. `handed_at`: when it gave way to the next
    one, if it did; `ended_at`: when it ended. Each None where that is not on record.
    """

    pid: int
    started_at: int
    ended: bool
    version: str | None = None
    handed_at: int | None = None
    ended_at: int | None = None
    owner: int = 0


class PastPause(msgspec.Struct, frozen=True, kw_only=True):
    """A pause of the home, from `since` until `ended_at`, at most until `until`. `ended_at` is None while it `holds`, and where an older
    program ended it and wrote down no time.
    """

    holder: str
    since: int
    until: int
    ended_at: int | None
    holds: bool


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """A decision about a turn, or its end. `fields`: what its record says."""

    at: int
    session_id: str
    turn_id: str | None
    attempt: int
    kind: str
    fields: dict[str, Any]


class Owed(msgspec.Struct, frozen=True, kw_only=True):
    """A message to a chat whose delivery is not over, or was given up. `part`: which piece of a reply that takes several."""

    delivery_id: str
    part: int = 0
    session: Session
    state: str
    tries: int
    retry_at: int
    error: str | None
    at: int


class Overview(Protocol):
    """Every method keeps to the contract of `ports.store`. `limit` bounds what is read."""

    async def working(self, *, limit: int) -> list[Working]: ...

    async def asks(self, *, limit: int) -> list[Ask]:
        """The oldest first."""

    async def waiting(self, *, limit: int) -> list[Lane]:
        """The oldest first."""

    async def owed(self, *, limit: int, given_up: bool = False, arrived: bool = False) -> list[Owed]:
        """The oldest first."""

    async def lives(self) -> list[Life]:
        """The newest last."""

    async def pauses(self, *, since: int, now: int) -> list[PastPause]:
        """The newest last; none that was over at `since`."""

    async def marks(self, *, since: int, limit: int) -> list[Mark]:
        """The newest first, at most `limit`, none before `since`. Turns that a session has copied from another one are not its own."""
