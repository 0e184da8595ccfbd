"""Has models give conversations their titles, after the first answer. Nobody asked for it, so it stands in nobody's way: it takes no place
of a turn, says nothing, and where it fails the conversation keeps its first words as its title.
"""

import asyncio

import structlog

from holdfast.core import titles, usage
from holdfast.core.errors import Deleted, HoldfastError, NotFound, Unavailable
from holdfast.core.events import TitleMade
from holdfast.core.lifecycle import Work
from holdfast.core.texts import storable
from holdfast.core.titles import Move, Subject, Titling
from holdfast.gateway.budget import Budget
from holdfast.gateway.host import Host
from holdfast.gateway.neighbours import Neighbours
from holdfast.gateway.safe_mode import SafeMode
from holdfast.gateway.stage import Stage
from holdfast.ports.agents import Response
from holdfast.ports.store import Store
from holdfast.ports.titles import Titler

LOOK_S, SOON_S = 2.0, 0.5
LOOKED_AT = 50
AT_ONCE = 2
LONGEST_S = 60.0

log = structlog.get_logger()


class Titles:
    """One task of the process that serves. What is due is on record, so that a process which dies leaves it to the next one."""

    def __init__(
        self, *, store: Store, host: Host, stage: Stage, safe_mode: SafeMode, neighbours: Neighbours, budget: Budget, titler: Titler
    ) -> None:
        self._store, self._host, self._stage, self._safe_mode = store, host, stage, safe_mode
        self._neighbours, self._budget, self._titler = neighbours, budget, titler
        self._busy: set[str] = set()

    async def run(self) -> None:
        while True:
            try:
                if self._may_begin:
                    await self._look()
            except Unavailable as error:
                log.warning("titles cannot be looked at", error=str(error))
            await asyncio.sleep(LOOK_S if self._may_begin else SOON_S)

    @property
    def _may_begin(self) -> bool:
        return self._stage.work is Work.ALL and not self._safe_mode.on

    async def _look(self) -> None:
        now = self._host.clock.now()
        for found in await self._store.open_titles(since=now - titles.FRESH_MS, limit=LOOKED_AT):
            if len(self._busy) >= AT_ONCE or not self._may_begin:
                break
            if found.session_id in self._busy:
                continue
            match titles.decide(found, now=now, lives=await self._lives(found)):
                case Move.ASK:
                    self._busy.add(found.session_id)
                    self._host.tasks.spawn(self._title(found), name=f"title {found.session_id}")
                case Move.GIVE_UP:
                    await self._keep(found.session_id, TitleMade(turn_id="", problem=titles.INTERRUPTED, tries=found.tries))

    async def _lives(self, found: Titling) -> bool:
        """Whether somebody waits for the model. What this process asked for and does not wait for is over."""
        return found.owner not in (None, self._host.owner) and await self._neighbours.lives(found.owner)

    async def _title(self, found: Titling) -> None:
        try:
            await self._ask(found)
        except (NotFound, Deleted):
            pass  # Nobody looks for it any more.
        except Unavailable as error:
            log.warning("a title waits for the store", session=found.session_id, error=str(error))
        finally:
            self._busy.discard(found.session_id)

    async def _ask(self, found: Titling) -> None:
        session = await self._store.session(found.session_id)
        transcript = await self._store.transcript(session)
        subject, now = titles.subject(transcript.messages), self._host.clock.now()
        day = usage.day(now, self._host.clock.offset_s(now))
        problem = await self._problem(found, subject, session.model, day)
        if problem is not None or subject is None:
            turn_id = subject.turn_id if subject is not None else ""
            await self._keep(found.session_id, TitleMade(turn_id=turn_id, problem=problem, tries=found.tries))
            return
        if not await self._store.ask_title(found, turn_id=subject.turn_id, owner=self._host.owner, at=now):
            return
        made = await self._made(subject, session.model, found.tries + 1, day)
        await self._keep(found.session_id, made)

    async def _problem(self, found: Titling, subject: Subject | None, chosen: str | None, day: str) -> str | None:
        """Why no model is asked, if none is."""
        if subject is None:
            return titles.NOTHING_SAID
        if self._titler.model(chosen) is None:
            return titles.NO_MODEL
        reached = await self._budget.reached(found.session_id, subject.turn_id, day=day, sender=subject.sender, calls=())
        return titles.LIMITED if reached is not None else None

    async def _made(self, subject: Subject, chosen: str | None, tries: int, day: str) -> TitleMade:
        try:
            async with asyncio.timeout(LONGEST_S):
                response = await self._titler.title(subject.words, chosen=chosen)
        except TimeoutError:
            return TitleMade(turn_id=subject.turn_id, problem=titles.TOO_SLOW, tries=tries)
        except HoldfastError as error:
            return TitleMade(turn_id=subject.turn_id, problem=str(error), tries=tries)
        return _outcome(response, subject, tries, day)

    async def _keep(self, session_id: str, made: TitleMade) -> None:
        """Until the store takes it: what was asked for is not asked for again."""
        while True:
            try:
                named = await self._store.keep_title(session_id, made, at=self._host.clock.now())
            except Unavailable as error:
                await asyncio.sleep(error.retry_after_s)
            else:
                log.info("title", session=session_id, turn=made.turn_id, model=made.model, named=named, problem=made.problem)
                return


def _outcome(response: Response, subject: Subject, tries: int, day: str) -> TitleMade:
    title = titles.cleaned(storable(response.text)) if response.finish != "filtered" else None
    return TitleMade(
        turn_id=subject.turn_id,
        title=title,
        problem=None if title is not None else titles.NO_WORDS,
        tries=tries,
        usage=response.usage,
        cost=response.cost,
        provider=response.provider,
        model=response.model,
        day=day,
        sender=subject.sender or None,
    )
