"""What the page keeps and asks for beyond the conversations themselves: drafts, what was read, what a list shows, what was found."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from holdfast.core.events import Page
from holdfast.core.sessions import Session


class Glance(msgspec.Struct, frozen=True, kw_only=True):
    """What a list shows of a session besides its row. `excerpt`: the beginning of what was said last. `unread`: something was said to its
    user that nobody has seen. `needs`: the form of its oldest open question. `delivery`: `unknown` if it is not known whether a reply
    reached its chat, `dead` if the newest one was given up, by anybody but a person.
    """

    excerpt: str | None = None
    unread: bool = False
    needs: str | None = None
    delivery: str | None = None


NOTHING = Glance()


class Draft(msgspec.Struct, frozen=True):
    """What is typed and not sent. `rev` grows with every change."""

    text: str = ""
    rev: int = 0


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """A message with all the words of a query, or a title (`message_id` is None). `text` is all of it."""

    session: Session
    message_id: str | None
    at: int
    text: str


class Desk(Protocol):
    """Every method keeps to the contract of `ports.store`."""

    async def glances(self, session_ids: Sequence[str]) -> dict[str, Glance]:
        """Of those that exist. Costs a few index lookups each, however long they are."""

    async def draft(self, session_id: str) -> Draft:
        """Raises `NotFound`."""

    async def keep_draft(self, session_id: str, text: str, *, rev: int) -> Draft | None:
        """Replaces the draft if `rev` is still its number; None, and nothing changed, if somebody else was faster."""

    async def see(self, session_id: str, seq: int) -> None:
        """Everything up to this place was seen. An earlier place changes nothing."""

    async def found(self, query: str, *, sessions: int, each: int) -> list[Hit]:
        """Messages and titles with all the words, the last of which may still be growing: of at most `sessions` sessions, those with the
        newest finds first, and of each its newest `each`.
        """

    async def found_in(self, session_id: str, query: str, *, limit: int) -> list[Hit]:
        """The same of the messages of one session, each once. Raises `NotFound`, `Deleted`."""

    async def turn_records(self, session_id: str, turn_id: str, *, limit: int) -> Page:
        """The records of one turn, without its pieces, those of its stop, and what became of sending its messages to a chat. Raises
        `NotFound`.
        """
