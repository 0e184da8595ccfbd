"""The gateway as the rest of Holdfast sees it: everything people can ask of it, and its life from start to stop."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence

from holdfast import time_zones
from holdfast.core import keys, usage
from holdfast.core.approvals import Rule
from holdfast.core.busy import Mode
from holdfast.core.errors import BadInput, ConversationBusy, Deleted, NothingToStop, UnfitFolder
from holdfast.core.events import SessionChanged
from holdfast.core.lifecycle import GatewayState
from holdfast.core.model_choice import UnknownModel
from holdfast.core.plans.accept import Accepted
from holdfast.core.plans.answer import Answer
from holdfast.core.plans.delete import Deletion
from holdfast.core.plans.edit import Edited
from holdfast.core.plans.leave import Moved
from holdfast.core.plans.stop import Stopped
from holdfast.core.recitals import Recital
from holdfast.core.reminders import When
from holdfast.core.restarts import By
from holdfast.core.schedules import Schedule
from holdfast.core.sessions import Session
from holdfast.core.transcript import Transcript
from holdfast.core.usage import DaySpent, ModelSpent, SessionSpent
from holdfast.gateway.acceptance import Said, check_text
from holdfast.gateway.edges import Edges
from holdfast.gateway.host import Host
from holdfast.gateway.parts import Parts
from holdfast.gateway.settings import Settings
from holdfast.ports.store import Store
from holdfast.ports.upkeep import Counts

PAGE = 200


class Gateway:
    """Built whole from its ports. `start` begins with what the record says is unfinished; `stop` leaves everything on record."""

    def __init__(self, *, store: Store, host: Host, edges: Edges, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.store, self.agent, self.platforms = store, edges.agents.default, edges.platforms
        parts = self._parts = Parts(store, host, edges, self.settings)
        self._clock, self._ids, self._tools = host.clock, host.ids, edges.tools
        self._agent_processes, self._check_folder = edges.agent_processes, edges.check_folder
        self.feed, self.lanes, self.runner, self.tally = parts.feed, parts.lanes, parts.runner, parts.tally
        self.links, self.strangers, self.intake = parts.links, parts.strangers, parts.intake
        self.background = parts.background
        self.announcements, self._acceptance, self._wishes = parts.announcements, parts.acceptance, parts.wishes
        self.lifecycle, self.pausing, self.hand_over = parts.lifecycle, parts.pausing, parts.hand_over
        self.shipping = parts.shipping

    # its life, as `Lifecycle`, `Pausing` and `HandOver` lead it

    @property
    def state(self) -> GatewayState:
        return self.lifecycle.state

    def subscribe(self, on_state: Callable[[GatewayState], None]) -> None:
        """`on_state` is called whenever what is shown of the state may have changed."""
        self._parts.stage.subscribe(on_state)

    @property
    def broken(self) -> asyncio.Event:
        return self._parts.stage.broken

    @property
    def safe_mode(self) -> bool:
        """Several starts in a row died: nothing is resumed by itself, messages are answered as always."""
        return self._parts.safe_mode.on

    async def start(self) -> None:
        """Begins with what the record says is unfinished."""
        await self.lifecycle.start()

    async def stop(self, *, reason: str = "shutdown_timeout", by: By | None = None, for_good: bool = False) -> None:
        """Leaves everything on record. `for_good`: it is to stay stopped, so background processes end, too."""
        await self.lifecycle.stop(reason=reason, by=by, for_good=for_good)

    def resume_all(self) -> None:
        """An operator's word: safe mode ends, and what is still pending is decided again."""
        self._parts.safe_mode.leave("an operator asked for it")

    def hint(self) -> None:
        """Another process stored something."""
        self.feed.hint()
        self._parts.sweep.hint()

    def now(self) -> int:
        return self._clock.now()

    # what people ask of it

    async def create_session(self, title: str | None = None, *, lane: str | None = None, folder: str | None = None) -> Session:
        """`lane`: a name for its key; without one it has a key of its own. `folder`: where its tools are to work. Raises `UnfitFolder`."""
        if folder is not None:
            if self._check_folder is None:
                raise UnfitFolder(folder, "no tools of this gateway work in folders")
            folder = await asyncio.to_thread(self._check_folder, folder)
        session_id = self._ids.new("s")
        key = keys.page_key(self.settings.profile, lane or session_id)
        return await self.store.create_session(
            session_id=session_id, session_key=str(key), log=self._ids.new("l"), at=self._clock.now(), title=title, folder=folder
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
        await self._tools.end_session(session_id)
        if self._agent_processes is not None:
            await self._agent_processes.end_session(session_id)
        return deletion

    async def undelete_session(self, session_id: str, *, by: str) -> Session:
        await self.store.undelete_session(session_id, by=by, at=self._clock.now())
        return await self.session(session_id)

    async def change_session(self, session_id: str, change: SessionChanged) -> Session:
        """Raises `UnknownModel` for a model that cannot be chosen."""
        if isinstance(change.model, str) and change.model not in self.settings.models:
            raise UnknownModel(change.model, self.settings.models)
        return await self.store.change_session(session_id, change, at=self._clock.now())

    async def post(
        self,
        session_id: str,
        text: str,
        *,
        client_id: str | None,
        attachments: Sequence[str] = (),
        sender: str = "owner",
        mode: Mode | None = None,
        dedup_key: str | None = None,
        recital: Recital | None = None,
    ) -> Accepted:
        """On disk once this returns (P1). `attachments` are ids of uploads. `mode`: what becomes of it while the conversation is busy;
        without one, as its chat's policy says. `dedup_key`: instead of a `client_id`, which names it only in its lane. Raises
        `AttachmentGone`, `ConversationBusy`.
        """
        if text or not attachments:
            check_text(text)
        session = await self.session(session_id)
        dedup_key = keys.message_dedup_key(session.session_key, client_id) if client_id else dedup_key
        attached = tuple(each.part for each in await self.store.uploads(attachments)) if attachments else ()
        said = Said(text=text, attached=attached, sender=sender, dedup_key=dedup_key, on_page=True, mode=mode, recital=recital)
        accepted = await self._acceptance.take(session, said)
        if accepted.refused:
            raise ConversationBusy(accepted.session_id)
        return accepted

    async def withdraw(self, session_id: str, message_id: str) -> bool:
        """Takes a message back that still waits. False if it does not."""
        withdrawn = await self.store.withdraw(session_id, message_id, at=self._clock.now())
        self.lanes.look(session_id)
        return withdrawn

    async def edit_message(self, session_id: str, message_id: str, text: str, *, by: str = "owner", client_id: str | None) -> Edited:
        """Changes the words of a message; what is attached to it stays. Raises `CannotEdit`."""
        dedup_key = f"edit|{session_id}|{message_id}|{client_id}" if client_id else None
        return await self._acceptance.edit(session_id, message_id, text, by=by, dedup_key=dedup_key)

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

    async def branch(self, session_id: str, message_id: str, *, by: str, client_id: str | None) -> Session:
        """A new conversation that begins with what was said here up to a message."""
        async with self.view(session_id) as (session, transcript):
            return await self._parts.branching.branch(session, transcript, message_id, by=by, client_id=client_id)

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

    async def answer(self, question_id: str, text: str, *, chosen: bool = False, by: str = "owner", client_id: str | None = None) -> str:
        """`chosen`: the text must be one of the question's choices. Raises `UnknownChoice`, `QuestionClosed`."""
        check_text(text)
        dedup_key = f"answer|{question_id}|{client_id}" if client_id else None
        return await self.judge(question_id, Answer(content=text, by=by, chosen=chosen, dedup_key=dedup_key))

    async def judge(self, question_id: str, answer: Answer) -> str:
        """Answers a question, or approves or denies a call. Gives the session's id. Raises `QuestionClosed`, `NotYours`, `BadInput`."""
        session_id = await self.store.answer(question_id, answer, at=self._clock.now())
        self.lanes.look(session_id)
        await self._acceptance.tell_that_it_waits(session_id)
        return session_id

    async def decide_delivery(self, delivery_id: str, action: str) -> None:
        """An operator's word on a message to a chat: "retry", "drop" or "sent". Raises `NotFound`, `NotOver`."""
        await self._parts.deliveries.decide(delivery_id, action)

    async def rules(self, session_id: str | None = None) -> list[Rule]:
        """What people have allowed for a conversation, or for all of them."""
        return await self.store.rules(session_id)

    async def remove_rule(self, rule_id: str, *, by: str) -> Rule:
        return await self.store.remove_rule(rule_id, by=by, at=self._clock.now())

    async def schedules(self, session_id: str | None = None) -> list[Schedule]:
        """Those of the key of a session, or all of them."""
        return await self.store.schedules(None if session_id is None else (await self.session(session_id)).session_key)

    async def add_schedule(
        self,
        session_id: str,
        text: str,
        when: When,
        *,
        by: str = "owner",
        missed: str | None = None,
        client_id: str | None = None,
    ) -> Schedule:
        """Raises `BadInput`, `TooManySchedules`."""
        session = await self.session(session_id)
        dedup_key = f"new schedule|{session.session_key}|{client_id}" if client_id else None
        try:
            added = self._wishes.made(text, self._wishes.timing(when), sender=by, missed=missed, dedup_key=dedup_key)
        except BadInput:
            made = await self.store.made_schedule(dedup_key, text.strip()) if dedup_key else None
            if made is None:
                raise
            return made
        made = await self.store.add_schedule(session_id, added, limit=self._wishes.policy.limit, at=self._clock.now())
        self._parts.alarm.hint()
        return made

    async def pause_schedule(self, schedule_id: str, *, by: str) -> Schedule:
        return await self.store.pause_schedule(schedule_id, by=by, at=self._clock.now())

    async def continue_schedule(self, schedule_id: str, *, by: str) -> Schedule:
        """Raises `ScheduleOver`."""
        continued = await self.store.continue_schedule(schedule_id, zones=time_zones.zone_or_utc, by=by, at=self._clock.now())
        self._parts.alarm.hint()
        return continued

    async def remove_schedule(self, schedule_id: str, *, by: str) -> Schedule:
        return await self.store.remove_schedule(schedule_id, by=by, at=self._clock.now())

    @contextlib.asynccontextmanager
    async def view(self, session_id: str) -> AsyncIterator[tuple[Session, Transcript]]:
        """The session and its conversation, as of one moment: the transcript's `seq` is the cursor to continue from. It is the caller's
        until the context ends; after that the next one to view it reads only what is new. Journals that are late are looked for first.
        """
        await self._parts.shipping.look(session_id)
        session = await self.session(session_id)
        transcript = await self._parts.shown.read(session)
        # Of a turn that is over, a fresh look sees the records alone. So does the next one, if no piece was read here.
        of_records = not session.open_turn and transcript.seq == session.seq
        yield await self._newest(session, transcript), transcript
        if of_records:
            self._parts.shown.keep(session, transcript)

    async def _newest(self, session: Session, transcript: Transcript) -> Session:
        """The session as it was when its conversation was read, which grows to that point."""
        session_id = session.session_id
        if transcript.seq != session.seq:  # Something came in between: the flags become as new as the conversation, and it as they are.
            session = await self.store.session(session_id)
        while transcript.seq < session.seq:
            page = await self.store.events(session_id, after=transcript.seq, limit=PAGE)
            transcript.extend(item for item in page if item.seq <= session.seq)
            if not page:
                break
        return session

    async def spent(self, *, days: int) -> tuple[str, list[DaySpent]]:
        """What models used in so many days up to today, by day and person, and the first of these days."""
        now = self._clock.now()
        since = usage.days_before(usage.day(now, self._clock.offset_s(now)), days)
        return since, await self.store.spent_by_day(since=since)

    async def spent_on(self, since: str) -> tuple[list[ModelSpent], list[SessionSpent]]:
        """What each model used on each day since this one, and the conversations that used most."""
        return await self.store.spent_by_model(since=since), await self.store.spent_by_session(since=since, limit=usage.MOST_SPENDERS)

    async def counts(self) -> Counts:
        return await self.store.counts()
