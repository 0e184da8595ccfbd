"""What an operation is about to touch, and which operations may share a batch where writes are gathered.

An engine far away locks and reads once for a whole batch, decides, and writes once (`docs/decisions/0027`). No operation sees what
another one of its batch has written, so a batch holds at most one per lane. SQLite writes at once and asks none of this: its batches take
operations as they come.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from holdfast.core.plans.schedules import dedup_key
from holdfast.store import desk
from holdfast.store.lines import Operation
from holdfast.store.work import inbox, journals, outbox, questions, schedules, sessions, streams, titles, turns


class Targets(msgspec.Struct, frozen=True):
    """What to lock and to read before an operation runs. `keys`: session keys. Each is a lane, which the sessions of that key share."""

    sessions: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    dedup: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()


# Every operation that touches a few lanes and says which, by its own first arguments. The others may touch anything.
NAMED: dict[Callable[..., Any], Callable[..., Targets]] = {
    desk.keep_draft: lambda session_id, *_: _session(session_id),
    desk.see: lambda session_id, *_: _session(session_id),
    inbox.accept_message: lambda session_id, message, *_: _session(session_id, message.dedup_key),
    inbox.edit_message: lambda session_id, wanted, *_: _session(session_id, wanted.dedup_key),
    inbox.withdraw_message: lambda session_id, *_: _session(session_id),
    inbox.record_cause: lambda session_id, cause, *_: _session(session_id, cause.dedup_key),
    inbox.carry_out: lambda session_id, aside, *_: _session(session_id, aside.dedup_key),
    inbox.tell_once: lambda session_id, *_: _session(session_id),
    inbox.request_stop: lambda session_id, by, turn_id, saw, dedup_key, *_: _session(session_id, dedup_key),
    outbox.record_delivery: lambda session_id, *_: _session(session_id),
    outbox.plan_delivery: lambda session_id, *_: _session(session_id),
    outbox.open_delivery: lambda session_id, *_: _session(session_id),
    journals.after_spooled: lambda lease, *_: _session(lease.session_id),
    journals.ship: lambda journal, *_: _session(journal.session_id),
    questions.wait_turn: lambda lease, *_: _session(lease.session_id),
    questions.take_causes: lambda lease, *_: _session(lease.session_id),
    questions.answer_question: lambda question_id, given, *_: Targets(questions=(question_id,), dedup=_known(given.dedup_key)),
    schedules.add_schedule: lambda session_id, added, *_: _session(session_id, added.dedup_key),
    schedules.fire_schedule: lambda session_id, schedule_id, expect, come, *_: _session(session_id, dedup_key(schedule_id, come.due_at)),
    sessions.create_session: lambda event, *_: Targets(sessions=(event.session_id,), keys=(event.session_key,)),
    sessions.change_session: lambda session_id, *_: _session(session_id),
    sessions.mark_pending: lambda session_key, *_: Targets(keys=(session_key,)),
    sessions.clear_mark: lambda session_id, *_: _session(session_id),
    sessions.clear_pending: lambda session_key, *_: Targets(keys=(session_key,)),
    sessions.reset: lambda session_id, names, by, dedup_key, *_: _session(session_id, dedup_key),
    sessions.branch_session: lambda origin, names, by, dedup_key, *_: Targets(
        sessions=(origin.session.session_id, names.session_id), keys=(names.session_key,), dedup=_known(dedup_key)
    ),
    sessions.resume_session: lambda session_id, by, dedup_key, *_: _session(session_id, dedup_key),
    sessions.delete_session: lambda session_id, *_: _session(session_id),
    sessions.undelete_session: lambda session_id, *_: _session(session_id),
    streams.append_streams: lambda items, *_: Targets(sessions=tuple(item.lease.session_id for item in items)),
    titles.ask_title: lambda session_id, *_: _session(session_id),
    titles.keep_title: lambda session_id, *_: _session(session_id),
    turns.start_turn: lambda session_id, *_: _session(session_id),
    turns.take_turn: lambda session_id, *_: _session(session_id),
    turns.append_turn: lambda lease, *_: _session(lease.session_id),
    turns.leave_turn: lambda session_id, *_: _session(session_id),
    turns.pass_trial: lambda lease, *_: _session(lease.session_id),
    turns.await_trial: lambda session_id, *_: _session(session_id),
}


def of(operation: Operation) -> Targets | None:
    """None: it may touch anything, and runs alone."""
    named = NAMED.get(operation.run)
    return None if named is None else named(*operation.arguments)


def batches(waiting: Sequence[Operation], lanes: Callable[[Targets], Sequence[str]]) -> list[list[Operation]]:
    """What waits, cut into batches to be run one after another. `lanes`: the keys of what an operation names; a session's never changes,
    nor does a question's, so an engine can remember them.
    """
    found = [of(operation) for operation in waiting]
    names = [None if targets is None else {*lanes(targets), *map(_as_name, targets.dedup)} for targets in found]
    made: list[list[Operation]] = []
    for number, operation in zip(cut(names), waiting, strict=True):
        made += [[] for _ in range(number + 1 - len(made))]
        made[number].append(operation)
    return made


def cut(wanted: Sequence[set[str] | None]) -> list[int]:
    """For each operation, in the order in which they came, the number of its batch: no two of one batch want the same name, those that do
    keep their order, and one that may want anything (None) is alone and passes nobody.
    """
    numbers: list[int] = []
    last: dict[str, int] = {}  # The newest batch that wants a name.
    first = newest = 0  # The first batch that is still open, and the first that nobody is in.
    for names in wanted:
        if names is None:
            number, first = newest, newest + 1
        else:
            number = max([first, *(last[name] + 1 for name in names if name in last)])
            last.update(dict.fromkeys(names, number))
        newest = max(newest, number + 1)
        numbers.append(number)
    return numbers


def _session(session_id: str, dedup_key: str | None = None) -> Targets:
    return Targets(sessions=(session_id,), dedup=_known(dedup_key))


def _known(dedup_key: str | None) -> tuple[str, ...]:
    return () if dedup_key is None else (dedup_key,)


def _as_name(key: str) -> str:
    """No session key begins like this."""
    return f"dedup|{key}"
