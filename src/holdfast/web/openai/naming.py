"""How responses are named: by the session and the message that they answer; and what their model is called."""

import re

from holdfast.core.answering import Answering
from holdfast.core.recitals import Recited

# The model that stands for whatever answers in a conversation.
OWN_MODEL = "holdfast"
# A chat completion is the same response under another name.
RESPONSE, COMPLETION = "resp_", "chatcmpl-"
_NAME = re.compile(rf"(?:{RESPONSE}|{COMPLETION})(s_\w{{1,100}})\.(m_\w{{1,100}})", re.ASCII)


def response_id(recited: Recited) -> str:
    return f"{RESPONSE}{recited.session_id}.{recited.message_id}"


def completion_id(recited: Recited) -> str:
    return f"{COMPLETION}{recited.session_id}.{recited.message_id}"


def read(name: str) -> tuple[str, str] | None:
    """The session and the message; None for what names no response."""
    found = _NAME.fullmatch(name)
    return (found[1], found[2]) if found else None


def model(answering: Answering) -> str:
    """The one that answered, once that is on record."""
    return (answering.turn.model if answering.turn else None) or OWN_MODEL
