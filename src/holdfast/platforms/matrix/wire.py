"""Requests to a homeserver, one for each call: nothing is repeated here. The token travels in a header, so that no address holds it."""

from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import msgspec
from yarl import URL

from holdfast.platforms.matrix.errors import Answer, NotSent, Unanswered

CLIENT, CLIENT_1, MEDIA = "/_matrix/client/v3", "/_matrix/client/v1", "/_matrix/media/v3"
CONNECT_S, REQUEST_S, MEDIA_S = 10.0, 30.0, 120.0
CHUNK = 64 * 1024
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Wire:
    """One account on one homeserver. `call` raises `Answer` for what the server refused, `NotSent` for what surely did not reach it, and
    `Unanswered` where nobody knows. None of them holds the token.
    """

    def __init__(self, homeserver: str, token: str = "") -> None:
        self._base, self._proxy = homeserver.rstrip("/"), _proxy(homeserver)
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._open: aiohttp.ClientSession | None = None

    async def call(
        self,
        method: str,
        *path: str,
        base: str = CLIENT,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        data: bytes | None = None,
        media_type: str = "application/json",
        timeout_s: float = REQUEST_S,
    ) -> Any:
        """The answer, decoded. `path`: in parts, which may hold any text. `body` is sent as JSON, `data` as it is."""
        sent = msgspec.json.encode(body) if body is not None else data
        headers = self._headers | ({"Content-Type": media_type} if sent is not None else {})
        try:
            async with self._session().request(
                method, self._url(base, path, query), data=sent, headers=headers, proxy=self._proxy, timeout=_timeout(timeout_s)
            ) as response:
                payload = await response.read()
                if response.status >= 300:
                    raise Answer.read(response.status, payload, response.headers.get("Retry-After"))
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _translated(error) from None
        try:
            return msgspec.json.decode(payload)
        except msgspec.DecodeError:
            raise Unanswered("the answer is no JSON") from None

    async def download(self, *path: str, base: str) -> AsyncIterator[bytes]:
        try:
            async with self._session().get(
                self._url(base, path, None), headers=self._headers, proxy=self._proxy, timeout=_timeout(MEDIA_S)
            ) as response:
                if response.status >= 300:
                    raise Answer.read(response.status, await response.read(), response.headers.get("Retry-After"))
                async for chunk in response.content.iter_chunked(CHUNK):
                    yield chunk
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _translated(error) from None

    async def aclose(self) -> None:
        if self._open is not None:
            await self._open.close()

    def _session(self) -> aiohttp.ClientSession:
        if self._open is None:
            self._open = aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), connector=aiohttp.TCPConnector(limit=64))
        return self._open

    def _url(self, base: str, path: tuple[str, ...], query: Mapping[str, str] | None) -> URL:
        parts = "/".join(quote(part, safe="") for part in path)
        return URL(f"{self._base}{base}/{parts}{'?' + urlencode(query) if query else ''}", encoded=True)


def _timeout(total_s: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=total_s, sock_connect=CONNECT_S)


def _proxy(homeserver: str) -> str | None:
    """From the environment; none of it is meant for this machine."""
    parts = urlsplit(homeserver)
    near = not parts.hostname or parts.hostname in _LOOPBACK or proxy_bypass(parts.hostname)
    return None if near else getproxies().get(parts.scheme)


def _translated(error: Exception) -> Exception:
    """aiohttp repeats a PUT or GET by itself if a connection turns out to be closed; both may be repeated here."""
    sure = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL, aiohttp.ClientHttpProxyError)
    return NotSent(type(error).__name__) if isinstance(error, sure) else Unanswered(type(error).__name__)
