"""What the Bot API answers where it does not do what it was asked, and what that means."""

import msgspec

from holdfast.core.chat_errors import AnchorGone, Limited, LoggedOut, MessageGone, Muted, PlaceGone, PlaceMoved, ThreadGone
from holdfast.core.errors import Refused, Unavailable

POLLED_ELSEWHERE_S = 5.0
# A Bot API server of one's own may lack these, and nothing is lost without them. Where any other is not found it is the token's fault, and
# what was to be sent waits for a new one.
_MAY_BE_MISSING = ("getWebhookInfo", "deleteWebhook", "sendChatAction", "setMyCommands", "answerCallbackQuery")


class NotSent(Exception):
    """The request surely did not reach the server."""


class Unanswered(Exception):
    """Nobody knows whether the server did it."""


class _Parameters(msgspec.Struct, frozen=True):
    migrate_to_chat_id: int | None = None
    retry_after: float | None = None


class _Body(msgspec.Struct, frozen=True):
    description: str = ""
    parameters: _Parameters = _Parameters()


class Answer(Exception):
    """A refusal by the server. `words`: its own, in lower case."""

    def __init__(self, method: str, code: int, body: _Body) -> None:
        super().__init__(f"{code}: {body.description}")
        self.method, self.code, self.body, self.words = method, code, body, body.description.lower()

    @staticmethod
    def read(method: str, code: int, payload: bytes) -> "Answer":
        try:
            return Answer(method, code, msgspec.json.decode(payload, type=_Body))
        except msgspec.DecodeError:
            return Answer(method, code, _Body())


# By what the server's words hold, the first that matches.
_BAD_REQUESTS: tuple[tuple[str, type[Refused]], ...] = (
    ("thread not found", ThreadGone),
    ("topic_deleted", ThreadGone),
    ("topic_closed", ThreadGone),
    ("topic_id_invalid", ThreadGone),
    ("message to be replied not found", AnchorGone),
    ("replied message not found", AnchorGone),
    ("message to reply not found", AnchorGone),
    ("message to edit not found", MessageGone),
    ("message can't be edited", MessageGone),
    ("message_id_invalid", MessageGone),
    ("message to delete not found", MessageGone),
    ("message can't be deleted", MessageGone),
    ("chat not found", PlaceGone),
    ("peer_id_invalid", PlaceGone),
    ("user is deactivated", PlaceGone),
)
# Rights come back. Without any other than these, words still arrive.
_MAY_NOT_WRITE = ("chat_write_forbidden", "not enough rights to send text", "chat_send_plain_forbidden", "have no rights to send a message")


def meaning(error: Exception) -> Exception:
    """What a request that failed means to those who made it."""
    match error:
        case NotSent():
            return Unavailable(f"Telegram cannot be reached ({error}).", retry_after_s=2.0)
        case Answer():
            return _meaning(error)
        case _:
            return error  # Nobody knows what came of it.


def _meaning(answer: Answer) -> Exception:
    said = answer.body.description or f"status {answer.code}"
    if answer.body.parameters.migrate_to_chat_id is not None:
        return PlaceMoved(str(answer.body.parameters.migrate_to_chat_id))
    match answer.code:
        case 429:
            return Limited(answer.body.parameters.retry_after)
        case 404 if answer.method in _MAY_BE_MISSING:
            return Refused(f"What answers for Telegram does not know {answer.method}.")
        case 401 | 404:
            return LoggedOut("Telegram does not accept the bot's token. Get a new one from @BotFather and set it.")
        case 403:
            return PlaceGone(f"Telegram says: {said}")
        case 409:
            return Unavailable(
                "Another program reads the updates of this bot. Stop that program, or give one of the two another bot.",
                retry_after_s=POLLED_ELSEWHERE_S,
            )
        case 413:
            return Refused("Telegram does not take a message of this size.")
        case 400 if any(words in answer.words for words in _MAY_NOT_WRITE):
            return Muted(f"Telegram says: {said}. Messages for this chat wait until the bot may send text in it.")
        case code if 400 <= code < 500:
            kind = next((kind for words, kind in _BAD_REQUESTS if words in answer.words), Refused)
            return kind(f"Telegram says: {said}")
        case _:
            return answer  # A server that failed may have done it.
