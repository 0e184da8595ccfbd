"""The built page and its files."""

from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.gateway import web
from tests.gateway.web import World


@pytest.fixture
async def paged(tmp_path: Path) -> AsyncIterator[World]:
    static = tmp_path / "static"
    (static / "assets").mkdir(parents=True)
    (static / "index.html").write_text("<!doctype html>the page")
    (static / "favicon.svg").write_text("<svg/>")
    (static / "assets" / "index-B7c_Xy-9.js").write_text("go()")
    (static / "assets" / "plain.css").write_text("a{}")
    (tmp_path / "secret").write_text("secret")
    (static / "link").symlink_to(tmp_path / "secret")
    async with web.world(tmp_path, static=static) as world:
        yield world


async def test_the_page_is_at_the_root_and_at_every_session(paged: World) -> None:
    browser = paged.browser()
    for path in ("/", "/s/s_1", "/s/s_1/more", "/index.html"):
        answer = await browser.get(path)
        assert (answer.status_code, answer.text) == (200, "<!doctype html>the page"), path
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert answer.headers["cache-control"] == "no-cache"
    head = await browser.head("/")
    assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", "23")
    assert (await browser.post("/")).status_code == 405


async def test_files_have_their_types_and_those_named_by_content_are_kept_for_ever(paged: World) -> None:
    browser = paged.browser()
    script = await browser.get("/assets/index-B7c_Xy-9.js")
    assert (script.text, script.headers["content-type"]) == ("go()", "text/javascript; charset=utf-8")
    assert script.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert (await browser.get("/favicon.svg")).headers["content-type"] == "image/svg+xml"
    assert (await browser.get("/assets/plain.css")).headers["cache-control"] == "no-cache"
    same = await browser.get("/", headers={"If-None-Match": (await browser.get("/")).headers["etag"]})
    assert (same.status_code, same.content) == (304, b"")


async def test_nothing_but_the_pages_own_files_is_served(paged: World) -> None:
    for path in (
        "/link", "/../secret", "/..%2fsecret", "/assets/../../secret", "/assets/%2e%2e/%2e%2e/secret", "//etc/passwd", "/assets",
        "/assets/",
        "/%00", "/\\..\\secret", "/static/index.html", "/INDEX.HTML", "/s", "/.", "/index.html/",
    ):  # fmt: skip
        scope = {
            "type": "http", "method": "GET", "path": unquote(path), "raw_path": path.encode(), "query_string": b"", "scheme": "http",
            "headers": [(b"host", f"localhost:{paged.port}".encode())], "client": ("127.0.0.1", 1), "root_path": "",
        }  # fmt: skip
        status, body = await web.ask(paged.app, scope)
        assert status == 404 and b"no_such_path" in body, path


async def test_without_a_built_page_a_plain_text_says_what_to_do(world: World) -> None:
    answer = await world.browser().get("/")
    assert answer.status_code == 200 and answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert "not built" in answer.text
    assert (await world.browser().get("/assets/index.js")).status_code == 404
