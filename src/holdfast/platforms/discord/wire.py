"""Requests to Discord: one for each call, never repeated. Discord's SDK is not used: it repeats requests and waits for limits inside, where
nobody can store that, and keeps the place to read on from in memory.
"""

import re
import time
from collections.abc import AsyncIterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import msgspec

import holdfast
from holdfast.core.delivery import upload_s
from holdfast.platforms.discord.errors import Answer, NotSent, Unanswered, meaning
from holdfast.platforms.discord.limits import Limits, route

API = "https://discord.com"
VERSION = "/api/v10"
POOL = 32
CONNECT_S, ANSWER_S, DOWNLOAD_S = 10.0, 30.0, 120.0
CHUNK = 64 * 1024
# What a gateway sends when a session begins may be large: all channels of a server at once.
MOST_FRAME = 64 * 1024 * 1024
CLOSE_S = 1.0
_UNPRINTABLE = re.compile(r'[\x00-\x1f"\\]')


class Wire:
    """One bot. `call` raises what `errors.meaning` gives: `Unavailable` or `Refused` where it surely was not done, and `Answer` or
    `Unanswered` where nobody knows. None of them holds the token.
    """

    def __init__(self, token: str, *, base_url: str = "") -> None:
        self.token = token
        self._api = (base_url or API).rstrip("/").removesuffix(VERSION) + VERSION  # People name either.
        self._limits = Limits()
        self._open: aiohttp.ClientSession | None = None
        self.server_s = 0.0  # Discord's own clock, as its last answer said.

    async def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | list[Any] | None = None,
        *,
        query: Mapping[str, str] | None = None,
        file: tuple[str, str, bytes] | None = None,
        thread: bool = False,
        writes: bool = False,
    ) -> Any:
        """`file`: its name, its type and its bytes. `thread`: the path is that of a thread. `writes`: it shows something to people."""
        try:
            return await self._call(method, path, body, query or {}, file)
        except (Answer, NotSent, Unanswered) as error:
            raise meaning(error, thread=thread, writes=writes) from None

    async def _call(self, method: str, path: str, body: Any, query: Mapping[str, str], file: tuple[str, str, bytes] | None) -> Any:
        where = route(method, path)
        self._limits.check(where, time.monotonic())
        headers = {"Authorization": f"Bot {self.token}"}
        data: Any = None
        if file is not None:
            data = _form(body, file)
        elif body is not None:
            headers["Content-Type"] = "application/json"
            data = msgspec.json.encode(body)
        url = self._api + path
        timeout = aiohttp.ClientTimeout(total=upload_s(len(file[2])) if file else ANSWER_S, sock_connect=CONNECT_S)
        try:
            async with self._session().request(
                method, url, data=data, params=query, headers=headers, timeout=timeout, proxy=_proxy(url)
            ) as response:
                payload = await response.read()
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL) as error:
            raise NotSent(type(error).__name__) from None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unanswered(type(error).__name__) from None
        self._limits.heard(where, response.headers, time.monotonic())
        self.server_s = _date(response.headers.get("Date"))
        if 200 <= response.status <= 299:
            return msgspec.json.decode(payload) if payload else None
        answer = Answer.read(response.status, payload, response.headers.get("Retry-After"))
        if answer.status == 429:
            wait_s = answer.body.retry_after or answer.asked_s or 0.0
            self._limits.refused(where, wait_s, time.monotonic(), account=answer.body.global_)
        raise answer

    async def download(self, url: str) -> AsyncIterator[bytes]:
        """A file, without our token: its address is all it takes. Raises `Answer`, `Unanswered`."""
        timeout = aiohttp.ClientTimeout(total=DOWNLOAD_S, sock_connect=CONNECT_S)
        try:
            async with self._session().get(url, timeout=timeout, proxy=_proxy(url)) as response:
                if response.status != 200:
                    raise Answer.read(response.status, b"", None)
                async for chunk in response.content.iter_chunked(CHUNK):
                    yield chunk
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unanswered(type(error).__name__) from None

    async def socket(self, url: str) -> aiohttp.ClientWebSocketResponse:
        """It is closed by us, also where Discord closes it first: the library would answer with 1000, which ends a session for good.
        Raises `Unanswered`.
        """
        address = f"{url}?v=10&encoding=json"
        timeout = aiohttp.ClientWSTimeout(ws_close=CLOSE_S)
        try:
            return await self._session().ws_connect(
                address, timeout=timeout, autoclose=False, max_msg_size=MOST_FRAME, proxy=_proxy(address.replace("ws", "http", 1))
            )
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unanswered(type(error).__name__) from None

    async def aclose(self) -> None:
        if self._open is not None:
            await self._open.close()
            self._open = None

    def _session(self) -> aiohttp.ClientSession:
        if self._open is None:
            self._open = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=POOL),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"User-Agent": f"DiscordBot (Holdfast, {holdfast.__version__})"},
            )
        return self._open


def _form(body: Any, file: tuple[str, str, bytes]) -> aiohttp.FormData:
    name, media_type, data = file
    form = aiohttp.FormData(quote_fields=False)
    form.add_field("payload_json", msgspec.json.encode(body).decode(), content_type="application/json")
    form.add_field("files[0]", data, filename=_UNPRINTABLE.sub("_", name), content_type=media_type)
    return form


def _date(text: str | None) -> float:
    try:
        return parsedate_to_datetime(text or "").timestamp()
    except ValueError:
        return time.time()


def _proxy(url: str) -> str | None:
    """From the environment; no proxy is meant for this machine. Not by aiohttp's `trust_env`, which may also take a password from .netrc
    and put it in the place of the token.
    """
    parts = urlsplit(url)
    if not parts.hostname or parts.hostname in ("localhost", "127.0.0.1", "::1") or proxy_bypass(parts.hostname):
        return None
    found = getproxies().get(parts.scheme)
    return found if found is not None and found.startswith(("http://", "https://")) else None
