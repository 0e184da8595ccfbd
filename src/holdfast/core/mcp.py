"""Tools of MCP servers: what they are called here, what their own word about them is worth, which are not offered, and when a server that
failed is tried again.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast.core.effects import Effect

PREFIX = "mcp"
# What every provider takes as the name of a tool, and of an argument.
MOST_NAME = 64
_OTHER = re.compile(r"[^A-Za-z0-9_-]")
_ARGUMENT = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_DIGEST = 8
# As people and rules know a version. Whoever writes a description must not be able to find another one with the same digest.
_VERSION = 16
# Of one tool, and of a server.
MOST_DESCRIPTION = 4_000
MOST_SCHEMA = 32_000
MOST_DEPTH = 40
MOST_TOOLS = 100
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

    @property
    def version(self) -> str:
        """Another one whenever anything that people and models are told of it is different."""
        told = [self.name, self.description, self.schema, msgspec.to_builtins(self.hints)]
        return hashlib.sha256(json.dumps(told, ensure_ascii=True, sort_keys=True).encode()).hexdigest()[:_VERSION]


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
        return f"no provider takes the name of its argument {odd[:100]!r}"
    return None


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
