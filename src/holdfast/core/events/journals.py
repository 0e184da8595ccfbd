"""What becomes of the stream events of turns: they are pruned, or come late."""

from holdfast.core.events.base import Event


class JournalPruned(Event, frozen=True):
    """Stream events up to this sequence are gone, those of turns that ended long ago."""

    kind = "journal.pruned"
    through: int


class JournalChanged(Event, frozen=True):
    """What is known of a journal that is late. `state`: recovering, recovered or neutral, as the row says that tells of the interruption.
    `tries`: how often it was looked for in vain; `size`: how long it was. `text`: what was said in the part of it that has just arrived,
    `call_ids`: the calls whose results are in that part. A long text continues in the next record of this kind. The events of that part
    follow, each in its own place of the turn.
    """

    kind = "journal.changed"
    turn_id: str
    stream_id: str
    state: str
    tries: int = 0
    size: int = 0
    text: str = ""
    call_ids: tuple[str, ...] = ()
