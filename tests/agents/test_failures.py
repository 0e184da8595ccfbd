"""What becomes of a request that brings no whole response, on every wire: the traps of real providers."""

import asyncio
import logging
import socket
import traceback
from typing import Any

import pytest

from holdfast.agents.wires import providers
from holdfast.core.errors import BadInput
from holdfast.ports.models import Busy, Cut, ModelError, NotAllowed, Rejected, TooLong
from tests.agents.wiring import KEY, WIRES, asking, client_of, streamed, talking, user
from tests.fakes.models import Reply, Script, call, serving, text

wires = pytest.mark.parametrize("wire", WIRES)
# Whatever hangs here hangs for good.
SOON_S = 30.0
WHOLE = (*text("I", " see", " it."), call("terminal", {"command": "date"}))


async def failure(wire: str, reply: Reply, **options: Any) -> ModelError:
    """Nothing is tried again unseen, whatever it is."""
    async with talking(reply, wire=wire, **options) as (client, server):
        with pytest.raises(ModelError) as raised:
            await streamed(client)
    assert len(server.requests) == 1
    return raised.value


@wires
@pytest.mark.parametrize("then", ["close", "half", "reset"])
async def test_a_stream_that_ends_before_its_mark_is_cut_wherever_it_ends(wire: str, then: Any) -> None:
    """B10, P4. Above all a cleanly closed one, which looks like an answer."""
    async with serving(Reply(say=WHOLE)) as server:
        client = client_of(wire, server)
        await streamed(client)
        await client.aclose()
        events = server.sent[0]
    marked = next(number for number, event in enumerate(events) if is_mark(event))
    for stop_after in range(marked + 1):
        error = await failure(wire, Reply(say=WHOLE, stop_after=stop_after, then=then))
        assert isinstance(error, Cut), (stop_after, error)


@wires
@pytest.mark.parametrize("then", ["close", "half", "reset", "hang"])
async def test_what_breaks_off_after_the_mark_is_whole(wire: str, then: Any) -> None:
    async with serving(Reply(say=WHOLE)) as server:
        client = client_of(wire, server)
        _, whole = await streamed(client)
        await client.aclose()
        marked = next(number for number, event in enumerate(server.sent[0]) if is_mark(event))
    async with talking(Reply(say=WHOLE, stop_after=marked + 1, then=then), wire=wire) as (client, _):
        _, response = await streamed(client)
    assert (response.text, response.calls, response.blocks) == (whole.text, whole.calls, whole.blocks)


def is_mark(event: bytes) -> bool:
    return any(mark in event for mark in (b'"finish_reason":"', b'"message_stop"', b'"response.completed"'))


@wires
async def test_a_provider_that_falls_silent_within_its_answer_is_cut_after_the_timeout(wire: str) -> None:
    error = await failure(wire, Reply(say=WHOLE, stop_after=2, then="hang"), timeout_s=0.2)
    assert isinstance(error, Cut) and "silent" in str(error)


@wires
async def test_a_provider_that_never_answers_is_busy_after_the_timeout(wire: str) -> None:
    error = await failure(wire, Reply(drop=True, then="hang"), timeout_s=0.2)
    assert isinstance(error, Busy) and not isinstance(error, Cut) and not error.at_once


@wires
async def test_a_slow_drip_is_no_silence(wire: str) -> None:
    async with talking(Reply(say=WHOLE, delay_s=0.05, drip=7), wire=wire, timeout_s=0.5) as (client, _):
        _, response = await streamed(client)
    assert response.text == "I see it."


@wires
async def test_an_event_that_is_not_json_is_cut(wire: str) -> None:
    assert isinstance(await failure(wire, Reply(events=("{not json",))), Cut)
    assert isinstance(await failure(wire, Reply(events=([1, 2],))), Cut)


