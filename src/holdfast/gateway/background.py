"""Watches over background processes: records how they end and what they print that is watched for, ends those that are to be dead, and
removes what is left of those that ended long ago. Nothing of this is kept in memory: any process of a home can continue it.
"""

import asyncio

import msgspec
import structlog

from holdfast.core import processes
from holdfast.core.errors import Held, NotFound, Unavailable
from holdfast.core.events import ProcessEnded
from holdfast.core.plans.processes import moment
from holdfast.core.processes import TAIL_CHARS, Matches, Moment, Process
from holdfast.gateway.host import Host
from holdfast.gateway.lanes import Lanes
from holdfast.gateway.settings import Settings
from holdfast.gateway.tasks import heard
from holdfast.ports.keepers import End, Keepers, Look, Loss, kill_all
from holdfast.ports.processes import name_of, printed, read_on, recorded
from holdfast.ports.store import Store

# While some run, and while none does.
LOOK_S, IDLE_S = 0.25, 1.0
TIDY_S = 60.0
# So long after the record of its start a process may still be without a keeper.
STARTS_MS = 60_000
# One that is to be dead and still runs after this is killed again: the process that began to kill it has died.
DIES_S = 10.0
SCAN_BYTES, MOST_SCANNED = 64 * 1024, 1024 * 1024

log = structlog.get_logger()


class Printed(msgspec.Struct, frozen=True, kw_only=True):
    """Output from the byte `offset` up to `next`, of `size` bytes so far."""

    text: str
    offset: int
    next: int
    size: int


