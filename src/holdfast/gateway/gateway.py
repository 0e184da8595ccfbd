"""The gateway as the rest of Holdfast sees it: everything people can ask of it, and its life from start to stop."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Any

import msgspec
import structlog

from holdfast.core import keys, lifecycle, resume
from holdfast.core.busy import MAX_WAITING
from holdfast.core.errors import BadInput, Unavailable
from holdfast.core.events import Logged, QuestionAnswered, SessionChanged
from holdfast.core.lifecycle import GatewayState, Input
from holdfast.core.resets import Policy
from holdfast.core.sessions import Session
from holdfast.core.transcript import Transcript
from holdfast.gateway.acceptance import Acceptance, Said
from holdfast.gateway.delivery import Deliveries
from holdfast.gateway.feed import Feed
from holdfast.gateway.intake import Intake
from holdfast.gateway.lanes import Lanes
from holdfast.gateway.recovery import PAGE, Recovery, read_transcript
from holdfast.gateway.tasks import Tasks
from holdfast.ports import Accepted, Agent, Clock, Counts, Ids, Liveness, Moved, Platform, Stopped, Store, Tool

HOUSEKEEPING_S = 60.0
LET_GO_S = 5.0
INDEX_S = 0.5
INDEX_PAGE = 500
MAX_TEXT = 6 * 1024 * 1024
SAFE_AFTER = 3
SOUND_AFTER_S = 600.0

log = structlog.get_logger()


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    profile: str = "main"
    turn_idle_timeout_s: float = 1800.0
    drain_timeout_s: float = 0.0
    max_waiting: int = MAX_WAITING
    resumes_at_once: int = 10
    auto_resume: bool = True
    resume_window_s: float = resume.FRESH_FOR_S
    crash_policy: str = "resume"
    crash_window_s: float = 120.0
    resets: dict[str, Policy] = {}
    keep_streams_s: float = 7 * 24 * 3600.0


class Gateway:
    """Built whole from its ports. `start` begins with what the record says is unfinished; `stop` leaves everything on record."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        ids: Ids,
        liveness: Liveness,
        owner: int,
        agent: Agent,
        tools: dict[str, Tool],
        platforms: dict[str, Platform],
        encode: Callable[[Logged], bytes],
        settings: Settings | None = None,
        on_state: Callable[[GatewayState], None] = lambda state: None,
    ) -> None:
        self.settings = settings or Settings()
        self.store, self.agent, self.platforms = store, agent, platforms
        self._clock, self._ids, self._owner, self._liveness = clock, ids, owner, liveness
        self._on_state = on_state
        self.state = GatewayState.STARTING
        self.broken = asyncio.Event()
        self._tasks = Tasks()
        self.feed = Feed(store, encode)
        self._recovery = Recovery(
            store=store,
            clock=clock,
            owner=owner,
            platforms=platforms,
            fresh_for_s=self.settings.resume_window_s,
            automatic=self.settings.auto_resume,
        )
        self.lanes = Lanes(
            store=store,
            clock=clock,
            ids=ids,
            liveness=liveness,
            owner=owner,
            agent=agent,
            tools=tools,
            tasks=self._tasks,
            recovery=self._recovery,
            idle_timeout_s=self.settings.turn_idle_timeout_s,
            resumes_at_once=self.settings.resumes_at_once,
            on_recovered=lambda: self._leave_safe_mode("a session that had been pending completed a turn"),
        )
        self._acceptance = Acceptance(
            store=store,
            clock=clock,
            ids=ids,
            lanes=self.lanes,
            recovery=self._recovery,
            policies=self.settings.resets,
            max_waiting=self.settings.max_waiting,
        )
        self._intake = Intake(store=store, clock=clock, ids=ids, acceptance=self._acceptance)
        self._deliveries = Deliveries(store=store, clock=clock, platforms=platforms, tasks=self._tasks)

    # its life

    @property
    def safe_mode(self) -> bool:
        """Several starts in a row died: nothing is resumed by itself, messages are answered as always."""
        return self._recovery.safe_mode

    async def start(self) -> None:
        await self._look_back()
        self.lanes.open()
        for name, work in (
            ("journal", self.lanes.journal.run()),
            ("feed", self.feed.run()),
            ("sweep", self.lanes.sweep()),
            ("deliveries", self._deliveries.run()),
            ("search index", self._index()),
            ("housekeeping", self._keep_house()),
            ("soundness", self._prove_sound()),
            *((f"intake {name}", self._intake.follow(platform)) for name, platform in self.platforms.items()),
        ):
            self._tasks.spawn(self._vital(work), name=name)
        self._move(Input.READY)

    async def _look_back(self) -> None:
        """What earlier lives mean for this one: how they ended, and how many in a row ended badly."""
        now = self._clock.now()
        try:
            unclean = await self.store.record_start(self._owner, at=now)
            if unclean >= SAFE_AFTER:
                log.error("safe mode: nothing is resumed by itself", starts_that_died=unclean)
                self._recovery.safe_mode = True
                self.lanes.one_resume_at_a_time()
            if self.settings.crash_policy == "suspend" and not await self.store.last_end(apart_from=self._owner):
                suspended = await self.store.suspend_active(window_ms=int(self.settings.crash_window_s * 1000), at=now)
                log.warning("sessions suspended after a crash", count=suspended)
        except Unavailable as error:
            log.warning("earlier starts are not known", error=str(error))

    async def _prove_sound(self) -> None:
        await asyncio.sleep(SOUND_AFTER_S)
        while True:
            try:
                await self.store.record_sound(self._owner)
                break
            except Unavailable as error:
                await asyncio.sleep(error.retry_after_s)
        self._leave_safe_mode("ten healthy minutes")

    def resume_all(self) -> None:
        """An operator's word: safe mode ends, and what is still pending is decided again."""
        self._leave_safe_mode("an operator asked for it")

    def _leave_safe_mode(self, because: str) -> None:
        if self._recovery.safe_mode:
            log.info("safe mode ends", because=because)
            self._recovery.safe_mode = False
            self._on_state(self.state)
            self._tasks.spawn(self._settle(), name="settle")

    async def _settle(self) -> None:
        while True:
            try:
                return await self.lanes.settle()
            except Unavailable as error:
                await asyncio.sleep(error.retry_after_s)

    async def _vital(self, work: Coroutine[Any, Any, None]) -> None:
        """Without any one of these a gateway only looks alive. Its process should end, and the next start goes on from the log."""
        try:
            await work
        except Exception:  # The boundary: reported by its task, acted upon by whoever watches `broken`.
            self.broken.set()
            raise

    async def stop(self, *, reason: str = "shutdown_timeout") -> None:
        """Drains, then cuts what still runs: marked first, interrupted after. What was accepted stays in the store."""
        self._move(Input.STOP)
        if self.state is GatewayState.DRAINING:
            self.lanes.close()
            self._move(Input.EMPTY if await self._drained() else Input.DEADLINE)
        await self.lanes.cut_all(reason)
        self._deliveries.close()
        await self._let_go()
        await self._record_end()
        async with AsyncExitStack() as closing:
            closing.callback(self._move, Input.CLOSED)
            closing.push_async_callback(self._tasks.aclose)
            closing.callback(self.feed.close)
            self.feed.end("shutdown")

    async def _record_end(self) -> None:
        if self.broken.is_set():
            return  # However orderly it is taken down, it did not end on purpose.
        try:
            await self.store.record_end(self._owner)
        except Unavailable as error:
            log.warning("the end of this life is not on record", error=str(error))

    async def _drained(self) -> bool:
        """Empty: no turn runs, and what is owed to chats was tried once (C2)."""
        if self.lanes.running and self.settings.drain_timeout_s <= 0:
            return False
        try:
            async with asyncio.timeout(self.settings.drain_timeout_s or 0.001):
                await self.lanes.idle()
            async with asyncio.timeout(LET_GO_S):
                await self._deliveries.tried()
        except (TimeoutError, Unavailable):
            return False
        return True

    async def _let_go(self) -> None:
        """Cut turns end their agents; a send that is under way gets a moment for its receipt, or nobody knows what became of it."""
        try:
            async with asyncio.timeout(LET_GO_S):
                await self.lanes.idle()
                await self._deliveries.tried()
        except TimeoutError:
            if self.lanes.running:
                log.error("turns did not let go in time", running=self.lanes.running)
            else:
                log.warning("a send had no answer in time")

    def _move(self, happened: Input) -> None:
        before, self.state = self.state, lifecycle.after(self.state, happened)
        if before is not self.state:
            log.info("gateway", state=self.state, before=before, because=happened)
            self._on_state(self.state)

    def hint(self) -> None:
        """Another process stored something."""
        self.feed.hint()
        self.lanes.hint()

    async def _index(self) -> None:
        while True:
            try:
                while await self.store.index_search(limit=INDEX_PAGE) == INDEX_PAGE:
                    pass
            except Unavailable as error:
                log.warning("search index is behind", error=str(error))
            await asyncio.sleep(INDEX_S)

    async def _keep_house(self) -> None:
        while True:
            now = self._clock.now()
            try:
                for session_id in await self.store.expire_questions(now=now):
                    self.lanes.look(session_id)
                await self.store.prune_streams(before=now - int(self.settings.keep_streams_s * 1000), at=now, limit=50)
                for owner in await self.store.owners():
                    if owner.id != self._owner and not self._liveness.alive(owner.name):
                        await self.store.forget_owner(owner.id)
            except Unavailable as error:
                log.warning("housekeeping failed", error=str(error))
            await asyncio.sleep(HOUSEKEEPING_S)

    # what people ask of it

    async def create_session(self, title: str | None = None) -> Session:
        session_id = self._ids.new("s")
        key = keys.page_key(self.settings.profile, session_id)
        return await self.store.create_session(
            session_id=session_id, session_key=str(key), log=self._ids.new("l"), at=self._clock.now(), title=title
        )

    async def change_session(self, session_id: str, change: SessionChanged) -> Session:
        return await self.store.change_session(session_id, change, at=self._clock.now())

    async def post(self, session_id: str, text: str, *, client_id: str | None, sender: str = "owner") -> Accepted:
        """On disk once this returns (P1)."""
        _check_text(text)
        session = await self.store.session(session_id)
        dedup_key = f"message|{session.session_key}|{client_id}" if client_id else None
        return await self._acceptance.take(session, Said(text=text, sender=sender, dedup_key=dedup_key))

    async def reset(self, session_id: str, *, by: str, client_id: str | None) -> Moved:
        """Begins a new conversation in place of this one, which is kept."""
        moved = await self.store.reset(
            session_id,
            fresh=self._acceptance.fresh(),
            by=by,
            dedup_key=f"reset|{session_id}|{client_id}" if client_id else None,
            at=self._clock.now(),
        )
        self.lanes.look(session_id)
        return moved

    async def resume_session(self, session_id: str, *, by: str, client_id: str | None) -> Moved:
        """Makes it its key's current one, lifts its suspension, continues its cut turn."""
        dedup_key = f"resume|{session_id}|{client_id}" if client_id else None
        session = await self.store.session(session_id)
        left = await self.store.current_session(session.session_key)
        moved = await self.store.resume_session(session_id, by=by, dedup_key=dedup_key, at=self._clock.now())
        self.lanes.look(session_id)
        if left is not None:
            self.lanes.look(left.session_id)
        return moved

    async def suspend(self, session_id: str) -> Session:
        """Its turn, if one runs, is cut and left; its next message starts a new session. `resume_session` takes it back."""
        session = await self.change_session(session_id, SessionChanged(suspended=True))
        self.lanes.look(session_id)
        return session

    async def stop_turn(self, session_id: str, *, by: str, client_id: str | None) -> Stopped:
        stopped = await self.store.request_stop(
            session_id, by=by, dedup_key=f"stop|{session_id}|{client_id}" if client_id else None, at=self._clock.now()
        )
        self.lanes.look(session_id)
        return stopped

    async def answer(self, question_id: str, text: str) -> str:
        _check_text(text)
        session_id = await self.store.answer(
            question_id,
            lambda question, call: QuestionAnswered(question_id=question, call_id=call, text=text),
            at=self._clock.now(),
        )
        self.lanes.look(session_id)
        return session_id

    async def view(self, session_id: str) -> tuple[Session, Transcript]:
        """The session and its conversation, as of one moment: the transcript's `seq` is the cursor to continue from."""
        session = await self.store.session(session_id)
        transcript = await read_transcript(self.store, session)
        if transcript.seq != session.seq:  # Something came in between: the flags become as new as the conversation, and it as they are.
            session = await self.store.session(session_id)
        while transcript.seq < session.seq:
            page = await self.store.events(session_id, after=transcript.seq, limit=PAGE)
            transcript.extend(item for item in page if item.seq <= session.seq)
            if not page:
                break
        return session, transcript

    async def counts(self) -> Counts:
        return await self.store.counts()


def _check_text(text: str) -> None:
    if not text.strip():
        raise BadInput("The text is empty. Write something.")
    if len(text.encode("utf-8", "surrogatepass")) > MAX_TEXT:
        raise BadInput(f"The text is longer than {MAX_TEXT // 1024 // 1024} MiB. Send it in parts.")
