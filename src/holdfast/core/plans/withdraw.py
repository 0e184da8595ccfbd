"""Taking back a message that no turn has taken yet."""

from holdfast.core.events import MessageRefused
from holdfast.core.plans import Plan, to_session
from holdfast.core.sessions import Session

WITHDRAWN = "its sender took it back"


def plan(session: Session, message_id: str, *, waits: bool) -> Plan[bool]:
    """`waits`: it is still in the inbox. One that a turn has taken is stopped with that turn, not here."""
    if not waits:
        return Plan((), False)
    return Plan(tuple(to_session(session.session_id, [MessageRefused(message_id=message_id, reason=WITHDRAWN)])), True)
