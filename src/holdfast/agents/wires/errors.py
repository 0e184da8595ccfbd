"""What a provider's refusal means. Status, code and words in, the `ModelError` out; providers tell the same thing in many ways."""

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

from holdfast.ports.models import Busy, ModelError, NotAllowed, Rejected, TooLong

SHOWN = 600

# A request that is too long is told in prose. Words of rate limits ("too many tokens, please wait") must not match.
TOO_LONG = (
    "context length exceeded",
    "context size exceeded",
    "context_length_exceeded",
    "exceed context limit",
    "exceed_context_size",
    "exceeded max context length",
    "exceeded model token limit",
    "exceeds the available context size",
    "exceeds the context window",
    "exceeds model context window",
    "exceeds the maximum allowed input length",
    "exceeds the maximum number of tokens",
    "context window exceeds limit",
    "input is too long",
    "input tokens exceed",
    "loaded with context length of only",
    "maximum context length",
    "maximum prompt length",
    "prompt is too long",
    "prompt too long",
    "reduce the length of the messages",
    "request exceeds the maximum size",
    "request too large",
    "request_too_large",
    "string_above_max_length",
)

# Earlier thoughts that were sent back and are not taken. Words about the setting of thinking must not match.
THOUGHTS = (
    "encrypted content",
    "encrypted_content",
    "expected `thinking`",
    "items are not persisted",
    "must start with a thinking block",
    "property 'reasoning",
    "reasoning summaries",
    "reasoning.summary",
    "reasoning_content",
    "reasoning_details",
    "redacted_thinking",
    "required 'reasoning' item",
    "required following item",
    "signature in `thinking`",
    "thinking block",
    "`thinking` block",
    "thought_signature",
)

# Out of credit, in words; some say it with the status of a wrong request or of a rate limit.
OUT_OF_CREDIT = ("credit balance is too low", "insufficient balance", "insufficient credits", "insufficient_quota", "requires more credits")

_KINDS: Mapping[str, int] = {
    "authentication_error": 401,
    "invalid_api_key": 401,
    "billing_error": 402,
    "insufficient_quota": 402,
    "permission_error": 403,
    "permission_denied": 403,
    "not_found_error": 404,
    "model_not_found": 404,
    "request_too_large": 413,
    "context_length_exceeded": 413,
    "exceed_context_size_error": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "too_many_requests": 429,
    "resource_exhausted": 429,
    "api_error": 500,
    "internal_error": 500,
    "internal_server_error": 500,
    "server_error": 500,
    "service_unavailable": 503,
    "unavailable": 503,
    "timeout_error": 504,
    "overloaded": 529,
    "overloaded_error": 529,
    "invalid_prompt": 400,
    "invalid_request_error": 400,
    "invalid_encrypted_content": 400,
}

_LACKS: Mapping[int, str] = {401: "key", 403: "permission", 404: "model"}


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """A refusal as its provider told it. `status` 0: it came within a stream."""

    status: int = 0
    kinds: tuple[str, ...] = ()
    words: str = ""
    retry_after_s: float | None = None


def fault(body: object, *, status: int = 0, retry_after_s: float | None = None) -> Fault:
    """Reads the error out of a decoded body, wherever it stands: `error` (an object or a text), `message`, `detail`, or a list of one."""
    told: Any = body[0] if isinstance(body, list) and body else body
    if isinstance(told, dict):
        told = told.get("error") or (told if told.get("message") else told.get("detail") or told)
    if not isinstance(told, dict):
        return Fault(status=status, words=told if isinstance(told, str) else _encoded(told), retry_after_s=retry_after_s)
    kinds = tuple(str(told[name]) for name in ("code", "type", "status") if told.get(name))
    words = told.get("message")
    metadata = told.get("metadata")
    if isinstance(metadata, dict) and metadata.get("raw"):  # A broker's words about the provider behind it.
        words = f"{words}: {metadata['raw']}"
    return Fault(
        status=status or next((int(kind) for kind in kinds if kind.isdecimal()), 0),
        kinds=tuple(kind.lower() for kind in kinds if not kind.isdecimal()),
        words=words if isinstance(words, str) and words else _encoded(told),
        retry_after_s=retry_after_s if retry_after_s is not None else _delay(told),
    )


def error(provider: str, fault: Fault, *, key: str | None = None) -> ModelError:
    """The error for a refusal. One that says nothing we know is worth another try if it came within a stream."""
    status = next((_KINDS[kind] for kind in fault.kinds if kind in _KINDS and (not fault.status or _KINDS[kind] == 402)), fault.status)
    text = " ".join((*fault.kinds, fault.words)).lower()
    words = " ".join(without_key(fault.words, key).split())[:SHOWN] or "no reason given"
    told = f"{provider} refused the request ({status}): {words}" if status else f"{provider} reported an error: {words}"
    if status == 402 or any(phrase in text for phrase in OUT_OF_CREDIT):
        return NotAllowed(told, lacks="credit")
    if status == 413 or any(phrase in text for phrase in TOO_LONG):
        return TooLong(told)
    if status in (400, 404, 422) and any(phrase in text for phrase in THOUGHTS):
        return Rejected(told, thoughts=True)
    if lacks := _LACKS.get(status):
        return NotAllowed(told, lacks=lacks)
    if status in (0, 408, 409, 425, 429) or status >= 500:
        return Busy(told, retry_after_s=fault.retry_after_s)
    return Rejected(told)


def without_key(text: str, key: str | None) -> str:
    return text.replace(key, "[key]") if key else text


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds from now, as the headers say them: in thousandths, in seconds, or as a date."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        told = headers.get(name)
        if told is None:
            continue
        try:
            seconds = float(told) * unit
        except ValueError:
            seconds = _until(told, now)
        if 0 <= seconds < 1e9:  # Neither nan nor inf.
            return seconds
    return None


def _until(date: str, now: datetime) -> float:
    try:
        then = parsedate_to_datetime(date)
    except ValueError:
        return -1
    return max(0.0, ((then if then.tzinfo else then.replace(tzinfo=UTC)) - now).total_seconds())


def _delay(told: Mapping[str, Any]) -> float | None:
    """Gemini says in the body when to come back: `details: [{retryDelay: "17s"}]`."""
    details = told.get("details")
    for each in details if isinstance(details, list) else ():
        delay = each.get("retryDelay") if isinstance(each, dict) else None
        if isinstance(delay, str) and delay.endswith("s") and delay[:-1].replace(".", "", 1).isdecimal():
            return float(delay[:-1])
    return None


def _encoded(value: object) -> str:
    return msgspec.json.encode(value).decode() if value not in (None, "", {}, []) else ""
