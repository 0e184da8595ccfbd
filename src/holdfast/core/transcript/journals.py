"""Journals that are late: what is shown while one is looked for, and what it brings when it comes."""

from holdfast.core import events as e
from holdfast.core import notices
from holdfast.core.journals import State
from holdfast.core.messages import Awaited, Message
from holdfast.core.transcript.fold import Fold, Free, Work


def show(row: Message, state: State, awaited: Awaited) -> None:
    """What a row waits for is shown only while it waits."""
    row.state, row.content = state, notices.journal(row.reason or "", state)
    row.awaits = awaited if state is State.RECOVERING else None


def _change(fold: Fold, item: e.Logged, event: e.JournalChanged) -> None:
    """A late journal was looked for, or some of it has arrived: that is shown above the row that waits for it. Where the turn has not
    continued since, the events that follow complete its answer; otherwise what was said in them is a message of its own.
    """
    work = fold.works.get(event.turn_id)
    if work is None:
        return
    row = work.late.get(event.stream_id)
    for call_id in event.call_ids:
        if call := work.steps.call(call_id):
            call.recovered = True
    if event.text and row is not None and row is work.row:
        work.answer.recovered = True
    elif event.text:
        _supersede(fold, work, item, event, row or work.answer)
    if row is not None:
        since = row.awaits.first_seen if row.awaits else item.at
        show(row, State(event.state), Awaited(event.stream_id, event.tries, since))


def _supersede(fold: Fold, work: Work, item: e.Logged, event: e.JournalChanged, above: Message) -> None:
    said = work.superseded.get(event.stream_id)
    if said is not None:
        said.content = f"{said.text}{event.text}"
        return
    said = work.superseded[event.stream_id] = Message(
        id=f"{event.stream_id}.recovered",
        role="assistant",
        content=event.text,
        turn_id=work.turn.id,
        created_at=item.at,
        status="superseded",
        recovered=True,
    )
    fold.rows.insert_above(above, said)


FREE: Free = {e.JournalChanged: _change}
