"""The store port over transactions: each method is one read or one write, run on the lines it was given. Knows no engine."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from holdfast.core import events as e
from holdfast.core.approvals import Rule
from holdfast.core.blame import Interruption
from holdfast.core.content import Content
from holdfast.core.delivery import DeliveryState
from holdfast.core.errors import Unavailable
from holdfast.core.journals import Late, Limits, Sight
from holdfast.core.limits import Bounds
from holdfast.core.pairing import Pending
from holdfast.core.places import Spot
from holdfast.core.plans.accept import Accepted
from holdfast.core.plans.answer import Answer
from holdfast.core.plans.branch import Names, Origin
from holdfast.core.plans.causes import Cause, Recorded
from holdfast.core.plans.command import Action, Aside, Stop
from holdfast.core.plans.delete import Deletion
from holdfast.core.plans.deliver import Live
from holdfast.core.plans.edit import Edit, Edited
from holdfast.core.plans.leave import Moved
from holdfast.core.plans.schedules import Fired
from holdfast.core.plans.start import StartedTurn
from holdfast.core.plans.stop import Stopped
from holdfast.core.plans.wait import Waiting
from holdfast.core.processes import Matches, Process, Telling
from holdfast.core.recitals import Recital, Recited
from holdfast.core.resets import Boundary
from holdfast.core.schedules import Due, Schedule
from holdfast.core.sessions import Lease, Session
from holdfast.core.shutdowns import Shutdown
from holdfast.core.spools import Spooled
from holdfast.core.transcript import Transcript
from holdfast.core.usage import Account, DaySpent, ModelSpent, SessionSpent
from holdfast.ports.blobs import Blob, BlobUsage, Upload
from holdfast.ports.desk import Draft, Glance, Hit
from holdfast.ports.journals import Journal, Shipped
from holdfast.ports.log import Make
from holdfast.ports.outbox import Delivery
from holdfast.ports.overview import Ask, Lane, Life, Mark, Owed, Working
from holdfast.ports.owners import Owner, Pause
from holdfast.ports.pairings import Paired
from holdfast.ports.schedules import DueSchedules
from holdfast.ports.sessions import SessionPage
from holdfast.ports.turns import StreamItem
from holdfast.ports.updates import DeadPlace, StoredUpdate
from holdfast.ports.upkeep import Commits, Counts, Usage
from holdfast.store import arrivals, blobs, deletion, desk, overview, pairings, reads, recitals, rules, spending, upkeep
from holdfast.store.lines import Lines
from holdfast.store.log import Finding, quarantine
from holdfast.store.work import inbox, journals, outbox, processes, questions, schedules, sessions, streams, turns

T = TypeVar("T")
# With these a turn gives up more than it takes: they are tried even when the disk is full.
ENDINGS = (e.TurnEnded, e.TurnInterrupted, Interruption, e.ToolFinished)


class TxStore:
    """See `ports.store.Store` for what each method promises. An engine adds `backup`, and `_scrub` where it needs it."""

    def __init__(self, lines: Lines, *, now: Callable[[], int]) -> None:
        self._lines, self._now = lines, now
        self._names: dict[int, str] = {}  # A session's number never names another one.
        self._quarantined: set[tuple[int, int, int]] = set()

    async def create_session(self, *, session_id: str, session_key: str, log: str, at: int, title: str | None = None) -> Session:
        event = e.SessionCreated(session_id=session_id, session_key=session_key, log=log, title=title)
        return await self._lines.write(sessions.create_session, event, at)

    async def session(self, session_id: str) -> Session:
        return await self._lines.read(reads.session, session_id)

    async def purged(self, session_ids: Sequence[str]) -> list[str]:
        return await self._lines.read(reads.purged, session_ids)

    async def current_session(self, session_key: str) -> Session | None:
        return await self._lines.read(reads.current_session, session_key)

    async def named(self, prefix: str, *, limit: int) -> list[Session]:
        return await self._lines.read(reads.named, prefix, limit)

    async def sessions(
        self, *, limit: int, before: str | None = None, query: str = "", archived: bool = False, state: str | None = None
    ) -> SessionPage:
        return await self._lines.read(reads.sessions, limit, before, query, archived, state)

    async def conversations(self, session_key: str, *, limit: int) -> list[tuple[int, Session]]:
        return await self._lines.read(reads.conversations, session_key, limit)

    async def change_session(self, session_id: str, change: e.SessionChanged, *, at: int) -> Session:
        return await self._lines.write(sessions.change_session, session_id, change, at)

    async def mark_pending(self, session_key: str, *, reason: str = "restart_timeout", at: int) -> bool:
        return await self._lines.write(sessions.mark_pending, session_key, reason, at)

    async def clear_mark(self, session_id: str, *, turn_id: str | None, rule: str, at: int) -> bool:
        return await self._lines.write(sessions.clear_mark, session_id, turn_id, rule, at)

    async def clear_pending(self, session_key: str, *, at: int) -> bool:
        return await self._lines.write(sessions.clear_pending, session_key, at)

    async def suspend_active(self, *, window_ms: int, at: int) -> int:
        return await self._lines.write(sessions.suspend_active, window_ms, at)

    async def reset(self, session_id: str, *, fresh: tuple[str, str], by: str, dedup_key: str | None, at: int) -> Moved:
        return await self._lines.write(sessions.reset, session_id, fresh, by, dedup_key, at)

    async def branch_session(self, origin: Origin, names: Names, *, by: str, dedup_key: str | None, at: int) -> Session:
        return await self._lines.write(sessions.branch_session, origin, names, by, dedup_key, at)

    async def resume_session(self, session_id: str, *, by: str, dedup_key: str | None, at: int) -> Moved:
        return await self._lines.write(sessions.resume_session, session_id, by, dedup_key, at)

    async def delete_session(self, session_id: str, *, by: str, until: int, at: int) -> Deletion:
        return await self._lines.write(sessions.delete_session, session_id, by, until, at)

    async def undelete_session(self, session_id: str, *, by: str, at: int) -> bool:
        return await self._lines.write(sessions.undelete_session, session_id, by, at)

    async def remove_oldest(self, *, before: int, limit: int, why: str, until: int, at: int) -> list[str]:
        return await self._lines.write(deletion.remove_oldest, before, limit, why, until, at)

    async def usage(self) -> Usage:
        return await self._lines.read(deletion.usage)

    async def purge(self, *, now: int, steps: int) -> bool:
        failure: Unavailable | None = None
        for session in await self._lines.read(deletion.due, now, steps):
            try:
                while steps and await self._lines.write(deletion.purge_step, session, now):
                    steps -= 1
            except Unavailable as error:  # A damaged page of one session does not hold up the others.
                failure = error
        steps = await self._scrub(steps)
        if failure is not None:
            raise failure
        return not steps

    async def _scrub(self, steps: int) -> int:
        """Removes what an engine keeps of purged sessions in other places than its tables. Gives how many steps are left."""
        return steps

    async def events(self, session_id: str, *, after: int, limit: int, make: Make | None = None) -> e.Page:
        return await self._checked(*await self._lines.read(reads.events, session_id, after, limit, False, make))

    async def records(self, session_id: str, *, after: int, limit: int) -> e.Page:
        return await self._checked(*await self._lines.read(reads.events, session_id, after, limit, True))

    async def transcript(self, session: Session, *, known: Transcript | None = None) -> Transcript:
        transcript = known or Transcript()
        over = session.turn_seq - 1 if session.open_turn else session.seq
        more: int | None = transcript.seq
        while more is not None and more < over:
            more = await self._fold(transcript, session.session_id, more, over, True)
        more = max(over, transcript.seq) if session.open_turn else None
        while more is not None:
            more = await self._fold(transcript, session.session_id, more, None, False)
        return transcript

    async def _fold(self, transcript: Transcript, session_id: str, after: int, until: int | None, records: bool) -> int | None:
        """A page of it, where reading is done: a conversation that is long keeps neither the event loop nor other readers waiting."""
        return await self._checked(*await self._lines.read(reads.fold, transcript, session_id, after, until, records))

    async def _checked(self, given: T, found: list[Finding]) -> T:
        """What a read gives, once the damage that it found is in quarantine."""
        new = {(item.session, item.seq, item.event_id): item for item in found}
        for place in self._quarantined & new.keys():
            del new[place]
        if new:
            try:
                await self._lines.write(quarantine, tuple(new.values()), self._now())
            except Unavailable:
                return given  # A conversation can be read while nothing can be written; the damage is found again.
            self._quarantined |= new.keys()
        return given

    @property
    def damaged(self) -> int:
        """How many damaged or missing events this process has found."""
        return len(self._quarantined)

    async def accept(
        self,
        session_id: str,
        *,
        message_id: str,
        content: Content,
        sender: str,
        dedup_key: str | None,
        at: int,
        fresh: tuple[str, str],
        max_waiting: int,
        anchor: str | None = None,
        answers: bool = True,
        on_page: bool = False,
        mode: str = "queue",
        resets: tuple[Boundary, ...] = (),
        reply_to: str | None = None,
        recital: Recital | None = None,
        operator: bool = True,
    ) -> Accepted:
        message = e.MessageAccepted(
            message_id=message_id, content=content, sender=sender, anchor=anchor, mode=mode, dedup_key=dedup_key, recital=recital
        )
        return await self._lines.write(
            inbox.accept_message, session_id, message, fresh, max_waiting, answers, on_page, resets, reply_to, at, operator
        )

    async def recited(self, message_id: str) -> Recited | None:
        return await self._lines.read(recitals.recited, message_id)

    async def recited_under(self, dedup_key: str) -> Recited | None:
        return await self._lines.read(recitals.recited_under, dedup_key)

    async def reciting(self, digests: Sequence[str], *, limit: int) -> list[Recited]:
        return await self._lines.read(recitals.reciting, tuple(digests), limit)

    async def last_recited(self, session_id: str) -> Recited | None:
        return await self._lines.read(recitals.last_recited, session_id)

    async def withdraw(self, session_id: str, message_id: str, *, at: int) -> bool:
        return await self._lines.write(inbox.withdraw_message, session_id, message_id, at)

    async def edit(self, session_id: str, edit: Edit, *, at: int) -> Edited:
        return await self._lines.write(inbox.edit_message, session_id, edit, at)

    async def said_under(self, dedup_key: str) -> tuple[str, str] | None:
        return await self._lines.read(inbox.said_under, dedup_key)

    async def record_cause(
        self,
        session_id: str,
        *,
        cause_id: str,
        what: str,
        content: Content,
        dedup_key: str | None,
        at: int,
        sender: str = "owner",
        generation: int | None = None,
        anchor: str | None = None,
    ) -> Recorded:
        cause = e.CauseRecorded(
            cause_id=cause_id, what=what, content=content, sender=sender, generation=generation, anchor=anchor, dedup_key=dedup_key
        )
        return await self._lines.write(inbox.record_cause, session_id, cause, at)

    async def command(self, session_id: str, aside: Aside, action: Action, *, at: int) -> Accepted:
        return await self._lines.write(inbox.carry_out, session_id, aside, action, at, when_full=isinstance(action, Stop))

    async def tell_once(self, session_id: str, *, notice_id: str, content: Content, anchor: str | None, at: int) -> bool:
        return await self._lines.write(inbox.tell_once, session_id, notice_id, content, anchor, at)

    async def request_stop(
        self, session_id: str, *, by: str, dedup_key: str | None, at: int, turn_id: str | None = None, saw: str | None = None
    ) -> Stopped:
        return await self._lines.write(inbox.request_stop, session_id, by, turn_id, saw, dedup_key, at, when_full=True)

    async def answer(self, question_id: str, answer: Answer, *, at: int) -> str:
        return await self._lines.write(questions.answer_question, question_id, answer, at)

    async def rules(self, session_id: str | None = None) -> list[Rule]:
        return await self._lines.read(rules.rules, session_id)

    async def remove_rule(self, rule_id: str, *, by: str, at: int) -> Rule:
        return await self._lines.write(rules.remove_rule, rule_id, by, at)

    async def schedules(self, session_key: str | None = None) -> list[Schedule]:
        return await self._lines.read(schedules.listed, session_key)

    async def add_schedule(self, session_id: str, added: e.ScheduleAdded, *, limit: int, at: int) -> Schedule:
        return await self._lines.write(schedules.add_schedule, session_id, added, limit, at)

    async def made_schedule(self, dedup_key: str, text: str) -> Schedule | None:
        return await self._lines.write(schedules.made_schedule, dedup_key, text)

    async def remove_schedule(self, schedule_id: str, *, by: str, at: int) -> Schedule:
        return await self._lines.write(schedules.remove_schedule, schedule_id, by, at)

    async def due_schedules(self, *, now: int, limit: int) -> DueSchedules:
        return await self._lines.read(schedules.due, now, limit)

    async def fire_schedule(self, schedule: Schedule, due: Due, *, when: str, fresh: tuple[str, str], at: int) -> Fired | None:
        return await self._lines.write(
            schedules.fire_schedule, schedule.session_id, schedule.schedule_id, schedule.due_at, due, when, fresh, at
        )

    async def account(self, session_id: str, *, turn_id: str, day: str, sender: str) -> Account:
        return await self._lines.read(spending.account, session_id, turn_id, day, sender)

    async def spent_by_day(self, *, since: str) -> list[DaySpent]:
        return await self._lines.read(spending.by_day, since)

    async def spent_by_model(self, *, since: str) -> list[ModelSpent]:
        return await self._lines.read(spending.by_model, since)

    async def spent_by_session(self, *, since: str, limit: int) -> list[SessionSpent]:
        return await self._lines.read(spending.by_session, since, limit)

    async def glances(self, session_ids: Sequence[str]) -> dict[str, Glance]:
        return await self._lines.read(desk.glances, session_ids)

    async def draft(self, session_id: str) -> Draft:
        return await self._lines.read(desk.draft, session_id)

    async def keep_draft(self, session_id: str, text: str, *, rev: int) -> Draft | None:
        return await self._lines.write(desk.keep_draft, session_id, text, rev)

    async def see(self, session_id: str, seq: int) -> None:
        return await self._lines.write(desk.see, session_id, seq)

    async def found(self, query: str, *, sessions: int, each: int) -> list[Hit]:
        return await self._lines.read(desk.found, query, sessions, each)

    async def turn_records(self, session_id: str, turn_id: str, *, limit: int) -> e.Page:
        return await self._checked(*await self._lines.read(desk.turn_records, session_id, turn_id, limit))

    async def working(self, *, limit: int) -> list[Working]:
        return await self._lines.read(overview.working, limit)

    async def asks(self, *, limit: int) -> list[Ask]:
        return await self._lines.read(overview.asks, limit)

    async def waiting(self, *, limit: int) -> list[Lane]:
        return await self._lines.read(overview.waiting, limit)

    async def owed(self, *, limit: int, given_up: bool = False, arrived: bool = False) -> list[Owed]:
        return await self._lines.read(overview.owed, limit, given_up, arrived)

    async def lives(self) -> list[Life]:
        return await self._lines.read(overview.lives)

    async def marks(self, *, since: int, limit: int) -> list[Mark]:
        return await self._lines.read(overview.marks, since, limit)

    async def expire_questions(self, *, now: int) -> list[str]:
        expired = page = await self._lines.write(inbox.expire_questions, now, when_full=True)
        while page:
            page = await self._lines.write(inbox.expire_questions, now, when_full=True)
            expired = expired + page
        return expired

    async def start_turn(
        self,
        session_id: str,
        *,
        owner: int,
        turn_id: str,
        at: int,
        trial: bool = False,
        safe: bool = False,
        bounds: Bounds | None = None,
    ) -> StartedTurn | None:
        return await self._lines.write(turns.start_turn, session_id, owner, turn_id, at, trial, safe, bounds)

    async def take_turn(
        self,
        session_id: str,
        *,
        owner: int,
        turn_id: str,
        epoch: int,
        events: Sequence[e.Event | Interruption],
        at: int,
        seq: int | None = None,
    ) -> StartedTurn:
        return await self._lines.write(turns.take_turn, session_id, owner, turn_id, epoch, tuple(events), at, seq)

    async def append_turn(
        self,
        lease: Lease,
        *,
        turn_id: str,
        attempt: int,
        position: int,
        events: Sequence[e.Event | Interruption],
        at: int,
        before: Sequence[Spooled] = (),
    ) -> int:
        ends = False
        for event in events:
            if isinstance(event, ENDINGS):
                ends = True
        arguments = (lease, turn_id, attempt, position, tuple(events), at)
        if before:
            return await self._after(before, turns.append_turn, arguments)
        return await self._lines.write(turns.append_turn, *arguments, when_full=ends, waits=False)

    async def wait_turn(
        self,
        lease: Lease,
        *,
        turn_id: str,
        attempt: int,
        position: int,
        asking: tuple[str, ...],
        at: int,
        before: Sequence[Spooled] = (),
    ) -> tuple[Waiting, int]:
        arguments = (lease, turn_id, attempt, position, asking, at)
        if before:
            return await self._after(before, questions.wait_turn, arguments)
        return await self._lines.write(questions.wait_turn, *arguments, waits=False)

    async def take_causes(
        self,
        lease: Lease,
        *,
        turn_id: str,
        attempt: int,
        position: int,
        step: int,
        offset: int,
        at: int,
        before: Sequence[Spooled] = (),
    ) -> tuple[tuple[Cause, ...], int]:
        arguments = (lease, turn_id, attempt, position, step, offset, at)
        if before:
            return await self._after(before, questions.take_causes, arguments)
        return await self._lines.write(questions.take_causes, *arguments, waits=False)

    async def _after(self, before: Sequence[Spooled], run: Callable[..., T], arguments: tuple[Any, ...]) -> T:
        """What was spooled exists on disk already: storing it frees more than it takes."""
        lease, turn_id = arguments[:2]
        return await self._lines.write(journals.after_spooled, lease, turn_id, tuple(before), run, arguments, when_full=True, waits=False)

    async def append_streams(self, items: Sequence[StreamItem], *, at: int) -> list[int | Exception]:
        return await self._lines.write(streams.append_streams, tuple(items), at, waits=False)

    async def writable(self) -> None:
        await self._lines.writable()

    async def ship(self, journal: Journal, events: Sequence[Spooled], sight: Sight, *, limits: Limits, at: int) -> Shipped:
        return await self._lines.write(journals.ship, journal, tuple(events), sight, limits, at, when_full=True)

    async def late_journals(self, *, limit: int) -> list[Late]:
        return await self._lines.read(journals.late_journals, limit)

    async def journal(self, turn_id: str, epoch: int) -> Late | None:
        return await self._lines.read(journals.journal, turn_id, epoch)

    async def session_of_turn(self, turn_id: str) -> str | None:
        return await self._lines.read(journals.session_of_turn, turn_id)

    async def pass_trial(self, lease: Lease, *, turn_id: str, at: int) -> bool:
        return await self._lines.write(turns.pass_trial, lease, turn_id, at)

    async def await_trial(self, session_id: str, *, turn_id: str, aged_ms: int, at: int) -> bool:
        return await self._lines.write(turns.await_trial, session_id, turn_id, aged_ms, at)

    async def leave_turn(self, session_id: str, *, turn_id: str, left: e.TurnLeft, at: int) -> bool:
        return await self._lines.write(turns.leave_turn, session_id, turn_id, left, at)

    async def undecided(self) -> list[Session]:
        return await self._lines.read(reads.undecided)

    async def open_turns(self, *, apart_from: int) -> list[Session]:
        return await self._lines.read(reads.open_turns, apart_from)

    async def waiting_lanes(self, *, limit: int, safe: bool = False) -> list[str]:
        return await self._lines.read(reads.waiting_lanes, limit, safe)

    async def start_process(self, session_id: str, wanted: e.ProcessStarted, *, most: int, at: int) -> Process:
        return await self._lines.write(processes.start_process, session_id, wanted, most, at)

    async def end_process(self, ended: e.ProcessEnded, *, tail: str, matches: Matches, window_s: float, at: int) -> Telling:
        return await self._lines.write(processes.end_process, ended, tail, matches, window_s, at)

    async def match_process(self, process_id: str, matches: Matches, *, at: int) -> bool:
        return await self._lines.write(processes.match_process, process_id, matches, at)

    async def consume_process(self, process_id: str, *, how: str, at: int) -> bool:
        return await self._lines.write(processes.consume_process, process_id, how, at, when_full=True)

    async def process(self, process_id: str) -> Process:
        return await self._lines.read(processes.process, process_id)

    async def processes(self, session_id: str) -> list[Process]:
        return await self._lines.read(processes.processes, session_id)

    async def running_processes(self) -> list[Process]:
        return await self._lines.read(processes.running_processes)

    async def deliveries(self, *, states: Sequence[DeliveryState], now: int, limit: int) -> list[Delivery]:
        return await self._lines.read(outbox.deliveries, tuple(states), now, limit)

    async def record_delivery(self, session_id: str, change: e.DeliveryChanged, *, expect: DeliveryState, at: int) -> bool:
        return await self._lines.write(outbox.record_delivery, session_id, change, expect, at, when_full=True)

    async def plan_delivery(self, session_id: str, planned: e.DeliveryPlanned, *, at: int) -> bool:
        return await self._lines.write(outbox.plan_delivery, session_id, planned, at)

    async def open_delivery(self, session_id: str, opened: e.DeliveryOpened, *, at: int) -> bool:
        return await self._lines.write(outbox.open_delivery, session_id, opened, at)

    async def live_deliveries(self) -> list[Delivery]:
        return await self._lines.read(outbox.live_deliveries)

    async def live_messages(self, session_id: str, turn_id: str, *, before: int = 2**62) -> list[Live]:
        return await self._lines.read(outbox.live_messages, session_id, turn_id, before)

    async def reply_anchor(self, session_id: str) -> str | None:
        return await self._lines.read(outbox.reply_anchor, session_id)

    async def delivery(self, delivery_id: str) -> list[Delivery]:
        return await self._lines.read(outbox.delivery, delivery_id)

    async def unsettled(self, *, limit: int, all: bool = False) -> list[Delivery]:
        return await self._lines.read(outbox.unsettled, limit, all)

    async def take_updates(self, account: str, updates: Sequence[bytes], *, cursor: str | None, at: int) -> None:
        await self._lines.write(arrivals.take_updates, account, tuple(updates), cursor, at)

    async def cursor(self, account: str) -> str | None:
        return await self._lines.read(arrivals.cursor, account)

    async def updates(self, account: str, *, after: int = 0, limit: int) -> list[StoredUpdate]:
        return await self._lines.read(arrivals.updates, account, after, limit)

    async def settle_update(self, id: int, *, refused: str | None = None) -> None:
        await self._lines.write(arrivals.settle_update, id, refused, when_full=True)

    async def refused_updates(self, *, limit: int) -> list[StoredUpdate]:
        return await self._lines.read(arrivals.refused_updates, limit)

    async def quiet(self, account: str, *, until: int) -> None:
        await self._lines.write(arrivals.quiet, account, until, when_full=True)

    async def quiet_until(self, account: str) -> int:
        return await self._lines.read(arrivals.quiet_until, account)

    async def close_place(self, spot: Spot, *, why: str, at: int) -> None:
        await self._lines.write(arrivals.close_place, spot, why, at, when_full=True)

    async def reopen_place(self, platform: str, chat: str) -> bool:
        return await self._lines.write(arrivals.reopen_place, platform, chat)

    async def dead_places(self) -> list[DeadPlace]:
        return await self._lines.read(arrivals.dead_places)

    async def move_chat(self, account: str, *, was: str, now: str) -> bool:
        return await self._lines.write(arrivals.move_chat, account, was, now)

    async def chat_names(self, account: str) -> dict[str, str]:
        return await self._lines.read(arrivals.chat_names, account)

    async def put_pairing(self, pending: Pending) -> None:
        await self._lines.write(pairings.put_pairing, pending)

    async def pairings(self, *, platform: str | None = None) -> list[Pending]:
        return await self._lines.read(pairings.pairings, platform)

    async def pair(self, platform: str, user: str, *, name: str, at: int) -> None:
        await self._lines.write(pairings.pair, platform, user, name, at)

    async def unpair(self, platform: str, user: str) -> bool:
        return await self._lines.write(pairings.unpair, platform, user)

    async def paired(self, *, platform: str | None = None) -> list[Paired]:
        return await self._lines.read(pairings.paired, platform)

    async def is_paired(self, platform: str, user: str) -> bool:
        return await self._lines.read(pairings.is_paired, platform, user)

    async def note_wrong_code(self, *, at: int) -> None:
        await self._lines.write(pairings.note_wrong_code, at)

    async def wrong_codes(self) -> list[int]:
        return await self._lines.read(pairings.wrong_codes)

    async def register_owner(self, owner: Owner) -> int:
        return await self._lines.write(upkeep.register_owner, owner)

    async def owners(self) -> list[Owner]:
        return await self._lines.read(reads.owners)

    async def record_start(self, owner: int, *, at: int) -> int:
        return await self._lines.write(upkeep.record_start, owner, at)

    async def record_sound(self, owner: int) -> None:
        await self._lines.write(upkeep.record_sound, owner)

    async def deaths(self, *, before: int, since: int) -> int:
        return await self._lines.read(reads.deaths, before, since)

    async def record_drain(self, owner: int, *, reason: str) -> None:
        await self._lines.write(upkeep.record_drain, owner, reason, when_full=True)

    async def tell_owners(self, stop: Shutdown, *, by: int | None) -> None:
        await self._lines.write(upkeep.tell_owners, stop, by, when_full=True)

    async def record_end(self, owner: int, *, ended: bool = True) -> None:
        await self._lines.write(upkeep.record_end, owner, ended, when_full=True)

    async def running_by_owner(self) -> dict[int, int]:
        return await self._lines.read(reads.running_by_owner)

    async def set_pause(self, pause: Pause | None) -> None:
        await self._lines.write(upkeep.set_pause, pause)

    async def pause(self, *, now: int) -> Pause | None:
        return await self._lines.read(reads.pause, now)

    async def last_end(self, *, apart_from: int) -> bool:
        return await self._lines.read(reads.last_end, apart_from)

    async def forget_owner(self, owner: int) -> None:
        await self._lines.write(upkeep.forget_owner, owner)

    async def counts(self) -> Counts:
        return await self._lines.read(reads.counts)

    async def index_search(self, *, limit: int) -> bool:
        return await self._lines.write(upkeep.index_search, limit)

    async def prune_streams(self, *, before: int, at: int, limit: int) -> int:
        gone = 0
        for session_id in await self._lines.read(reads.prunable, before, limit):
            more = True
            while more:
                count, more = await self._lines.write(upkeep.prune_session, session_id, at)
                gone += count
        return gone

    async def put_blob(self, blob: Blob, *, at: int, instead_of: str | None = None) -> Blob:
        return await self._lines.write(blobs.put_blob, blob, at, instead_of)

    async def put_upload(self, upload: Upload, *, dedup_key: str | None, at: int) -> Upload:
        return await self._lines.write(blobs.put_upload, upload, dedup_key, at)

    async def uploads(self, attachment_ids: Sequence[str]) -> list[Upload]:
        return await self._lines.read(blobs.uploads, tuple(attachment_ids))

    async def blob(self, digest: str) -> Blob:
        return await self._lines.read(blobs.visible, digest)

    async def collect_blobs(self, *, now: int, limit: int) -> list[str]:
        return await self._lines.write(blobs.collect, now, limit) if await self._lines.read(blobs.anything_due, now) else []

    async def unnamed(self, files: Sequence[str]) -> list[str]:
        return await self._lines.read(blobs.unnamed, tuple(files))

    async def blob_usage(self) -> BlobUsage:
        return await self._lines.read(blobs.usage)

    async def sign_out(self, sign_in: str, *, until: int, now: int) -> None:
        await self._lines.write(upkeep.sign_out, sign_in, until, now, when_full=True)

    async def signed_out(self, *, now: int) -> list[str]:
        return await self._lines.read(reads.signed_out, now)

    def subscribe(self, heard: Callable[[], None]) -> Callable[[], None]:
        return self._lines.subscribe(heard)

    @property
    def degraded(self) -> str | None:
        return self._lines.degraded

    @property
    def commits(self) -> Commits:
        return self._lines.commits

    async def aclose(self) -> None:
        await self._lines.aclose()
