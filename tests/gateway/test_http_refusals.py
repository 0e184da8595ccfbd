"""What is wrong with a request is told in one shape, with the right status, and changes nothing."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import structlog

from holdfast.core.errors import Bug, Conflict, Refused, StaleEpoch, StoreClosed, StoreFull, Unavailable
from tests.gateway.test_http_access import error_of
from tests.gateway.web import TOKEN, WAIT_S, World

MIB = 1024 * 1024
JSON = {"Content-Type": "application/json"}


async def nothing_was_said(world: World, session_id: str) -> bool:
    view = await world.view(session_id)
    return not view["messages"] and not view["queued"]


NOT_UNDERSTOOD = [
    (b"", "empty"),
    (b"  \n", "empty"),
    (b"{", "valid JSON"),
    (b'{"text": "a"} x', "trailing"),
    (b'{"text": NaN}', "byte 9"),
    (b"\xef\xbb\xbf{}", "byte 0"),
    (b'{"text": "a\xff"}', "byte 11 is 0xff"),
    (b'{"text": "\xed\xa0\x80"}', "not UTF-8"),
    (b'{"text": "\\ud800"}', "surrogate"),
    (b'{"text": "\\ud800\\u0041"}', "surrogate"),
    (b'{"text": "\\udc00"}', "surrogate"),
    (b"null", "`object`, got `null`"),
    (b"[]", "`object`, got `array`"),
    (b"{}", "missing required field `text`"),
    (b'{"text": null}', "`str`, got `null` - at `text`"),
    (b'{"text": 5}', "`str`, got `int` - at `text`"),
    (b'{"text": ["a"]}', "`str`, got `array` - at `text`"),
    (b'{"text": "a", "txt": "b"}', "unknown field `txt`"),
    (b'{"text": "a", "mode": "shout"}', "`mode`"),
    (b'{"text": "a", "client_id": ""}', "`client_id`"),
    (b'{"text": "a", "client_id": "' + b"x" * 201 + b'"}', "`client_id`"),
    (b'{"text": "a", "client_id": 7}', "`client_id`"),
    (b'{"text": "a", "attachments": {}}', "`attachments`"),
    (b'{"text": "a", "attachments": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "`attachments[0]`"),
    (b'{"text": "a", "attachments": [1e999]}', "range"),
    (b"[" * 100_000, "got `array`"),
    (b'{"text":' * 100_000, "got `object`"),
    (b'{"text": ""}', "empty"),
    (b'{"text": " \\n\\t "}', "empty"),
    (b'{"text": "' + b"x" * (6 * MIB + 1) + b'"}', "6 MiB"),
]


async def test_a_message_that_cannot_be_understood_says_what_is_wrong_and_where(world: World) -> None:
    session_id = await world.new_session()
    for body, words in NOT_UNDERSTOOD:
        answer = await world.client.post(f"/api/sessions/{session_id}/messages", content=body, headers=JSON)
        assert error_of(answer) == (400, "bad_input") and words in answer.json()["error"]["message"], (body[:50], answer.text)
    assert await nothing_was_said(world, session_id)


async def test_bodies_are_json_in_utf_8_and_nothing_else(world: World) -> None:
    session_id = await world.new_session()
    path, body = f"/api/sessions/{session_id}/messages", b'{"text": "hello"}'
    for kind in ("text/plain", "application/x-www-form-urlencoded", "application/jsonp", "application/json; charset=latin-1", "", "json"):
        answer = await world.client.post(path, content=body, headers={"Content-Type": kind})
        assert error_of(answer) == (415, "not_json"), kind
    assert error_of(await world.client.post(path, content=body)) == (415, "not_json")
    assert error_of(await world.client.post(path, content=body, headers=JSON | {"Content-Encoding": "gzip"})) == (415, "not_json")
    assert await nothing_was_said(world, session_id)
    for kind in ("application/json", "Application/JSON; charset=UTF-8", 'application/json;charset="utf-8"'):
        assert (await world.client.post(path, content=body, headers={"Content-Type": kind})).status_code == 202, kind
    assert (await world.client.post("/api/sessions")).status_code == 201  # What is optional may be left out.


async def test_a_body_that_is_too_large_is_refused_by_its_length_or_as_soon_as_it_is(served: World) -> None:
    session_id = await served.new_session()
    path = f"/api/sessions/{session_id}/messages"

    async def drip() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b"x" * MIB

    async with httpx.AsyncClient(base_url=served.url, headers={"Authorization": f"Bearer {TOKEN}"} | JSON, timeout=WAIT_S) as client:
        assert error_of(await client.post(path, content=b"x" * (8 * MIB + 1))) == (413, "too_large")
        assert error_of(await client.post(path, content=drip())) == (413, "too_large")
        large = json.dumps({"text": "x" * (6 * MIB)}).encode()
        assert (await client.post(path, content=large)).status_code == 202
        assert (await client.get("/healthz")).status_code == 200
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    announced = (
        f"POST {path} HTTP/1.1\r\nHost: localhost:{served.port}\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: {10**14}\r\n\r\n"
    )
    writer.write(announced.encode())
    assert b" 413 " in await reader.readline()
    writer.transport.abort()


async def test_a_client_that_leaves_in_the_middle_of_its_body_changes_nothing(served: World) -> None:
    session_id = await served.new_session()
    for ending in (b'{"text": "ha', b'{"text": "half"}'):
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        head = f"POST /api/sessions/{session_id}/messages HTTP/1.1\r\nHost: localhost:{served.port}\r\nAuthorization: Bearer {TOKEN}\r\n"
        writer.write(head.encode() + b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n" + ending)
        await writer.drain()
        writer.close()
        await reader.read()
    assert await nothing_was_said(served, session_id)


async def test_what_is_no_http_gets_an_answer_or_a_closed_connection_and_harms_nobody(served: World) -> None:
    for raw in (
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET\r\n\r\n",
        b"\r\n\r\n\x00",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.0\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n",
        b"GET /api/sessions HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        writer.write(raw)
        writer.write_eof()
        async with asyncio.timeout(WAIT_S):
            answer = await reader.read()
        assert b" 500 " not in answer and b"Traceback" not in answer, raw
        writer.transport.abort()
    assert (await served.client.get("/healthz")).status_code == 200


async def test_what_is_not_there_is_told_so(world: World) -> None:
    for method, path, body in (
        ("GET", "/api/sessions/{id}", None), ("PATCH", "/api/sessions/{id}", {"pinned": True}), ("POST", "/api/sessions/{id}/stop", {}),
        ("POST", "/api/sessions/{id}/messages", {"text": "hello"}), ("GET", "/api/sessions/{id}/events", None),
        ("POST", "/api/questions/{id}", {"text": "yes"}),
    ):  # fmt: skip
        for name in ("s_none", "..", "%00", "%F0%9F%A6%80", "%FF", "a" * 1000, "%27%3B--"):
            if name == ".." and path.endswith("/events"):
                continue  # The client makes /api/events of it, which is there and does not end.
            answer = await world.client.request(method, path.replace("{id}", name), json=body)
            assert answer.status_code == 404 and error_of(answer)[1] in ("not_found", "no_such_path"), (path, name)
    for path in ("/api", "/api/", "/api/nothing", "/api/sessions/", "/nothing", "/api/sessions/a/b/c", "//api/sessions"):
        for method in ("GET", "POST", "BREW"):
            assert error_of(await world.client.request(method, path)) == (404, "no_such_path"), path


async def test_a_wrong_method_is_told_which_are_right(world: World) -> None:
    session_id = await world.new_session()
    for path, allow in (
        ("/api/sessions", "GET, HEAD, POST"), (f"/api/sessions/{session_id}", "DELETE, GET, HEAD, PATCH"), ("/healthz", "GET, HEAD"),
        (f"/api/sessions/{session_id}/messages", "GET, HEAD, POST"), (f"/api/sessions/{session_id}/events", "GET"), ("/", "GET, HEAD"),
    ):  # fmt: skip
        for method in ("PUT", "OPTIONS", "TRACE", "BREW", "get"):
            answer = await world.client.request(method.encode() if method == "get" else method, path)  # type: ignore[arg-type]
            assert error_of(answer) == (405, "wrong_method") and answer.headers["allow"] == allow, (method, path)


async def test_head_is_get_without_the_body(world: World) -> None:
    for path in ("/api/sessions", "/api/status", "/healthz", "/api/openapi.json"):
        whole, head = await world.client.get(path), await world.client.head(path)
        assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", str(len(whole.content)))


async def test_a_query_that_does_not_fit_is_refused(world: World) -> None:
    for query in (
        "limit=0", "limit=101", "limit=x", "limit=1.5", "limit=" + "9" * 99, "archived=perhaps", "state=idle", "before=x", "before=1.2.3",
        "before=1",
        "before=" + "9" * 40 + ".1", "before=" + "1" * 200, "query=" + "x" * 1001, "&".join(f"a{n}=1" for n in range(51)),
    ):  # fmt: skip
        assert error_of(await world.client.get(f"/api/sessions?{query}")) == (400, "bad_input"), query


async def test_an_empty_or_unknown_parameter_counts_as_absent(world: World) -> None:
    await world.new_session()
    for query in ("query=&limit=&before=&archived=", "colour=blue", "limit=5&limit=6", "&&&", "=", "%FF=%FF", "query=%FF%00"):
        assert (await world.client.get(f"/api/sessions?{query}")).status_code == 200, query


async def test_a_change_that_does_not_fit_changes_nothing(world: World) -> None:
    session_id = await world.new_session(title="Before")
    before = await world.view(session_id)
    wrong: list[Any] = [{}, {"title": None}, {"title": 5}, {"title": "x" * 501}, {"pinned": "yes"}, {"archived": 1}, {"state": "idle"}]
    for change in wrong:
        assert error_of(await world.client.patch(f"/api/sessions/{session_id}", json=change)) == (400, "bad_input"), change
    assert await world.view(session_id) == before


@pytest.mark.parametrize(
    ("fault", "status", "code", "retry_after"),
    [
        (StoreFull(), 507, "store_full", "5"),
        (StoreClosed(), 503, "store_closed", "1"),
        (Unavailable("Not now.", retry_after_s=2.1), 503, "unavailable", "3"),
        (StaleEpoch("s", 1), 409, "stale_epoch", None),
        (Conflict("Too late."), 409, "conflict", None),
        (Refused("No."), 400, "refused", None),
    ],
)
async def test_when_the_store_fails_nothing_is_acknowledged_and_the_client_knows_when_to_come_back(
    world: World, fault: Exception, status: int, code: str, retry_after: str | None
) -> None:
    """P1."""
    session_id = await world.new_session()
    world.app.strict = False  # The store gives some of these to others only.
    world.weather.fault = fault
    answer = await world.post(session_id, "hello")
    assert error_of(answer) == (status, code) and answer.headers.get("retry-after") == retry_after
    world.weather.fault = None
    assert await nothing_was_said(world, session_id)


@pytest.mark.parametrize("fault", [RuntimeError("secret inner life"), Bug("secret inner life"), KeyError("secret inner life")])
async def test_an_error_of_our_own_is_told_by_an_id_that_the_log_knows_and_by_nothing_else(world: World, fault: Exception) -> None:
    world.weather.fault = fault
    with structlog.testing.capture_logs() as logged:
        answer = await world.client.get("/api/sessions")
    assert error_of(answer) == (500, "internal")
    message = answer.json()["error"]["message"]
    (line,) = [entry for entry in logged if entry["event"] == "request failed"]
    assert line["id"] in message and line["exc_info"] is fault
    assert "secret" not in answer.text and "Traceback" not in answer.text and "RuntimeError" not in answer.text


async def test_the_health_says_nothing_but_that_it_is_bad(world: World) -> None:
    world.weather.fault = StoreClosed("of something secret")
    answer = await world.browser().get("/healthz")
    assert (answer.status_code, answer.text, answer.headers["content-type"]) == (503, "not ok\n", "text/plain; charset=utf-8")
