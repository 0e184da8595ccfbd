"""Writes about the questions of a turn, and what steers it: waiting for answers, giving them, and taking messages into a turn that runs."""

import msgspec

from holdfast.core.errors import StaleEpoch
from holdfast.core.plans import answer, take, wait
from holdfast.core.plans.answer import Answer
from holdfast.core.plans.causes import Cause
from holdfast.core.plans.wait import Waiting
from holdfast.core.sessions import Lease
from holdfast.core.turns import TurnState
from holdfast.store.heads import Head
from holdfast.store.log import number
from holdfast.store.tx import Tx
from holdfast.store.work import run, snapshots
from holdfast.store.work.repeats import known
from holdfast.store.work.streams import check_position


def wait_turn(tx: Tx, lease: Lease, turn_id: str, attempt: int, position: int, asking: tuple[str, ...], at: int) -> tuple[Waiting, int]:
    head = _held(tx, lease, turn_id, attempt, position)
    plan = wait.plan(lease.session_id, snapshots.asked(tx, head.session), asking=asking, stop_requested=bool(head.stop), at=at)
    return run(tx, plan, at, {lease.session_id: head}), head.position


def take_causes(
    tx: Tx, lease: Lease, turn_id: str, attempt: int, position: int, step: int, offset: int, at: int
) -> tuple[tuple[Cause, ...], int]:
    head = _held(tx, lease, turn_id, attempt, position)
    waiting = snapshots.waiting(tx, head.session)
    generation = tx.session(lease.session_id).generation if any(cause.generation is not None for cause in waiting) else 0
    plan = take.plan(lease.session_id, waiting, generation=generation, stop_requested=bool(head.stop), step=step, offset=offset)
    return run(tx, plan, at, {lease.session_id: head}), head.position


def answer_question(tx: Tx, question_id: str, given: Answer, at: int) -> str:
    if given.number is not None:
        given = answer.chosen(snapshots.question(tx, question_id), given)
    repeated = known(tx, given.dedup_key, _as_recorded(tx, given).known_by)
    if repeated is not None:
        return repeated.session_id
    return run(tx, answer.plan(snapshots.question(tx, question_id), given, at=at), at)


def _as_recorded(tx: Tx, given: Answer) -> Answer:
    return msgspec.structs.replace(given, content=tx.secrets.content(given.content), reason=tx.secrets.text(given.reason))


def _held(tx: Tx, lease: Lease, turn_id: str, attempt: int, position: int) -> Head:
    """The head of a turn that runs under this lease, at this position."""
    head = tx.head(number(tx, lease.session_id))
    if (head.epoch, head.owner, head.turn, head.state) != (lease.epoch, lease.owner, turn_id, TurnState.RUNNING):
        raise StaleEpoch(lease.session_id, lease.epoch)
    check_position(head, turn_id, attempt, position)
    return head
