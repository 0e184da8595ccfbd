"""Turns that were cut: found from their record, decided by the table of rules, the decision recorded with its label."""

import msgspec
import structlog

from holdfast.core import approvals, blame, grounds, keys, notices, recovery, replies, resume
from holdfast.core import events as e
from holdfast.core.blame import End, Interruption
from holdfast.core.errors import Bug, StalePosition
from holdfast.core.messages import Message
from holdfast.core.plans.ending import Unfinished, ending
from holdfast.core.plans.start import StartedTurn
from holdfast.core.processes import ENDED, MATCHED
from holdfast.core.resume import Decision, Facts, Rule, Staleness
from holdfast.core.sessions import Session
from holdfast.core.transcript import Transcript
from holdfast.core.turns import Outcome, TurnState
from holdfast.gateway.host import Host
from holdfast.gateway.people import People
from holdfast.gateway.safe_mode import SafeMode
from holdfast.gateway.settings import Settings
from holdfast.gateway.shipping import Shipping
from holdfast.gateway.tally import Tally
from holdfast.gateway.teller import Teller
from holdfast.ports.store import Store

log = structlog.get_logger()


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """A cut turn, what was found of it, and what is to become of it. Small, because a thousand may wait for their slot."""

    session: Session
    facts: Facts
    rule: Rule
    reason: str
    signed_at: int | None
    asked_at: int

    @property
    def stands(self) -> bool:
        """It was left before, by the same rule."""
        return self.rule.decision is Decision.LEAVE and self.session.left and self.session.rule == self.rule.label


