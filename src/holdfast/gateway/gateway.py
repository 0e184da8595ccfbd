"""The gateway as the rest of Holdfast sees it: everything people can ask of it, and its life from start to stop."""

import asyncio
from collections.abc import Callable

import msgspec

from holdfast.core import blame, keys, resume
from holdfast.core.busy import MAX_WAITING
from holdfast.core.errors import BadInput, Deleted, NothingToStop
from holdfast.core.events import Logged, QuestionAnswered, SessionChanged
from holdfast.core.lifecycle import GatewayState
from holdfast.core.resets import Policy
from holdfast.core.restarts import By
from holdfast.core.retention import Limits
from holdfast.core.sessions import Session
from holdfast.core.transcript import Transcript
from holdfast.gateway.acceptance import Acceptance, Said
from holdfast.gateway.announcements import Announcements
from holdfast.gateway.delivery import Deliveries
from holdfast.gateway.feed import Feed
from holdfast.gateway.housekeeping import Housekeeping
from holdfast.gateway.intake import Intake
from holdfast.gateway.lanes import Lanes
from holdfast.gateway.life import Life
from holdfast.gateway.recovery import Recovery
from holdfast.gateway.tasks import Tasks
from holdfast.ports.agents import Agent
from holdfast.ports.inbox import Accepted, Stopped
from holdfast.ports.platforms import Platform
from holdfast.ports.process import Clock, Ids, Liveness, Restarts
from holdfast.ports.sessions import Deletion, Moved
from holdfast.ports.store import Store
from holdfast.ports.tools import Tool
from holdfast.ports.upkeep import Counts

