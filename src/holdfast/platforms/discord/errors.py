"""What Discord answers where it does not do what it was asked, and what that means."""

from typing import Any

import msgspec

from holdfast.core.chat_errors import AnchorGone, Limited, LoggedOut, MessageGone, Muted, PlaceGone, ThreadGone
from holdfast.core.errors import Refused, Unavailable

TOKEN_REFUSED = (
    "Discord does not accept the bot's token. Make a new one in the developer portal (Bot, Reset Token) and set it with"
    " `holdfast discord setup`."
)
INTENT_REFUSED = (
    "Discord does not let the bot read messages. Switch on the Message Content Intent in the developer portal (Bot, Privileged Gateway"
    " Intents); Holdfast then connects by itself."
)


class NotSent(Exception):
    """The request surely did not reach Discord."""


class Unanswered(Exception):
    """Nobody knows whether Discord did it."""


class _Body(msgspec.Struct, frozen=True):
    """`global_`: the limit is that of the account."""

    code: int = 0
    message: str = ""
    errors: dict[str, Any] = {}
    retry_after: float | None = None
    global_: bool = msgspec.field(default=False, name="global")


class Answer(Exception):
    """A refusal by Discord. `asked_s`: what the header Retry-After asks for."""

    def __init__(self, status: int, body: _Body, asked_s: float | None = None) -> None:
        super().__init__(f"{status}: {body.message or 'no reason given'}")
        self.status, self.body, self.asked_s = status, body, asked_s

    @staticmethod
    def read(status: int, payload: bytes, asked: str | None) -> "Answer":
        asked_s = float(asked) if asked is not None and asked.replace(".", "", 1).isdecimal() else None
        try:
            return Answer(status, msgspec.json.decode(payload, type=_Body), asked_s)
        except msgspec.DecodeError:
            return Answer(status, _Body(), asked_s)


UNKNOWN_CHANNEL, UNKNOWN_MESSAGE, INVALID_FORM = 10003, 10008, 50035
# The person takes no messages of bots, or it is no place for text.
_GONE = frozenset({UNKNOWN_CHANNEL, 50007, 50008, 50278})
# No access to the channel, or no permission to write in it: somebody can give it.
_MAY_NOT_WRITE = frozenset({50001, 50013})
_ARCHIVED = frozenset({50083, 160005})


def meaning(error: Exception, *, thread: bool = False, writes: bool = False) -> Exception:
    """What a request that failed means to those who made it. `thread`: it was for a thread. `writes`: it was to show something."""
    match error:
        case NotSent():
            return Unavailable(f"Discord cannot be reached ({error}).", retry_after_s=2.0)
        case Answer():
            return _meaning(error, thread, writes)
        case _:
            return error  # Nobody knows what came of it.


def _meaning(answer: Answer, thread: bool, writes: bool) -> Exception:
    body = answer.body
    said = f"Discord says: {body.message or f'status {answer.status}'}"
    match answer.status:
        case 429:
            bare = body.retry_after is None
            return Limited(answer.asked_s if bare else body.retry_after, account=body.global_ or (bare and not body.message))
        case 401:
            return LoggedOut(TOKEN_REFUSED)
        case 413:
            return Refused("Discord does not take a message of this size.")
        case status if 400 <= status < 500:
            return _refusal(body, said, thread, writes)
        case _:
            return answer  # A server that failed may have done it.


def _refusal(body: _Body, said: str, thread: bool, writes: bool) -> Exception:
    if body.code == UNKNOWN_MESSAGE:
        return MessageGone(said)
    if body.code in _ARCHIVED or (thread and body.code == UNKNOWN_CHANNEL):
        return ThreadGone(said)
    if body.code in _MAY_NOT_WRITE and writes:
        return Muted(f"{said}. Messages for this channel wait until the bot may see it and send messages in it.")
    if body.code in _GONE or body.code in _MAY_NOT_WRITE:
        return PlaceGone(said)
    if body.code == INVALID_FORM and "message_reference" in body.errors:
        return AnchorGone(said)
    if body.code == 0:  # Not Discord itself, but something in front of it.
        return Unavailable(f"{said}, without a reason.", retry_after_s=10.0)
    return Refused(said)
