"""Tools of MCP servers: their names, what their servers' word is worth, when a server is tried again, and how servers are configured."""

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.config import BadConfig, load
from holdfast.config import mcp as settings
from holdfast.config.mcp import McpServer
from holdfast.core import mcp, policy
from holdfast.core.effects import Effect
from holdfast.core.mcp import Hints, Listed

NAMES = [
    ("time", "get_current_time", "mcp__time__get_current_time"),
    ("a-b", "x-y_z", "mcp__a-b__x-y_z"),
    ("a", "files/read", "mcp__a__files_read_"),
    ("a", "é", "mcp__a___"),
    ("a", "t" * 100, "mcp__a__ttt"),
]


@pytest.mark.parametrize(("server", "tool", "name"), NAMES)
def test_a_tool_has_a_name_that_every_provider_takes(server: str, tool: str, name: str) -> None:
    found = mcp.tool_name(server, tool)
    assert found.startswith(name) and len(found) <= 64 and mcp.server_of(found) == server


@given(st.lists(st.text(min_size=1), min_size=2, max_size=20, unique=True))
def test_no_two_tools_share_a_name_and_rules_can_name_each(tools: list[str]) -> None:
    names = {mcp.tool_name("notes", tool) for tool in tools}
    assert len(names) == len(tools)
    assert all(policy.parse(name).tool == name for name in names)


def test_other_names_belong_to_no_server() -> None:
    assert [mcp.server_of(name) for name in ("terminal", "mcp__", "mcp__a", "ask_user", "mcp__a__b__c")] == [None, None, None, None, "a"]


HINTS: list[tuple[dict[str, bool], Effect, bool]] = [
    ({}, Effect.UNSAFE, False),
    ({"read_only": True}, Effect.PURE, True),
    ({"read_only": True, "destructive": True}, Effect.PURE, True),
    ({"idempotent": True}, Effect.IDEMPOTENT, False),
    ({"idempotent": True, "destructive": False}, Effect.IDEMPOTENT, True),
    ({"destructive": False}, Effect.UNSAFE, True),
    ({"destructive": True}, Effect.UNSAFE, False),
    ({"read_only": False, "idempotent": False, "destructive": True}, Effect.UNSAFE, False),
]


@pytest.mark.parametrize(("hints", "effect", "harmless"), HINTS)
def test_the_word_of_a_server_counts_if_it_is_trusted(hints: dict[str, bool], effect: Effect, harmless: bool) -> None:
    """P5: without that, every call is unsafe and asks."""
    said = Hints(**hints)
    assert (mcp.effect(said, trusted=True), mcp.is_harmless(said, trusted=True)) == (effect, harmless)
    assert (mcp.effect(said, trusted=False), mcp.is_harmless(said, trusted=False)) == (Effect.UNSAFE, False)


def test_a_tool_has_another_version_whenever_anything_is_said_differently_of_it() -> None:
    told = Listed(name="a", description="Adds.", schema={"type": "object", "properties": {"x": {}, "y": {}}})
    same = Listed(name="a", description="Adds.", schema={"properties": {"y": {}, "x": {}}, "type": "object"})
    others = [
        Listed(name="a", description="Adds!", schema=told.schema),
        Listed(name="a", description="Adds.", schema={"type": "object"}),
        Listed(name="a", description="Adds.", schema=told.schema, hints=Hints(read_only=True)),
        Listed(name="b", description="Adds.", schema=told.schema),
    ]
    versions = [mcp.offer([each]).tools[each.name].version for each in (told, same, *others)]
    assert versions[0] == versions[1] and len(set(versions)) == 5 and all(len(version) == 16 for version in versions)


def test_what_is_told_of_a_server_has_a_limit_and_holds_nothing_that_a_terminal_would_obey() -> None:
    """P8: every request to a model holds all of it."""
    many = mcp.offer([Listed(name=f"t{number}", schema={"description": "x" * 10_000}) for number in range(50)])
    assert len(many.tools) == 11 and "at most 120,000 characters" in many.left_out[0] and len(many.left_out) == 10
    odd = mcp.offer([Listed(name="\x1b[2Jhi\u202e", schema={"type": "array"})])
    assert odd.left_out == ("?[2Jhi?: its arguments are not an object",)
    chosen = mcp.offer([Listed(name=name, schema={}) for name in ("read_a", "write_a", "read_b")], ("read_*", "x"))
    assert list(chosen.tools) == ["read_a", "read_b"] and chosen.left_out == ()


def test_a_model_is_told_a_schema_that_its_provider_takes_and_whose_words_a_description_is() -> None:
    odd = {"$schema": "x", "anyOf": [{}], "oneOf": [{}], "properties": {"a": {"anyOf": [{}]}}, "$defs": {"b": {}}}
    assert mcp.offered_schema(odd) == {"type": "object", "properties": {"a": {"anyOf": [{}]}}, "$defs": {"b": {}}}
    assert mcp.offered_schema({}) == {"type": "object", "properties": {}}
    assert mcp.told("a", " Adds. ") == "[From the MCP server a] Adds." and len(mcp.told("a", "x" * 10**6)) < 5_000


def test_a_server_that_fails_is_left_alone_for_longer_each_time() -> None:
    """P8"""
    assert [mcp.wait_s(failures) for failures in (0, 1, 2, 3, 4, 10, 1000)] == [0.0, 0.0, 1.0, 2.0, 4.0, 256.0, 300.0]
    assert (mcp.failures_after(3, lived_s=29.0), mcp.failures_after(3, lived_s=30.0)) == (4, 0)


# how servers are configured