class Background:
    def __init__(self, *, store: Store, host: Host, keepers: Keepers, lanes: Lanes, settings: Settings) -> None:
        self._store, self._host, self._keepers, self._lanes = store, host, keepers, lanes
        self._clock, self._window_s, self._keep_s = host.clock, settings.resume_window_s, settings.keep_streams_s
        self._watches: dict[str, Matches] = {}
        self._doomed: dict[str, float] = {}
        self._hinted = asyncio.Event()

    def hint(self) -> None:
        self._hinted.set()

    async def run(self) -> None:
        tidied_at = None
        while True:
            self._hinted.clear()
            wait_s = IDLE_S
            try:
                if await self.look():
                    wait_s = LOOK_S
                if tidied_at is None or self._clock.monotonic() - tidied_at >= TIDY_S:
                    await self._tidy()
                    tidied_at = self._clock.monotonic()
            except Unavailable as error:
                log.warning("background processes cannot be looked after", error=str(error))
            await heard(self._hinted, wait_s)

    async def look(self) -> int:
        """At all that run; gives how many. One that cannot be looked at does not hold up the others."""
        running = await self._store.running_processes()
        known = {process.process_id for process in running}
        self._watches = {process_id: watch for process_id, watch in self._watches.items() if process_id in known}
        self._doomed = {process_id: since for process_id, since in self._doomed.items() if process_id in known}
        for process in running:
            try:
                await self._look_at(process)
            except Held:
                pass  # Its keeper has just been started.
            except NotFound:
                pass  # Its conversation was purged since.
            except Unavailable as error:
                log.warning("a background process cannot be looked after", process=process.process_id, error=str(error))
        return len(running)

    async def _look_at(self, process: Process) -> None:
        found = await self._keepers.look(name_of(process))
        if found.lost is Loss.NEVER_RAN and await self._is_starting(process):
            return
        end = found.end if found.lost is None else await self._keepers.give_up(name_of(process))
        if end is not None:
            await self._end(process, end)
        elif process.doomed:
            await self._kill_again(process)
        elif process.patterns:
            await self._watch(process, found)

    async def _is_starting(self, process: Process) -> bool:
        """Whether somebody who lives may just be starting it."""
        if not 0 <= self._clock.now() - process.started_at < STARTS_MS:
            return False
        return any(owner.id == process.owner and self._host.liveness.alive(owner.name) for owner in await self._store.owners())

    async def _kill_again(self, process: Process) -> None:
        since = self._doomed.setdefault(process.process_id, self._clock.monotonic())
        if self._clock.monotonic() - since >= DIES_S:
            log.warning("a background process that was killed still runs", process=process.process_id)
            await self._keepers.kill(name_of(process))

    # its end

    async def _end(self, process: Process, end: End) -> None:
        """What was asked to end and is not consumed, an operator has ended while no gateway was there to record it."""
        found = await self._keepers.look(name_of(process))
        matches, _ = await self._seen(process, found, over=True) if process.patterns else (Matches(), None)
        if matches.lines and not process.notify:
            await self._store.match_process(process.process_id, matches, at=self._clock.now())
            matches = Matches()
        ended = recorded(process, end)
        if end.asked and process.consumed is None:
            ended = ProcessEnded(process_id=process.process_id, ended_at=end.at, stopped=True)
        told = await self._store.end_process(
            ended, tail=await self._tail(process, found), matches=matches, window_s=self._window_s, at=self._clock.now()
        )
        named = {"process": process.process_id, "session": process.session_id, "turn": process.turn_id}
        log.info("background process ended", **named, how=processes.how_it_ended(process, ended), told=told.name.lower())
        self._lanes.look(process.session_id)

    async def _tail(self, process: Process, found: Look) -> str:
        """Without secrets, and from the beginning of a line on."""
        secrets, at = self._host.secrets, max(0, found.out - 4 * TAIL_CHARS)
        chunk = await printed(self._keepers, process, found, secrets, at=at, limit=4 * TAIL_CHARS, from_line=True)
        return secrets.text(chunk.data.decode("utf-8", "replace"))[-TAIL_CHARS:]

    async def kill(self, process_id: str, *, by: str) -> Process:
        """A person ends it, with everything it started. On record first: a death in between leaves a process that the next look at what is
        left kills. One that has ended stays as it is. Raises `NotFound`.
        """
        process = await self._store.process(process_id)
        if process.end is None:
            found, now = await self._keepers.look(name_of(process)), self._clock.now()
            if found.end is not None:
                await self._end(process, found.end)
            else:
                ended = ProcessEnded(process_id=process_id, ended_at=now, by=by)
                tail = await self._tail(process, found)
                await self._store.end_process(ended, tail=tail, matches=Matches(), window_s=self._window_s, at=now)
                log.info("background process ended by a person", process=process_id, session=process.session_id)
                self._lanes.look(process.session_id)
                await self._keepers.kill(name_of(process))
        return await self._store.process(process_id)

    async def stop_all(self) -> bool:
        """An operator stops Holdfast, and what runs in the background with it: on record first. Whether anybody is told."""
        running = [process for process in await self._store.running_processes() if not process.doomed]
        told = False
        for process in running:
            ended = ProcessEnded(process_id=process.process_id, ended_at=self._clock.now(), stopped=True)
            telling = await self._store.end_process(ended, tail="", matches=Matches(), window_s=self._window_s, at=ended.ended_at)
            told = told or telling is not processes.Telling.NOTHING
        await kill_all(self._keepers, [name_of(process) for process in running])
        return told

    # what it prints

    async def output(self, process: Process, *, offset: int | None, limit: int) -> Printed:
        """From a byte on, or the end of it, without secrets; whole lines where there are some."""
        found = await self._keepers.look(name_of(process))
        secrets, at = self._host.secrets, max(0, found.out - limit) if offset is None else offset
        chunk = await printed(self._keepers, process, found, secrets, at=at, limit=limit, from_line=offset is None, to_line=True)
        return Printed(text=secrets.text(chunk.data.decode("utf-8", "replace")), offset=chunk.offset, next=chunk.next, size=found.out)

    async def _watch(self, process: Process, found: Look) -> None:
        matches, here = await self._seen(process, found, over=False)
        self._watches[process.process_id], now = matches, self._clock.now()
        if here is not None and processes.recordable(process, matches, here=here, now=now):
            told = await self._store.match_process(process.process_id, matches, at=now)
            self._watches[process.process_id] = Matches(through=matches.through)
            if told:
                self._lanes.look(process.session_id)

    async def _seen(self, process: Process, found: Look, *, over: bool) -> tuple[Matches, Moment | None]:
        """Watched lines that are not on record yet, and how their session stands, if there are some. After a restart they are found again,
        unless their moment was over.
        """
        before = self._watches.get(process.process_id, Matches())
        if before.through <= process.scanned:  # On record, also if the task that wrote it was not told so.
            before = Matches(through=process.scanned)
        more = await self._scanned(process, found, after=before.through, over=over)
        if not before.lines and not more.lines:
            return more, None
        here = moment(await self._store.session(process.session_id))
        return processes.held(before, more, here=here), here

    async def _scanned(self, process: Process, found: Look, *, after: int, over: bool) -> Matches:
        """The watched lines from this byte on."""
        matches = Matches(through=after)
        secrets, until = self._host.secrets, found.out if over else min(found.out, after + MOST_SCANNED)
        while (at := matches.through) < until:
            chunk = await read_on(self._keepers, process, found, start=at, at=at, size=SCAN_BYTES)
            ends = over and chunk.next >= found.out
            piece = processes.scan(chunk.data, offset=chunk.offset, patterns=process.patterns, over=ends, secrets=secrets)
            if piece.through == chunk.offset and len(chunk.data) >= SCAN_BYTES:
                piece = processes.scan_part(chunk.data, offset=chunk.offset, patterns=process.patterns, secrets=secrets)
            if piece.through <= matches.through:
                break
            matches += piece
        return matches

    # what is left of it

    async def _tidy(self) -> None:
        """Kills what nobody has on record as running, and removes the files of processes that ended long ago."""
        names = await self._keepers.names()  # Before what is on record: a start is recorded first.
        running = {name_of(process) for process in await self._store.running_processes()}
        for name in names:
            if name in running:
                continue
            try:
                found = await self._keepers.look(name)
                if found.runs:
                    log.warning("a background process ran that should not", process=name.id)
                    await self._keepers.kill(name)
                elif found.end is not None and self._clock.now() - found.end.at > 1000 * self._keep_s:
                    await self._keepers.forget(name)
            except (Unavailable, OSError) as error:
                log.warning("a background process cannot be cleared away", process=name.id, error=str(error))
