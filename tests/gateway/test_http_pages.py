"""The built page and its files."""

import gzip
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
    (static / "assets" / "large-A7c_Xy-9.js").write_text("go() " * 1000)
    (static / "assets" / "large-A7c_Xy-9.js.gz").write_bytes(gzip.compress(b"go() " * 1000))
    (static / "assets" / "large-A7c_Xy-9.js.br").write_bytes(b"as brotli")
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


@pytest.mark.parametrize(
    ("accepts", "coding"),
    [
        ("gzip, deflate, br, zstd", "br"),
        ("gzip, deflate", "gzip"),
        ("br;q=0, gzip;q=0.5", "gzip"),
        ("BR; q=0.0 , GZIP", "gzip"),
        ("identity", None),
        ("", None),
        ("brotli, gzip2", None),
    ],
)
async def test_a_client_gets_the_smallest_form_it_takes(paged: World, accepts: str, coding: str | None) -> None:
    async with paged.browser().stream("GET", "/assets/large-A7c_Xy-9.js", headers={"Accept-Encoding": accepts}) as answer:
        body = b"".join([part async for part in answer.aiter_raw()])
    assert answer.headers.get("content-encoding") == coding
    assert (gzip.decompress(body) if coding == "gzip" else body) == (b"as brotli" if coding == "br" else b"go() " * 1000)
    assert answer.headers["vary"] == "accept-encoding" and answer.headers["content-type"] == "text/javascript; charset=utf-8"
    assert int(answer.headers["content-length"]) == len(body)


async def test_each_form_of_a_file_has_a_tag_of_its_own_and_the_compressed_copies_no_address(paged: World) -> None:
    browser = paged.browser()
    path = "/assets/large-A7c_Xy-9.js"
    tags = {(await browser.head(path, headers={"Accept-Encoding": coding})).headers["etag"] for coding in ("br", "gzip", "identity")}
    assert len(tags) == 3
    assert (await browser.get(path + ".gz")).status_code == (await browser.get(path + ".br")).status_code == 404


async def test_a_browser_at_an_address_where_nothing_is_gets_the_page_and_a_program_an_error(paged: World) -> None:
    """A person never reads JSON."""
    browser = paged.browser()
    html = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    answer = await browser.get("/no/such/page", headers=html)
    assert (answer.status_code, answer.text) == (404, "<!doctype html>the page")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    for path, headers in (("/no/such/page", {"Accept": "*/*"}), ("/api/nothing", html)):
        answer = await browser.get(path, headers=headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "no_such_path")
