"""The response to a failed request: one table from errors to statuses, one shape for all of them."""

import math
import secrets
from typing import Any, Protocol

import structlog

from holdfast.api.results import Failed, Failure
from holdfast.core.chat_errors import Unsigned
from holdfast.core.delivery import NotOver
from holdfast.core.errors import (
    AttachmentGone,
    BadInput,
    Bug,
    CannotEdit,
    Conflict,
    ConversationBusy,
    Deleted,
    DraftChanged,
    DuplicateOtherContent,
    HandOverFailed,
    HoldfastError,
    LaneFull,
    NotFound,
    NothingToStop,
    NotNow,
    QuestionClosed,
    Refused,
    StoreFull,
    TooLate,
    Unavailable,
)
from holdfast.core.pairing import TooManyWrongCodes, WrongCode
from holdfast.core.plans.branch import NotOverYet, TooMuchToCopy
from holdfast.core.redaction import NO_SECRETS, Secrets
from holdfast.core.schedules import ScheduleOver, TooManySchedules
from holdfast.web.responses import Header, Response, json_response

log = structlog.get_logger()


class Gone(Exception):
    """The client left before its request was complete. Nobody waits for a response."""


class WebError(HoldfastError):
    """Errors that only an HTTP request can cause. `param`: the part of the request that it is about, if it is about one."""

    status = 400
    headers: tuple[Header, ...] = ()
    param: str | None = None


class NotSignedIn(WebError):
    code, status = "not_signed_in", 401
    headers = ((b"www-authenticate", b"Bearer"),)


class ForeignOrigin(WebError):
    code, status = "foreign_origin", 403

    def __init__(self, origin: str) -> None:
        super().__init__(f"Requests from pages of {origin!r} are refused. Use Holdfast's own page.")


class TokenNeeded(WebError):
    code, status = "token_needed", 403

    def __init__(self) -> None:
        super().__init__("This needs the token; the sign-in of a browser is not enough. `holdfast token` prints it.")


class NoSuchPath(WebError):
    code, status = "no_such_path", 404

    def __init__(self, path: str) -> None:
        super().__init__(f"There is nothing at {path!r}. GET /api/openapi.json lists the paths.")


class WrongMethod(WebError):
    code, status = "wrong_method", 405

    def __init__(self, method: str, allow: str) -> None:
        super().__init__(f"{method} is not allowed here. Allowed: {allow}.")
        self.headers = ((b"allow", allow.encode()),)


class TooLarge(WebError):
    code, status = "too_large", 413

    def __init__(self, limit: int) -> None:
        super().__init__(f"The body is larger than {limit // 1024 // 1024} MiB. Send less at once.")


class UploadTooLarge(TooLarge):
    def __init__(self, limit: int) -> None:
        WebError.__init__(
            self, f"The file is larger than {limit / 1_000_000:g} MB, the most that is accepted here (`max_upload_mb`). Send a smaller one."
        )


class NoSuchRange(WebError):
    code, status = "no_such_range", 416

    def __init__(self, size: int) -> None:
        super().__init__(f"The range lies behind the end: there are {size} bytes.")
        self.headers = ((b"content-range", b"bytes */%d" % size),)


class NotJson(WebError):
    code, status = "not_json", 415

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} Send JSON in UTF-8 with Content-Type: application/json.")


class TooSlow(WebError):
    code, status = "too_slow", 408
    headers = ((b"connection", b"close"),)

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} arrived too slowly. Send it again over a faster connection.")


class HeadTooLarge(WebError):
    code, status = "head_too_large", 431

    def __init__(self) -> None:
        super().__init__("The address and headers of a request are limited to 64 KiB and 100 headers. Send fewer or shorter ones.")


class TooManyConnections(WebError):
    code, status = "too_many_connections", 503
    headers = ((b"retry-after", b"5"),)

    def __init__(self) -> None:
        super().__init__("This gateway cannot serve more connections. Close some, or try again in a few seconds.")


class Misdirected(WebError):
    code, status = "misdirected", 421

    def __init__(self, host: str) -> None:
        super().__init__(
            f"This server does not accept the host name {host!r}. Use the address that it printed, or add the name to `allowed_hosts`."
        )


class TooManyTries(WebError):
    code, status = "too_many_tries", 429

    def __init__(self, retry_after_s: float) -> None:
        seconds = max(1, math.ceil(retry_after_s))
        super().__init__(f"Too many wrong credentials. Try again in {seconds} s.")
        self.headers = ((b"retry-after", b"%d" % seconds),)


# The first that fits decides.
STATUSES: tuple[tuple[type[HoldfastError], int], ...] = (
    (Deleted, 410),
    (NotFound, 404),
    (BadInput, 400),
    (Unsigned, 403),
    (NotOver, 409),
    (NotOverYet, 409),
    (TooMuchToCopy, 409),
    (TooManyWrongCodes, 429),
    (WrongCode, 404),
    (LaneFull, 429),
    (ConversationBusy, 409),
    (CannotEdit, 409),
    (TooLate, 409),
    (DraftChanged, 409),
    (NothingToStop, 409),
    (NotNow, 409),
    (HandOverFailed, 409),
    (QuestionClosed, 409),
    (DuplicateOtherContent, 409),
    (AttachmentGone, 409),
    (TooManySchedules, 409),
    (ScheduleOver, 409),
    (Refused, 400),
    (StoreFull, 507),
    (Unavailable, 503),
    (Conflict, 409),
    (Bug, 500),
    (HoldfastError, 500),
)


def status_of(kind: type[HoldfastError]) -> int:
    if issubclass(kind, WebError):
        return kind.status
    return next(status for family, status in STATUSES if issubclass(kind, family))


class Shape(Protocol):
    """How a failure looks to the clients of a path: the body, and headers of its own."""

    def __call__(self, status: int, code: str, message: str, param: str | None) -> tuple[Any, tuple[Header, ...]]: ...


def plain(status: int, code: str, message: str, param: str | None) -> tuple[Any, tuple[Header, ...]]:
    return Failed(Failure(code, message)), ()


def response_to(error: Exception, known: Secrets = NO_SECRETS, shape: Shape = plain) -> Response:
    """An unexpected error is shown only as an id; the log has the details under that id."""
    status = status_of(type(error)) if isinstance(error, HoldfastError) else 500
    if status == 500 or not isinstance(error, HoldfastError):
        name = secrets.token_hex(6)
        log.error("request failed", id=name, exc_info=error)
        return _failed(shape, 500, "internal", f"Something went wrong inside Holdfast. See its log, id {name}.")
    headers: tuple[Header, ...] = ()
    param = None
    if isinstance(error, WebError):
        headers, param = error.headers, error.param
    elif isinstance(error, Unavailable):
        headers = ((b"retry-after", b"%d" % max(1, math.ceil(error.retry_after_s))),)
    return _failed(shape, status, error.code, known.text(str(error)), headers, param)


def _failed(shape: Shape, status: int, code: str, message: str, headers: tuple[Header, ...] = (), param: str | None = None) -> Response:
    body, more = shape(status, code, message.encode("utf-8", "replace").decode(), param)
    response = json_response(status, body)
    response.headers = headers + more
    return response
