"""Journals that are late: an interrupted turn whose spool could not be read when its fate was decided. Whether one is looked for again, and
what becomes of the row that tells of the interruption.

The budget is time and growth, never the number of readers: a look counts at most once in a while, one that finds the journal still growing
not at all, and past the give-up time nobody looks. Texts are never compared: what arrives has its place by turn, epoch and position.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum

import msgspec

from holdfast.core.errors import Deleted, NotFound
from holdfast.core.events import JournalChanged, Text, ToolFinished
from holdfast.core.spools import Contents, Spooled, stream_id
from holdfast.core.texts import Growing

# A journal that is not sealed and has not grown for so long does not grow any more: its process is gone.
SETTLED_MS = 60 * 1000
RECORD_CHARS = 64 * 1024


class State(StrEnum):
    """Of the row that tells of the interruption."""

    RECOVERING = "recovering"
    RECOVERED = "recovered"
    NEUTRAL = "neutral"


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """`tries` in vain, at most one in `every_ms`, and none after `give_up_ms`."""

    tries: int = 12
    every_ms: int = 10 * 1000
    give_up_ms: int = 24 * 3600 * 1000


class Late(msgspec.Struct, frozen=True, kw_only=True):
    """What is on record of a journal that is or was late. `filled`: some of it has arrived. `changed_at`: when that was recorded last."""

    session_id: str
    turn_id: str
    epoch: int
    state: State
    tries: int
    size: int
    filled: bool
    first_seen: int
    changed_at: int

    @property
    def stream_id(self) -> str:
        return stream_id(self.turn_id, self.epoch)


def unexpected(session_id: str, turn_id: str, epoch: int, *, at: int) -> Late:
    """A journal that nobody waits for: when it was decided about its turn, nothing was known of it."""
    return Late(
        session_id=session_id,
        turn_id=turn_id,
        epoch=epoch,
        state=State.NEUTRAL,
        tries=0,
        size=0,
        filled=False,
        first_seen=at,
        changed_at=at,
    )


class Found(StrEnum):
    """What a look found. UNREADABLE: it is not there, or not even its beginning can be read. PARTLY: it is complete, but damaged in the
    middle. ARRIVING: nothing says yet that it is complete.
    """

    UNREADABLE = "unreadable"
    PARTLY = "partly"
    ARRIVING = "arriving"
    WHOLE = "whole"


class Sight(msgspec.Struct, frozen=True, kw_only=True):
    """A look at a journal: how it was found, how long it was then, and whether something in it is new to the store."""

    found: Found
    size: int = 0
    new: bool = False


def seen(contents: Contents, *, settled: bool) -> Found:
    """`settled`: nobody adds to it any more, whether it says so or not."""
    if not (contents.sealed or settled):
        return Found.ARRIVING
    return Found.PARTLY if contents.damaged else Found.WHOLE


def sight(contents: Contents, *, size: int, settled: bool) -> Sight:
    return Sight(found=seen(contents, settled=settled), size=size)


class Fate(StrEnum):
    """What becomes of the file of a journal once it was shipped. DONE: all of it is stored, or nobody may ever read it again, and it is
    removed. DAMAGED: what can be read is stored; it stays, and nothing more will come. ARRIVING: it stays, and more may come. FOREIGN: it
    stays; the store has never known its turn.
    """

    DONE = "done"
    DAMAGED = "damaged"
    ARRIVING = "arriving"
    FOREIGN = "foreign"


def fate(found: Found, refusal: NotFound | None = None) -> Fate:
    """`refusal`: why the store took nothing of it."""
    if refusal is not None:
        return Fate.DONE if isinstance(refusal, Deleted) else Fate.FOREIGN
    return {Found.WHOLE: Fate.DONE, Found.ARRIVING: Fate.ARRIVING}.get(found, Fate.DAMAGED)


def has_settled(*, changed_at: int, now: int) -> bool:
    return now - changed_at >= SETTLED_MS


def may_be_among(hidden: Iterable[str | None], owner: str | None) -> bool:
    """Whether a spool of this owner may lie in one of these folders, which cannot be listed. None: the folder of all owners, or an owner
    whose name is not known any more.
    """
    folders = set(hidden)
    return bool(folders) and (owner is None or owner in folders or None in folders)


def gives_up(late: Late, now: int, limits: Limits) -> bool:
    """Then the journal is not even read."""
    return late.state is State.RECOVERING and now - late.first_seen >= limits.give_up_ms


def is_due(late: Late, looked_at: int | None, now: int, limits: Limits) -> bool:
    """Whether it is time to look. `looked_at`: when this process last did."""
    last = max(late.changed_at if late.tries else late.first_seen - limits.every_ms, looked_at or 0)
    return late.state is State.RECOVERING and (now - last >= limits.every_ms or now < last)


def judge(late: Late, sight: Sight, now: int, limits: Limits) -> tuple[State, int] | None:
    """The state and the tries from now on; None if nothing has changed.

    A journal that is whole and gave something is recovered. One that still arrives, or has grown, uses no try. Every other look does, and
    the last one makes the row neutral: it says that some output may be missing, and invents nothing.
    """
    if sight.found is Found.WHOLE and (sight.new or late.filled):
        return (State.RECOVERED, 0) if sight.new or late.state is State.RECOVERING else None
    if sight.new:
        return (State.RECOVERING if late.state is State.RECOVERING else State.RECOVERED), late.tries
    if late.state is not State.RECOVERING or sight.found is Found.ARRIVING:
        return None
    if gives_up(late, now, limits):
        return State.NEUTRAL, 0
    if sight.size != late.size:
        return State.RECOVERING, late.tries
    if late.tries and 0 <= now - late.changed_at < limits.every_ms:
        return None
    tries = late.tries + 1
    return (State.NEUTRAL, 0) if tries >= limits.tries else (State.RECOVERING, tries)


def changed(late: Late, judged: tuple[State, int], size: int, arrived: Sequence[Spooled]) -> list[JournalChanged]:
    """What is recorded of it, with the text that has arrived in records that no reader finds too long (P8)."""
    state, tries = judged
    call_ids = tuple(event.call_id for item in arrived if isinstance(event := item.event, ToolFinished))
    text = said(arrived)
    first = JournalChanged(
        turn_id=late.turn_id,
        stream_id=late.stream_id,
        state=state,
        tries=tries,
        size=size,
        text=text[:RECORD_CHARS],
        call_ids=call_ids,
    )
    rest = (text[start : start + RECORD_CHARS] for start in range(RECORD_CHARS, len(text), RECORD_CHARS))
    return [first, *(msgspec.structs.replace(first, text=piece, call_ids=()) for piece in rest)]


def said(items: Iterable[Spooled]) -> str:
    """The text in these events, each step's from its first piece on."""
    steps: dict[int, tuple[int, Growing]] = {}
    for item in items:
        if isinstance(event := item.event, Text):
            first, text = steps.setdefault(event.step, (event.offset, Growing()))
            text.write(max(0, event.offset - first), event.text)
    return "\n\n".join(text.read() for _, text in steps.values())
