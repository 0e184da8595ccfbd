"""Who is to blame for an interruption: how restarts in a row are counted, which sessions are suspects, and how a suspect is tried.

A process that dies takes every turn that ran in it down, and only one of them may be the reason. So an unclean death counts for all of
them, but only up to the point where they are suspects. From there on each runs on trial, alone among the suspects of its process, and
only a death during its own trial counts further. The facts are events; nothing here is kept in memory over a restart.
"""

from enum import StrEnum

import msgspec

from holdfast.core.events import TurnInterrupted

SUSPECT_AFTER = 2
STUCK_AFTER = 3
DEATHS_IN_ALL = 10
PROGRESS_AFTER_MS = 10 * 60 * 1000
TRIAL_LEAST_MS, TRIAL_MOST_MS = 30 * 1000, 10 * 60 * 1000
CRASH = "crash"


class End(StrEnum):
    """How an attempt was interrupted. PLANNED: by a stop that was on record, or together with the whole machine. DEATH: its process died,
    and nobody had asked it to. HARMLESS: by something that no restart did, such as a full disk or a suspension.
    """

    PLANNED = "planned"
    DEATH = "death"
    HARMLESS = "harmless"


class Interruption(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of an attempt that is interrupted. The store makes the record of it, because only its transaction knows for certain
    what the session's count was before. `died`: the owner whose death it was found after; nobody holds the turn from then on. `stream_id`:
    the attempt's journal, where it cannot be read.
    """

    reason: str
    end: End
    progressed: bool = False
    lived_ms: int = 0
    written: int = 0
    died: int | None = None
    stream_id: str | None = None


class Standing(msgspec.Struct, frozen=True):
    """Of a session, before the interruption: restarts in a row, whether the attempt ran on trial, unclean deaths of this turn in all."""

    restarts: int
    on_trial: bool
    deaths: int


def recorded(what: Interruption, before: Standing) -> TurnInterrupted:
    return TurnInterrupted(
        reason=what.reason,
        restarts=restarts_after(what.end, progressed=what.progressed, before=before),
        written=what.written,
        deaths=before.deaths + (what.end is End.DEATH),
        lived_ms=0 if what.end is End.HARMLESS else what.lived_ms,
        died=what.died,
        stream_id=what.stream_id,
    )


def restarts_after(end: End, *, progressed: bool, before: Standing) -> int:
    """The count of restarts in a row, this interruption included. A death while another is on trial makes no more than a suspect."""
    match end:
        case End.HARMLESS:
            return before.restarts
        case End.PLANNED:
            return before.restarts if progressed else before.restarts + 1
        case End.DEATH if before.on_trial:
            return before.restarts + 1
        case End.DEATH:
            return max(before.restarts, min(before.restarts + 1, SUSPECT_AFTER))


def end_of(*, draining: str | None, boot_id: str | None, this_boot: str | None) -> tuple[End, str]:
    """How the life of an owner that is gone ended, by its own row, and the reason its turns are told."""
    if draining is not None:
        return End.PLANNED, draining
    with_the_machine = boot_id is not None and this_boot is not None and boot_id != this_boot
    return End.PLANNED if with_the_machine else End.DEATH, CRASH


def made_progress(*, spoke: bool, lived_ms: int) -> bool:
    """Whether an attempt has something of its own to show (text, thought, step or result), or ran for long enough without."""
    return spoke or lived_ms >= PROGRESS_AFTER_MS


def is_suspect(restarts: int) -> bool:
    return restarts >= SUSPECT_AFTER


def is_stuck(restarts: int, deaths: int, *, stuck_after: int = STUCK_AFTER) -> bool:
    """Whether a session is to be suspended for its interrupted turn (R2)."""
    return restarts >= stuck_after or deaths >= DEATHS_IN_ALL


def trial_ms(lived_ms: int) -> int:
    """How long a trial lasts at most, by how long the attempt lived that was interrupted before it."""
    return max(TRIAL_LEAST_MS, min(2 * lived_ms, TRIAL_MOST_MS))


def trial_rank(tried_at: int | None, attempt_at: int) -> tuple[int, int]:
    """The lowest is tried first: the least recently tried, then the one whose last attempt began last."""
    return tried_at or 0, -attempt_at
