"""Runs the attempts of this process, and knows which ones run: one at a time per session."""

import asyncio
from collections.abc import Callable

import structlog

from holdfast.core.errors import Unavailable
from holdfast.core.lifecycle import Work
from holdfast.core.plans.start import StartedTurn
from holdfast.core.sessions import Session
from holdfast.core.transcript import Transcript
from holdfast.core.turns import Outcome
from holdfast.gateway.admission import Admission, Admissions
from holdfast.gateway.attempts import Attempt, Means
from holdfast.gateway.journal import Journal
from holdfast.gateway.news import Halt, Newsroom
from holdfast.gateway.recollections import Recollections
from holdfast.gateway.safe_mode import SafeMode
from holdfast.gateway.stage import Stage
from holdfast.gateway.turn_log import TurnLog
from holdfast.ports.store import Store

log = structlog.get_logger()


class Runner:
    """`attempts`: by session, what runs here. `starting`: sessions with a turn that may be on record and is no attempt here yet."""

    def __init__(
        self,
        *,
        store: Store,
        means: Means,
        journal: Journal,
        newsroom: Newsroom,
        admissions: Admissions,
        stage: Stage,
        safe_mode: SafeMode,
        recollections: Recollections,
    ) -> None:
        self._store, self._means, self._journal, self._newsroom = store, means, journal, newsroom
        self._admissions, self._stage, self._safe_mode = admissions, stage, safe_mode
        self._recollections = recollections
        self._tasks = means.host.tasks
        self.attempts: dict[str, Attempt] = {}
        self.starting: set[str] = set()
        self._changed = asyncio.Event()

    async def run(self, started: StartedTurn, admission: Admission, *, resumed: str | None = None) -> None:
        """One attempt, to its end. `resumed`: why its turn was interrupted, if this continues it."""
        session_id = started.lease.session_id
        news = self._newsroom.follow(session_id, started.turn_id)  # Before its session is read: what comes from now on is heard.
        try:
            session, transcript = await self._read(session_id)
            news.tell(session)
            news.questions.recall(transcript, read_to=session.seq)
            written = TurnLog(
                self._journal,
                started,
                news,
                step=_next_step(transcript),
                said=_said(transcript),
                begun=transcript.begun,
                unread_results=transcript.turns[-1].unread_results,
            )
            attempt = Attempt(session=session, transcript=transcript, written=written, news=news, means=self._means, resumed=resumed)
            try:
                await self._run(attempt, started, admission)
            finally:
                written.leave()
        finally:
            self._newsroom.leave(session_id)
        if attempt.outcome is not Outcome.COMPLETED:
            return
        self._recollections.keep(session, transcript)  # Its agent has returned: nobody reads it any more.
        if session.resume_pending and await self._completed(session_id):
            self._safe_mode.leave("a session that had been pending completed a turn")

    async def _run(self, attempt: Attempt, started: StartedTurn, admission: Admission) -> None:
        session_id = started.lease.session_id
        self.attempts[session_id] = attempt
        self.starting.discard(session_id)
        self._changed.set()
        keeping = None
        if admission.trial is not None or admission.resume is not None:
            keeping = self._tasks.spawn(self._admissions.keep(admission, attempt, started.lease), name=f"slot of {attempt.turn_id}")
        try:
            await attempt.run()
        finally:
            del self.attempts[session_id]
            if keeping is not None:
                keeping.cancel()
            self._changed.set()

    async def _completed(self, session_id: str) -> bool:
        """By the record: where a stop had been stored first, an answer that came too late ended as cancelled."""
        _, transcript = await self._read(session_id)
        return transcript.turns[-1].outcome is Outcome.COMPLETED

    async def _read(self, session_id: str) -> tuple[Session, Transcript]:
        """What a turn that is already on record begins with. A store that fails to answer has not interrupted it."""
        while True:
            try:
                session = await self._store.session(session_id)
                return session, await self._recollections.read(session)
            except Unavailable as error:
                if self._stage.work is Work.NOTHING:
                    raise
                log.warning("turn waits for the store", session=session_id, error=str(error))
                await asyncio.sleep(error.retry_after_s)

    # all of them

    @property
    def running(self) -> int:
        return len(self.attempts)

    def changed(self) -> None:
        """Those who wait for the attempts of this process look again."""
        self._changed.set()

    async def interrupt_all(self, reason: str) -> None:
        """Every running turn is recorded as interrupted, then its agent is cancelled (C1)."""
        await self.begun()
        attempts = list(self.attempts.values())
        marks = [self._tasks.spawn(attempt.mark_interrupted(reason), name=f"mark {attempt.turn_id}") for attempt in attempts]
        if marks:
            await asyncio.wait(marks)
        for attempt in attempts:
            attempt.news.halt(Halt.GATEWAY, "gateway restarting" if reason == "restart_timeout" else "gateway shutting down")

    async def idle(self, on_change: Callable[[], None] = lambda: None) -> None:
        """Returns when no turn runs or is about to; `on_change` is called each time their number changed."""
        running = self.running
        while self.attempts or self.starting:
            if self.running != running:
                running = self.running
                on_change()
            self._changed.clear()
            await self._changed.wait()

    async def begun(self) -> None:
        """Returns when every turn that is on record as running here is an attempt."""
        await self.until(lambda: not self.starting)

    async def until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            self._changed.clear()
            await self._changed.wait()


def _next_step(transcript: Transcript) -> int:
    """The first step of the newest turn that is not on record. Steps count over attempts."""
    return 1 + max((step.number for step in transcript.steps if step.response is not None), default=-1)


def _said(transcript: Transcript) -> str:
    """The last text among its recorded steps."""
    texts = [step.response.text for step in transcript.steps if step.response is not None and step.response.text]
    return texts[-1] if texts else ""
