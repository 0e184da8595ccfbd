"""What a homeserver answers where it does not do what it was asked, and what that means."""

import msgspec

from holdfast.core.chat_errors import Limited, LoggedOut, Muted, PlaceGone, ThreadGone
from holdfast.core.errors import Refused, Unavailable

# Of somebody who is in the room, and whose power level is too low to write there.
_MAY_NOT_WRITE = ("permission to post", "power level", "send_level")
_LOGGED_OUT = ("M_UNKNOWN_TOKEN", "M_MISSING_TOKEN", "M_USER_DEACTIVATED", "M_USER_LOCKED", "M_USER_SUSPENDED")


class NotSent(Exception):
    """The request surely did not reach the server."""


class Unanswered(Exception):
    """Nobody knows whether the server did it."""


class _Body(msgspec.Struct, frozen=True):
    errcode: str = ""
    error: str = ""
    retry_after_ms: float | None = None


class Answer(Exception):
    """A refusal by the server. `code`: its own word for it. `wait_s`: how long it asks to wait, if it says so."""

    def __init__(self, status: int, code: str, words: str, wait_s: float | None = None) -> None:
        super().__init__(f"{status} {code}: {words}")
        self.status, self.code, self.words, self.wait_s = status, code, words, wait_s

    @staticmethod
    def read(status: int, payload: bytes, retry_after: str | None) -> "Answer":
        """`retry_after`: the header of this name, which newer servers send in the place of the field."""
        try:
            body = msgspec.json.decode(payload, type=_Body)
        except msgspec.DecodeError:  # Not by the homeserver, but by something in front of it.
            body = _Body()
        wait_s = body.retry_after_ms / 1000 if body.retry_after_ms is not None else None
        if wait_s is None and retry_after is not None and retry_after.isdecimal():
            wait_s = float(retry_after)
        return Answer(status, body.errcode, body.error or f"status {status}", wait_s)


def meaning(error: Exception) -> Exception:
    """What a request that failed means to those who made it."""
    match error:
        case NotSent():
            return Unavailable(f"The homeserver cannot be reached ({error}).", retry_after_s=2.0)
        case Answer():
            return _meaning(error)
        case _:
            return error  # Nobody knows what came of it.


def _meaning(answer: Answer) -> Exception:
    said = f"The homeserver says: {answer.words}"
    if answer.code in _LOGGED_OUT or answer.status == 401:
        return LoggedOut(f"The homeserver does not accept the access token ({answer.words}). Log in again with `holdfast matrix setup`.")
    match answer.status:
        case 429:  # What is counted is the account, not the room.
            return Limited(answer.wait_s, account=True)
        case 403 if any(words in answer.words.lower() for words in _MAY_NOT_WRITE):
            return Muted(f"{said}. Messages for this room wait until the account may write in it.")
        case 403 | 404:
            return PlaceGone(said)
        case 413:
            return Refused("The homeserver does not take a message of this size.")
        case 400 if "thread" in answer.words.lower():
            return ThreadGone(said)
        case status if 400 <= status < 500:
            return Refused(said)
        case _:
            return answer  # A server that failed may have done it.
