"""How responses are named: by the session and the message that they answer."""

import re

from holdfast.core.recitals import Recited

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
