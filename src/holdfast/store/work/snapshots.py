"""Snapshots for plans, from what a transaction reads. Each loads what its plan can need in the state it is in, and nothing else."""

import msgspec

from holdfast.core import approvals, limits
from holdfast.core import events as e
from holdfast.core import resume as rules
from holdfast.core.blame import Standing
from holdfast.core.delivery import DeliveryState
from holdfast.core.errors import NotFound, Taken
from holdfast.core.limits import Bounds, Reached
from holdfast.core.plans import answer, causes, edit, owe, resume, start, stop
from holdfast.core.plans.approve import Granted
from holdfast.core.plans.causes import Cause
from holdfast.core.plans.edit import Edit
from holdfast.core.plans.ending import Unfinished
from holdfast.core.plans.leave import Fresh, Underway
from holdfast.core.plans.owe import Asked, Question, arrived
from holdfast.core.plans.owe import asked as how_far
from holdfast.core.plans.resume import Request
from holdfast.core.plans.start import Lane
from holdfast.core.replies import asked_delivery
from holdfast.core.sessions import Session
from holdfast.core.stops import LastStop
from holdfast.core.transcript import Transcript
from holdfast.core.turns import OPEN
from holdfast.store import queries as q
from holdfast.store import reads, spending
from holdfast.store.heads import Head
from holdfast.store.log import number
from holdfast.store.tx import Tx


def addressed(tx: Tx, session_id: str) -> tuple[int | None, Session]:
    """The session that a message to this one is for, and its number where that is known: its key's current one. Where that is deleted,
    this one, which is not current.
    """
    found, session = reads.numbered(tx, session_id)
    if session.current:
        return found, session
    return None, reads.current_session(tx, session.session_key) or session


def current(tx: Tx, session_id: str) -> Session:
    """As `addressed`, for what no deleted session can be asked."""
    session = addressed(tx, session_id)[1]
    return session if session.current else reads.living(tx, session_id)


def fresh(tx: Tx, before: Session, names: tuple[str, str]) -> Fresh:
    session = number(tx, before.session_id)
    left = reads.conversation_number(tx, session)
    rules = tuple(rule_id for (rule_id,) in tx.query(q.RULE_IDS, session))
    conversations = reads.conversations_of(tx, before.session_key)
    return Fresh(session_id=names[0], log=names[1], left=left, conversations=conversations, rules=rules)


def underway(tx: Tx, session: Session) -> Underway:
    found = number(tx, session.session_id)
    waits = waiting(tx, found) if session.queued else ()
    unconsumed = tuple(process_id for (process_id,) in tx.query(q.PROCESSES_UNCONSUMED, found))
    return Underway(session=session, unfinished=unattended(tx, session), waiting=waits, processes=unconsumed)


def waiting(tx: Tx, session: int) -> tuple[Cause, ...]:
    """What waits, oldest first."""
    rows = tx.query(q.INBOX, session)
    return tuple(_cause(tx, session, *row) for row in rows)


def _cause(tx: Tx, session: int, seq: int, cause_id: str, edited: int | None) -> Cause:
    return causes.read(cause_id, tx.event_at(session, seq), None if edited is None else tx.event_at(session, edited))


def editing(tx: Tx, session: Session, wanted: Edit) -> edit.Snapshot:
    """Raises `Taken` where the message was believed to wait."""
    found = number(tx, session.session_id)
    head = tx.head(found)
    rows = tx.query(q.WAITS, found, wanted.message_id)
    if wanted.waits and not rows:
        raise Taken(wanted.message_id)
    seq = (rows[0][1] or rows[0][0]) if rows else wanted.seq
    in_turn = wanted.turn_id is not None and wanted.turn_id == head.turn and head.state in OPEN
    return edit.Snapshot(
        session=session,
        words=tx.event_at(found, seq),
        seq=seq,
        waits=bool(rows),
        in_turn=in_turn,
        waiting=waiting(tx, found) if in_turn else (),
    )


def unattended(tx: Tx, session: Session) -> Unfinished | None:
    """The open turn of a session, if it is one that no process runs."""
    if session.turn_state not in stop.UNATTENDED:
        return None
    return unfinished(tx, tx.head(number(tx, session.session_id)), session.session_key)


def unfinished(tx: Tx, head: Head, session_key: str) -> Unfinished:
    folded = reads.open_turn(tx, head)
    return Unfinished(
        session_key=session_key,
        turn_id=head.turn or "",
        said=folded.answer_text,
        begun=folded.begun,
        anchor=anchor(tx, head),
        calls=folded.calls,
        asking=_asking(tx, head.session, folded),
        unread_results=folded.turns[-1].unread_results if folded.turns else False,
    )


