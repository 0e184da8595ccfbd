"""How the processes that served ended, and what each end cost: from what is on record of them and of turns. Pure."""

from collections.abc import Sequence

import msgspec

from holdfast.core.shutdowns import RESTARTED, STOPPED
from holdfast.ports.overview import Life, Mark

HAND_OVER, STOP, CRASH = "hand_over", "stop", "crash"
# Why a turn was interrupted: by a death that nobody announced, or by a stop.
_DEATH = "crash"
_STOPS = (STOPPED, RESTARTED)


class End(msgspec.Struct, frozen=True, kw_only=True):
    """`until`: until when it served, None for the one that serves. `how`: None while it does. `interrupted`: how many turns were;
    `resumed`: how many of them continued, the last of them `took_ms` after the end; after a hand-over, after the first was interrupted.
    """

    life: Life
    until: int | None
    how: str | None
    interrupted: int = 0
    resumed: int = 0
    took_ms: int | None = None


def ends(lives: Sequence[Life], marks: Sequence[Mark]) -> list[End]:
    """`lives`: the newest last. `marks`: in any order."""
    found = [_end(life, lives[index + 1] if index + 1 < len(lives) else None) for index, life in enumerate(lives)]
    costs: dict[int, list[tuple[Mark, Mark | None]]] = {}
    for mark in marks:
        if mark.kind == "turn.interrupted" and (place := _blamed(found, mark)) is not None:
            costs.setdefault(place, []).append((mark, _resumed(mark, marks)))
    return [_with_cost(each, costs.get(place, [])) for place, each in enumerate(found)]


def _end(life: Life, following: Life | None) -> End:
    if life.handed_at is not None:
        return End(life=life, until=life.handed_at, how=HAND_OVER)
    if life.ended:
        return End(life=life, until=life.ended_at or (following.started_at if following else None), how=STOP)
    return End(life=life, until=following.started_at if following else None, how=CRASH if following else None)


def _blamed(found: Sequence[End], mark: Mark) -> int | None:
    """Whose end interrupted it, if any did: a full disk, for example, ends nobody."""
    reason = mark.fields.get("reason")
    for place in reversed(range(len(found))):
        each = found[place]
        if (reason == _DEATH and _died_before(each, mark.at)) or (reason in _STOPS and _stopped_around(each, mark.at)):
            return place
    return None


def _died_before(end: End, at: int) -> bool:
    """A death is noticed after it, by another process. One that finished its turns after a hand-over may die, too."""
    died = end.how == CRASH or (end.how == HAND_OVER and end.life.ended_at is None)
    return died and end.until is not None and end.until <= at


def _stopped_around(end: End, at: int) -> bool:
    """A stop is recorded by the process that stops; by the next one, if it died over it, and then its end is not on record."""
    life = end.life
    return end.how in (STOP, HAND_OVER) and life.started_at <= at and (life.ended_at is None or at <= life.ended_at)


def _resumed(interrupted: Mark, marks: Sequence[Mark]) -> Mark | None:
    later = [
        mark
        for mark in marks
        if mark.kind == "turn.resumed" and (mark.session_id, mark.turn_id) == (interrupted.session_id, interrupted.turn_id)
        if mark.attempt > interrupted.attempt
    ]
    return min(later, key=lambda mark: mark.attempt, default=None)


def _with_cost(end: End, cost: Sequence[tuple[Mark, Mark | None]]) -> End:
    resumed = [mark for _, mark in cost if mark is not None]
    # After a hand-over a process may still work for a long time.
    since = min((mark.at for mark, _ in cost), default=None) if end.how == HAND_OVER else end.until
    took = max((mark.at for mark in resumed), default=None)
    return msgspec.structs.replace(
        end,
        interrupted=len(cost),
        resumed=len(resumed),
        took_ms=None if took is None or since is None else max(0, took - since),
    )
