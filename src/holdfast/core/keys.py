"""Session keys: the lane of a source, as one string. Built and parsed only here."""

import msgspec

from holdfast.core.errors import BadInput

PAGE = "web"


class SessionKey(msgspec.Struct, frozen=True):
    """The parts of a key. Parts may hold any text: `:` and `%` are escaped, an absent part is None, never empty."""

    profile: str
    platform: str
    chat_type: str
    chat_id: str
    thread_id: str | None = None
    user_id: str | None = None

    @property
    def on_page(self) -> bool:
        """Its users read the log themselves; all others must be told."""
        return self.platform == PAGE

    def __str__(self) -> str:
        parts = ["agent", _escape(self.profile), _escape(self.platform), _escape(self.chat_type), _escape(self.chat_id)]
        if self.thread_id is not None or self.user_id is not None:
            parts.append("" if self.thread_id is None else _escape(self.thread_id))
        if self.user_id is not None:
            parts.append(_escape(self.user_id))
        return ":".join(parts)


def parse(text: str) -> SessionKey:
    """The key a string stands for; the exact inverse of `str(key)`."""
    parts = text.split(":")
    if not 5 <= len(parts) <= 7 or parts[0] != "agent" or not all(parts[1:5]) or (len(parts) == 6 and not parts[5]):
        raise BadInput(f"{text!r} is not a session key. An example: agent:main:telegram:dm:123.")
    profile, platform, chat_type, chat_id = (_unescape(part) for part in parts[1:5])
    thread_id = _unescape(parts[5]) if len(parts) > 5 and parts[5] else None
    user_id = _unescape(parts[6]) if len(parts) > 6 else None
    key = SessionKey(profile, platform, chat_type, chat_id, thread_id, user_id)
    if str(key) != text:
        raise BadInput(f"{text!r} is not written exactly as a session key. Write {str(key)!r}.")
    return key


def page_key(profile: str, chat_id: str) -> SessionKey:
    """A conversation made on the page or over HTTP has a lane of its own."""
    return SessionKey(profile, PAGE, "page", chat_id)


def message_dedup_key(session_key: str, client_id: str) -> str:
    """Under which a message sent over HTTP is known: the same `client_id` in the same lane is the same message."""
    return f"message|{session_key}|{client_id}"


def client_id(dedup_key: str | None) -> str | None:
    """The name that the sender of a message gave it; None for other keys."""
    if dedup_key is None or not dedup_key.startswith("message|"):
        return None
    return dedup_key.split("|", 2)[2]


def _escape(part: str) -> str:
    if not part:
        raise BadInput("A session key cannot have empty parts. Leave the part out.")
    return part.replace("%", "%25").replace(":", "%3A")


def _unescape(part: str) -> str:
    return part.replace("%3A", ":").replace("%25", "%")
