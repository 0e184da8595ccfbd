"""The writes, each a function of (tx, arguments) that runs inside the writer's transaction.

An operation may run twice: when another one of its batch fails half-way the whole batch is run again. So: check first, write after.
"""

from collections.abc import Sequence

from holdfast.core import blame, resume
from holdfast.core import events as e
from holdfast.core.blame import Interruption, Standing
from holdfast.core.delivery import DeliveryState
from holdfast.core.errors import Bug, Conflict, NotFound, PositionGap, StaleEpoch, StalePosition, ToldToStop
from holdfast.core.sessions import Lease
from holdfast.core.turns import Outcome, TurnState
from holdfast.ports.turns import StartedTurn, StreamItem
from holdfast.store import reads
from holdfast.store.heads import Head
from holdfast.store.log import NOT_STORABLE, insert, not_storable, number
from holdfast.store.sessions import append_free
from holdfast.store.tx import Tx
from holdfast.store.unattended import STOPPED_WAITING, SUSPENDED_FIRST, ask_again, end_unattended, refuse_waiting, set_aside

FENCED = (
    "UPDATE head SET seq = seq + ?1, position = position + ?1"
    " WHERE session = (SELECT id FROM session WHERE session_id = ?2) AND epoch = ?3 AND owner = ?4 AND turn = ?5 AND attempt = ?6"
    " AND position = ?7 AND state = 'running' RETURNING session, seq"
)

HELD = (TurnState.RUNNING, TurnState.INTERRUPTED)
TAKEABLE = (TurnState.RUNNING, TurnState.ANSWERED, TurnState.INTERRUPTED)


def start_turn(tx: Tx, session_id: str, owner: int, turn_id: str, at: int, trial: bool = False) -> StartedTurn | None:
    session = number(tx, session_id)
    head = tx.head(session)
    left = head.state is TurnState.INTERRUPTED and head.left and not head.stop
    if (head.state not in (TurnState.NONE, TurnState.ENDED) and not left) or reads.told_to_stop(tx, owner):
        return None
    suspended, key, current, generation = tx.query(
        "SELECT s.suspended, s.session_key, l.session, l.generation FROM session s JOIN lane l USING (session_key) WHERE s.id = ?", session
    )[0]
    if suspended or current != session:
        refuse_waiting(tx, head, SUSPENDED_FIRST if suspended else "the conversation was left first", at)
        return None
    rows = tx.query("SELECT seq, message_id FROM inbox WHERE session = ? ORDER BY seq LIMIT 1", session)
    if not rows:
        return None
    if _another_turn_ends(tx, key, session):
        return None
    if left:
        set_aside(tx, head, key, at)
    seq, message_id = rows[0]
    accepted = tx.event_at(session, seq)
    text = accepted.text if isinstance(accepted, e.MessageAccepted) else reads.UNREADABLE
    head.turn = turn_id
    started = e.TurnStarted(
        generation=generation + 1,
        attempt=1,
        cause="message",
        causes=(message_id,),
        owner=owner,
        epoch=head.epoch + 1,
        trial=trial,
    )
    tx.append(head, started, at, in_turn=True)
    tx.append(head, e.MessageWritten(message_id=message_id, role="user", content=text), at, in_turn=True)
    return StartedTurn(Lease(session_id, owner, head.epoch), turn_id, head.attempt, head.position)


def _another_turn_ends(tx: Tx, key: str, session: int) -> bool:
    """Whether a conversation that was left is still at the work it was told to stop: one chat has one agent at a time (A22)."""
    return bool(
        tx.query(
            "SELECT 1 FROM session o JOIN head h ON h.session = o.id"
            " WHERE o.session_key = ? AND o.id <> ? AND h.stop = 1 AND h.state IN ('running', 'interrupted') LIMIT 1",
            key,
            session,
        )
    )


def leave_turn(tx: Tx, session_id: str, turn_id: str, left: e.TurnLeft, at: int) -> bool:
    head = tx.head(number(tx, session_id))
    if head.turn != turn_id or head.owner is not None or head.state not in (TurnState.WAITING, TurnState.INTERRUPTED):
        return False
    tx.append(head, left, at, in_turn=True)
    if head.state is TurnState.WAITING:
        ask_again(tx, head, at)
    return True


def take_turn(
    tx: Tx, session_id: str, owner: int, turn_id: str, epoch: int, events: Sequence[e.Event | Interruption], at: int
) -> StartedTurn:
    head = tx.head(number(tx, session_id))
    if (head.epoch, head.turn) != (epoch, turn_id) or head.state not in TAKEABLE:
        raise StaleEpoch(session_id, epoch)
    if reads.told_to_stop(tx, owner):
        raise ToldToStop(session_id)
    decided = _decided(tx, head, Lease(session_id, owner, epoch), events)
    tx.append(head, e.TurnTaken(owner=owner, epoch=epoch + 1), at, in_turn=True)
    _append_to_turn(tx, head, decided, at)
    return StartedTurn(Lease(session_id, owner, head.epoch), turn_id, head.attempt, head.position)


def append_turn(tx: Tx, lease: Lease, turn_id: str, attempt: int, position: int, events: Sequence[e.Event | Interruption], at: int) -> int:
    pieces: list[e.Event] = []
    for event in events:
        if isinstance(event, Interruption) or not event.stream:
            break
        pieces.append(event)
    else:
        return append_stream(tx, lease, turn_id, attempt, position, pieces, at)
    head = tx.head(number(tx, lease.session_id))
    if (head.epoch, head.owner, head.turn) != (lease.epoch, lease.owner, turn_id) or head.state not in HELD:
        raise StaleEpoch(lease.session_id, lease.epoch)
    _check_position(head, turn_id, attempt, position)
    _append_to_turn(tx, head, _decided(tx, head, lease, events), at)
    if head.stop and head.state is TurnState.WAITING:  # It asked in the moment in which it was stopped: the stop wins.
        end_unattended(tx, head, Outcome.CANCELLED, STOPPED_WAITING, at)
    return head.position


