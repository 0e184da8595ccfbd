"""Behind the nginx of the distribution, with the configuration that docs/proxy.md gives, over TLS."""

import json
import re
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.e2e.command_line import holdfast
from tests.e2e.serving import ROOT, Serving, wait_until
from tests.ports import free_port

DOCUMENT = ROOT / "docs" / "proxy.md"


class Proxy:
    """nginx in front of a gateway. `url` is where browsers find it."""

    def __init__(self, folder: Path, gateway_port: int) -> None:
        self.port = free_port()
        self.url = f"https://localhost:{self.port}"
        self.folder, self._gateway_port = folder, gateway_port
        folder.mkdir()
        made = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
        files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
        subprocess.run([*made.split(), *files], check=True, capture_output=True)
        self.tls = ssl.create_default_context(cafile=str(folder / "cert.pem"))

    def __enter__(self) -> "Proxy":
        [server] = re.findall(r"```nginx\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
        for documented, here in (
            ("listen 443 ssl;", f"listen 127.0.0.1:{self.port} ssl;"),
            ("/etc/ssl/chat.example.org.pem", str(self.folder / "cert.pem")),
            ("/etc/ssl/chat.example.org.key", str(self.folder / "key.pem")),
            ("chat.example.org", "localhost"),
            ("127.0.0.1:8420", f"127.0.0.1:{self._gateway_port}"),
        ):
            assert documented in server
            server = server.replace(documented, here)
        temporary = "".join(f"{kind}_temp_path {self.folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        around = f"pid {self.folder}/pid; error_log {self.folder}/error.log; events {{}} http {{ access_log off; {temporary}\n{server}}}"
        (self.folder / "nginx.conf").write_text(around)
        command = ["nginx", "-c", str(self.folder / "nginx.conf"), "-p", str(self.folder), "-g", "daemon off; user root;"]
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE)
        wait_until(lambda: self._process.poll() is not None or _listens(self.port))
        assert self._process.poll() is None, self._process.stderr and self._process.stderr.read()
        return self

    def __exit__(self, *exc: object) -> None:
        self._process.terminate()
        self._process.wait()
        assert self._process.stderr
        self._process.stderr.close()

    def browser(self, address: str = "127.0.0.1", **headers: str) -> httpx.Client:
        """A client at an address of its own, with nothing but what a browser has."""
        transport = httpx.HTTPTransport(verify=self.tls, local_address=address)
        return httpx.Client(base_url=self.url, transport=transport, headers=headers, timeout=30)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def behind(tmp_path: Path) -> Iterator[tuple[Serving, Proxy]]:
    if not shutil.which("nginx"):
        pytest.skip("there is no nginx; only root can install it")
    serving = Serving(tmp_path / "home", trusted_proxies="127.0.0.1")
    with Proxy(tmp_path / "nginx", serving.port) as proxy:
        serving.configure(public_url=proxy.url)
        with serving:
            yield serving, proxy


def sign_in(serving: Serving, proxy: Proxy, browser: httpx.Client) -> httpx.Response:
    """With the link that is printed for it."""
    link = holdfast(serving.home, "link").out.strip()
    assert link.startswith(f"{proxy.url}/#code=")
    return browser.post("/api/login", json={"code": link.partition("#code=")[2]}, headers={"Origin": proxy.url})


def test_a_browser_signs_in_behind_a_proxy_with_a_secure_cookie_and_its_pages_alone_may_ask(behind: tuple[Serving, Proxy]) -> None:
    serving, proxy = behind
    wait_until(lambda: f"open  {proxy.url}/#code=" in serving.output())
    with proxy.browser() as browser:
        assert browser.get("/").status_code == 200 and browser.get("/api/sessions").status_code == 401
        answer = sign_in(serving, proxy, browser)
        assert answer.status_code == 204
        cookie = answer.headers["set-cookie"]
        assert {"Secure", "HttpOnly", "SameSite=Strict"} <= {part.strip() for part in cookie.split(";")}
        assert browser.get("/api/sessions").status_code == 200
        made = browser.post("/api/sessions", json={}, headers={"Origin": proxy.url})
        assert made.status_code == 201
        for origin in ("https://evil.example", f"https://localhost:{proxy.port + 1}", f"http://localhost:{proxy.port}", "null"):
            assert browser.post("/api/sessions", json={}, headers={"Origin": origin}).status_code == 403, origin
        assert browser.get("/api/sessions", headers={"Host": "evil.example"}).status_code == 421
        long = browser.post(f"/api/sessions/{made.json()['session_id']}/messages", json={"text": "x" * 3_000_000})
        assert long.status_code == 202
        assert "Secure" in browser.post("/api/logout").headers["set-cookie"]


def test_events_come_through_as_they_happen(behind: tuple[Serving, Proxy]) -> None:
    """P7: the first words are there while the turn still runs; nothing on the way waits for more of them."""
    serving, proxy = behind
    with proxy.browser() as browser:
        sign_in(serving, proxy, browser)
        session_id = browser.post("/api/sessions", json={}).json()["session_id"]
        browser.post(f"/api/sessions/{session_id}/messages", json={"text": "run echo ahoy; sleep 600"})
        with browser.stream("GET", f"/api/sessions/{session_id}/events") as stream:
            assert stream.headers["content-type"].startswith("text/event-stream")
            lines = stream.iter_lines()
            for line in lines:
                if line.startswith("data: ") and "ahoy" in json.loads(line[6:]).get("text", "") and "call_id" in line:
                    break
            assert serving.session(session_id)["state"] == "running"
            with proxy.browser(Authorization=f"Bearer {serving.token}") as other:
                assert other.post(f"/api/sessions/{session_id}/stop").status_code == 202
            assert any(line == "event: turn.ended" for line in lines)


def test_wrong_credentials_are_counted_by_the_real_client_and_nobody_can_pretend_to_be_another(behind: tuple[Serving, Proxy]) -> None:
    serving, proxy = behind

    def try_wrong(address: str, **headers: str) -> int:
        with proxy.browser(address, Authorization="Bearer wrong", **headers) as browser:
            return browser.get("/api/sessions").status_code

    assert [try_wrong("127.0.0.2", **{"X-Forwarded-For": f"198.51.100.{number}"}) for number in range(21)] == [401] * 20 + [429]
    assert try_wrong("127.0.0.3") == 401
    pretends_nothing(serving, "127.0.0.4")


def test_where_no_proxy_is_named_nobody_is_believed(tmp_path: Path) -> None:
    """Also not a program on this machine."""
    with Serving(tmp_path / "home") as serving:
        pretends_nothing(serving, "127.0.0.1")


def pretends_nothing(serving: Serving, address: str) -> None:
    with httpx.Client(base_url=serving.url, transport=httpx.HTTPTransport(local_address=address)) as direct:
        for number in range(21):
            answer = direct.get("/api/sessions", headers={"Authorization": "Bearer wrong", "X-Forwarded-For": f"198.51.100.{number}"})
        assert answer.status_code == 429
        signed = direct.post("/api/login", json={"token": serving.token}, headers={"X-Forwarded-Proto": "https"})
        assert signed.status_code == 204 and "Secure" not in signed.headers["set-cookie"]
        assert direct.get("/healthz", headers={"X-Forwarded-Host": "evil.example"}).status_code == 200


def test_a_hand_over_behind_a_proxy_refuses_nothing(behind: tuple[Serving, Proxy]) -> None:
    """C24"""
    serving, proxy = behind
    answered: list[int] = []
    over = threading.Event()

    def ask() -> None:
        with proxy.browser(Authorization=f"Bearer {serving.token}") as browser:
            while not over.is_set():
                answered.append(browser.get("/api/sessions").status_code)

    asking = [threading.Thread(target=ask) for _ in range(3)]
    for thread in asking:
        thread.start()
    try:
        for _ in range(2):
            before = serving.pid
            said = holdfast(serving.home, "restart")
            assert said.code == 0, said.err
            wait_until(lambda before=before: serving.pid != before)  # type: ignore[misc]
    finally:
        over.set()
        for thread in asking:
            thread.join()
    assert set(answered) == {200} and len(answered) > 20
