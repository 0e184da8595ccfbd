"""Who may ask: tokens, cookies, codes, names and origins, and the headers that every answer carries (DESIGN 11)."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from holdfast.core.errors import StoreGone
from holdfast.web.access import Access
from holdfast.web.errors import Misdirected, NotSignedIn, TooManyTries
from holdfast.web.stream import Timing
from tests.gateway import sse, web
from tests.gateway.web import TOKEN, Hands, World


def cookie_of(answer: httpx.Response) -> str:
    return re.match(r"holdfast=([^;]*)", answer.headers["set-cookie"])[1]  # type: ignore[index]


def error_of(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def operations(world: World) -> Iterator[tuple[str, str]]:
    for path, methods in world.document["paths"].items():
        for method in methods:
            yield method.upper(), path.replace("{id}", "x")


async def test_without_a_credential_only_health_and_sign_in_are_open(world: World) -> None:
    browser = world.browser()
    opened = []
    for method, path in operations(world):
        answer = await browser.request(method, path)
        if answer.status_code == 401:
            assert error_of(answer) == (401, "not_signed_in") and answer.headers["www-authenticate"] == "Bearer"
            assert (await browser.request("BREW", path)).status_code == 401
        else:
            opened.append(f"{method} {path}")
    assert sorted(opened) == ["GET /healthz", "POST /api/login", "POST /hooks/{platform}"]
    assert (await browser.request("BREW", "/healthz")).status_code == 405


async def test_a_wrong_token_is_refused_even_beside_a_right_cookie(world: World) -> None:
    browser = world.browser()
    await browser.post("/api/login", json={"token": TOKEN})
    assert (await browser.get("/api/sessions")).status_code == 200
    for wrong in (f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", "Bearer ", "Bearer", f"Basic {TOKEN}", TOKEN, "", "Bearer \xff\xfe", "\t"):
        answer = await browser.get("/api/sessions", headers=[(b"Authorization", wrong.encode("latin-1"))])
        assert error_of(answer) == (401, "not_signed_in"), wrong


async def test_a_code_is_exchanged_once_for_a_cookie_that_a_browser_keeps_to_itself(world: World) -> None:
    browser, other = world.browser(), world.browser()
    code = world.access.new_code()
    answer = await browser.post("/api/login", json={"code": code})
    assert (answer.status_code, answer.content) == (204, b"")
    attributes = set(answer.headers["set-cookie"].split("; ")[1:])
    assert attributes == {"Max-Age=2592000", "Path=/", "HttpOnly", "SameSite=Strict"}
    assert (await browser.get("/api/sessions")).status_code == 200
    assert error_of(await other.post("/api/login", json={"code": code})) == (401, "not_signed_in")
    assert (await other.get("/api/sessions")).status_code == 401


async def test_a_code_is_good_for_five_minutes_whatever_the_wall_clock_does(world: World) -> None:
    browser = world.browser()
    early, late = world.access.new_code(), world.access.new_code()
    world.clock.wall_ms += 10**12
    world.clock.elapsed_s += 299
    assert (await browser.post("/api/login", json={"code": early})).status_code == 204
    world.clock.elapsed_s += 2
    assert (await browser.post("/api/login", json={"code": late})).status_code == 401


async def test_a_cookie_survives_a_restart_ends_after_thirty_days_and_with_the_token(tmp_path: Path) -> None:
    async with web.world(tmp_path) as world:
        cookie = cookie_of(await world.browser().post("/api/login", json={"token": TOKEN}))
    async with web.world(tmp_path, life="another") as world:
        browser = world.browser(Cookie=f"theme=dark; holdfast={cookie}; x=y")
        assert (await browser.get("/api/sessions")).status_code == 200
        world.clock.pass_s(30 * 24 * 3600 - 1)
        assert (await browser.get("/api/sessions")).status_code == 200
        world.clock.pass_s(2)
        assert (await browser.get("/api/sessions")).status_code == 401
        world.clock.pass_s(-3600)
        assert (await browser.get("/api/sessions")).status_code == 200
        world.access.use_token("another token")
        assert (await browser.get("/api/sessions")).status_code == 401


async def test_a_cookie_that_was_tampered_with_is_refused(world: World) -> None:
    cookie = cookie_of(await world.browser().post("/api/login", json={"token": TOKEN}))
    name, expires, signature = cookie.split(".")
    forged = [
        f"{name}.{int(expires) + 1}.{signature}",
        f"{name}x.{expires}.{signature}",
        f".{expires}.{signature}",
        f"{expires}.{signature}",
        f"{name}.{expires}.{signature[:-1]}",
        f"{name}.{expires}",
        f"{name}.{expires}.",
        f".{signature}",
        "",
        ".",
        "..",
        "x.y",
        "0." + signature,
    ]
    for value in forged:
        assert (await world.browser(Cookie=f"holdfast={value}").get("/api/sessions")).status_code == 401, value
    both = world.browser(Cookie=f"holdfast=stale.one; holdfast={cookie}")
    assert (await both.get("/api/sessions")).status_code == 200


async def test_signing_out_makes_the_browser_forget_and_ends_that_sign_in_for_whoever_copied_its_cookie(tmp_path: Path) -> None:
    """DESIGN 11: on the server, for good, and for no other browser."""
    async with web.world(tmp_path) as world:
        browser = world.browser()
        cookie = cookie_of(await browser.post("/api/login", json={"token": TOKEN}))
        other = cookie_of(await world.browser().post("/api/login", json={"token": TOKEN}))
        assert cookie != other
        answer = await browser.post("/api/logout", json={})
        assert answer.status_code == 204 and "Max-Age=0" in answer.headers["set-cookie"]
        assert (await browser.get("/api/sessions")).status_code == 401
        assert error_of(await world.browser(Cookie=f"holdfast={cookie}").get("/api/sessions")) == (401, "not_signed_in")
        assert (await world.browser(Cookie=f"holdfast={other}").get("/api/sessions")).status_code == 200
    async with web.world(tmp_path, life="another") as world:
        assert (await world.browser(Cookie=f"holdfast={cookie}").get("/api/sessions")).status_code == 401
        assert (await world.browser(Cookie=f"holdfast={other}").get("/api/sessions")).status_code == 200


async def test_a_sign_out_that_cannot_be_stored_is_not_said_to_have_happened(world: World) -> None:
    browser = world.browser()
    await browser.post("/api/login", json={"token": TOKEN})
    world.weather.fault = StoreGone("/x")
    assert error_of(await browser.post("/api/logout", json={})) == (503, "store_gone")
    world.weather.fault = None
    assert (await browser.get("/api/sessions")).status_code == 200
    assert (await browser.post("/api/logout", json={})).status_code == 204
    assert (await browser.get("/api/sessions")).status_code == 401


async def test_signing_out_with_a_token_and_no_cookie_ends_nothing(world: World) -> None:
    assert (await world.client.post("/api/logout", json={})).status_code == 204
    assert (await world.client.get("/api/sessions")).status_code == 200


async def test_a_new_token_voids_the_codes_that_were_given_out_before(world: World) -> None:
    """DESIGN 11"""
    code = world.access.new_code()
    world.access.use_token("another token")
    assert error_of(await world.browser().post("/api/login", json={"code": code})) == (401, "not_signed_in")
    assert (await world.browser().post("/api/login", json={"code": world.access.new_code()})).status_code == 204


async def test_a_new_token_ends_every_stream_that_an_old_credential_opened(served: World) -> None:
    """DESIGN 11: and gives them nothing more, not even what is stored already."""
    session_id = await served.new_session()
    cookie = cookie_of(await served.browser().post("/api/login", json={"token": TOKEN}))
    async with sse.reading(served, session_id) as by_token, sse.reading(served, session_id, cookie=cookie) as by_cookie:
        for reader in (by_token, by_cookie):
            assert [event.name for event in await reader.take(1)] == ["session.created"]
        served.access.use_token("another token")
        for reader in (by_token, by_cookie):
            [last] = await reader.until("end")
            assert last.data == {"reason": "signed_out"}
            assert await reader.chunk() is False


async def test_signing_out_ends_the_streams_of_that_browser_alone(served: World) -> None:
    """DESIGN 11"""
    session_id = await served.new_session()
    browser = served.browser()
    mine = cookie_of(await browser.post("/api/login", json={"token": TOKEN}))
    other = cookie_of(await served.browser().post("/api/login", json={"token": TOKEN}))
    async with sse.reading(served, session_id, cookie=mine) as ended, sse.reading(served, session_id, cookie=other) as stays:
        await ended.take(1)
        await stays.take(1)
        assert (await browser.post("/api/logout", json={})).status_code == 204
        assert [event.data for event in await ended.until("end")] == [{"reason": "signed_out"}]
        await served.post(session_id, "hello")
        assert (await stays.take(1))[0].name == "message.accepted"


async def test_a_stream_ends_when_the_time_of_its_cookie_is_over(tmp_path: Path) -> None:
    async with web.world(tmp_path, timing=Timing(heartbeat_s=0.02)) as world, web.serving(world):
        session_id = await world.new_session()
        cookie = cookie_of(await world.browser().post("/api/login", json={"token": TOKEN}))
        async with sse.reading(world, session_id, cookie=cookie) as reader:
            await reader.take(1)
            world.clock.pass_s(30 * 24 * 3600 + 1)
            assert [event.data for event in await reader.until("end")] == [{"reason": "signed_out"}]


async def test_behind_tls_the_cookie_is_for_tls_only(world: World) -> None:
    secure = httpx.AsyncClient(transport=httpx.ASGITransport(app=world.app), base_url="https://chat.example.org")
    answer = await secure.post("/api/login", json={"token": TOKEN})
    assert answer.headers["set-cookie"].endswith("; Secure")


async def test_a_sign_in_names_one_credential(world: World) -> None:
    for body in ({}, {"code": "a", "token": "b"}, {"code": 5}, {"password": "x"}, {"code": None}):
        assert error_of(await world.browser().post("/api/login", json=body)) == (400, "bad_input"), body


async def test_after_twenty_wrong_credentials_in_a_minute_one_must_wait_but_a_right_one_passes(world: World) -> None:
    """The right credential is never locked out."""
    browser = world.browser()
    wrong = {"Authorization": "Bearer wrong"}
    for number in range(20):
        path = ("/api/sessions", "/api/status")[number % 2]
        assert (await browser.get(path, headers=wrong)).status_code == 401
        world.clock.elapsed_s += 1
    answer = await browser.get("/api/sessions", headers=wrong)
    assert error_of(answer) == (429, "too_many_tries") and answer.headers["retry-after"] == "40"
    assert error_of(await browser.post("/api/login", json={"code": "guess"})) == (429, "too_many_tries")
    assert (await browser.get("/api/sessions")).status_code == 401  # No credential is not a wrong one.
    assert (await world.client.get("/api/sessions")).status_code == 200
    assert (await browser.post("/api/login", json={"code": world.access.new_code()})).status_code == 204
    for _ in range(100):
        assert (await browser.get("/api/sessions", headers=wrong)).status_code == 429
    world.clock.elapsed_s += 41
    assert (await browser.get("/api/sessions", headers=wrong)).status_code == 401  # Asking meanwhile made it no longer.


def test_the_memory_for_wrong_credentials_and_for_codes_is_bounded() -> None:
    access = Access("t", clock=Hands(), port=1)
    codes = [access.new_code() for _ in range(150)]
    with pytest.raises(NotSignedIn):
        access.sign_in(code=codes[0], client="", secure=False)
    assert access.sign_in(code=codes[-1], client="", secure=False)
    for number in range(3000):
        with pytest.raises(NotSignedIn):
            access.check({b"authorization": b"Bearer x"}, f"client {number}")
    for _ in range(19):
        with pytest.raises(NotSignedIn):
            access.check({b"authorization": b"Bearer x"}, "client 2999")
    with pytest.raises(TooManyTries):
        access.check({b"authorization": b"Bearer x"}, "client 2999")
    with pytest.raises(ValueError, match="empty token"):
        access.use_token("")


async def test_only_our_own_names_are_answered_to(world: World) -> None:
    """A foreign name that resolves to this machine gets nothing, not even the page."""
    port = world.port
    good = (f"localhost:{port}", f"127.0.0.1:{port}", f"[::1]:{port}", f"LOCALHOST:{port}", "chat.example.org", "chat.example.org:8443")
    bad = (
        "evil.example", f"evil.example:{port}", "localhost", f"localhost:{port + 1}", f"localhost.evil.example:{port}", "", f"[::2]:{port}",
        "chat.example.org.", "chat.example.org:x", "chat.example.org:", "a@chat.example.org", f"chat.example.org/:{port}", "\xff", "[::1",
        "chat.example.org chat.example.org", "chat.example.org,evil.example",
    )  # fmt: skip
    for host in good:
        answer = await world.client.get("/api/sessions", headers=[(b"Host", host.encode("latin-1"))])
        assert answer.status_code == 200, host
    for host in bad:
        for path in ("/api/sessions", "/", "/healthz", "/nothing"):
            answer = await world.client.get(path, headers=[(b"Host", host.encode("latin-1"))])
            assert error_of(answer) == (421, "misdirected"), host
    twice = await world.client.get("/api/sessions", headers=[(b"Host", good[0].encode()), (b"Host", b"evil.example")])
    assert error_of(twice) == (400, "bad_input")


def test_names_may_be_allowed_with_or_without_a_port_and_as_bare_addresses() -> None:
    access = Access("t", clock=Hands(), port=80, hosts=("::2", " Chat.Example:81 ", "[::3]"))
    for host in (b"localhost", b"localhost:80", b"[::2]", b"[::2]:9", b"chat.example:81", b"[::3]:80"):
        access.check_host(host)
    for other in (b"chat.example", b"chat.example:80", b"::2", None):
        with pytest.raises(Misdirected):
            access.check_host(other)


async def test_pages_of_others_are_refused_also_when_they_only_read(world: World) -> None:
    own = f"127.0.0.1:{world.port}"
    for origin in (f"http://{own}", f"https://{own}", f"HTTP://{own}"):
        assert (await world.client.get("/api/sessions", headers={"Origin": origin})).status_code == 200, origin
    for origin in (
        "null", "", "http://evil.example", f"http://localhost:{world.port}", f"http://127.0.0.1:{world.port + 1}", "http://127.0.0.1",
        f"http://{own}/", f"http://{own}.evil.example", f"ftp://{own}", own, f"//{own}",
    ):  # fmt: skip
        for method in ("GET", "POST"):
            answer = await world.client.request(method, "/api/sessions", headers={"Origin": origin})
            assert error_of(answer) == (403, "foreign_origin"), origin
    secure = httpx.AsyncClient(transport=httpx.ASGITransport(app=world.app), base_url="https://chat.example.org")
    assert (await secure.get("/healthz", headers={"Origin": "https://chat.example.org"})).status_code == 200
    assert (await secure.get("/healthz", headers={"Origin": "http://chat.example.org"})).status_code == 403


async def test_every_answer_carries_the_headers_that_keep_it_safe(world: World) -> None:
    browser = world.browser()
    answers = [await browser.get(path) for path in ("/", "/healthz", "/nothing", "/api/sessions")]
    answers += [await world.client.get(path) for path in ("/api/sessions", "/metrics", "/api/sessions/none")]
    answers += [await browser.get("/", headers=headers) for headers in ({"Host": "evil.example"}, {"Origin": "null"})]
    answers += [await world.client.post("/api/sessions", content=b"{"), await browser.request("BREW", "/healthz")]
    for answer in answers:
        assert answer.headers["content-security-policy"] == (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; manifest-src 'self'; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cross-origin-opener-policy"] == "same-origin"
        assert answer.headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in answer.headers


async def test_whoever_has_the_token_gets_fresh_codes_and_a_browser_does_not(world: World) -> None:
    browser = world.browser()
    made = await world.client.post("/api/login/codes")
    assert made.status_code == 201 and made.json()["expires_in_s"] == 300
    assert (await browser.post("/api/login", json={"code": made.json()["code"]})).status_code == 204
    assert error_of(await browser.post("/api/login/codes")) == (403, "token_needed")
    assert error_of(await world.browser().post("/api/login/codes")) == (401, "not_signed_in")