class Recovery:
    """What holds for every decision of this process."""

    def __init__(
        self,
        *,
        store: Store,
        host: Host,
        platforms: frozenset[str],
        people: People,
        settings: Settings,
        safe_mode: SafeMode,
        teller: Teller,
        tally: Tally,
        shipping: Shipping,
    ) -> None:
        self._store, self._clock, self._owner, self._platforms, self._people = store, host.clock, host.owner, platforms, people
        self._fresh_for_s, self._automatic, self._stuck_after = settings.resume_window_s, settings.auto_resume, settings.stuck_after
        self._safe_mode, self._teller, self._tally, self._shipping = safe_mode, teller, tally, shipping
        self._ends: dict[int | None, tuple[End, str]] = {}

    async def look_into(self, session: Session) -> Judged:
        """Decides on a turn whose owner is gone. One that was still running is first recorded as interrupted, and counted, in one
        transaction; nobody holds it from then on, so that the first process to carry the decision out does so.
        """
        session, transcript, found = await self._interrupt(session)
        turn = transcript.turns[-1]
        asked, reason = turn.asked, turn.reason or session.resume_reason or blame.CRASH
        if found is not None:
            session, asked, reason = await self._store.session(session.session_id), False, found.reason
        facts = await self._facts(session, transcript.request, asked=asked, signed_at=turn.signed_at)
        asked_at = transcript.request.created_at if transcript.request else turn.started_at
        rule = resume.decide(facts)
        return Judged(session=session, facts=facts, rule=rule, reason=reason, signed_at=turn.signed_at, asked_at=asked_at)

    async def _interrupt(self, session: Session) -> tuple[Session, Transcript, Interruption | None]:
        """An interrupted turn's session and conversation and, of one that was still running, its interruption, now on record. What its dead
        process had spooled is part of the conversation by then. If people stored something after the conversation was read, an answer
        perhaps, it is read again before anything is decided.
        """
        while True:
            late = None
            if session.turn_state is TurnState.RUNNING:
                new, late = await self._shipping.bring(session)
                session = await self._store.session(session.session_id) if new else session
            transcript = await self._store.transcript(session, whole=False)
            if session.turn_state is not TurnState.RUNNING:
                return session, transcript, None
            found = await self._interruption(session, transcript, late)
            try:
                await self._take(session, found)
                self._shipping.late(session, late)
                return session, transcript, found
            except StalePosition:
                session = await self._store.session(session.session_id)

    async def _interruption(self, session: Session, transcript: Transcript, late: str | None) -> Interruption:
        turn = transcript.turns[-1]
        end, reason = await self._end_of(session.owner)
        lived_ms = max(0, (turn.signed_at or 0) - turn.attempt_started_at)  # By its own signs of life, not by what was recorded since.
        return Interruption(
            reason=reason,
            end=end,
            progressed=blame.made_progress(spoke=turn.spoke, lived_ms=lived_ms),
            lived_ms=lived_ms,
            written=len(transcript.answer_text),
            died=session.owner,
            stream_id=late,
        )

    def may_be_stuck(self, session: Session) -> bool:
        """Whether its session may have to be suspended for an interruption that is found now, or was found before."""
        restarts = session.interrupted_restarts + session.on_trial
        return blame.is_stuck(restarts, session.deaths + 1, stuck_after=self._stuck_after)

    async def _end_of(self, owner: int | None) -> tuple[End, str]:
        """How the life of an owner that is gone ended. A turn that this process has lost sight of counts as one that died."""
        if owner not in self._ends:
            owners = {known.id: known for known in await self._store.owners()}
            gone, this = owners.get(owner or 0) if owner != self._owner else None, owners.get(self._owner)
            self._ends[owner] = blame.end_of(  # The row of a dead owner changes no more.
                draining=gone.draining if gone else None,
                boot_id=gone.boot_id if gone else None,
                this_boot=this.boot_id if this else None,
            )
        return self._ends[owner]

    async def _facts(self, session: Session, request: Message | None, *, asked: bool, signed_at: int | None) -> Facts:
        key = keys.parse(session.session_key)
        # What a process tells is nobody's message, so nobody's permission is asked (E3).
        sender = request.sender if request and request.cause not in (ENDED, MATCHED) else None
        reachable = key.on_page or key.platform in self._platforms
        now = self._clock.now()
        return Facts(
            turn=session.turn_state,
            stop_requested=session.stop_requested,
            suspended=session.suspended,
            stuck=blame.is_stuck(session.interrupted_restarts, session.deaths, stuck_after=self._stuck_after),
            tried=False,  # Known where an attempt ends by itself: `resume.after_recovery`.
            asked=asked,
            fresh=resume.is_fresh(signed_at, now=now, window_s=self._fresh_for_s),
            held=self._safe_mode.on or not self._automatic,
            reachable=reachable,
            allowed=not reachable or sender is None or await self._people.allows(session.session_key, sender),
            restarts=session.interrupted_restarts,
            deaths=session.deaths,
            aged_ms=None if signed_at is None or signed_at > now + resume.AHEAD_MS else max(0, now - signed_at),
        )

    async def carry_out(self, judged: Judged, *, trial: bool = False) -> StartedTurn | None:
        """Takes the turn and records the decision, in one transaction. Gives the attempt that now has to run, if one has to. Raises
        `StalePosition` if the turn is not to continue and something was stored in its session since: that has to be decided again.
        """
        session, rule, now = judged.session, judged.rule, self._clock.now()
        transcript = await self._store.transcript(session, whole=False)
        stale = resume.staleness(judged.signed_at, now=now, window_s=self._fresh_for_s)
        set_aside = rule.decision is Decision.SET_ASIDE
        cause = transcript.turns[-1].cause if transcript.turns else "message"
        why = notices.interrupted_earlier(judged.reason, now - (judged.signed_at or now), stale if set_aside else None, cause=cause)
        considered = grounds.considered(judged.facts)
        match rule.decision:
            case Decision.RESUME:
                resumed = e.TurnResumed(
                    attempt=session.attempt + 1, rule=rule.label, reason=judged.reason, why=why, trial=trial, considered=considered
                )
                events: list[e.Event] = [
                    *recovery.close_open_calls(transcript.calls),
                    *recovery.close_live_questions(transcript.questions),
                    resumed,
                ]
            case Decision.LEAVE:
                events = [*self._told_when_left(judged, transcript), e.TurnLeft(rule=rule.label, why=why, considered=considered)]
            case Decision.CANCEL:
                events = _ending(judged, transcript, Outcome.CANCELLED, why)
            case Decision.SUSPEND:
                in_a_row = session.interrupted_restarts >= self._stuck_after
                stuck = notices.stuck(session.interrupted_restarts if in_a_row else session.deaths, in_a_row=in_a_row)
                told = _notice(session, transcript, "stuck", stuck)
                events = _ending(judged, transcript, Outcome.SET_ASIDE, why, told, e.SessionChanged(suspended=True))
            case Decision.SET_ASIDE:
                words = notices.stale(judged.reason, now - (judged.signed_at or judged.asked_at), stale or Staleness.OLD, cause=cause)
                told = _notice(session, transcript, "stale", words)
                events = _ending(judged, transcript, Outcome.SET_ASIDE, why, *([told] if judged.facts.allowed else []))
            case _:
                raise Bug(f"Rule {rule.label} decided {rule.decision} for a turn that is {session.turn_state}.")
        resumes = rule.decision is Decision.RESUME
        taken = await self._take(session, *events, stands=not resumes)
        self._tally.rules[rule.label] += 1
        _log(session, rule, why)
        if rule.decision is Decision.SUSPEND:
            log.error("session suspended", session=session.session_id, key=session.session_key, rule=rule.label, why=rule.sentence)
            self._teller.suspended(session)
        return taken if resumes else None

    def _told_when_left(self, judged: Judged, transcript: Transcript) -> list[e.Event]:
        """Once, where the answer would have gone, and only to somebody who waits for it and has not written again."""
        wrote = any(message.role == "user" for message in transcript.queued.values())
        if not judged.facts.held or judged.facts.suspended or not judged.facts.reachable or wrote:
            return []
        cause = transcript.turns[-1].cause if transcript.turns else "message"
        words = notices.held(judged.reason, safe_mode=self._safe_mode.on, cause=cause)
        told = _notice(judged.session, transcript, "held", words)
        return [] if any(message.id == told.message_id for message in transcript.messages) else [told]

    async def convict(self, session: Session) -> None:
        """Suspends the session if its interrupted turn is one restart too many (R2)."""
        while (judged := await self.look_into(session)).rule.decision is Decision.SUSPEND:
            try:
                await self.carry_out(judged)
                return
            except StalePosition:
                session = await self._store.session(session.session_id)

    async def decide_quiet(self, session: Session) -> None:
        """What a start has to say of a session whose turn nobody was running: one that waits, or none at all that a mark speaks of."""
        facts, now = await self._facts(session, None, asked=False, signed_at=None), self._clock.now()
        rule = resume.decide(facts)
        match rule.decision:
            case Decision.CLEAR:
                done = await self._store.clear_mark(session.session_id, turn_id=session.turn_id, rule=rule.label, at=now)
            case Decision.LEAVE if session.turn_state is TurnState.WAITING:
                left = e.TurnLeft(rule=rule.label, considered=grounds.considered(facts))
                done = await self._store.leave_turn(session.session_id, turn_id=_turn_of(session), left=left, at=now)
            case _:
                done = False
        if done:
            self._tally.rules[rule.label] += 1
            _log(session, rule, None)

    async def _take(self, session: Session, *events: e.Event | Interruption, stands: bool = True) -> StartedTurn:
        """`stands`: only if nothing was stored in the session since it was read. People answer, stop, suspend and resume at any time."""
        return await self._store.take_turn(
            session.session_id,
            owner=self._owner,
            turn_id=_turn_of(session),
            epoch=session.epoch,
            events=events,
            at=self._clock.now(),
            seq=session.seq if stands else None,
        )


