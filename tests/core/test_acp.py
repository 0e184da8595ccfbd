"""What an agent of another program says over the Agent Client Protocol, folded into what a turn tells; and what is said to it."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core import acp
from holdfast.core.acp import Abilities, Asked, Finished, Fold, Move, Option, PutOut, Replied, Said, Started, State, Thought, Wanted
from holdfast.core.effects import ToolOutcome

OPTIONS = (Option("a", "Allow once", "allow_once"), Option("b", "Always allow", "allow_always"), Option("c", "Reject", "reject_once"))


def line(message: Any) -> bytes:
    return json.dumps(message).encode()


def update(session: str = "s", /, **update: Any) -> bytes:
    return line({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": session, "update": update}})


def said(text: str, message: str | None = None) -> bytes:
    named = {} if message is None else {"messageId": message}
    return update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": text}, **named)


def call(status: str | None = None, *, text: str | None = None, first: bool = False, **more: Any) -> bytes:
    given = {"toolCallId": "t1", **({"status": status} if status else {}), **more}
    if text is not None:
        given["content"] = [{"type": "content", "content": {"type": "text", "text": text}}]
    return update(sessionUpdate="tool_call" if first else "tool_call_update", **given)


def fold(*lines: bytes, state: State | None = None) -> list[Move]:
    made = Fold("s", state)
    return [move for each in lines for move in made.feed(each)]


def test_text_and_thoughts_are_told_as_they_come() -> None:
    thought = update(sessionUpdate="agent_thought_chunk", content={"type": "text", "text": "hm"})
    assert fold(thought, said("one"), said(" two")) == [Thought("hm"), Said("one"), Said(" two")]


def test_messages_and_calls_part_the_text_by_a_blank_line() -> None:
    told = fold(said("one", "m1"), said("!", "m1"), said("two", "m2"), call("in_progress"), said("three", "m2"))
    assert "".join(move.text for move in told if isinstance(move, Said)) == "one!\n\ntwo\n\nthree"
    assert fold(call("in_progress"), said("first"))[-1] == Said("first")


def test_a_call_starts_when_it_is_under_way_with_what_is_known_of_it_then() -> None:
    """Agents announce a call before they know its arguments."""
    announced = call("pending", first=True, title="bash", kind="execute", rawInput={})
    told = fold(announced, call("in_progress", title="ls -l", rawInput={"command": "ls -l"}), call(text="a"), call(text="ab"))
    assert told == [Started("t1", "execute", {"command": "ls -l"}), PutOut("t1", "a"), PutOut("t1", "b")]


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (call("completed", text="done"), Finished("t1", ToolOutcome.DONE, "done")),
        (call("failed", text="no"), Finished("t1", ToolOutcome.FAILED, "no")),
        (call("completed", rawOutput={"output": "raw"}), Finished("t1", ToolOutcome.DONE, "raw")),
        (call("completed", rawOutput={"x": 1}), Finished("t1", ToolOutcome.DONE, '{"x": 1}')),
        (call("completed"), Finished("t1", ToolOutcome.DONE, "")),
        (
            call(
                "completed",
                content=[{"type": "diff", "path": "/a", "oldText": "x", "newText": "y"}, {"type": "terminal", "terminalId": "1"}],
            ),
            Finished("t1", ToolOutcome.DONE, "--- /a\n- x\n+ y"),
        ),
    ],
)
def test_a_call_ends_with_what_it_put_out_and_only_once(end: bytes, expected: Finished) -> None:
    """P5: one that was never said to be under way has been all the same."""
    told = fold(call("pending", first=True, title="look", kind="read"), end, call("completed", text="late"), call("in_progress"))
    assert told == [Started("t1", "read", {"title": "look"}), expected]


def test_of_a_call_that_has_ended_little_is_kept() -> None:
    """P8: the state is recorded again and again while a prompt is being answered."""
    long, made = "x" * 100_000, Fold("s")
    for number in range(20):
        begun: dict[str, Any] = {"toolCallId": f"t{number}", "title": long, "rawInput": {"command": long}}
        for each in (call("in_progress", first=True, **begun), call(text=long, **begun), call("completed", **begun), call(**begun)):
            list(made.feed(each))
    assert len(msgspec.json.encode(made.state)) < 4000
    assert fold(call("completed", text="late", toolCallId="t3"), state=made.state) == []


def test_a_permission_names_the_call_and_what_the_agent_offers() -> None:
    shown = {"toolCallId": "t1", "title": "rm x", "rawInput": {"command": "rm x"}}
    options = [{"optionId": option.id, "name": option.name, "kind": option.kind} for option in OPTIONS]
    given = {"sessionId": "s", "toolCall": shown, "options": options}
    asked = line({"jsonrpc": "2.0", "id": 0, "method": "session/request_permission", "params": given})
    first, second = fold(call("pending", first=True, kind="execute"), asked, asked)
    expected = Asked(request=0, number=0, call="t1", name="execute", arguments={"command": "rm x"}, options=OPTIONS)
    assert (first, second) == (expected, msgspec.structs.replace(expected, number=1))


@pytest.mark.parametrize(
    ("approved", "always", "options", "chosen"),
    [
        (True, False, OPTIONS, "a"),
        (True, True, OPTIONS, "b"),
        (False, False, OPTIONS, "c"),
        (True, True, OPTIONS[:1], "a"),
        (True, False, OPTIONS[1:2], "b"),
        (False, False, OPTIONS[:2], None),
        (True, False, (), None),
        (False, False, (Option("d", "Never", "reject_always"),), "d"),
    ],
)
def test_only_an_option_that_was_offered_is_chosen(approved: bool, always: bool, options: tuple[Option, ...], chosen: str | None) -> None:
    """R5"""
    asked = Asked(request=1, number=0, call=None, name="x", arguments={}, options=options)
    outcome = acp.chosen(asked, approved=approved, always=always)["outcome"]
    assert outcome == ({"outcome": "cancelled"} if chosen is None else {"outcome": "selected", "optionId": chosen})
    offers = {option.kind for option in options}
    assert (acp.always(asked) is not None) == ({"allow_once", "allow_always"} <= offers)


def test_other_sessions_and_requests_that_nobody_serves_are_told_apart() -> None:
    other = update("other", sessionUpdate="agent_message_chunk", content={"type": "text", "text": "x"})
    wanted = line({"jsonrpc": "2.0", "id": "r", "method": "fs/read_text_file", "params": {}})
    assert fold(other, wanted, line({"jsonrpc": "2.0", "method": "elicitation/complete"})) == [Wanted("r", "fs/read_text_file")]
    error = json.loads(acp.refusal(Wanted("r", "fs/x")))["error"]
    assert error == {"code": -32601, "message": "Holdfast does not offer fs/x."}


def test_replies_and_their_errors() -> None:
    good = line({"jsonrpc": "2.0", "id": "p.1", "result": {"stopReason": "end_turn"}})
    bad = line({"jsonrpc": "2.0", "id": "p.2", "error": {"code": -32000, "message": "Authentication required"}})
    odd = line({"jsonrpc": "2.0", "id": 3, "error": {}})
    assert fold(good, bad, odd) == [
        Replied("p.1", {"stopReason": "end_turn"}),
        Replied("p.2", {}, "Authentication required", -32000),
        Replied(3, {}, "it does not say why"),
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.sampled_from(["sessionUpdate", "toolCallId", "content", "kind", "status", "title", "rawInput", "options", "toolCall"]), JSON, JSON
)
def test_nothing_that_an_agent_can_say_breaks_the_fold(field: str, value: Any, more: Any) -> None:
    """P8"""
    changed = {"sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "completed", field: value}
    asked = {"sessionId": "s", "toolCall": changed, "options": more, field: value}
    request = {"jsonrpc": "2.0", "id": 1, "method": "session/request_permission", "params": asked}
    fold(update(**changed), line(request), line({"id": value, "result": more}), line(more), line(value), b"\xff\xfe", b"{", b"")


@given(st.lists(st.sampled_from(range(9)), max_size=25), st.integers(0, 25))
def test_reading_on_from_the_middle_tells_the_same_as_reading_it_all(which: list[int], cut: int) -> None:
    """P7: what is kept of a fold in a record is all that it needs."""
    pieces = [
        said("a"), said("b", "m1"), said("c", "m2"), call("pending", first=True, kind="read"), call("in_progress", rawInput={"x": 1}),
        call(text="o"), call(text="ou"), call("completed", text="out"), line({"id": 1, "method": "session/request_permission",
        "params": {"sessionId": "s", "toolCall": {"toolCallId": "t1"}, "options": []}}),
    ]  # fmt: skip
    lines = [pieces[number] for number in which]
    first = Fold("s")
    told = [move for each in lines[:cut] for move in first.feed(each)]
    state = msgspec.json.decode(msgspec.json.encode(first.state), type=State)
    assert told + fold(*lines[cut:], state=state) == fold(*lines)


def test_what_an_agent_says_of_itself() -> None:
    replied = {
        "protocolVersion": 1,
        "agentCapabilities": {"loadSession": True, "promptCapabilities": {"image": True}, "sessionCapabilities": {"resume": {}}},
        "authMethods": [{"id": "x", "name": "Sign in", "description": "Run `x login`"}],
        "agentInfo": {"name": "x", "version": "1"},
    }
    assert acp.abilities(replied) == Abilities("x", resumes=True, loads=True, takes=("image",), sign_in=("Run `x login`",))
    assert acp.abilities({}) == acp.abilities({"agentCapabilities": 1, "authMethods": "x"}) == Abilities()
