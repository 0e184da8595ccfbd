"""What becomes of turns that ran, and of replies that were owed, when a backup was made that is restored now."""

from collections.abc import Container

from holdfast.core import delivery, notices
from holdfast.core.delivery import DeliveryState
from holdfast.core.events import DeliveryChanged, TurnInterrupted
from holdfast.core.sessions import Session
from holdfast.core.spools import stream_id

# Why the turns were interrupted.
RESTORED = "restored"


def interrupted(session: Session, *, written: int, late: Container[str]) -> TurnInterrupted:
    """A turn that was running. Nobody is to blame for that. `written`: how much of its answer is stored; `late`: the journals in the backup
    that cannot be read.
    """
    journal = stream_id(session.turn_id or "", session.epoch)
    return TurnInterrupted(
        reason=RESTORED,
        restarts=session.interrupted_restarts,
        written=written,
        stream_id=journal if journal in late else None,
    )


def doubted(owed: DeliveryChanged, *, edits: bool, fresh: bool) -> DeliveryChanged:
    """A reply that may have been sent since. `owed`: what is known of it. `edits`: it goes into a message that is there already, which may
    always be repeated. `fresh`: the backup is young enough for it to be sent at all.
    """
    if fresh:
        state = DeliveryState.PENDING if edits else delivery.after(DeliveryState(owed.state), "restored")
    else:
        state = delivery.after(DeliveryState(owed.state), "give up")
    return DeliveryChanged(
        delivery_id=owed.delivery_id,
        part=owed.part,
        state=state,
        tries=owed.tries,
        receipt=owed.receipt,
        error=None if fresh else notices.OWED_TOO_LONG,
    )
