"""What of a spool enters the log, and how: as part of its turn while the lease that wrote it is the newest, and late after that."""

from collections.abc import Sequence

import msgspec

from holdfast.core import journals
from holdfast.core.events import JournalChanged, ToolFinished
from holdfast.core.journals import Late, Limits, Sight, State
from holdfast.core.spools import Spooled


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """What is stored of a turn that was spooled. `stored`: the places that the log has of this lease. `current`: the turn still runs under
    it. `over`: the turn has ended, or another one followed. `pruned`: its pieces were removed. `late`: what is on record of the journal.
    """

    stored: frozenset[int]
    current: bool
    over: bool
    pruned: bool
    late: Late


class Shipment(msgspec.Struct, frozen=True, kw_only=True):
    """`changes` are recorded first, then `events`, each in its own place: as the next ones of the turn (`in_place`), or late. `state`: of
    a late journal, as the row of its interruption says it.
    """

    events: tuple[Spooled, ...]
    in_place: bool
    changes: tuple[JournalChanged, ...] = ()
    state: State | None = None


def plan(found: Snapshot, items: Sequence[Spooled], sight: Sight, *, limits: Limits, at: int) -> Shipment:
    new = tuple(item for item in items if item.position not in found.stored)
    if found.current:
        return Shipment(events=new, in_place=True)
    if found.over and found.pruned:  # Its pieces were removed on purpose: they are not missing.
        new = tuple(item for item in new if item.kind == ToolFinished.kind)
    judged = journals.judge(found.late, msgspec.structs.replace(sight, new=bool(new)), at, limits)
    if judged is None:
        return Shipment(events=(), in_place=False, state=found.late.state)
    changes = tuple(journals.changed(found.late, judged, sight.size, new))
    return Shipment(events=new, in_place=False, changes=changes, state=judged[0])