MISSHAPEN = {
    "chat": ({"choices": [{"delta": {"content": None, "refusal": 7}, "finish_reason": "stop"}]},),
    "responses": (
        {"type": "response.output_item.done", "output_index": 0, "item": {"type": "function_call", "name": "x", "arguments": 7}},
        {"type": "response.completed", "response": {}},
    ),
    "anthropic": (
        {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "name": "x", "input": {}}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": 7}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ),
}


@wires
async def test_a_response_that_cannot_be_put_together_is_cut_and_so_tried_again(wire: str) -> None:
    """B10"""
    assert isinstance(await failure(wire, Reply(events=MISSHAPEN[wire])), Cut)


@wires
async def test_a_connection_that_the_server_closed_meanwhile_may_be_tried_again_at_once(wire: str) -> None:
    """And nothing below us tries it again unseen."""
    async with talking(Reply(say=WHOLE), Reply(drop=True), Reply(say=WHOLE), wire=wire) as (client, server):
        await streamed(client)
        with pytest.raises(Busy) as raised:
            await streamed(client)
        assert raised.value.at_once and not isinstance(raised.value, Cut)
        assert len(server.requests) == 2
        assert [asked.connection for asked in server.requests] == [1, 1]
        await streamed(client)


@wires
async def test_no_connection_is_busy_and_may_be_tried_again_at_once(wire: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        client = providers.client(f"{wire}:fake", key=KEY, base_url=f"http://127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(Busy) as raised:
            await streamed(client)
        await client.aclose()
    assert raised.value.at_once


@wires
async def test_where_no_secure_connection_is_possible_nothing_is_sent_and_nothing_is_tried_again(wire: str) -> None:
    async with serving(Reply(say=WHOLE)) as server:
        client = providers.client(f"{wire}:fake", key=KEY, base_url=server.root.replace("http:", "https:"))
        with pytest.raises(NotAllowed, match="secure"):
            await streamed(client)
        await client.aclose()
    assert server.requests == []


REFUSALS: list[tuple[int, Any, type[ModelError]]] = [
    (400, {"error": {"message": "Unknown field", "type": "invalid_request_error"}}, Rejected),
    (401, {"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}, NotAllowed),
    (402, {"error": {"message": "Payment required"}}, NotAllowed),
    (403, {"type": "error", "error": {"type": "permission_error", "message": "Not for you"}}, NotAllowed),
    (404, {"error": {"message": "The model does not exist", "code": "model_not_found"}}, NotAllowed),
    (413, {"type": "error", "error": {"type": "request_too_large", "message": "Request exceeds the maximum size"}}, TooLong),
    (422, {"detail": [{"msg": "Extra inputs are not permitted"}]}, Rejected),
    (429, {"error": {"message": "Rate limit reached", "type": "requests"}}, Busy),
    (429, {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}, NotAllowed),
    (429, [{"error": {"code": 429, "message": "You exceeded your current quota", "status": "RESOURCE_EXHAUSTED"}}], Busy),
    (500, {"error": "model runner has unexpectedly stopped"}, Busy),
    (503, None, Busy),
    (529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, Busy),
]


@wires
@pytest.mark.parametrize(("status", "error", "kind"), REFUSALS)
async def test_a_refusal_is_told_by_who_must_act(wire: str, status: int, error: Any, kind: type[ModelError]) -> None:
    assert type(await failure(wire, Reply(status=status, error=error))) is kind


@wires
async def test_a_refusal_that_comes_in_pieces_or_breaks_off_is_still_told(wire: str) -> None:
    refusal = {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}
    assert type(await failure(wire, Reply(status=429, error=refusal, drip=20))) is NotAllowed
    assert type(await failure(wire, Reply(status=429, error=refusal, then="half"))) is NotAllowed


@wires
@pytest.mark.parametrize(("header", "seconds"), [({"Retry-After": "7"}, 7), ({"Retry-After-Ms": "250"}, 0.25), ({}, None)])
async def test_when_to_come_back_is_passed_on(wire: str, header: dict[str, str], seconds: float | None) -> None:
    error = await failure(wire, Reply(status=429, error={"error": {"message": "Slow down"}}, headers=header))
    assert isinstance(error, Busy) and error.retry_after_s == seconds and not error.at_once


@wires
async def test_a_prompt_that_is_too_long_is_told_as_such(wire: str) -> None:
    async with talking(wire=wire, script=Script(replies=(Reply(),), window=2000)) as (client, _):
        with pytest.raises(TooLong):
            await streamed(client, asking(user("long " * 1000)))


@wires
@pytest.mark.parametrize(
    ("content_type", "body", "kind"),
    [
        ("text/html", "<html>Welcome to the hotel</html>", Rejected),
        ("application/json", '{"answer": 42}', Rejected),
        ("application/json", '{"error": {"message": "Provider returned error", "code": 502}}', Busy),
        ("application/json", '{"error": {"message": "No credits", "code": 402}}', NotAllowed),
        ("text/plain", "upstream says no", Cut),
    ],
)
async def test_an_answer_that_is_no_stream_is_no_answer(wire: str, content_type: str, body: str, kind: type[ModelError]) -> None:
    assert type(await failure(wire, Reply(body=body, content_type=content_type))) is kind


@wires
async def test_a_stream_under_another_content_type_is_read(wire: str) -> None:
    async with talking(Reply(say=WHOLE, content_type="text/plain; charset=utf-8"), wire=wire) as (client, _):
        _, response = await streamed(client)
    assert response.text == "I see it."


@wires
async def test_a_redirect_is_not_followed_because_the_key_would_go_along(wire: str) -> None:
    async with serving(Reply(say=WHOLE)) as elsewhere:
        error = await failure(wire, Reply(status=307, error={}, headers={"Location": f"{elsewhere.url}/chat/completions"}))
        assert isinstance(error, Rejected) and elsewhere.requests == []


@wires
async def test_cancelling_closes_the_connection_at_once(wire: str) -> None:
    async with talking(Reply(say=WHOLE, stop_after=3, then="hang"), wire=wire) as (client, server):
        task = asyncio.create_task(streamed(client))
        await server.until(lambda it: len(it.sent) == 1)
        async with asyncio.timeout(SOON_S):
            task.cancel()
            await asyncio.wait([task])
            await server.until(lambda it: it.closed == 1)
        assert task.cancelled()


@wires
async def test_leaving_a_stream_closes_the_connection(wire: str) -> None:
    async with talking(Reply(say=WHOLE, stop_after=4, then="hang"), wire=wire) as (client, server):
        stream = client.stream(asking())
        await anext(stream)
        await stream.aclose()  # type: ignore[attr-defined]
        async with asyncio.timeout(SOON_S):
            await server.until(lambda it: it.closed == 1)


@wires
async def test_the_key_is_in_no_error_no_repr_and_no_log(wire: str, caplog: pytest.LogCaptureFixture) -> None:
    """Also where the server says it back, and not in what an error carries along."""
    caplog.set_level(logging.DEBUG)
    echoes = [
        Reply(status=401, error={"error": {"message": f"Incorrect API key provided: {KEY}"}}),
        Reply(status=500, body=f"<pre>Authorization: Bearer {KEY}</pre>", content_type="text/plain"),
        Reply(events=({"type": "error", "error": {"type": "api_error", "message": f"bad {KEY}"}},)),
        Reply(drop=True),
        Reply(say=WHOLE, stop_after=1, then="half"),
    ]
    for reply in echoes:
        async with talking(reply, wire=wire) as (client, _):
            assert KEY not in repr(client)
            with pytest.raises(ModelError) as raised:
                await streamed(client)
        error = raised.value
        assert KEY not in f"{error!r} {error.args} {''.join(traceback.format_exception(error))}"
        assert error.__cause__ is None and error.__context__ is None
    assert KEY not in caplog.text


@wires
async def test_an_unusable_key_is_refused_without_showing_it(wire: str) -> None:
    for key in ("sk-\nHost: elsewhere", "schl\u00fcssel", "sk-\x00"):
        with pytest.raises(BadInput) as raised:
            providers.client(f"{wire}:fake", key=key, base_url="http://127.0.0.1:1")
        assert key not in str(raised.value)
