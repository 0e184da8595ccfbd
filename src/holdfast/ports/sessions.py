"""The sessions of a store: their rows, their flags, which one a key points at, and how one is deleted."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from holdfast.core.events import SessionChanged
from holdfast.core.plans.branch import Names, Origin
from holdfast.core.plans.delete import Deletion
from holdfast.core.plans.leave import Moved
from holdfast.core.sessions import Session


class SessionPage(msgspec.Struct, frozen=True):
    sessions: list[Session]
    next: str | None


class Sessions(Protocol):
    """Sessions and their keys. Every method keeps to the contract of `ports.store`."""

    async def create_session(
        self, *, session_id: str, session_key: str, log: str, at: int, title: str | None = None, folder: str | None = None
    ) -> Session:
        """A new session, made the current one of its key. `folder`: where its tools work, if not in their own."""

    async def session(self, session_id: str) -> Session:
        """The catalog's row, also of one that is deleted. Raises `NotFound`; `Deleted`, which is one, once its content is gone."""

    async def purged(self, session_ids: Sequence[str]) -> list[str]:
        """Those among them whose content is gone for good."""

    async def current_session(self, session_key: str) -> Session | None:
        """The session a key points at now."""

    async def named(self, prefix: str, *, limit: int) -> list[Session]:
        """The sessions whose id begins with these letters, newest first, archived ones too."""

    async def sessions(
        self, *, limit: int, before: str | None = None, query: str = "", archived: bool = False, state: str | None = None
    ) -> SessionPage:
        """Newest first. `before` is a `next` given earlier; one that does not parse raises `BadInput`. `state`: only those that are
        suspended, pending, running, waiting, pinned, or deleted and can be brought back; any other raises `BadInput`.
        """

    async def conversations(self, session_key: str, *, limit: int) -> list[tuple[int, Session]]:
        """The sessions of one key, newest first, each with the number it keeps: the first one of the key is 1."""

    async def change_session(self, session_id: str, change: SessionChanged, *, at: int) -> Session:
        """Title, pin, archive and flags, as a record. A resume mark sets its time and, where none is given, the reason
        `restart_timeout`; taking it back empties both. A session that becomes suspended refuses the messages that wait in it, and
        their senders are told once. Raises `NotFound`.
        """


class Marks(Protocol):
    """What is marked to be resumed, or suspended so that it is not. Every method keeps to the contract of `ports.store`."""

    async def mark_pending(self, session_key: str, *, reason: str = "restart_timeout", at: int) -> bool:
        """Marks the key's current session resume-pending. False, and nothing changed, for a key without one and for a suspended one."""

    async def clear_mark(self, session_id: str, *, turn_id: str | None, rule: str, at: int) -> bool:
        """Takes the mark of a session back by a rule's decision, if it still has no open turn, its newest turn is still that one, and
        nothing waits in it. False, and nothing changed, otherwise.
        """

    async def clear_pending(self, session_key: str, *, at: int) -> bool:
        """Takes the mark back. False, and nothing changed, where there is none."""

    async def suspend_active(self, *, window_ms: int, at: int) -> int:
        """Suspends every session that showed a sign of life within the window before the newest one of all, had something to do or said,
        and is not resume-pending; gives how many. For an operator who wants nothing resumed after a crash.
        """


class Conversations(Protocol):
    """What people do with a conversation as a whole. Every method keeps to the contract of `ports.store`."""

    async def reset(self, session_id: str, *, fresh: tuple[str, str], by: str, dedup_key: str | None, at: int) -> Moved:
        """Begins a new session of the same key. The turn that is open is stopped, what waits is refused and its senders are told once, all
        in one transaction. A session that was never used stays. The same key again gives the first answer. Raises `NotFound`.
        """

    async def branch_session(self, origin: Origin, names: Names, *, by: str, dedup_key: str | None, at: int) -> Session:
        """A new session, the current one of its own key, that begins with copies of these records, in one transaction. The same key again
        gives the first one. Raises `NotFound`, and `Deleted` if the other one is.
        """

    async def resume_session(self, session_id: str, *, by: str, dedup_key: str | None, at: int) -> Moved:
        """Makes it its key's current one, lifts its suspension, forgets its restarts and continues its interrupted turn. The one it takes
        the place of is left as by `reset`. Raises `NotFound`.
        """

    async def delete_session(self, session_id: str, *, by: str, until: int, at: int) -> Deletion:
        """Takes it out of every list, search and lane. Its open turn is stopped, what waits is refused and its senders are told once, what
        is owed is held back; its key has no current session, if this was it. One that is deleted stays as it is. Raises `NotFound`, and
        `Deleted` for one that is purged.
        """

    async def undelete_session(self, session_id: str, *, by: str, at: int) -> bool:
        """Brings it back, whole; what was stopped and refused stays so. False, and nothing changed, where it is not deleted. Raises
        `NotFound`, and `Deleted` for one that is purged.
        """
