"""The rules of part B, checked by an independent reading of the log: every decision carries the label its facts lead to, the restarts are
counted right, safe mode comes and goes as promised, notes and signs of life are where they belong.

The facts are gathered here from the events alone; `core.resume` only says which rule they match.
"""

from collections.abc import Iterator

import msgspec

from holdfast.core import blame, notices, resume, turns
from holdfast.core import events as e
from holdfast.core.effects import ToolOutcome
from holdfast.core.resume import Decision, Facts
from holdfast.core.turns import Outcome, TurnState
from tests.fakes.platform import NAME
from tests.sim.evidence import Entries, Evidence, SessionRecord, TurnRecord, cause_of
from tests.sim.world import Span

# Between what a decision was based on and its record other things may come to be known, but not for longer than this.
LATE_S = 5.0
STARTS_THAT_DIED = 3
SUSPECT, STUCK, DEATHS = 2, 3, 10
TRIAL_LEAST_S = 30.0
HEALTHY_S = 600.0
OLD_MS = 24 * 3600 * 1000
PROGRESS_MS = 10 * 60 * 1000
BEAT_MS = 30_000
NO_RESTART = ("store_full", "store_failed", "suspended")
CAUSES = {"restart_timeout": "gateway restart", "shutdown_timeout": "gateway shutdown"}
OPENING = "[System note:"
SIGNS = (
    e.TurnStarted,
    e.TurnAlive,
    e.Text,
    e.Reasoning,
    e.CauseTaken,
    e.ModelResponded,
    e.ModelFailed,
    e.ContextCompacted,
    e.ToolStarted,
    e.ToolOutput,
    e.ToolFinished,
    e.QuestionAsked,
    e.QuestionAnswered,
    e.TurnWaiting,
)


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What the log says of a session and its newest turn, up to one event."""

    state: TurnState = TurnState.NONE
    suspended: bool = False
    stopped: bool = False
    asked: bool = False
    restarts: int = 0
    signed_at: int | None = None
    attempt_at: int = 0
    spoke: bool = False
    on_trial: bool = False
    deaths: int = 0
    owner: int | None = None
    resumed: str | None = None
    sender: str = ""
    rule: str | None = None

    def after(self, item: e.Logged, event: e.Event) -> "Known":
        changes: dict[str, object] = {}
        if item.turn_id is not None:
            changes["state"] = turns.after(self.state, event)
            made_up = isinstance(event, e.ToolFinished) and event.outcome is ToolOutcome.UNKNOWN
            if isinstance(event, SIGNS) and not made_up:
                changes["signed_at"] = item.at
            if isinstance(event, e.Text | e.Reasoning | e.ModelResponded | e.ToolFinished) and not made_up:
                changes["spoke"] = True
        match event:
            case e.TurnStarted():
                fresh = {"attempt_at": item.at, "spoke": False, "resumed": None, "rule": None, "deaths": 0, "on_trial": event.trial}
                changes |= fresh | {"stopped": False, "asked": False, "owner": event.owner}
            case e.TurnTaken():
                changes["owner"] = event.owner
            case e.TurnResumed():
                changes |= {"attempt_at": item.at, "spoke": False, "asked": False, "rule": event.rule, "on_trial": event.trial}
                if event.rule != "answer":  # An answer takes a recovery up again; it stays one.
                    changes["resumed"] = event.reason
            case e.TurnInterrupted():
                changes |= {"asked": False, "restarts": event.restarts, "deaths": event.deaths, "on_trial": False}
            case e.TurnWaiting():
                changes["on_trial"] = False
            case e.QuestionAnswered():  # Also one that came while a process held the turn.
                changes |= {"signed_at": item.at, "asked": self.asked or self.state is TurnState.INTERRUPTED}
            case e.TrialPassed():
                changes |= {"restarts": 0, "on_trial": False}
            case e.TrialAwaited():
                changes["signed_at"] = item.at - event.aged_ms
            case e.TurnLeft():
                changes["rule"] = event.rule
            case e.StopRequested():
                changes["stopped"] = True
            case e.SessionResumed():
                changes |= {"asked": True, "suspended": False, "restarts": 0}
            case e.SessionChanged(suspended=bool(suspended)):
                changes["suspended"] = suspended
            case e.TurnEnded():
                if event.outcome is Outcome.COMPLETED or self.on_trial:
                    changes["restarts"] = 0
                changes["on_trial"] = False
            case _:
                pass
        return msgspec.structs.replace(self, **changes) if changes else self


def histories(found: Evidence) -> Iterator[tuple[SessionRecord, list[Known]]]:
    """For each session: what was known before each of its events."""
    for session in found.sessions.values():
        known = [Known()]
        for item, event in session.log:
            known.append(known[-1].after(item, event))
        yield session, known


def every_decision_follows_from_the_record(found: Evidence) -> None:
    """P8, B14: recomputed from the log, the rule is the one on record; nothing was resumed that was stale, stopped, held or stuck."""
    for session, known in histories(found):
        for place, (item, event) in enumerate(session.log):
            before = known[place]
            made = _decision(before, event)
            if made is None:
                continue
            if isinstance(event, e.TurnEnded) and event.still_pending:
                follows = session.log[place + 1].event if place + 1 < len(session.log) else None
                assert isinstance(follows, e.TurnStarted), f"A23: {item} set a turn aside for no message"
                assert before.rule == event.rule and event.rule in ("R7", "R8"), f"A23: {item} after it was left by {before.rule}"
                continue
            possible = set(_possible(found, session, known, place))
            assert made in possible, f"P8: {item} decided {made}; the record says {sorted(possible)}: {before}"


def _decision(before: Known, event: e.Event) -> tuple[str, Decision] | None:
    """The rule and the decision that an event puts on record."""
    match event:
        case e.TurnResumed(rule=rule) if rule != "answer":
            return rule, Decision.RESUME
        case e.TurnResumed():
            assert before.state is TurnState.ANSWERED, f"P6: {event} without an answer"
        case e.TurnLeft(rule=rule):
            return rule, Decision.LEAVE
        case e.TurnEnded(outcome=Outcome.CANCELLED, rule=None) if before.stopped:
            pass  # By the process that ran it, and that had marked it as cut in the same moment.
        case e.TurnEnded() if before.state is TurnState.INTERRUPTED:
            assert event.rule is not None, f"P3: {event} of a cut turn names no rule"
            decision = {Outcome.CANCELLED: Decision.CANCEL, Outcome.FAILED: Decision.FAIL}.get(event.outcome, Decision.SET_ASIDE)
            return event.rule, Decision.SUSPEND if event.rule == "R2" else decision
        case e.TurnEnded():
            unanswered = event.error == notices.expired()  # R5: nothing of it is unfinished work.
            failed = event.outcome is Outcome.FAILED and not unanswered
            empty_handed = before.state is TurnState.RUNNING and before.resumed is not None and failed
            assert (event.rule == "R4") == empty_handed, f"R4: {event} of an attempt resumed for {before.resumed}"
    return None


def _possible(found: Evidence, session: SessionRecord, known: list[Known], place: int) -> Iterator[tuple[str, Decision]]:
    """By any process that lived then: one that hands over still decides about its own turns."""
    alive = set(found.alive(session.log[place].item.id))
    for span in found.world.spans:
        if span.owner in alive:
            yield from _possible_for(found, session, known, place, span)


def _possible_for(found: Evidence, session: SessionRecord, known: list[Known], place: int, span: Span) -> Iterator[tuple[str, Decision]]:
    item, event = session.log[place]
    when = found.world.when(item.id)
    first = place
    while first > 0 and _may_be_unknown(found, session, first - 1, span, when):
        first -= 1
    since = max(span.began, when - LATE_S)
    if isinstance(event, e.TurnResumed):  # It may have waited for its place since it was taken.
        interrupted = [earlier.id for earlier, then in session.log[:place] if isinstance(then, e.TurnInterrupted)]
        since = max(span.began, min(since, found.world.when(interrupted[-1])))
    for facts_at in known[first : place + 1]:
        if facts_at.state not in (TurnState.INTERRUPTED, TurnState.WAITING):
            continue
        for now in _clock_between(found, since, when):
            for held in _held(found, span, when):
                rule = resume.decide(_facts(found, session, facts_at, span, now=now, held=held))
                yield rule.label, rule.decision


def _may_be_unknown(found: Evidence, session: SessionRecord, place: int, span: Span, when: float) -> bool:
    item, event = session.log[place]
    if isinstance(event, e.TurnInterrupted | e.TurnStarted | e.TurnWaiting):
        return False  # What is decided upon begins here.
    return item.id > span.after_id and when - found.world.when(item.id) <= LATE_S


def _clock_between(found: Evidence, since: float, until: float) -> set[int]:
    jumps = [at for at, _ in found.world.weather.jumps if since <= at <= until]
    return {found.world.wall_ms(at) for at in (since, until, *jumps, *(at - 0.001 for at in jumps))}


def _held(found: Evidence, span: Span, when: float) -> set[bool]:
    if not found.world.settings.auto_resume:
        return {True}
    if not span.safe:
        return {False}
    if span.left_safe_mode is None or when < span.left_safe_mode[1]:
        return {True}
    return {True, False} if when - span.left_safe_mode[1] <= LATE_S else {False}


def _facts(found: Evidence, session: SessionRecord, known: Known, span: Span, *, now: int, held: bool) -> Facts:
    world = found.world
    on_page = f":{NAME}:" not in session.session_key
    banned = world.bans is not None and world.bans[1] <= span.life and session.session_key.endswith(f":{world.bans[0]}")
    cut = known.state is TurnState.INTERRUPTED
    return Facts(
        turn=known.state,
        stop_requested=known.stopped,
        suspended=known.suspended,
        stuck=blame.is_stuck(known.restarts, known.deaths),
        tried=False,
        asked=cut and known.asked,
        fresh=not cut or resume.is_fresh(known.signed_at, now=now, window_s=world.settings.resume_window_s),
        held=cut and held,
        reachable=on_page or world.reachable(span.life),
        allowed=on_page or not banned,
    )


def restarts_are_counted_right(found: Evidence) -> None:
    """A17, A25, P8: a planned end counts where nothing was shown, an unclean death always, above two only for a suspect on trial. Three in
    a row, or ten deaths of one turn, are the end of it.
    """
    for session, known in histories(found):
        for place, (item, event) in enumerate(session.log):
            before = known[place]
            if isinstance(event, e.TurnInterrupted):
                died = event.reason == "crash" and not _rebooted(found, event.died, item.id)
                assert event.deaths == before.deaths + died, f"A17: {item} after {before.deaths} unclean deaths"
                assert event.restarts in _counts(found, before, event, died=died), f"A17: {item} counts {event.restarts} after {before}"
            if isinstance(event, e.TurnResumed) and event.rule != "answer":
                assert before.restarts < STUCK and before.deaths < DEATHS, f"P8: {item} after {before}"


def _counts(found: Evidence, before: Known, event: e.TurnInterrupted, *, died: bool) -> set[int]:
    if event.reason in NO_RESTART:
        return {before.restarts}
    if died:
        return {before.restarts + 1} if before.on_trial or before.restarts < SUSPECT else {before.restarts}
    if before.spoke:
        return {before.restarts}
    # A process that interrupts a turn itself knows how long it ran, whatever the wall clock says.
    unsure = event.died is None and bool(found.world.weather.jumps)
    ran_long = (before.signed_at or 0) - before.attempt_at >= PROGRESS_MS
    return {before.restarts, before.restarts + 1} if unsure else {before.restarts + (not ran_long)}


def _rebooted(found: Evidence, died: int | None, event_id: int) -> bool:
    """Whether the machine had been started again since that owner lived."""
    gone = next((span for span in found.world.spans if span.owner == died), None)
    return gone is not None and gone.boot_id != found.span(event_id).boot_id


def suspects_are_tried_one_at_a_time(found: Evidence) -> None:
    """A25: in the first ten minutes of a process every attempt of a suspect runs on trial, and one at a time in each process; nobody else
    does. A trial is passed by living on for thirty seconds at least.
    """
    known = {session.session_id: Known() for session in found.sessions.values()}
    on_trial: dict[int | None, str] = {}
    for item, event in found.log:
        before = known[item.session_id]
        now = known[item.session_id] = before.after(item, event)
        when = found.world.when(item.id)
        if isinstance(event, e.TurnStarted | e.TurnResumed):
            suspect = before.restarts >= SUSPECT
            assert suspect or not event.trial, f"A25: {item} is on trial after {before}"
            early = when - found.span(item.id).began < HEALTHY_S - LATE_S
            assert event.trial or not (suspect and early), f"A25: {item} is not on trial after {before}"
            if event.trial:
                other = on_trial.get(now.owner) if now.owner in set(found.alive(item.id)) else None
                beside = other not in (None, item.session_id) and known[other or ""].on_trial
                assert not beside, f"A25: {item} beside {other}"
                on_trial[now.owner] = item.session_id
        if isinstance(event, e.TrialPassed):
            assert before.on_trial, f"A25: {item} without a trial"
            began = next(earlier.id for earlier, then in reversed(_log_of(found, item)) if isinstance(then, e.TurnStarted | e.TurnResumed))
            assert when - found.world.when(began) >= TRIAL_LEAST_S, f"A25: {item} after {when - found.world.when(began)} s"


def _log_of(found: Evidence, item: e.Logged) -> Entries:
    session = next(session for session in found.sessions.values() if session.session_id == item.session_id)
    return Entries(entry for entry in session.log if entry.item.seq < item.seq)


def safe_mode_comes_and_goes(found: Evidence) -> None:
    """B14: three starts in a row died with nothing done; it ends after ten healthy minutes, a completed turn, or a word."""
    world = found.world
    if world.weather.flaky or world.weather.full[1]:
        return  # How a life ended may not be on record.
    for number, span in enumerate(world.spans):
        if not span.ready:
            continue
        before = [earlier for earlier in world.spans[:number] if earlier.ready]
        died = 0
        for earlier in reversed(before):
            if earlier.orderly or earlier.gave_way or _completed(found, earlier) or earlier.lasted_s > HEALTHY_S:
                break
            died += not _explained(found, earlier, span)
        # One may have died with its start on record and nothing else, or with its end.
        unsure = any(not earlier.ready or _may_have_ended(earlier) for earlier in world.spans[:number])
        assert span.safe == (died >= STARTS_THAT_DIED) or unsure, f"B14: safe mode is {span.safe} after {died} starts that died"
        if span.left_safe_mode is not None:
            _, at = span.left_safe_mode
            reasons = at - span.began >= HEALTHY_S - 1 or span.asked_to_leave or _completed(found, span)
            assert reasons, f"B14: safe mode ended after {at - span.began} s for no reason"


def _explained(found: Evidence, died: Span, span: Span) -> bool:
    """Whether a session was suspended for that death by the time the process of `span` was ready."""
    suspended = [item for item, event in found.log.of(e.TurnEnded) if event.blamed_for == died.owner]
    return any(item.id <= span.ready_id for item in suspended)


def _may_have_ended(span: Span) -> bool:
    """It died while it ended, or while it handed over: its end may be on record, or not."""
    return span.stopping != span.orderly or span.giving_way != span.gave_way


def _completed(found: Evidence, span: Span) -> bool:
    """Whether it ran a turn to its end itself: those of a process that hands over end while its successor serves."""
    return any(_owner(found, item) == span.owner for item, event in found.log.of(e.TurnEnded) if event.outcome is Outcome.COMPLETED)


def _owner(found: Evidence, item: e.Logged) -> int | None:
    """Who held the lease under which an event was written."""
    leases = [event for _, event in _log_of(found, item) if isinstance(event, e.TurnStarted | e.TurnTaken)]
    return next((lease.owner for lease in reversed(leases) if lease.epoch == item.epoch), None)


def a_pause_holds_back_starts_and_resumes(found: Evidence) -> None:
    """A26, C21: nothing begins in it but what was already beginning."""
    for item, event in found.log:
        if not isinstance(event, e.TurnStarted | e.TurnResumed):
            continue
        when = found.world.when(item.id)
        paused = [began for began, ended in found.span(item.id).pauses if began + LATE_S < when < ended]
        assert not paused, f"A26: {item} begins {when - paused[-1]} s into a pause"


def each_attempt_has_its_note(found: Evidence) -> None:
    """B1-B7: a resumed attempt is told what cut it, a message after a cut too, any other nothing; never two notes, and none in the text."""
    known_at = {session.session_id: known for session, known in histories(found)}
    started = {turn.id: turn for turn in found.turns}
    for given in found.world.given:
        turn = started.get(given.turn_id)
        assert turn is not None, f"P6: an agent was given {given}, of which there is no record"
        words = "\n\n".join([turn.text, *turn.steered])
        assert given.text == turn.text or (turn.steered and words.startswith(given.text)), f"B7: {given} where the user wrote {words!r}"
        assert (given.note or "").count(OPENING) <= 1, f"B4: two notes in {given}"
        begun = [
            (place, event)
            for place, (item, event) in enumerate(turn.session.log)
            if item.turn_id == turn.id and isinstance(event, e.TurnStarted | e.TurnResumed) and event.attempt == given.attempt
        ]
        assert len(begun) == 1, f"P2: attempt {given.attempt} of {turn.id} began {len(begun)} times"
        place, event = begun[0]
        if isinstance(event, e.TurnResumed) and event.rule != "answer":
            cause = CAUSES.get(event.reason, "gateway interruption")
            assert given.note is not None and cause in given.note, f"B6: {given} after {event}"
        old = _waited_ms(turn) > OLD_MS
        assert ("hours old" in (given.note or "")) is old, f"B5: {given} of a message that waited {_waited_ms(turn)} ms"
        if isinstance(event, e.TurnStarted) and given.note is not None and not old:
            ended = next((turn.end for turn in reversed(turn.session.turns[: turn.session.turns.index(turn)])), None)
            assert ended is not None, f"B5: {given} with nothing before it"
            told = any(isinstance(before, e.TurnInterrupted) for _, before in turn.session.log[:place]) or ended.unread_results
            assert told, f"B5: {given} though nothing was cut, with {known_at[turn.session.session_id][place]}"


def _waited_ms(turn: TurnRecord) -> int:
    """How old what it answers was when it started."""
    came = next(
        item.at
        for item, event in turn.session.log
        if isinstance(event, e.MessageAccepted | e.CauseRecorded) and cause_of(event) == turn.started.causes[0]
    )
    return turn.log[0].item.at - came


def a_running_turn_shows_signs_of_life(found: Evidence) -> None:
    """R6: while a process runs a turn, the record is never older than thirty seconds. What is in a spool is on record: recovery reads it
    before it decides.
    """
    weather = found.world.weather
    if weather.flaky or weather.full[1]:
        return
    for turn in found.turns:
        for (item, event), (following, _) in zip(turn.log, turn.log[1:], strict=False):
            state = isinstance(event, e.TurnWaiting | e.TurnInterrupted | e.TurnLeft | e.QuestionAnswered)
            if state or found.span(item.id) is not found.span(following.id) or isinstance(event, e.TurnTaken):
                continue
            if item.epoch != following.epoch:  # Shipped by the process that took the turn from the one that had spooled it.
                continue
            silent_s = found.world.kept(following, following.id) - found.world.kept(item, item.id)
            assert 1000 * silent_s <= BEAT_MS, f"R6: {turn.id} was run for {silent_s} s without a sign, after {item}"


RULES = (
    every_decision_follows_from_the_record,
    restarts_are_counted_right,
    suspects_are_tried_one_at_a_time,
    a_pause_holds_back_starts_and_resumes,
    safe_mode_comes_and_goes,
    each_attempt_has_its_note,
    a_running_turn_shows_signs_of_life,
)