def read(tmp_path: Path, text: str) -> dict[str, McpServer]:
    (tmp_path / "config.toml").write_text(text)
    return load({}, home=str(tmp_path)).mcp


def test_servers_are_tables_of_the_file(tmp_path: Path) -> None:
    found = read(
        tmp_path, '[mcp.time]\ncommand = "uvx"\nargs = ["mcp-server-time"]\n[mcp.t2]\nurl = "http://127.0.0.1:1/mcp"\ntrusted = true\n'
    )
    assert {name: (server.kind, str(server), server.trusted) for name, server in found.items()} == {
        "time": ("stdio", "uvx mcp-server-time", False),
        "t2": ("http", "http://127.0.0.1:1/mcp", True),
    }
    assert load({"HOLDFAST_MCP": '{"a": {"command": "x"}}'}, home=str(tmp_path / "other")).mcp == {"a": McpServer(command="x")}


WRONG = [
    ("[mcp]\na = 1\n", "Write a table [mcp.NAME]"),
    ("[mcp.A]\ncommand = 'x'\n", "small letters and digits"),
    ("[mcp.a__b]\ncommand = 'x'\n", "small letters and digits"),
    ("[mcp.a]\n", "needs either a command"),
    ("[mcp.a]\ncommand = 'x'\nurl = 'http://x'\n", "needs either a command"),
    ("[mcp.a]\ncommand = 'x'\nwhat = 1\n", "unknown field `what`"),
    ("[mcp.a]\ncommand = 'x'\ntimeout_s = 'soon'\n", "[mcp.a]"),
    ("[mcp.a]\ncommand = 'x'\ntimeout_s = 0\n", "greater than 0"),
    ("[mcp.a]\nurl = 'ftp://x'\n", "It must begin with http"),
    ("[mcp.a]\nurl = 'http://ann:hunter2222@x/'\n", "holds a user name or password"),
    ("[mcp.a]\nurl = 'http://x'\nargs = ['y']\n", "have no meaning there"),
    ("[mcp.a]\nurl = 'http://x'\nheaders = { Authorization = 'Bearer hunter2222' }\n", "does not belong in config.toml"),
    ("[mcp.a]\nurl = 'http://x'\nheaders = { 'X-Api-Key' = 'hunter2222' }\n", "does not belong in config.toml"),
    ("[mcp.a]\ncommand = 'x'\nenv = { GITHUB_TOKEN = 'hunter2222' }\n", "does not belong in config.toml"),
    ("[mcp.a]\ncommand = 'x'\nargs = ['--api-key=hunter2222']\n", "does not belong in config.toml"),
    ("[mcp.a]\ncommand = 'x'\nargs = ['--password', 'hunter2222']\n", "does not belong in config.toml"),
    ("[mcp.a]\ncommand = 'x'\nenv = { 'A=B' = 'x' }\n", "neither a variable nor a header"),
    ("[mcp.a]\ncommand = 'x'\nfolders = ['/']\n", "nothing of"),
    ("[mcp.a]\ncommand = 'x'\nfolders = ['project']\n", "a whole path"),
]


@pytest.mark.parametrize(("text", "why"), WRONG)
def test_a_server_that_is_configured_wrongly_is_refused_and_no_secret_is_repeated(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(BadConfig) as refused:
        read(tmp_path, text)
    assert why in str(refused.value) and "hunter2222" not in str(refused.value)


def server(**fields: Any) -> McpServer:
    return McpServer(**fields)


def test_secrets_come_from_the_environment_or_from_files_that_others_cannot_read(tmp_path: Path) -> None:
    """What is no secret stays readable: a value that stands everywhere is not taken for one."""
    (tmp_path / "key").write_text("of-the-file\n")
    (tmp_path / "key").chmod(0o600)
    told = server(command="~/bin/x", args=("--dir", "${HOME}/d"), env={"A_KEY": "${file:key}", "B": "${PAT}-${PAT}"})
    found = settings.access(told, tmp_path, {"HOME": "/home/me", "PAT": "of-the-variable"})
    assert found.words == (os.path.expanduser("~/bin/x"), "--dir", "/home/me/d")
    assert found.env == {"A_KEY": "of-the-file", "B": "of-the-variable-of-the-variable"}
    assert found.secrets == {"key": "of-the-file", "PAT": "of-the-variable"} and "of-the" not in repr(found)
    with pytest.raises(BadConfig, match="no header can have"):
        settings.access(server(url="http://x", headers={"X": "${PAT}"}), tmp_path, {"PAT": "p\r\nHost: y"})
    remote = settings.access(server(url="http://x/${PAT}", headers={"X": "${PAT}"}), tmp_path, {"PAT": "p"})
    assert (remote.url, remote.headers) == ("http://x/p", {"X": "p"})


@pytest.mark.parametrize(
    ("value", "mode", "why"),
    [("${GONE}", 0o600, "GONE is not set"), ("${file:gone}", 0o600, "cannot be read"), ("${file:key}", 0o640, "chmod 600")],
)
def test_a_secret_that_is_missing_or_open_to_others_is_named(tmp_path: Path, value: str, mode: int, why: str) -> None:
    """It is that server's trouble alone: the others are known all the same."""
    (tmp_path / "key").write_text("of-the-file")
    (tmp_path / "key").chmod(mode)
    with pytest.raises(BadConfig, match=why):
        settings.access(server(command="x", env={"A": value}), tmp_path, {})
    both = {"bad": server(command="x", env={"A": value}), "good": server(command="x", env={"A": "${PAT}"})}
    assert settings.known(both, tmp_path, {"PAT": "of-the-variable"}) == {"PAT": "of-the-variable"}
