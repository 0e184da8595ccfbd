"""What a tool of others wants to know from a person in the middle of a call: how it is asked, and what an answer in plain words means."""

import json
import re
from collections.abc import Mapping
from typing import Any

import msgspec

FORM = "elicitation"
# What the record of an answer says instead of a verdict: the call that asked continues with it.
GIVEN = "given"
ACCEPT, DECLINE, CANCEL = "accept", "decline", "cancel"
# As choices, and as people may write them.
YES, NO = "Accept", "Decline"
MOST_REQUESTS, MOST_FIELDS = 5, 20
MOST_MESSAGE, MOST_SCHEMA, MOST_STATE = 4_000, 16_000, 64_000
MOST_CHOICES, MOST_CHOICE = 20, 100
# How often one call may ask, counting answers that could not be understood.
MOST_ROUNDS = 10
_TRUE, _FALSE = ("true", "yes", "y", "1"), ("false", "no", "n", "0")
_KINDS = {"string": "text", "integer": "a whole number", "number": "a number", "boolean": "yes or no", "array": "several, with commas"}
_LINE = re.compile(r"\s*`?([^:`]+?)`?\s*[:=]\s*(.*)")


class Request(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One question. `key`: by which the one who asks knows the answer. `schema`: of the answer, an object with plain fields. `url`: the
    person is to open this address instead.
    """

    key: str
    message: str
    schema: dict[str, Any] = {}
    url: str | None = None


class Elicited(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a call waits for. `number`: the request that is asked now; the others follow. `state`: what the one who asks wants to have back,
    to continue where it was. `live`: there is none, and the call runs as long as the question is open. `version`: of the tool. `rounds`:
    how often the call has asked.
    """

    requests: tuple[Request, ...]
    number: int = 0
    state: str | None = None
    live: bool = False
    version: str = ""
    rounds: int = 1


class Resting(msgspec.Struct, kw_only=True):
    """A call that has asked. `answers`: by the number of the request, in the words of the person."""

    elicited: Elicited
    answers: dict[int, str] = {}


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """`action`: accept, decline or cancel."""

    action: str
    content: dict[str, Any] | None = None


class Ask(msgspec.Struct, frozen=True):
    """The next thing to ask. `problem`: what was wrong with the last answer to it."""

    number: int
    problem: str = ""


def problem(requests: tuple[Request, ...], state: str | None) -> str | None:
    """Why nobody can be asked this."""
    if len(requests) > MOST_REQUESTS:
        return f"it asks {len(requests)} questions at once, and at most {MOST_REQUESTS} are allowed"
    if len(state or "") > MOST_STATE:
        return "what it wants to have back with the answer is too long"
    for request in requests:
        if len(request.message) > MOST_MESSAGE or len(json.dumps(request.schema)) > MOST_SCHEMA or len(request.url or "") > MOST_MESSAGE:
            return "its question is too long"
        if len(_fields(request)) > MOST_FIELDS or not all(isinstance(field, dict) for field in _fields(request).values()):
            return "it asks for more than can be asked"
    return None


def proceed(resting: Resting) -> Ask | dict[str, Given]:
    """What to ask next; or, by key, what was answered. Who declines one request is not asked the others."""
    given: dict[str, Given] = {}
    for number, request in enumerate(resting.elicited.requests):
        if any(each.action != ACCEPT for each in given.values()):
            given[request.key] = Given(action=CANCEL)
            continue
        if number not in resting.answers:
            return Ask(number)
        found = read(request, resting.answers[number])
        if isinstance(found, str):
            return Ask(number, found)
        given[request.key] = found
    return given


# how it is asked


def question(tool: str, request: Request, problem: str = "") -> str:
    """The words of others are marked as such."""
    said = "\n".join(f"> {line}" for line in request.message.strip().splitlines()) or "> (no words)"
    parts = [f"`{tool}` asks:", said]
    if request.url is not None:
        parts.append(f"It wants you to open this address, which Holdfast has not checked: {request.url}")
    parts += [*([problem] if problem else []), _how(request)]
    return "\n\n".join(parts)


def choices(request: Request) -> tuple[str, ...]:
    """What can be chosen; nothing where the answer is written."""
    if request.url is not None or not _fields(request):
        return (YES, NO)
    if len(_fields(request)) > 1:
        return ()
    [field] = _fields(request).values()
    if field.get("type") == "boolean":
        return ("Yes", "No", NO)
    found = tuple(title for title, _ in _options(field))
    fits = 0 < len(found) <= MOST_CHOICES and all(len(choice) <= MOST_CHOICE for choice in found)
    return (*found, NO) if fits and field.get("type") != "array" else ()


def _how(request: Request) -> str:
    fields = _fields(request)
    if request.url is not None or not fields:
        return f"Answer `{YES}` or `{NO}`."
    if len(fields) == 1:
        [(name, field)] = fields.items()
        return f"Answer with {_described(name, field, required=True)}, or with `{NO}`."
    lines = [f"- {_described(name, field, required=name in _required(request))}" for name, field in fields.items()]
    return "\n".join((f"Answer with a line `NAME: VALUE` for each of these, or with `{NO}`:", *lines))


def _described(name: str, field: Mapping[str, Any], *, required: bool) -> str:
    options = [title for title, _ in _options(field)][:MOST_CHOICES]
    kind = f"one of {', '.join(options)}" if options and field.get("type") != "array" else _KINDS.get(str(field.get("type")), "text")
    kind += f" of {', '.join(options)}" if options and field.get("type") == "array" else ""
    more = str(field.get("description") or field.get("title") or "")[:500]
    return f"`{name}` ({kind}{'' if required else ', may be left out'})" + (f": {more}" if more else "")


# what an answer means


def read(request: Request, text: str) -> Given | str:
    """The answer; or, in words, what is wrong with it."""
    plain, fields = text.strip(), _fields(request)
    if plain.lower() == NO.lower():
        return Given(action=DECLINE)
    if request.url is not None or not fields:
        if plain.lower() not in (YES.lower(), *_TRUE):
            return f"That was neither `{YES}` nor `{NO}`."
        return Given(action=ACCEPT, content=None if request.url is not None else {})
    values = _values(plain, fields)
    if isinstance(values, str):
        return values
    content: dict[str, Any] = {}
    for name, field in fields.items():
        if name not in values:
            if "default" in field:
                content[name] = field["default"]
            elif name in _required(request):
                return f"`{name}` is missing."
            continue
        value = _value(field, values[name])
        if value is None:
            return f"`{name}` must be {_kind(field)}."
        content[name] = value
    return Given(action=ACCEPT, content=content)


def _values(text: str, fields: Mapping[str, Any]) -> dict[str, Any] | str:
    """By name, as they are written: as JSON, as lines, or as one value where one is asked for."""
    if text.startswith("{"):
        try:
            found = json.loads(text)
        except ValueError:
            found = None
        if isinstance(found, dict):
            return {name: value for name, value in found.items() if name in fields}
    if len(fields) == 1:
        return {name: text for name in fields}
    lines = [match for line in text.splitlines() if (match := _LINE.fullmatch(line))]
    names = {name.lower(): name for name in fields}
    values = {names[match[1].lower()]: match[2].strip() for match in lines if match[1].lower() in names}
    return values or "No line of that was understood."


def _value(field: Mapping[str, Any], given: Any) -> Any:
    """None: it is not what it must be."""
    kind, text = field.get("type"), str(given).strip()
    if kind == "array":
        parts = given if isinstance(given, list) else [part for part in text.split(",") if part.strip()]
        found = [_option(field, str(part)) for part in parts]
        return None if None in found else found
    if _options(field):
        return _option(field, text)
    if kind == "boolean":
        return True if text.lower() in _TRUE else False if text.lower() in _FALSE else None
    if kind in ("integer", "number"):
        try:
            return int(text) if kind == "integer" else float(text)
        except ValueError:
            return None
    return given if isinstance(given, str) else text


def _option(field: Mapping[str, Any], text: str) -> Any:
    wanted = text.strip().lower()
    return next((value for title, value in _options(field) if wanted in (title.lower(), str(value).lower())), None)


def _options(field: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """What may be chosen: what people are shown, and what it stands for."""
    inner = field.get("items")
    if field.get("type") == "array" and isinstance(inner, dict):
        return _options({**inner, "type": "string"})
    for name in ("oneOf", "anyOf"):
        listed = field.get(name)
        if isinstance(listed, list):
            found = [each for each in listed if isinstance(each, dict) and "const" in each]
            return [(str(each.get("title") or each["const"]), each["const"]) for each in found]
    values, titles = field.get("enum"), field.get("enumNames")
    if not isinstance(values, list):
        return []
    named = titles if isinstance(titles, list) and len(titles) == len(values) else values
    return [(str(title), value) for title, value in zip(named, values, strict=True)]


def _kind(field: Mapping[str, Any]) -> str:
    options = [title for title, _ in _options(field)][:MOST_CHOICES]
    return f"one of {', '.join(options)}" if options else _KINDS.get(str(field.get("type")), "text")


def _fields(request: Request) -> dict[str, Any]:
    found = request.schema.get("properties")
    return found if isinstance(found, dict) else {}


def _required(request: Request) -> list[str]:
    found = request.schema.get("required")
    return found if isinstance(found, list) else []