def _decided(tx: Tx, head: Head, lease: Lease, events: Sequence[e.Event | Interruption]) -> list[e.Event]:
    """The events as they are to be written, by what only this transaction knows: the count before an interruption, a stop on record, and
    whether this process was told to stop.
    """
    written = [blame.recorded(event, _standing(tx, head)) if isinstance(event, Interruption) else event for event in events]
    resumes = any(isinstance(event, e.TurnResumed) for event in written)
    if resumes and reads.told_to_stop(tx, lease.owner):
        raise ToldToStop(lease.session_id)
    if not head.stop:
        return written
    if resumes or (head.state is TurnState.INTERRUPTED and any(_decides_otherwise(event) for event in written)):
        raise StaleEpoch(lease.session_id, lease.epoch)  # Decided without the stop: it has to be decided again (R0).
    return [_stopped(event) for event in written]  # People were told: whatever comes too late ends as the stop says.


def _decides_otherwise(event: e.Event) -> bool:
    return isinstance(event, e.TurnEnded) and event.outcome is not Outcome.CANCELLED


def _standing(tx: Tx, head: Head) -> Standing:
    restarts, on_trial, deaths = tx.query("SELECT interrupted_restarts, on_trial, deaths FROM session WHERE id = ?", head.session)[0]
    return Standing(restarts, bool(on_trial), deaths)


def _append_to_turn(tx: Tx, head: Head, events: Sequence[e.Event], at: int) -> None:
    for event in events:
        tx.append(head, event, at, in_turn=True)
    if any(isinstance(event, e.SessionChanged) and event.suspended is True for event in events):
        refuse_waiting(tx, head, SUSPENDED_FIRST, at)


def pass_trial(tx: Tx, lease: Lease, turn_id: str, at: int) -> bool:
    head = tx.head(number(tx, lease.session_id))
    if (head.epoch, head.owner, head.turn, head.state) != (lease.epoch, lease.owner, turn_id, TurnState.RUNNING):
        return False
    if not _standing(tx, head).on_trial:
        return False
    tx.append(head, e.TrialPassed(turn_id=turn_id), at, in_turn=False)
    return True


def await_trial(tx: Tx, session_id: str, turn_id: str, aged_ms: int, at: int) -> bool:
    head = tx.head(number(tx, session_id))
    if (head.turn, head.state) != (turn_id, TurnState.INTERRUPTED):
        return False
    tx.append(head, e.TrialAwaited(turn_id=turn_id, aged_ms=aged_ms), at, in_turn=False)
    return True


def _stopped(event: e.Event) -> e.Event:
    """The end of a turn for which a stop was recorded earlier: whatever rule was about to decide, the stop did."""
    if not isinstance(event, e.TurnEnded) or not _decides_otherwise(event):
        return event
    return e.TurnEnded(outcome=Outcome.CANCELLED, rule=resume.stopped().label if event.rule else None)


def append_stream(tx: Tx, lease: Lease, turn_id: str, attempt: int, position: int, events: Sequence[e.Event], at: int) -> int:
    """One fenced UPDATE answers for lease and position; only a refusal is looked into."""
    pieces = [(event.kind, e.encode(event)) for event in events]  # Before anything is written: it may be no text at all.
    count = len(pieces)
    rows = tx.query(FENCED, count, lease.session_id, lease.epoch, lease.owner, turn_id, attempt, position)
    if not rows:
        raise _why_refused(tx, lease, turn_id, attempt, position)
    session, seq = rows[0]
    seq -= count
    for kind, body in pieces:
        seq += 1
        insert(tx, session, seq, turn_id, attempt, position, kind, body, at)
        position += 1
    return position


def append_streams(tx: Tx, items: Sequence[StreamItem], at: int) -> list[int | Exception]:
    results: list[int | Exception] = []
    for item in items:
        try:
            for event in item.events:
                if not event.stream:
                    raise Bug("Only stream events can be written for many turns at once.")
            results.append(append_stream(tx, item.lease, item.turn_id, item.attempt, item.position, item.events, at))
        except (Conflict, NotFound, Bug) as refusal:
            results.append(refusal)
        except NOT_STORABLE as error:
            results.append(not_storable(error))
    return results


def _why_refused(tx: Tx, lease: Lease, turn_id: str, attempt: int, position: int) -> Exception:
    head = tx.head(number(tx, lease.session_id))
    if (head.epoch, head.owner, head.turn, head.state) == (lease.epoch, lease.owner, turn_id, TurnState.RUNNING):
        _check_position(head, turn_id, attempt, position)
    return StaleEpoch(lease.session_id, lease.epoch)


def _check_position(head: Head, turn_id: str, attempt: int, position: int) -> None:
    if attempt < head.attempt or position < head.position:
        raise StalePosition(turn_id, position, head.position)
    if attempt > head.attempt or position > head.position:
        raise PositionGap(turn_id, position, head.position)


def record_delivery(tx: Tx, session_id: str, change: e.DeliveryChanged, expect: DeliveryState, at: int) -> bool:
    session = number(tx, session_id)
    rows = tx.query("SELECT state FROM outbox WHERE delivery_id = ? AND session = ?", change.delivery_id, session)
    if not rows or rows[0][0] != expect:
        return False
    append_free(tx, session, [change], at)
    return True