def _log(session: Session, rule: Rule, why: str | None) -> None:
    named = {"session": session.session_id, "turn": session.turn_id, "generation": session.generation}
    log.info("recovery", **named, rule=rule.label, name=rule.name, why=why)


def _ending(judged: Judged, transcript: Transcript, outcome: Outcome, why: str, *also: e.Event) -> list[e.Event]:
    turn = transcript.turns[-1]
    unfinished = Unfinished(
        session_key=judged.session.session_key,
        turn_id=turn.id,
        said=transcript.answer_text,
        begun=transcript.begun,
        anchor=transcript.anchor,
        calls=transcript.calls,
        asking=tuple(question.call_id for question in transcript.questions if question.form != approvals.FORM and not question.live),
        unread_results=turn.unread_results,
    )
    blamed_for = turn.died if judged.rule.decision is Decision.SUSPEND else None
    considered = grounds.considered(judged.facts)
    ended = e.TurnEnded(outcome=outcome, rule=judged.rule.label, why=why, blamed_for=blamed_for, considered=considered)
    return list(ending(unfinished, ended, also=also, owed=judged.facts.allowed))


def _notice(session: Session, transcript: Transcript, name: str, text: str) -> e.MessageWritten:
    turn = transcript.turns[-1]
    return replies.written(session.session_key, "notice", f"{turn.id}.{name}.{turn.attempt}", text, anchor=transcript.anchor)


def _turn_of(session: Session) -> str:
    if session.turn_id is None:
        raise Bug(f"Session {session.session_id} has an open turn without an id.")
    return session.turn_id
