"""A request that was made before, under the same dedup key: it is done once, and every repetition gets the first reply (P1, A22)."""

import msgspec

from holdfast.core.errors import Deleted, DuplicateOtherContent
from holdfast.core.events import RequestNoted
from holdfast.core.plans import Write

# What a key of a request without words stands for.
STOP, RESET, RESUME = b"stop", b"reset", b"resume"
# A new session is remembered as by a reset, whatever it was made for.
# What is remembered as the reply to one.
CONTINUES, NOTHING = "goes on", "nothing"
# Before the id of a message that was refused at once.
REFUSED = "refused "


class Known(msgspec.Struct, frozen=True):
    """What is remembered under a key: of what content, in which session, and by which name. `digest`: None once the session is purged."""

    digest: bytes | None
    session_id: str
    ref: str


def check(known: Known, dedup_key: str, digest: bytes) -> Known:
    """Raises `DuplicateOtherContent` for a key that was used for something else, `Deleted` where nothing is left to compare with."""
    if known.digest is None:
        raise Deleted(known.session_id, undoable=False)
    if known.digest != digest:
        raise DuplicateOtherContent(dedup_key.rpartition("|")[2])
    return known


def noted(session_id: str, what: bytes, dedup_key: str | None) -> tuple[Write, ...]:
    """A request that found nothing to do is done, too: repeated later, it must not find something (A22)."""
    return () if dedup_key is None else (Write(session_id, RequestNoted(what=what.decode(), dedup_key=dedup_key)),)
