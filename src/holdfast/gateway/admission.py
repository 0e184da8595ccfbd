"""What an attempt needs before it may begin, and until when it keeps it: a slot among the resumes (B13), a trial of its own (A25)."""

import asyncio
from types import TracebackType

import structlog

from holdfast.core import blame
from holdfast.core.errors import Unavailable
from holdfast.core.sessions import Lease, Session
from holdfast.gateway.attempts import Attempt
from holdfast.gateway.host import Host
from holdfast.gateway.recovery import Judged
from holdfast.gateway.slots import Rank, Slot, Slots
from holdfast.ports.turns import Turns

WAIT_NOTED_S = 30.0
KEPT_AFTER_SAFE_MODE_S = 600.0

log = structlog.get_logger()


class Admission:
    """Leaving gives back whatever is still held."""

    def __init__(self, *, trial: Slot | None, resume: Slot | None) -> None:
        self.trial, self.resume = trial, resume

    def __enter__(self) -> "Admission":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for slot in (self.resume, self.trial):
            if slot is not None:
                slot.give_back()


class Admissions:
    """For one process: it tries one suspect at a time, and resumes a few turns at a time. New turns of other sessions need nothing."""

    def __init__(self, *, store: Turns, host: Host, resumes_at_once: int) -> None:
        self._store, self._clock, self._tasks = store, host.clock, host.tasks
        self._resumes = Slots(resumes_at_once, host.tasks)
        self._trials = Slots(1, host.tasks)
        self._trials.close()  # Until it is known who the suspects are.
        self._trying = True
        self._after_safe_mode = False

    def one_at_a_time(self) -> None:
        """After several crashes: whichever session brings the process down, it takes no other one with it."""
        self._resumes.count, self._after_safe_mode = 1, True

    @property
    def queue(self) -> bool:
        """Whether interrupted work that is to continue now waits, perhaps for minutes, for that of another conversation."""
        return self._after_safe_mode and self._resumes.full

    def resume_after(self, seconds: float) -> None:
        self._resumes.close()
        asyncio.get_running_loop().call_later(seconds, self._resumes.open)

    def begin_trials(self) -> None:
        """Whatever was interrupted before this process has been looked into: the suspects are known, and the first in rank is tried."""
        self._trials.open()

    def end_trials(self) -> None:
        """This process has lived for long enough: the suspects that are left need no trial to begin."""
        self._trying = False

    async def take(self, session: Session, news: asyncio.Event, judged: Judged | None = None) -> Admission | None:
        """For the next attempt of a session; `judged` where that resumes an interrupted turn. None when there was news first: what was to
        begin may have been stopped.
        """
        trial = None
        if self._trying and blame.is_suspect(session.interrupted_restarts):
            trial = await self._wait_for_trial(session, news, judged)
            if trial is None:
                return None
        if judged is None:
            return Admission(trial=trial, resume=None)
        resume = None
        try:
            resume = await self._resumes.take(_rank(judged), news)
        finally:
            if resume is None and trial is not None:
                trial.give_back()
        return Admission(trial=trial, resume=resume) if resume is not None else None

    async def _wait_for_trial(self, session: Session, news: asyncio.Event, judged: Judged | None) -> Slot | None:
        noting = self._tasks.spawn(self._note_wait(judged), name=f"wait of {session.turn_id}") if judged is not None else None
        try:
            return await self._trials.take(blame.trial_rank(session.tried_at, session.attempt_at), news)
        finally:
            if noting is not None:
                noting.cancel()

    async def _note_wait(self, judged: Judged) -> None:
        """Waiting for a trial does not age a turn, in this process and the next (R6)."""
        if judged.signed_at is None or judged.session.turn_id is None:
            return
        aged_ms = self._clock.now() - judged.signed_at
        while True:
            await asyncio.sleep(WAIT_NOTED_S)
            try:
                await self._store.await_trial(
                    judged.session.session_id, turn_id=judged.session.turn_id, aged_ms=aged_ms, at=self._clock.now()
                )
            except Unavailable as error:
                log.warning("a wait for a trial is not on record", session=judged.session.session_id, error=str(error))

    async def keep(self, admission: Admission, attempt: Attempt, lease: Lease) -> None:
        """Gives back what an attempt under way no longer needs, as soon as that is so. What is left goes back with its end."""
        kept_s = 0.0
        if admission.trial is not None:
            kept_s = blame.trial_ms(attempt.session.lived_ms) / 1000
            await asyncio.sleep(kept_s)
            await self._pass(attempt, lease)
            admission.trial.give_back()
        elif not self._after_safe_mode:  # A turn that runs for hours must not keep others from being resumed (P8).
            await attempt.under_way.wait()
        if self._after_safe_mode and admission.resume is not None:
            await asyncio.sleep(KEPT_AFTER_SAFE_MODE_S - kept_s)
        if admission.resume is not None:
            admission.resume.give_back()

    async def _pass(self, attempt: Attempt, lease: Lease) -> None:
        while True:
            try:
                if await self._store.pass_trial(lease, turn_id=attempt.turn_id, at=self._clock.now()):
                    log.info("trial passed", session=attempt.session.session_id, turn=attempt.turn_id)
                return
            except Unavailable as error:
                await asyncio.sleep(error.retry_after_s)


def _rank(judged: Judged) -> Rank:
    """Whose user has written since comes first; then the oldest message (B13)."""
    return (0 if judged.session.queued else 1), judged.asked_at
