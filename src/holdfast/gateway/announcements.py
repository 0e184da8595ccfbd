"""Tells people of stops and restarts, once each, over all the processes that take part. `core/restarts.py` decides whom and where."""

import asyncio
from collections.abc import Sequence

import structlog

from holdfast.core import keys, lifecycle, notices, restarts
from holdfast.core.errors import NotFound, NotNow, Unavailable
from holdfast.core.restarts import By, Chat, Notice, Request, Running, What
from holdfast.core.turns import TurnState
from holdfast.gateway.host import Host
from holdfast.gateway.people import People
from holdfast.gateway.runner import Runner
from holdfast.gateway.stage import Stage
from holdfast.gateway.teller import Teller
from holdfast.ports.process import Restarts
from holdfast.ports.store import Store

TELL_S = 2.0

log = structlog.get_logger()


class Announcements:
    def __init__(
        self,
        *,
        store: Store,
        host: Host,
        people: People,
        runner: Runner,
        stage: Stage,
        teller: Teller,
        restarts: Restarts | None,
        window_s: float,
    ) -> None:
        self._store, self._host, self._people, self._runner = store, host, people, runner
        self._stage, self._teller, self._restarts, self._window_s = stage, teller, restarts, window_s
        self._made: set[str] = set()  # Requests of this life.

    # a restart that is asked for

    def operates(self, session_key: str, sender: str) -> bool:
        """Whether this person may do there what concerns others, too."""
        return self._people.operates(session_key, sender)

    def refusal(self, session_key: str, sender: str) -> str | None:
        """Why this person cannot restart Holdfast from there, if so."""
        if not self.operates(session_key, sender):
            return notices.may_not_restart()
        if self._restarts is None:
            return notices.cannot_restart()
        if not lifecycle.restarts(self._stage.state):
            return str(NotNow("restart", self._stage.state))
        return None

    def reply(self, chat: Chat) -> str:
        cuts = self._restarts is not None and self._restarts.cuts
        return restarts.reply(What.RESTART if cuts else What.HAND_OVER, chat, self._running())

    def request(self, by: By, *, chat: Chat | None = None, id: str | None = None) -> Request:
        """On the note, so that the process that comes after a restart knows whom to tell."""
        made = restarts.request(id or self._host.ids.new("r"), by, chat=chat, homes=self._teller.homes)
        self._made.add(made.id)
        if self._restarts is not None:
            self._restarts.keep([*self._restarts.note(), made])
        return made

    def withdraw(self, *requests: Request) -> None:
        if self._restarts is not None and requests:
            gone = {one.id for one in requests}
            self._restarts.keep([one for one in self._restarts.note() if one.id not in gone])

    def begin(self, request: Request) -> None:
        if self._restarts is not None:
            self._restarts.begin(request)

    # before, after, or not at all

    async def before(self, what: What, by: By | None) -> bool:
        """On record when this returns, unless the store does not answer in time. True when somebody hears of it in a chat. `by` is who
        asked for a stop; who asked for a restart stands on the note.
        """
        noted = list(self._restarts.note()) if self._restarts is not None else []
        if what is What.RESTART:
            asked = noted
        else:
            asked = [restarts.request(self._host.ids.new("r"), by, homes=self._teller.homes)] if by is not None else []
        try:
            async with asyncio.timeout(TELL_S):
                await self._runner.begun()
                running = [*self._running(), *await self._running_elsewhere()]
                planned = restarts.before(what, asked, running, window_s=self._window_s)
                telling = [self._host.tasks.spawn(self._teller.try_to_tell(notice), name=f"notice {notice.id}") for notice in planned]
                if telling:
                    await asyncio.wait(telling)
                if what is What.RESTART:
                    self._note_who_heard([notice for notice, done in zip(planned, telling, strict=True) if done.result()])
                if what is What.STOP:
                    await self.stopped_instead()
        except (TimeoutError, Unavailable) as error:
            log.warning("not everybody could be told of the end", error=str(error) or "no answer in time")
            return True
        return any(not keys.parse(notice.session_key).on_page for notice in planned) or any(one.chat is not None for one in noted)

    def _note_who_heard(self, told: Sequence[Notice]) -> None:
        if self._restarts is not None:
            self._restarts.keep([restarts.heard(one, told) for one in self._restarts.note()])

    async def stopped_instead(self) -> None:
        """A restart that will not be: a note must not outlive a stop, or a container's start-up would take it for the wish to come back."""
        noted = list(self._restarts.note()) if self._restarts is not None else []
        for one in noted:
            if await self._on_record(one):
                await self.failed(one, notices.stopped_instead())
        self.withdraw(*noted)

    async def before_retiring_stops(self) -> None:
        """A process that only lets its turns end stops with the whole: its own chats hear the reason that their turns will show (C30)."""
        try:
            async with asyncio.timeout(TELL_S):
                await self._runner.begun()
                for notice in restarts.before(What.STOP, [], self._running(), window_s=self._window_s):
                    await self._teller.try_to_tell(notice)
        except TimeoutError:
            log.warning("not everybody could be told of the end", error="no answer in time")

    async def back(self) -> None:
        """A process serves: those who wait for a restart are told, and the note is done with. Killed in between, the next one
        continues, and tells nobody twice. What this process itself was asked for in its first moments is still to come.
        """
        noted = [one for one in self._restarts.note() if one.id not in self._made] if self._restarts is not None else []
        for notice in restarts.after([one for one in noted if await self._on_record(one)]):
            await self._teller.tell(notice)
        self.withdraw(*noted)

    async def failed(self, request: Request, why: str) -> None:
        for notice in restarts.failed(request, why):
            await self._teller.try_to_tell(notice)
        self.withdraw(request)

    # how

    def _running(self) -> list[Running]:
        return [
            Running(
                session_key=attempt.session.session_key,
                session_id=attempt.session.session_id,
                anchor=attempt.anchor,
                turn_id=attempt.turn_id,
                attempt=attempt.number,
            )
            for attempt in self._runner.attempts.values()
        ]

    async def _running_elsewhere(self) -> list[Running]:
        """Turns that retiring processes let come to their ends: they stop with the process that serves."""
        names = {owner.id: owner.name for owner in await self._store.owners() if owner.id != self._host.owner}
        found = []
        for session in await self._store.open_turns(apart_from=self._host.owner):
            name = names.get(session.owner or 0)
            if session.turn_state is TurnState.RUNNING and session.turn_id and name is not None and self._host.liveness.alive(name):
                transcript = await self._store.transcript(session, whole=False)
                found.append(
                    Running(
                        session_key=session.session_key,
                        session_id=session.session_id,
                        anchor=transcript.anchor,
                        turn_id=session.turn_id,
                        attempt=session.attempt,
                    )
                )
        return found

    async def _on_record(self, request: Request) -> bool:
        """The note is written before the command that asked is on record. One that is not there never asked, and its platform brings it
        again.
        """
        if request.chat is None:
            return True
        try:
            session = await self._store.session(request.chat.session_id)
            return any(message.id == request.id for message in (await self._store.transcript(session)).messages)
        except NotFound:
            return False