MAX_TEXT = 6 * 1024 * 1024
PAGE = 200


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    profile: str = "main"
    turn_idle_timeout_s: float = 1800.0
    drain_timeout_s: float = 0.0
    max_waiting: int = MAX_WAITING
    resumes_at_once: int = 10
    auto_resume: bool = True
    resume_window_s: float = resume.FRESH_FOR_S
    stuck_after: int = blame.STUCK_AFTER
    crash_policy: str = "resume"
    crash_window_s: float = 120.0
    resets: dict[str, Policy] = {}
    keep_streams_s: float = 7 * 24 * 3600.0
    undo_delete_s: float = 600.0
    retention: Limits = Limits()
    home_channels: tuple[str, ...] = ()


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
        owner_name: str,
        agent: Agent,
        tools: dict[str, Tool],
        platforms: dict[str, Platform],
        encode: Callable[[Logged], bytes],
        settings: Settings | None = None,
        restarts: Restarts | None = None,
        on_state: Callable[[GatewayState], None] = lambda state: None,
    ) -> None:
        self.settings = settings or Settings()
        self.store, self.agent, self.platforms, self._tools = store, agent, platforms, tools
        self._clock, self._ids = clock, ids
        tasks = Tasks()
        self.feed = Feed(store, encode)
        self._recovery = Recovery(
            store=store,
            clock=clock,
            owner=owner,
            platforms=platforms,
            fresh_for_s=self.settings.resume_window_s,
            automatic=self.settings.auto_resume,
            stuck_after=self.settings.stuck_after,
            on_suspended=lambda session: self.announcements.suspended(session),
        )
        self.lanes = Lanes(
            store=store,
            clock=clock,
            ids=ids,
            liveness=liveness,
            owner=owner,
            agent=agent,
            tools=tools,
            tasks=tasks,
            recovery=self._recovery,
            idle_timeout_s=self.settings.turn_idle_timeout_s,
            resumes_at_once=self.settings.resumes_at_once,
            on_recovered=lambda: self.life.leave_safe_mode("a session that had been pending completed a turn"),
        )
        self.announcements = Announcements(
            store=store,
            clock=clock,
            ids=ids,
            liveness=liveness,
            owner=owner,
            platforms=platforms,
            lanes=self.lanes,
            tasks=tasks,
            restarts=restarts,
            homes=self.settings.home_channels,
            window_s=self.settings.drain_timeout_s,
            state=lambda: self.life.state,
        )
        self._acceptance = Acceptance(
            store=store,
            clock=clock,
            ids=ids,
            lanes=self.lanes,
            recovery=self._recovery,
            announcements=self.announcements,
            policies=self.settings.resets,
            max_waiting=self.settings.max_waiting,
            held_since=lambda: self.life.held_since,
        )
        intake = Intake(store=store, clock=clock, ids=ids, acceptance=self._acceptance)
        self.life = Life(
            store=store,
            clock=clock,
            owner=owner,
            owner_name=owner_name,
            liveness=liveness,
            agent=agent,
            tools=tools,
            platforms=platforms,
            tasks=tasks,
            feed=self.feed,
            lanes=self.lanes,
            recovery=self._recovery,
            intake=intake,
            deliveries=Deliveries(store=store, clock=clock, platforms=platforms, tasks=tasks),
            housekeeping=Housekeeping(
                store=store,
                clock=clock,
                liveness=liveness,
                owner=owner,
                lanes=self.lanes,
                keep_streams_s=self.settings.keep_streams_s,
                retention=self.settings.retention,
                undo_delete_s=self.settings.undo_delete_s,
                on_removed=self._end_processes,
            ),
            announcements=self.announcements,
            crash_policy=self.settings.crash_policy,
            crash_window_s=self.settings.crash_window_s,
            drain_timeout_s=self.settings.drain_timeout_s,
            on_state=on_state,
        )

    # its life, as `life.Life` leads it

    @property
    def state(self) -> GatewayState:
        return self.life.state

    @property
    def broken(self) -> asyncio.Event:
        return self.life.broken

    @property
    def safe_mode(self) -> bool:
        """Several starts in a row died: nothing is resumed by itself, messages are answered as always."""
        return self._recovery.safe_mode

    async def start(self) -> None:
        """Begins with what the record says is unfinished."""
        await self.life.start()

    async def stop(self, *, reason: str = "shutdown_timeout", by: By | None = None) -> None:
        """Leaves everything on record."""
        await self.life.stop(reason=reason, by=by)

    def resume_all(self) -> None:
        """An operator's word: safe mode ends, and what is still pending is decided again."""
        self.life.leave_safe_mode("an operator asked for it")

    def hint(self) -> None:
        """Another process stored something."""
        self.feed.hint()
        self.lanes.hint()

    # what people ask of it

    async def create_session(self, title: str | None = None) -> Session:
        session_id = self._ids.new("s")
        key = keys.page_key(self.settings.profile, session_id)
        return await self.store.create_session(
            session_id=session_id, session_key=str(key), log=self._ids.new("l"), at=self._clock.now(), title=title
        )

    async def session(self, session_id: str) -> Session:
        """One that is not deleted."""
        session = await self.store.session(session_id)
        if session.deleted:
            raise Deleted(session_id, undoable=True)
        return session

    async def delete_session(self, session_id: str, *, by: str) -> Deletion:
        """Out of sight at once; its content is removed when the time for an undo is over (A28)."""
        now = self._clock.now()
        deletion = await self.store.delete_session(session_id, by=by, until=now + int(1000 * self.settings.undo_delete_s), at=now)
        self.lanes.look(session_id)
        await self._end_processes(session_id)
        return deletion

    async def _end_processes(self, session_id: str) -> None:
        """What its tools left in the background. A call that still runs is ended by the stop of its turn."""
        for tool in self._tools.values():
            await tool.end_session(session_id)

    async def undelete_session(self, session_id: str, *, by: str) -> Session:
        await self.store.undelete_session(session_id, by=by, at=self._clock.now())
        return await self.session(session_id)

    async def change_session(self, session_id: str, change: SessionChanged) -> Session:
        return await self.store.change_session(session_id, change, at=self._clock.now())

    async def post(self, session_id: str, text: str, *, client_id: str | None, sender: str = "owner") -> Accepted:
        """On disk once this returns (P1)."""
        _check_text(text)
        session = await self.session(session_id)
        dedup_key = f"message|{session.session_key}|{client_id}" if client_id else None
        return await self._acceptance.take(session, Said(text=text, sender=sender, dedup_key=dedup_key, on_page=True))

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
        session = await self.session(session_id)
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

    async def stop_turn(self, session_id: str, *, by: str, client_id: str | None, turn_id: str | None = None) -> Stopped:
        """Stops the turn of that id or, without one, the turn that is open when this is called; never a later one (A21)."""
        accepted_at = self._clock.now()
        session = await self.store.session(session_id)
        stopped = await self.store.request_stop(
            session_id,
            by=by,
            turn_id=turn_id,
            saw=session.turn_id if session.open_turn else None,
            dedup_key=f"stop|{session_id}|{client_id}" if client_id else None,
            at=accepted_at,
        )
        if stopped.turn_id is None:
            raise NothingToStop(session_id, turn_id)
        self.lanes.look(session_id)
        return stopped

    async def answer(self, question_id: str, text: str) -> str:
        _check_text(text)
        session_id = await self.store.answer(
            question_id,
            lambda question, call: QuestionAnswered(question_id=question, call_id=call, content=text),
            at=self._clock.now(),
        )
        self.lanes.look(session_id)
        await self._acceptance.tell_that_it_waits(session_id)
        return session_id

    async def view(self, session_id: str) -> tuple[Session, Transcript]:
        """The session and its conversation, as of one moment: the transcript's `seq` is the cursor to continue from."""
        session = await self.session(session_id)
        transcript = await self.store.transcript(session)
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
