"""Begins a conversation with what another one said up to a message: reads what is to be copied, and has it stored in one transaction."""

from holdfast.core import keys
from holdfast.core.events import Logged
from holdfast.core.plans import branch
from holdfast.core.plans.branch import Names, Origin, TooMuchToCopy
from holdfast.core.sessions import Session
from holdfast.core.transcript import Transcript
from holdfast.gateway.host import Host
from holdfast.ports.store import Store

PAGE = 500


class Branching:
    def __init__(self, *, store: Store, host: Host, profile: str) -> None:
        self._store, self._clock, self._ids, self._profile = store, host.clock, host.ids, profile

    async def branch(self, session: Session, transcript: Transcript, message_id: str, *, by: str, client_id: str | None) -> Session:
        """Raises `NotFound` without such a message, `NotOverYet` while its answer is being written, `TooMuchToCopy` where not even the
        newest turn can be copied.
        """
        turns = branch.turns_up_to(transcript, message_id)
        records = await self._records(session.session_id, turns)
        copied = branch.fitting(records, turns)
        if turns and not copied:
            raise TooMuchToCopy(message_id)
        session_id = self._ids.new("s")
        names = Names(
            session_id=session_id,
            session_key=str(keys.page_key(self._profile, session_id)),
            log=self._ids.new("l"),
            turns={turn: self._ids.new("t") for turn in copied},
        )
        origin = Origin(session=session, message_id=message_id, turns=copied, records=tuple(records), left_out=len(turns) - len(copied))
        dedup_key = f"branch|{session.session_id}|{client_id}" if client_id else None
        return await self._store.branch_session(origin, names, by=by, dedup_key=dedup_key, at=self._clock.now())

    async def _records(self, session_id: str, turns: tuple[str, ...]) -> list[Logged]:
        """Of the newest turns, as many as are copied: never more of a long conversation than that."""
        found, after = list[Logged](), 0
        while turns:
            page = await self._store.records(session_id, after=after, limit=PAGE)
            wanted = set(turns)
            found, turns = branch.trimmed([*found, *(item for item in page if branch.concerns(item, wanted))], turns)
            if not page or not page.more:
                break
            after = page[-1].seq
        return found
