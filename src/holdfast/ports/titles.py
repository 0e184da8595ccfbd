"""Titles that models give conversations: as the store keeps them, and the model that is asked."""

from typing import Protocol

from holdfast.core.events import TitleMade
from holdfast.core.titles import Titling
from holdfast.ports.agents import Response


class Titles(Protocol):
    """Every method keeps to the contract of `ports.store`. A session is due for a title with its first completed turn, unless somebody
    has named it by then.
    """

    async def open_titles(self, *, since: int, limit: int) -> list[Titling]:
        """Sessions that are due, and those for which a model was asked and nothing is on record since, of those first answered since this
        time; the oldest first, without deleted ones.
        """

    async def ask_title(self, expected: Titling, *, turn_id: str, owner: int, at: int) -> bool:
        """Records that a model is about to be asked. False, and nothing changed, if the session is no longer as expected: another process
        was faster, or somebody has named it. Raises `NotFound`, `Deleted`.
        """

    async def keep_title(self, session_id: str, made: TitleMade, *, at: int) -> bool:
        """Records what came of it and, in the same transaction, the new title. A session that somebody has named since keeps that name;
        then it returns False, and only what the request cost is on record. Raises `NotFound`.
        """


class Titler(Protocol):
    name: str

    def model(self, chosen: str | None) -> str | None:
        """Which model would be asked for a conversation that has chosen this model or agent; None if none can be."""

    async def title(self, words: str, *, chosen: str | None) -> Response:
        """One request, which is not repeated. Raises a `ModelError` or another `Refused`. Cancelling closes the connection."""

    async def aclose(self) -> None:
        """Closes what it holds open between requests. Called once, when none is running."""
