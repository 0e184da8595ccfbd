"""`fetch_url` against a real server on loopback: what it gives of a page, and that no name, redirect or address leads it astray."""

import asyncio
import ipaddress
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from holdfast.core.effects import ToolOutcome
from holdfast.core.redaction import NO_SECRETS, Secrets
from holdfast.ports.tools import ToolContext, ToolResult
from holdfast.tools.fetch import MOST_BYTES, PAGE_CHARS, FetchUrl
from holdfast.tools.readable import Unreadable, convert

HERE = ipaddress.ip_network("127.0.0.1/32")
PAGE = """<html><head><title>The title</title><script>alert(1)</script></head><body><nav><a href="/">home</a></nav>
<h1>A heading</h1><p>Some <b>text</b> &amp; <a href="/next">a link</a>.</p></body></html>"""


async def ignore(text: str) -> None:
    pass


async def fetch(tool: FetchUrl, url: str, secrets: Secrets = NO_SECRETS, **more: Any) -> ToolResult:
    context = ToolContext(session_id="s", session_key="k", generation=1, turn_id="t", call_id="c", key="c", output=ignore, secrets=secrets)
    return await tool.run({"url": url, **more}, context)


@asynccontextmanager
async def serving(answer: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def page(**more: Any) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(**more)

    return answer


@pytest.mark.anyio
async def test_a_page_is_given_as_markdown_without_what_is_not_its_text() -> None:
    async with serving(page(text=PAGE, content_type="text/html")) as url:
        result = await fetch(FetchUrl(allowed=[HERE]), url)

    assert result.outcome is ToolOutcome.DONE
    assert "# A heading" in result.text and f"[a link]({url}/next)" in result.text
    assert "alert" not in result.text


@pytest.mark.anyio
async def test_text_comes_as_it_is_in_its_own_encoding() -> None:
    async with serving(page(body="größer".encode("latin-1"), headers={"content-type": "text/plain; charset=latin-1"})) as url:
        assert (await fetch(FetchUrl(allowed=[HERE]), url)).text == "größer"


@pytest.mark.anyio
async def test_a_long_page_comes_in_parts_that_name_the_next() -> None:
    whole = "".join(f"{number}\n" for number in range(20_000))
    tool, offset, parts = FetchUrl(allowed=[HERE]), 0, []
    async with serving(page(text=whole, content_type="text/plain")) as url:
        while offset < len(whole):
            parts.append((await fetch(tool, url, offset=offset)).text[:PAGE_CHARS])
            offset += PAGE_CHARS
        past = await fetch(tool, url, offset=offset)

    assert "".join(parts).startswith(whole)
    assert "nothing from character" in past.text


@pytest.mark.anyio
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0.0.0.0", "127.1", "2130706433", "0x7f000001", "[::1]", "[::ffff:127.0.0.1]"])
async def test_no_spelling_of_this_machine_is_fetched_from(host: str) -> None:
    heard = []

    async def answer(request: web.Request) -> web.StreamResponse:
        heard.append(request)
        return web.Response(text="secret")

    async with serving(answer) as url:
        result = await fetch(FetchUrl(), url.replace("127.0.0.1", host))

    assert result.outcome is ToolOutcome.FAILED and "secret" not in result.text
    assert not heard


@pytest.mark.anyio
@pytest.mark.parametrize("location", ["http://127.0.0.2:{port}/token", "//127.0.0.2:{port}/token", "http://localhost:{port}/token"])
async def test_a_redirect_to_another_host_is_named_and_not_followed(location: str) -> None:
    """E4: rules are about hosts, so the other host is asked only by a call that the policy has judged."""
    heard = []

    async def answer(request: web.Request) -> web.StreamResponse:
        heard.append(request.host)
        return web.Response(status=302, headers={"location": location.format(port=request.url.port)}, text="moved")

    everywhere = [ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128")]
    async with serving(answer) as url:
        result = await fetch(FetchUrl(allowed=everywhere), url)
        target = location.format(port=url.rpartition(":")[2])
        target = target if target.startswith("http") else f"http:{target}"

    assert result.outcome is ToolOutcome.DONE and target in result.text and "moved" not in result.text
    assert heard == [url.removeprefix("http://")]


@pytest.mark.anyio
async def test_a_redirect_within_a_host_is_followed() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path == "/b/next":
            return web.Response(text=f"arrived {request.query_string}")
        raise web.HTTPFound("next?a=1" if request.path == "/b/" else f"http://127.0.0.1:{request.url.port}/b/")

    async with serving(answer) as url:
        assert (await fetch(FetchUrl(allowed=[HERE]), url)).text == "arrived a=1"


@pytest.mark.anyio
@pytest.mark.parametrize("location", ["file:///etc/passwd", "http://user:word@127.0.0.1/", "http://[::1"])
async def test_a_redirect_to_no_page_of_the_web_is_told(location: str) -> None:
    async with serving(page(status=302, headers={"location": location})) as url:
        result = await fetch(FetchUrl(allowed=[HERE]), url)
    assert result.outcome is ToolOutcome.FAILED and ("address" in result.text or "could not be fetched" in result.text)


@pytest.mark.anyio
async def test_a_second_answer_for_a_name_leads_to_no_private_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name stands for an address that may be fetched from when it is first looked up, and for another one right after."""
    heard, answers = [], iter(["127.0.0.1", "127.0.0.2"])
    look_up = socket.getaddrinfo

    def lying(host: str, *more: Any, **options: Any) -> Any:
        return look_up(next(answers) if host == "fickle.test" else host, *more, **options)

    async def answer(request: web.Request) -> web.StreamResponse:
        heard.append(request.path)
        raise web.HTTPFound("/token")

    monkeypatch.setattr(socket, "getaddrinfo", lying)
    async with serving(answer) as url:
        result = await fetch(FetchUrl(allowed=[HERE]), url.replace("127.0.0.1", "fickle.test"))

    assert result.outcome is ToolOutcome.FAILED and "127.0.0.2 is not an address of the open internet" in result.text
    assert heard == ["/"]


@pytest.mark.anyio
async def test_no_half_of_a_secret_is_given_where_a_page_is_cut_into_parts() -> None:
    """DESIGN 11"""
    secrets = Secrets({"KEY": "hunter2-hunter2"})
    async with serving(page(text="x" * (PAGE_CHARS - 7) + "hunter2-hunter2", content_type="text/plain")) as url:
        parts = [(await fetch(FetchUrl(allowed=[HERE]), url, secrets, offset=offset)).text for offset in (0, PAGE_CHARS)]

    assert "hunter2" not in "".join(parts)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("file:///etc/passwd", "must begin with http"),
        ("http://", "must begin with http"),
        ("http://user:word@host/", "user name"),
        ("http://host:99999/", "is not an address"),
        ("http://[::1", "is not an address"),
        ("ftp://host/x", "must begin with http"),
    ],
)
async def test_what_is_no_address_of_a_page_is_told(url: str, why: str) -> None:
    result = await fetch(FetchUrl(allowed=[HERE]), url)

    assert result.outcome is ToolOutcome.FAILED and why in result.text


@pytest.mark.anyio
async def test_errors_of_the_server_what_is_too_large_and_what_is_no_text_are_told() -> None:
    tool = FetchUrl(allowed=[HERE])
    async with serving(page(status=404, text="no")) as url:
        assert "answered 404" in (await fetch(tool, url)).text
    async with serving(page(body=b"x", content_type="image/png")) as url:
        assert "is not text but image/png" in (await fetch(tool, url)).text
    async with serving(page(body=b"x" * (MOST_BYTES + 1), content_type="text/plain")) as url:
        assert "larger than 5 MB" in (await fetch(tool, url)).text
    async with serving(page(status=302, headers={"location": "/again"})) as url:
        assert "redirects more than" in (await fetch(tool, url)).text


@pytest.mark.anyio
async def test_a_small_response_that_unpacks_to_a_large_one_is_refused() -> None:
    async def bomb(request: web.Request) -> web.StreamResponse:
        response = web.Response(body=b"0" * (MOST_BYTES * 4), content_type="text/plain")
        response.enable_compression(web.ContentCoding.gzip)
        return response

    async with serving(bomb) as url:
        assert "larger than 5 MB" in (await fetch(FetchUrl(allowed=[HERE]), url)).text


@pytest.mark.anyio
async def test_a_server_that_does_not_answer_is_given_up() -> None:
    given_up = asyncio.Event()

    async def hang(request: web.Request) -> web.StreamResponse:
        await given_up.wait()
        return web.Response()

    async with serving(hang) as url:
        result = await fetch(FetchUrl(allowed=[HERE], timeout_s=0.2), url)
        given_up.set()

    assert result.outcome is ToolOutcome.FAILED and "did not answer within 0.2 s" in result.text


@pytest.mark.anyio
async def test_a_page_that_takes_minutes_to_read_holds_nobody_else_up_and_is_given_up() -> None:
    """P8: neither the library nor a regular expression lets other threads work."""
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.01)

    ticking = asyncio.create_task(tick())
    try:
        with pytest.raises(Unreadable, match="takes longer than 1 s"):
            await convert("<blockquote>" * 400_000, "http://x/", within_s=1.0)
    finally:
        ticking.cancel()
    assert ticks > 10
