"""What dead processes left in their spools: shipped before anything is decided about their turns, and looked for later where it could not
be read then.
"""

import asyncio
from typing import NamedTuple

import structlog

from holdfast.core import journals
from holdfast.core.errors import NotFound, Unavailable
from holdfast.core.journals import Fate, Found, Late, Limits, Sight, State
from holdfast.core.sessions import Session
from holdfast.core.spools import STRANGE, Contents, Gone, Unreadable, stream_id
from holdfast.gateway.host import Host
from holdfast.ports.journals import Journal
from holdfast.ports.spool import Hidden, Listing, Spool, SpoolFile
from holdfast.ports.store import Store

LOOK_S = 10.0
READER_WAITS_S = 2.0
MOST_LATE = 1000

log = structlog.get_logger()


class Brought(NamedTuple):
    """`new`: the log has grown, or may have, so that the session must be read again. `late`: the name of the journal, where some of it
    cannot be read.
    """

    new: bool = False
    late: str | None = None


class Figures(NamedTuple):
    """Of all spools of this home. `late`: how many journals are still looked for."""

    files: int = 0
    bytes: int = 0
    late: int = 0


class _Looked(NamedTuple):
    """When a journal was last looked for, and how it lay there."""

    at: int
    file: SpoolFile | None


class Shipping:
    def __init__(self, *, store: Store, spool: Spool, host: Host, limits: Limits, keep_s: float) -> None:
        self._store, self._spool, self._host, self._limits = store, spool, host, limits
        self._keep_ms = int(1000 * keep_s)
        self._late: dict[str, list[Late]] = {}  # By session.
        self._looked: dict[str, _Looked] = {}
        self._looking: set[str] = set()
        self._hidden: list[Hidden] = []

    # before a decision

    async def bring(self, session: Session) -> Brought:
        """Ships and seals what the dead holder of a turn had spooled. Must be called before anything is decided about the turn."""
        turn_id, epoch = session.turn_id or "", session.epoch
        listing = await self._found()
        brought = Brought(late=stream_id(turn_id, epoch) if await self._may_be_hidden(session, listing.hidden) else None)
        for file in listing.files:
            if (file.turn_id, file.epoch) == (turn_id, epoch) and self._may_ship(file):
                found = await self._bring(session, file)
                brought = Brought(brought.new or found.new, brought.late or found.late)
        return brought

    async def _found(self) -> Listing:
        listing = await self._spool.found()
        if listing.hidden != self._hidden:  # Said once, not with every look.
            self._hidden = listing.hidden
            for each in listing.hidden:
                log.error("spools cannot be looked for", owner=each.owner, error=each.why)
        return listing

    async def _may_be_hidden(self, session: Session, hidden: list[Hidden]) -> bool:
        """Whether a spool of its turn may lie where nobody can look now: only its own holder has written one."""
        if not hidden:
            return False
        names = {owner.id: owner.name for owner in await self._store.owners()}
        return journals.may_be_among([each.owner for each in hidden], names.get(session.owner or 0))

    def _may_ship(self, file: SpoolFile) -> bool:
        return file.owner == self._host.name or not self._host.liveness.alive(file.owner)

    async def _bring(self, session: Session, file: SpoolFile) -> Brought:
        try:
            contents = await self._read(file, session.session_id)
        except Gone:
            return Brought(new=True)  # Somebody else has shipped it in the meantime.
        except Unreadable as error:
            log.error("a journal is late", session=session.session_id, journal=file.name, error=str(error))
            return Brought(late=file.name)
        sight = journals.sight(contents, size=file.size, settled=True)
        shipped = await self._ship(file, contents, sight)
        if journals.fate(sight.found) is Fate.DONE:
            await self._spool.remove(file.owner, file.name)
            return Brought(new=shipped > 0)
        log.error("part of a journal is late", session=session.session_id, journal=file.name, damaged=contents.damaged)
        try:
            await self._spool.seal(file)
        except (Gone, Unreadable) as error:
            log.warning("a journal cannot be sealed", journal=file.name, error=str(error))
        return Brought(new=shipped > 0, late=file.name)

    async def _read(self, file: SpoolFile, session_id: str | None = None) -> Contents:
        """Raises `Gone`, and `Unreadable` also where it is a journal of another session."""
        contents = await self._spool.read(file)
        if session_id not in (None, contents.header.session_id):
            raise Unreadable(file.name, STRANGE)
        return contents

    async def _ship(self, file: SpoolFile, contents: Contents, sight: Sight) -> int:
        journal = Journal(contents.header.session_id, file.turn_id, file.epoch)
        shipped = await self._store.ship(journal, contents.events, sight, limits=self._limits, at=self._host.clock.now())
        if shipped.new:
            log.info("journal shipped", session=journal.session_id, journal=file.name, events=shipped.new, late=shipped.late)
        return shipped.new

    # what is late

    async def run(self) -> None:
        while True:
            try:
                await self.look_for_all()
            except Unavailable as error:
                log.warning("journals cannot be looked for yet", error=str(error))
            await asyncio.sleep(LOOK_S)

    async def look_for_all(self) -> None:
        """What dead processes left, whether or not a turn waits for it, and what is waited for, whether it is there or not."""
        files = {file.name: file for file in (await self._found()).files}
        await self._know()
        late = {each.stream_id: each for waiting in self._late.values() for each in waiting}
        for name in [*late, *(name for name in files if name not in late)]:
            await self._once(name, late.get(name), files.get(name))

    async def _know(self) -> None:
        self._late = {}
        for late in await self._store.late_journals(limit=MOST_LATE):
            self._late.setdefault(late.session_id, []).append(late)
        waiting = {late.stream_id for each in self._late.values() for late in each}
        self._looked = {name: looked for name, looked in self._looked.items() if name in waiting}

    async def look(self, session_id: str) -> None:
        """Somebody reads a session. A journal of it that is late is looked for once; others who read it meanwhile do not wait."""
        if session_id not in self._late or session_id in self._looking:
            return
        self._looking.add(session_id)
        try:
            async with asyncio.timeout(READER_WAITS_S):
                await self._look_for(session_id)
        except (Unavailable, TimeoutError) as error:
            log.warning("a journal cannot be looked for now", session=session_id, error=str(error))
        finally:
            self._looking.discard(session_id)

    async def _look_for(self, session_id: str) -> None:
        if not self._late[session_id]:  # It was just recorded, and is not read yet.
            await self._know()
        files = {file.name: file for file in (await self._found()).files}
        for late in self._late.get(session_id, ()):
            await self._once(late.stream_id, late, files.get(late.stream_id))
        await self._know()

    def late(self, session: Session, name: str | None) -> None:
        """A journal of this session could not be read."""
        if name is not None:
            self._late.setdefault(session.session_id, [])

    async def _once(self, name: str, late: Late | None, file: SpoolFile | None) -> None:
        if name in self._looking or (file is not None and self._host.liveness.alive(file.owner)):
            return  # A living process, this one too, ships its own.
        self._looking.add(name)
        try:
            await self._look(name, late, file)
        finally:
            self._looking.discard(name)

    async def _look(self, name: str, late: Late | None, file: SpoolFile | None) -> None:
        now, looked = self._host.clock.now(), self._looked.get(name)
        if late is not None:
            changed = looked is not None and looked.file != file
            if not changed and not journals.is_due(late, looked.at if looked else None, now, self._limits):
                return
            self._looked[name] = _Looked(now, file)
            if file is None or journals.gives_up(late, now, self._limits):
                await self._in_vain(late, Sight(found=Found.UNREADABLE, size=file.size if file else 0))
                return
        if file is not None:
            await self._look_into(late, file, now)

    async def _look_into(self, late: Late | None, file: SpoolFile, now: int) -> None:
        try:
            contents = await self._read(file, late.session_id if late else None)
        except Gone:
            return  # The next look finds in the store what has become of it.
        except Unreadable as error:
            log.warning("a journal cannot be read", journal=file.name, error=error.why)
            if late is not None:
                await self._in_vain(late, Sight(found=Found.UNREADABLE, size=file.size))
            elif await self._nobody_waits_for(file, now):
                await self._spool.remove(file.owner, file.name)
            return
        sight = journals.sight(contents, size=file.size, settled=journals.has_settled(changed_at=file.changed_at, now=now))
        refusal = None
        try:
            await self._ship(file, contents, sight)
        except NotFound as error:
            refusal = error
        fate = journals.fate(sight.found, refusal)
        unwanted = fate in (Fate.DAMAGED, Fate.FOREIGN) and late is None and await self._nobody_waits_for(file, now)
        if fate is Fate.DONE or unwanted:
            await self._spool.remove(file.owner, file.name)

    async def _nobody_waits_for(self, file: SpoolFile, now: int) -> bool:
        """What was given up, or belongs to nothing that is known here, is kept as long as pieces are."""
        known = await self._store.journal(file.turn_id, file.epoch)
        if known is not None:
            return known.state is not State.RECOVERING and now - known.changed_at >= self._keep_ms
        return now - file.changed_at >= self._keep_ms and await self._store.session_of_turn(file.turn_id) is None

    async def _in_vain(self, late: Late, sight: Sight) -> None:
        journal = Journal(late.session_id, late.turn_id, late.epoch)
        try:
            shipped = await self._store.ship(journal, (), sight, limits=self._limits, at=self._host.clock.now())
        except NotFound:
            return
        if shipped.state is State.NEUTRAL:
            log.warning("a journal was given up", session=late.session_id, journal=late.stream_id)

    # the folder as a whole

    async def figures(self) -> Figures:
        files = (await self._spool.found()).files
        return Figures(len(files), sum(file.size for file in files), sum(map(len, self._late.values())))

    async def forget_purged(self) -> None:
        """Of a session that is removed for good, no spool stays either, whether it can be read or not (A28)."""
        for file in (await self._spool.found()).files:
            if self._host.liveness.alive(file.owner):
                continue
            session_id = await self._session_of(file)
            if session_id is not None and await self._is_to_go(session_id):
                await self._spool.remove(file.owner, file.name)

    async def _session_of(self, file: SpoolFile) -> str | None:
        try:
            return (await self._spool.read(file)).header.session_id
        except Gone:
            return None
        except Unreadable:
            return await self._store.session_of_turn(file.turn_id)

    async def _is_to_go(self, session_id: str) -> bool:
        try:
            session = await self._store.session(session_id)
        except NotFound:
            return True
        return session.deleted and session.undo_until is not None and session.undo_until <= self._host.clock.now()
