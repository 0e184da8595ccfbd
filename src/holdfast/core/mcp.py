"""Tools of MCP servers: what they are called here, what their own word about them is worth, which are not offered, and when a server that
failed is tried again.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from holdfast.core.effects import Effect

PREFIX = "mcp"
# What every provider takes as the name of a tool, and of an argument.
MOST_NAME = 64
_OTHER = re.compile(r"[^A-Za-z0-9_-]")
_ARGUMENT = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_DIGEST = 8
# As people and rules know a version. The author of a description must not be able to find another one with the same digest.
_VERSION = 16
# Of one tool.
MOST_DESCRIPTION = 4_000
MOST_SCHEMA = 16_000
MOST_DEPTH = 40
# Of one server: every request to a model holds all of it. And of all servers together: no provider takes more.
MOST_TOOLS, MOST_TOLD = 100, 120_000
MOST_IN_ALL = 110
MOST_NAMED = 10
# What providers refuse right at the top of a schema; the server checks it anyway.
_REFUSED = ("anyOf", "oneOf", "allOf", "not", "enum", "const", "if", "then", "else", "$ref")
# A server that lived for less than this has failed. How long one is left alone that failed twice, and the longest time.
SOUND_AFTER_S = 30.0
FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 300.0


class Hints(msgspec.Struct, frozen=True, kw_only=True):
    """What a server says about the effects of a tool. None: nothing."""

    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as its server lists it."""

    name: str
    description: str = ""
    schema: dict[str, Any]
    hints: Hints = Hints()


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that is offered. `version`: another one whenever anything that people and models are told of it is different."""

    listed: Listed
    version: str


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """What is offered of a server, by the tools' own names; and what is not, each with the reason."""

    tools: dict[str, Known] = {}
    left_out: tuple[str, ...] = ()


def prefix(server: str) -> str:
    """How the names of all its tools begin."""
    return f"{PREFIX}__{server}__"


def server_of(name: str) -> str | None:
    """The server that a tool of this name belongs to."""
    start, _, rest = name.partition("__")
    server, found, _ = rest.partition("__")
    return server if start == PREFIX and found else None


def tool_name(server: str, tool: str) -> str:
    """What a tool is called here: the same at all times, whatever other tools there are. A name that providers would refuse gets a digest
    of the whole, so that two tools never share one.
    """
    name = prefix(server) + _OTHER.sub("_", tool)
    if name == prefix(server) + tool and len(name) <= MOST_NAME:
        return name
    digest = hashlib.sha256(tool.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
    return f"{name[: MOST_NAME - _DIGEST - 1]}_{digest}"


def effect(hints: Hints, *, trusted: bool) -> Effect:
    """What running a call twice would do. The word of a server that is not trusted counts for nothing (P5)."""
    if trusted and hints.read_only:
        return Effect.PURE
    return Effect.IDEMPOTENT if trusted and hints.idempotent else Effect.UNSAFE


def is_harmless(hints: Hints, *, trusted: bool) -> bool:
    """Whether a call need not ask where nothing is configured: a trusted server says that it destroys nothing."""
    return trusted and (bool(hints.read_only) or hints.destructive is False)


def problem(tool: Listed) -> str | None:
    """Why a tool is not offered. One that a provider refuses would end every answer of every conversation (P8)."""
    if not tool.name.strip():
        return "it has no name"
    if tool.schema.get("type", "object") != "object":
        return "its arguments are not an object"
    if _depth(tool.schema) > MOST_DEPTH:
        return f"its schema is nested more than {MOST_DEPTH} deep"
    if len(json.dumps(tool.schema)) > MOST_SCHEMA:
        return f"its schema is longer than {MOST_SCHEMA:,} characters"
    properties = tool.schema.get("properties", {})
    if not isinstance(properties, dict) or not all(isinstance(each, dict | bool) for each in properties.values()):
        return "its schema has no valid properties"
    if odd := next((name for name in properties if not _ARGUMENT.fullmatch(name)), None):
        return f"no provider takes the name of its argument {visible(odd)[:100]!r}"
    return None


def offer(listed: Iterable[Listed], wanted: Sequence[str] = ("*",)) -> Offer:
    """What of a server's list is offered. `wanted`: names, or patterns of names."""
    tools: dict[str, Known] = {}
    left_out: list[str] = []
    size = 0
    for tool in listed:
        if not any(fnmatchcase(tool.name, each) for each in wanted):
            continue
        why = problem(tool) or ("its name was there before" if tool.name in tools else None)
        told_of_it = 0 if why else len(json.dumps(tool.schema)) + len(told("", tool.description))
        if why is None and len(tools) == MOST_TOOLS:
            why = f"a server has at most {MOST_TOOLS} tools"
        elif why is None and size + told_of_it > MOST_TOLD:
            why = f"the tools of a server are described in at most {MOST_TOLD:,} characters"
        if why is None:
            tools[tool.name] = Known(listed=tool, version=_version(tool))
            size += told_of_it
        elif len(left_out) < MOST_NAMED:
            left_out.append(f"{visible(tool.name)[:100]}: {why}")
    return Offer(tools=tools, left_out=tuple(left_out))


def visible(text: str) -> str:
    """Without characters that a terminal would obey, or that nobody sees."""
    return "".join(char if char.isprintable() else "?" for char in text)


def _version(tool: Listed) -> str:
    told_of_it = [tool.name, tool.description, tool.schema, msgspec.to_builtins(tool.hints)]
    return hashlib.sha256(json.dumps(told_of_it, ensure_ascii=True, sort_keys=True).encode()).hexdigest()[:_VERSION]


def offered_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """As models are told it. What it says besides is checked by the server."""
    plain = {name: value for name, value in schema.items() if name not in _REFUSED and name != "$schema"}
    return {"properties": {}} | plain | {"type": "object"}


def told(server: str, description: str) -> str:
    """As models are told it. Whose words these are is said first."""
    text = description.strip()
    text = text if len(text) <= MOST_DESCRIPTION else f"{text[:MOST_DESCRIPTION].rstrip()} [...]"
    return f"[From the MCP server {server}] {text}".rstrip()


def wait_s(failures: int) -> float:
    """How long a server is left alone that failed so many times in a row. One that lived is started again at once."""
    return 0.0 if failures < 2 else min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(failures - 2, 30))


def failures_after(failures: int, *, lived_s: float) -> int:
    """How often in a row it has failed, now that its life is over."""
    return 0 if lived_s >= SOUND_AFTER_S else failures + 1


def _depth(value: Any, depth: int = 0) -> int:
    """How deep it is nested; not more than a little deeper than is allowed is looked at."""
    if depth > MOST_DEPTH or not isinstance(value, dict | list):
        return depth
    inner = value.values() if isinstance(value, dict) else value
    return max((_depth(each, depth + 1) for each in inner), default=depth)
