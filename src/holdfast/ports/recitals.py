"""Messages that were sent with a recital: how they, and the conversations they belong to, are found again."""

from collections.abc import Sequence
from typing import Protocol

from holdfast.core.recitals import Recited


class Recitals(Protocol):
    """Every method keeps to the contract of `ports.store`."""

    async def recited(self, message_id: str) -> Recited | None:
        """The message of this id, also in a session that is deleted and not purged yet."""

    async def recited_under(self, dedup_key: str) -> Recited | None:
        """The message that was accepted under this key. Raises `Deleted` if its session is purged."""

    async def reciting(self, digests: Sequence[str], *, limit: int) -> list[Recited]:
        """Messages up to which one of these was recited, newest first: each the newest recital of a session that is not deleted."""

    async def last_recited(self, session_id: str) -> Recited | None:
        """The newest message of a session that was sent with a recital."""
