"""What happens to a session as a whole: it is made, changed, branched, deleted, restored."""

import msgspec

from holdfast.core.events.base import Event
from holdfast.core.usage import DaySpent


class SessionCreated(Event, frozen=True):
    """`folder`: where its tools work, if one was chosen."""

    kind = "session.created"
    session_id: str
    session_key: str
    log: str
    title: str | None = None
    auto_reset_reason: str | None = None
    folder: str | None = None
    dedup_key: str | None = None


class SessionResumed(Event, frozen=True):
    """A human made it its key's current one, lifted its suspension and wants its cut turn, if it has one, to go on."""

    kind = "session.resumed"
    by: str
    goes_on: bool = False
    dedup_key: str | None = None


class SessionChanged(Event, frozen=True):
    """Only the fields that changed are set."""

    kind = "session.changed"
    title: str | msgspec.UnsetType = msgspec.UNSET
    pinned: bool | msgspec.UnsetType = msgspec.UNSET
    archived: bool | msgspec.UnsetType = msgspec.UNSET
    model: str | msgspec.UnsetType | None = msgspec.UNSET
    suspended: bool | msgspec.UnsetType = msgspec.UNSET
    resume_pending: bool | msgspec.UnsetType = msgspec.UNSET
    resume_reason: str | msgspec.UnsetType | None = msgspec.UNSET
    rule: str | msgspec.UnsetType = msgspec.UNSET
    dedup_key: str | None = None


class SessionBranched(Event, frozen=True):
    """What stands before it was said in another session, `origin`, up to this message, and is copied from there. `title`: the other one's
    then. `left_out`: how many of its earlier turns are not copied.
    """

    kind = "session.branched"
    origin: str
    message_id: str
    by: str
    title: str | None = None
    left_out: int = 0


class SessionDeleted(Event, frozen=True):
    """It is out of everybody's sight. Before `purge_at` it can be brought back; after that its content goes for good."""

    kind = "session.deleted"
    by: str
    purge_at: int
    why: str | None = None


class SessionUndeleted(Event, frozen=True):
    kind = "session.undeleted"
    by: str


class SessionPurged(Event, frozen=True):
    """The tombstone: all that is known of a session whose earlier events are being removed. `current`: its key pointed at it. `spent`: what
    its models used, day by day, so that the sums of a day stay true.
    """

    kind = "session.purged"
    session_id: str
    session_key: str
    created_at: int
    generation: int
    deleted_at: int
    by: str
    why: str | None = None
    current: bool = False
    spent: tuple[DaySpent, ...] = ()


class SessionForgotten(Event, frozen=True):
    """Events of a purged session are gone. Of their dedup keys the digests stay. `done`: nothing is left to remove."""

    kind = "session.forgotten"
    keys: tuple[str, ...] = ()
    done: bool = False


class SessionRestored(Event, frozen=True):
    """The store is a copy of the one in which this log was begun; from here on the log goes by another name."""

    kind = "session.restored"
    log: str


class RequestNoted(Event, frozen=True):
    """A request that found nothing to do, so that it finds nothing when it is repeated."""

    kind = "request.noted"
    what: str
    dedup_key: str
