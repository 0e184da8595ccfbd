"""What a turn writes into its conversation, and to whom it is owed."""

from holdfast.core import keys
from holdfast.core.content import Content
from holdfast.core.events import Button, MessageWritten


def owed(session_key: str) -> bool:
    """Whether what is written there must be sent. A page reads the log; a chat has to be told."""
    return not keys.parse(session_key).on_page


def written(
    session_key: str, role: str, message_id: str, content: Content, *, anchor: str | None = None, buttons: tuple[Button, ...] = ()
) -> MessageWritten:
    delivery_id = message_id if owed(session_key) else None
    return MessageWritten(message_id=message_id, role=role, content=content, delivery_id=delivery_id, anchor=anchor, buttons=buttons)


def asked_delivery(question_id: str) -> str:
    """The delivery that carries a question to its chat; one that asks again adds a number to it."""
    return f"{question_id}.asked"