def _asking(tx: Tx, session: int, folded: Transcript) -> tuple[str, ...]:
    """The calls that wait for an answer. One that waits for its approval has not started, and one that runs while it asks does not wait."""
    live = {question.question_id for question in folded.questions if question.live}
    return tuple(each.call_id for each in asked(tx, session) if each.form != approvals.FORM and each.question_id not in live)


def anchor(tx: Tx, head: Head) -> str | None:
    """What a reply of the open turn hangs on."""
    recorded = tx.event_at(head.session, head.asked_seq)
    return recorded.anchor if isinstance(recorded, e.MessageAccepted | e.CauseRecorded) else None


def asked(tx: Tx, session: int) -> tuple[Question, ...]:
    """The open questions of a session, oldest first, without how far each has come on its way."""
    rows = tx.query(q.QUESTIONS_OPEN, session)
    return tuple(
        Question(question_id=question_id, call_id=call_id, expires_at=expires_at, form=form)
        for question_id, call_id, expires_at, form in rows
    )


def questions(tx: Tx, session: Session) -> tuple[Question, ...]:
    """The open ones of an open turn, oldest first."""
    if session.turn_state not in OPEN:
        return ()
    rows = tx.query(q.QUESTIONS_OPEN_OF, session.session_id)
    return tuple(_question(tx, *row) for row in rows)


def question(tx: Tx, question_id: str) -> answer.Snapshot:
    rows = tx.query(q.QUESTION, question_id)
    if not rows:
        raise NotFound("question", question_id)
    session_id, session, call_id, state, expires_at, form, seq, others = rows[0]
    asked_for = tx.event_at(session, seq)
    cause = tx.event_at(session, tx.head(session).asked_seq)
    return answer.Snapshot(
        session=tx.session(session_id),
        question_id=question_id,
        call_id=call_id,
        state=state,
        expires_at=expires_at,
        others=others,
        form=form,
        choices=asked_for.choices if isinstance(asked_for, e.QuestionAsked) else (),
        pattern=asked_for.pattern if isinstance(asked_for, e.QuestionAsked) else None,
        for_operators=isinstance(asked_for, e.QuestionAsked) and asked_for.for_operators,
        theirs=isinstance(asked_for, e.QuestionAsked) and asked_for.theirs,
        asked_by=cause.sender if isinstance(cause, e.MessageAccepted | e.CauseRecorded) else None,
    )


def approvals_of(tx: Tx, session: Session) -> tuple[answer.Snapshot, ...]:
    """The open ones of a session, oldest first."""
    return tuple(
        msgspec.structs.replace(question(tx, each.question_id), seen=how_far(each.deliveries) is Asked.SEEN)
        for each in questions(tx, session)
        if each.form == approvals.FORM
    )


def granted(tx: Tx, session: int, question_id: str) -> Granted | None:
    rows = tx.query(q.GRANTED, question_id, session)
    if not rows:
        return None
    turn, call_id, state, verdict, seq = rows[0]
    shown = tx.event_at(session, seq)
    fingerprint = shown.fingerprint if isinstance(shown, e.QuestionAsked) else None
    return Granted(turn_id=turn, call_id=call_id, state=state, verdict=verdict, fingerprint=fingerprint)


def question_answered_by(tx: Tx, message_id: str) -> str | None:
    rows = tx.query(q.QUESTION_ANSWERED_BY, message_id)
    return rows[0][0] if rows else None


def _question(tx: Tx, session: int, question_id: str, call_id: str, expires_at: int, form: str, seq: int) -> Question:
    asked_for = tx.event_at(session, seq)
    first = asked_delivery(question_id)
    rows = tx.query(q.TELLINGS, session, first, f"{first}/")
    pieces: dict[str, list[DeliveryState]] = {}
    for delivery_id, state, _, _ in rows:
        pieces.setdefault(delivery_id, []).append(DeliveryState(state))
    deliveries = tuple(arrived(states) for states in pieces.values())
    told = tx.event_at(session, rows[0][2]) if how_far(deliveries) is Asked.LOST else None
    return Question(
        question_id=question_id,
        call_id=call_id,
        expires_at=expires_at,
        form=form,
        deliveries=deliveries,
        receipts=tuple(receipt for _, _, _, receipt in rows if receipt is not None),
        told=told if isinstance(told, e.MessageWritten) else None,
        choices=asked_for.choices if isinstance(asked_for, e.QuestionAsked) else (),
    )


