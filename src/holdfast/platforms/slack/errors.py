"""What Slack answers where it does not do what it was asked, and what that means."""

from holdfast.core.chat_errors import Limited, LoggedOut, MessageGone, Muted, PlaceGone, ThreadGone
from holdfast.core.errors import Refused, Unavailable


class NotSent(Exception):
    """The request surely did not reach the server."""


class Unanswered(Exception):
    """Nobody knows whether the server did it."""


class Answer(Exception):
    """A refusal by the server. `words`: its own word for why. `needed`: scopes that the app does not have."""

    def __init__(self, status: int, words: str = "", *, retry_after_s: float | None = None, needed: str = "") -> None:
        super().__init__(words or f"status {status}")
        self.status, self.words, self.retry_after_s, self.needed = status, words, retry_after_s, needed


class Unscoped(LoggedOut):
    """The app was never allowed to do this; what else it does may work."""


class BadBlocks(Refused):
    """The formatting was not taken; the words alone may be. It was not sent."""

    code = "bad_blocks"


# The server may have done it all the same.
_IN_DOUBT = ("internal_error", "fatal_error", "service_unavailable", "request_timeout", "team_added_to_org")
_TOO_FAST = ("ratelimited", "rate_limited")
_SHUT_OUT = (
    *("invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "not_allowed_token_type"),
    *("org_login_required", "team_access_not_granted"),
)
# Until when messages wait there: somebody can let the app write again.
_MAY_NOT_WRITE = {
    "not_in_channel": "the app is invited to the channel",
    "is_archived": "the channel is unarchived",
    "restricted_action": "the app may post in the channel",
    "restricted_action_read_only_channel": "the app may post in the channel",
    "restricted_action_thread_only_channel": "the app may post in the channel",
}
_MEANINGS: dict[str, type[Refused]] = {
    **dict.fromkeys(("channel_not_found", "cannot_dm_bot", "messages_tab_disabled", "user_not_found", "user_disabled"), PlaceGone),
    **dict.fromkeys(("restricted_action_thread_locked", "thread_not_found", "cannot_reply_to_message"), ThreadGone),
    "restricted_action_non_threadable_channel": ThreadGone,
    **dict.fromkeys(("message_not_found", "cant_update_message", "edit_window_closed", "cant_delete_message"), MessageGone),
    **dict.fromkeys(("invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "blocks_too_long"), BadBlocks),
}


def meaning(error: Exception, *, writes: bool = False) -> Exception:
    """What a request that failed means to those who made it. `writes`: it was to show something in a channel."""
    match error:
        case NotSent():
            return Unavailable(f"Slack cannot be reached ({error}).", retry_after_s=2.0)
        case Answer():
            return _meaning(error, writes)
        case _:
            return error  # Nobody knows what came of it.


def _meaning(answer: Answer, writes: bool) -> Exception:
    if answer.status == 429 or answer.words in _TOO_FAST:
        return Limited(answer.retry_after_s)
    if answer.words == "missing_scope":
        return Unscoped(f"The Slack app lacks {answer.needed or 'a scope'}. Add it in the app's settings and install the app again.")
    if answer.words in _SHUT_OUT:
        return LoggedOut(f"Slack does not accept the app's tokens ({answer.words}). Get new ones from the app's settings and set them.")
    if answer.words in _IN_DOUBT or not answer.words:
        return answer  # A server that failed may have done it.
    said = f"Slack says: {answer.words}"
    if until := _MAY_NOT_WRITE.get(answer.words):
        return Muted(f"{said}. Messages for this channel wait until {until}.") if writes else PlaceGone(said)
    return _MEANINGS.get(answer.words, Refused)(said)
