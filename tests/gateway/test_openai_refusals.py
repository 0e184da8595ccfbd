"""Requests to the OpenAI-compatible door that cannot be honoured: each is refused by name, in the protocol's shape, and changes nothing."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from holdfast.api import openai as shapes
from holdfast.gateway.settings import Settings
from tests.gateway import web
from tests.gateway.web import TOKEN, World

CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
HELLO = {"role": "user", "content": "hello"}


def said(*content: Any, role: str = "user") -> dict[str, Any]:
    return {"messages": [{"role": role, "content": list(content)}]}


def item(**fields: Any) -> dict[str, Any]:
    return {"input": [fields]}


REFUSED: list[tuple[str, dict[str, Any], str | None]] = [
    (CHAT, {"messages": [HELLO], "tools": [{"type": "function", "function": {"name": "f"}}]}, "tools"),
    (CHAT, {"messages": [HELLO], "functions": [{"name": "f"}]}, "functions"),
    (CHAT, {"messages": [HELLO], "n": 2}, "n"),
    (CHAT, {"messages": [HELLO], "logprobs": True}, "logprobs"),
    (CHAT, {"messages": [HELLO], "modalities": ["text", "audio"]}, "modalities"),
    (CHAT, {"messages": [HELLO], "response_format": {"type": "json_object"}}, "response_format"),
    (CHAT, {"messages": []}, "messages"),
    (CHAT, {"messages": [{"role": "tool", "content": "x", "tool_call_id": "c"}]}, "messages[0]"),
    (CHAT, {"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role"),
    (CHAT, {"messages": [HELLO, {"role": "user", "content": 7}]}, "messages[1].content"),
    (CHAT, said({"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}), "messages[0].content[0]"),
    (CHAT, said({"type": "hologram"}), "messages[0].content[0]"),
    (CHAT, said(*[{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}] * 21), "messages[0].content"),
    (RESPONSES, {"input": "hello", "tools": [{"type": "web_search"}]}, "tools"),
    (RESPONSES, {"input": "hello", "prompt": {"id": "p"}}, "prompt"),
    (RESPONSES, {"input": "hello", "store": False}, "store"),
    (RESPONSES, {"input": "hello", "text": {"format": {"type": "json_schema", "schema": {}}}}, "text.format"),
    (RESPONSES, {"input": "hello", "conversation": {"name": "x"}}, "conversation"),
    (RESPONSES, {"input": "hello", "conversation": "s_x", "previous_response_id": "resp_s_x.m_x"}, "conversation"),
    (RESPONSES, item(type="function_call_output", call_id="c", output="x"), "input[0]"),
    (RESPONSES, item(type="item_reference", id="msg_1"), None),
    (RESPONSES, item(role="user", content=[{"type": "input_file", "file_url": "http://127.0.0.1/secret"}]), "input[0].content[0]"),
    (RESPONSES, item(type="mcp_approval_response", approval_request_id="q 1", approve=True), "input[0].approval_request_id"),
    (RESPONSES, item(type="mcp_approval_response", approval_request_id="q_1", approve="yes"), "input[0].approve"),
    (CHAT, {"messages": "hello"}, None),
    (CHAT, {"messages": [HELLO], "stream": "yes"}, None),
    (CHAT, {"messages": [{"role": "assistant", "content": "hello"}]}, None),
    (CHAT, {"messages": [HELLO, {"role": "assistant", "content": "hello"}]}, None),
    (CHAT, {"messages": [{"role": "user", "content": " \n"}]}, None),
    (CHAT, said({"type": "image_url", "image_url": {"url": "data:image/png;base64,$$"}}), None),
    (CHAT, {"messages": [{"role": "user", "content": "x" * (6 * 1024 * 1024)}, HELLO]}, None),
    (RESPONSES, {}, None),
    (RESPONSES, {"input": ""}, None),
    (RESPONSES, {"input": []}, None),
    (RESPONSES, {"input": "\ud800"}, None),
]


async def test_what_cannot_be_honoured_is_refused_by_name(world: World) -> None:
    for path, body, param in REFUSED:
        answer = await world.client.post(path, content=json.dumps(body), headers={"Content-Type": "application/json"})
        error, about = answer.json()["error"], f"{path} {json.dumps(body)[:100]}"
        assert answer.status_code == 400 and set(error) == {"message", "type", "param", "code"}, about
        assert (error["type"], error["param"]) == ("invalid_request_error", param), about
        assert error["message"][0].isupper() or error["message"][0] == "`", about
        assert answer.headers["x-should-retry"] == "false"
        assert (await world.client.get("/api/sessions")).json()["sessions"] == [], f"nothing is begun by {about}"


async def test_an_upload_that_is_not_there_begins_nothing(world: World) -> None:
    body = item(role="user", content=[{"type": "input_file", "file_id": "a_none"}])
    answer = await world.client.post(RESPONSES, json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "attachment_gone")
    assert (await world.client.get("/api/sessions")).json()["sessions"] == []


@pytest.mark.parametrize("path", [CHAT, RESPONSES])
async def test_settings_that_change_nothing_here_are_accepted(world: World, path: str) -> None:
    ignored = {"temperature": 0.2, "max_tokens": 5, "seed": 1, "user": "ann", "metadata": {"a": "b"}, "reasoning": {"effort": "low"}}
    more = {"tools": [{"type": "function"}], "tool_choice": "none", "text": {"format": {"type": "text"}}, "store": None, "n": 1}
    body = {"messages": [HELLO], "input": "hello", "model": "holdfast"}
    answer = await world.client.post(path, json=body | ignored | more | {"response_format": {"type": "text"}})
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(
    ("path", "status", "code", "kind"),
    [
        ("/v1/responses/resp_s_x.m_x", 404, "response_not_found", "invalid_request_error"),
        ("/v1/responses/resp_s_x.m_x?stream=true", 404, "response_not_found", "invalid_request_error"),
        ("/v1/responses/..%2F", 404, "no_such_path", "invalid_request_error"),
        ("/v1/responses/nothing?starting_after=-1", 400, "bad_input", "invalid_request_error"),
        ("/v1/responses/nothing?stream=perhaps", 400, "bad_input", "invalid_request_error"),
        ("/v1/models/gpt-4", 404, "model_not_found", "invalid_request_error"),
        ("/v1/embeddings", 404, "no_such_path", "invalid_request_error"),
        ("/v1/chat/completions", 405, "wrong_method", "invalid_request_error"),
    ],
)
async def test_what_is_not_there_is_said_in_the_shape_of_the_protocol(world: World, path: str, status: int, code: str, kind: str) -> None:
    answer = await world.client.get(path)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["type"]) == (status, code, kind), answer.text


async def test_the_door_has_the_same_lock_as_everything_else(world: World) -> None:
    async with world.browser() as nobody, world.browser(Authorization="Bearer wrong") as stranger:
        for client in (nobody, stranger):
            answer = await client.post(CHAT, json={"messages": [HELLO]})
            assert (answer.status_code, answer.json()["error"]["type"]) == (401, "authentication_error")
            assert answer.headers["www-authenticate"] == "Bearer"
    headers = {"Origin": "https://evil.example"}
    assert (await world.client.post(CHAT, json={"messages": [HELLO]}, headers=headers)).json()["error"]["type"] == "permission_error"
    assert (await world.client.get("/v1/models", headers={"Host": "evil.example"})).status_code == 421
    assert (await world.client.post(CHAT, content=b"x" * (8 * 1024 * 1024 + 1))).status_code == 413
    assert (await world.client.post(CHAT, content=b"{}", headers={"Content-Type": "text/plain"})).status_code == 415


async def test_a_response_is_found_only_under_its_own_session(world: World) -> None:
    made = [(await world.client.post(RESPONSES, json={"input": "hello"})).json()["id"] for _ in range(2)]
    (session, _), (_, message) = (name.removeprefix("resp_").split(".") for name in made)
    assert (await world.client.get(f"/v1/responses/resp_{session}.{message}")).status_code == 404
    on_page = (await world.post(session, "said on the page")).json()["message_id"]
    assert (await world.client.get(f"/v1/responses/resp_{session}.{on_page}")).status_code == 404
    answer = await world.client.post(RESPONSES, json={"input": "x", "previous_response_id": "resp_s_none.m_none"})
    assert (answer.status_code, answer.json()["error"]["param"]) == (404, "previous_response_id")


async def test_a_head_request_waits_for_nothing(world: World) -> None:
    made = (await world.client.post(RESPONSES, json={"input": "hold", "background": True})).json()["id"]
    answer = await world.client.head(f"/v1/responses/{made}?stream=true")
    assert (answer.status_code, answer.content) == (200, b"")


async def test_more_messages_than_anybody_has_are_refused(world: World) -> None:
    for body in ({"messages": [HELLO] * 10_001}, said(*[{"type": "text", "text": "x"}] * 20_001)):
        answer = await world.client.post(CHAT, json=body)
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, "messages")
    assert (await world.client.post(CHAT, json={"messages": [HELLO] * 10_000})).status_code == 200


async def test_a_full_lane_refuses_and_tells_when_to_try_again(tmp_path: Any) -> None:
    async with web.world(tmp_path, settings=Settings(max_waiting=1)) as world:
        first = (await world.client.post(RESPONSES, json={"input": "hold", "background": True})).json()
        await world.until_state(first["conversation"]["id"], "running")
        more = {"input": "x", "background": True, "previous_response_id": first["id"]}
        assert (await world.client.post(RESPONSES, json=more)).status_code == 200
        answer = await world.client.post(RESPONSES, json=more)
        assert (answer.status_code, answer.json()["error"]["code"], answer.json()["error"]["type"]) == (
            429,
            "lane_full",
            "rate_limit_error",
        )


async def test_headers_that_are_too_long_are_refused(world: World) -> None:
    for name in ("Idempotency-Key", "X-Holdfast-Session"):
        answer = await world.client.post(CHAT, json={"messages": [HELLO]}, headers={name: "x" * 201})
        assert answer.status_code == 400


async def test_a_name_of_a_lane_can_hold_anything(world: World) -> None:
    for name in ("a:b%c", "agent:main:telegram:dm:1", "../..", "'; --"):
        answer = await world.client.post(CHAT, json={"messages": [HELLO]}, headers={"X-Holdfast-Session": name})
        assert answer.status_code == 200, answer.text
        view = await world.view(answer.headers["x-holdfast-session"])
        assert view["session_key"].startswith("agent:main:web:page:")


async def test_a_conversation_of_megabytes_is_known_again(world: World) -> None:
    """P8: it is gone through off the event loop."""
    lines = [{"role": "user" if number % 2 == 0 else "assistant", "content": "word " * 50_000} for number in range(5)]
    answer = await world.client.post(CHAT, json={"messages": lines})
    assert answer.status_code == 200
    again = [*lines, {"role": "assistant", "content": answer.json()["choices"][0]["message"]["content"]}, HELLO]
    second = await world.client.post(CHAT, json={"messages": again})
    assert second.headers["x-holdfast-session"] == answer.headers["x-holdfast-session"]


async def test_an_answer_that_comes_at_once_in_a_large_piece_ends_no_reader(world: World) -> None:
    text = "word " * 1_000_000
    made = (await world.client.post(RESPONSES, json={"input": text})).json()
    assert made["output"][0]["content"][0]["text"] == text
    streamed = await world.client.post(RESPONSES, json={"input": text, "stream": True})
    assert streamed.text.count("event: response.completed") == 1 and '"type":"error"' not in streamed.text


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(("type", "text", "role", "content", "id", "file")), inner),
    max_leaves=8,
)
roles = st.sampled_from(("user", "assistant", "system", "developer", "tool")) | values
kinds = st.sampled_from(("text", "input_text", "image_url", "input_image", "file", "input_file", "input_audio", "refusal", "mcp_call"))
parts = st.fixed_dictionaries(
    {"type": kinds},
    optional={
        "text": values,
        "image_url": values | st.fixed_dictionaries({"url": st.sampled_from(("data:image/png;base64,AA==", "data:,", "x")) | values}),
        "file": values | st.fixed_dictionaries({"file_data": values, "filename": values}),
        "file_data": st.just("AA==") | values,
        "file_id": values,
        "filename": values,
        "refusal": values,
        "input_audio": values | st.fixed_dictionaries({"data": st.just("AA=="), "format": values}),
    },
)
messages = st.fixed_dictionaries(
    {"role": roles, "content": st.text(max_size=10) | st.lists(parts, max_size=3) | values},
    optional={"type": st.sampled_from(("message", "reasoning", "mcp_approval_response", "function_call")) | values},
)
fields = st.fixed_dictionaries(
    {"messages": st.lists(messages | values, max_size=4), "input": st.text(max_size=5) | st.lists(messages | values, max_size=4)},
    optional={
        "model": st.sampled_from(("holdfast", "other")) | values,
        "instructions": st.text(max_size=5) | values,
        "stream": st.booleans() | values,
        "background": st.booleans(),
        "previous_response_id": values,
        "conversation": values,
        "tools": values,
        "tool_choice": values,
        "text": values,
        "stream_options": st.just({"include_usage": True}) | values,
        "response_format": values,
    },
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.sampled_from((CHAT, RESPONSES)), fields)
@example(RESPONSES, {"input": [{"role": "user", "content": "/approve"}], "messages": []})
@example(CHAT, {"messages": [{"role": "user", "content": "/stop"}, {"role": "user", "content": "x"}], "input": ""})
async def test_no_request_makes_the_door_fail(world: World, path: str, body: dict[str, Any]) -> None:
    scope: dict[str, Any] = {
        "type": "http",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [
            (b"host", f"localhost:{world.port}".encode()),
            (b"authorization", f"Bearer {TOKEN}".encode()),
            (b"content-type", b"application/json"),
        ],
        "scheme": "http",
        "client": ("127.0.0.1", 1),
        "root_path": "",
    }
    status, answer = await web.ask(world.app, scope, json.dumps(body).encode())
    assert status != 500, answer
    if status >= 400:
        shapes.DoorFailure(**json.loads(answer)["error"])
    assert not world.app.violations
    assert world.gateway.feed.readers == 0