def stopping(tx: Tx, session: Session) -> stop.Snapshot:
    return stop.Snapshot(session=session, last=_last_stop(tx, session), unfinished=unattended(tx, session))


def _last_stop(tx: Tx, session: Session) -> LastStop | None:
    turn_id, stopped_at, waited, reply = tx.query(q.LAST_STOP, session.session_id)[0]
    if not turn_id or stopped_at is None:
        return None
    return LastStop(turn_id, stopped_at, waited=bool(waited), reply=DeliveryState(reply) if reply else None)


def resuming(tx: Tx, session_id: str) -> resume.Snapshot:
    session = reads.living(tx, session_id)
    other = None if session.current else reads.current_session(tx, session.session_key)
    return resume.Snapshot(
        session=session,
        other=None if other is None else underway(tx, other),
        request=_request(tx, tx.head(number(tx, session_id))) if rules.asks_again(session) else None,
    )


def _request(tx: Tx, head: Head) -> Request | None:
    accepted = tx.event_at(head.session, head.asked_seq)
    if isinstance(accepted, e.CauseRecorded):
        return Request(accepted, reads.last_reason(tx, head))
    if not isinstance(accepted, e.MessageAccepted):
        return None
    shown = reads.open_turn(tx, head).request
    if shown is not None:  # It may have been edited.
        accepted = msgspec.structs.replace(accepted, content=shown.content)
    return Request(accepted, reads.last_reason(tx, head))


def previous(tx: Tx, session: Session) -> str | None:
    """The conversation before this one."""
    rows = tx.query(q.PREVIOUS, session.session_key, session.session_id)
    return str(rows[0][0]) if rows else None


def lane(tx: Tx, head: Head, owner: int) -> Lane:
    """One statement: this is asked before every turn."""
    row = tx.query(q.LANE, owner, head.session)[0]
    session_id, key, suspended, rule, why, model, current, generation, newest, told, waits, another = row
    return Lane(
        session_id=session_id,
        session_key=key,
        state=head.state,
        left=bool(head.left),
        stop_requested=bool(head.stop),
        told_to_stop=bool(told),
        suspended=bool(suspended),
        current=bool(current),
        another_ends=bool(another),
        waits=bool(waits),
        generation=generation,
        newest=newest,
        epoch=head.epoch,
        rule=rule,
        why=why,
        model=model,
    )


def reached(tx: Tx, session_id: str, cause: Cause, bounds: Bounds | None) -> Reached | None:
    """The limit that forbids the sender of a cause another turn."""
    if bounds is None or cause.sender is None:
        return None
    return limits.reached_by_sender(bounds.limits, spending.account(tx, session_id, "", bounds.day, cause.sender))


def next_cause(tx: Tx, session: int, generation: int, *, only_said: bool) -> tuple[Cause | None, tuple[Cause, ...]]:
    """The oldest cause that is still current, where its session's newest turn is of this generation, and those before it that are not.
    `only_said`: those that are `held` are left where they are.
    """
    outdated: list[Cause] = []
    after = 0
    while rows := tx.query(q.NEXT_CAUSE, session, session, after):
        cause, after = _cause(tx, session, *rows[0]), rows[0][0]
        if only_said and causes.held(cause):
            continue
        if causes.startable(cause, generation):
            return cause, tuple(outdated)
        outdated.append(cause)
    return None, tuple(outdated)


def to_set_aside(tx: Tx, head: Head, found: Lane) -> Unfinished | None:
    return unfinished(tx, head, found.session_key) if start.sets_aside(found) else None


def standing(tx: Tx, head: Head) -> Standing:
    restarts, on_trial, deaths = tx.query(q.STANDING, head.session)[0]
    return Standing(restarts, bool(on_trial), deaths)


def delivery_state(tx: Tx, session: int, delivery_id: str, part: int) -> DeliveryState | None:
    rows = tx.query(q.DELIVERY_STATE, delivery_id, part, session)
    return DeliveryState(rows[0][0]) if rows else None


def planning(tx: Tx, session: int, planned: e.DeliveryPlanned) -> owe.Planning:
    rows = tx.query(q.UNPLANNED, planned.delivery_id, session)
    states = {name: [state for (state,) in tx.query(q.STILL_LIVE, name, session)] for name in (*planned.live, *planned.lost)}
    return owe.Planning(
        state=DeliveryState(rows[0][0]) if rows else None,
        live={name: DeliveryState(found[0]) for name, found in states.items() if found},
    )
