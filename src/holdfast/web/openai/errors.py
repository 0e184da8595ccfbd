"""Errors of the door, and how every error looks to its clients."""

from holdfast.api.openai import DoorFailed, DoorFailure
from holdfast.core.errors import Unavailable
from holdfast.web.errors import WebError
from holdfast.web.responses import Header

PREFIX = "/v1/"
_TRY_AGAIN = (408, 429, 500, 503, 507)
_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


class Unsupported(WebError):
    """Part of a request that cannot be honoured here."""

    code, status = "unsupported_value", 400

    def __init__(self, param: str, why: str) -> None:
        super().__init__(why)
        self.param = param


class NoSuchModel(WebError):
    code, status, param = "model_not_found", 404, "model"

    def __init__(self, wanted: str, known: list[str]) -> None:
        super().__init__(f"There is no model {wanted!r} here. Choose one of: {', '.join(known)}.")


class NoSuchResponse(WebError):
    code, status = "response_not_found", 404

    def __init__(self, name: str, param: str | None = None) -> None:
        super().__init__(f"There is no response {name!r} here.")
        self.param = param


class KeyReused(WebError):
    code, status = "idempotency_key_reused", 409

    def __init__(self, key: str) -> None:
        super().__init__(f"The Idempotency-Key {key!r} was already used for another request. Use a new one for a new message.")


class TurnFailed(WebError):
    """The agent did not answer. Repeating the request asks nobody again."""

    code, status = "turn_failed", 502


class Restarting(Unavailable):
    """The message is on disk; its answer is to be asked for again."""

    code = "restarting"

    def __init__(self, response_id: str) -> None:
        super().__init__(
            f"Holdfast is restarting. The message is saved and will be answered: repeat the request with the same Idempotency-Key, "
            f"or get /v1/responses/{response_id}."
        )


def shape(status: int, code: str, message: str, param: str | None) -> tuple[DoorFailed, tuple[Header, ...]]:
    """SDKs try a request again by themselves, unless they are told that it would change nothing."""
    kind = _TYPES.get(status) or ("server_error" if status >= 500 else "invalid_request_error")
    headers = () if status in _TRY_AGAIN else ((b"x-should-retry", b"false"),)
    return DoorFailed(DoorFailure(message, kind, param, code)), headers
