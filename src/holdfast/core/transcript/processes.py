"""Processes in the background, as a conversation knows them."""

import msgspec

from holdfast.core import events as e
from holdfast.core import processes
from holdfast.core.transcript.fold import Fold, Free


def _start(fold: Fold, item: e.Logged, event: e.ProcessStarted) -> None:
    fold.processes[event.process_id] = processes.started(event, session_id=item.session_id, at=item.at)


def _consume(fold: Fold, item: e.Logged, event: e.ProcessConsumed) -> None:
    if (known := fold.processes.get(event.process_id)) and known.consumed is None:
        fold.processes[event.process_id] = msgspec.structs.replace(known, consumed=event.how)


def _end(fold: Fold, item: e.Logged, event: e.ProcessEnded) -> None:
    if known := fold.processes.get(event.process_id):
        fold.processes[event.process_id] = msgspec.structs.replace(known, end=event)


FREE: Free = {e.ProcessStarted: _start, e.ProcessConsumed: _consume, e.ProcessEnded: _end}
