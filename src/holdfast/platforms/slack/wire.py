"""Requests to Slack's Web API, and sockets of its Socket Mode. The SDK makes the requests, without its repeats: one after a connection that
broke could post a message twice.
"""

import logging
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from holdfast.core.delivery import upload_s
from holdfast.platforms.slack.errors import Answer, NotSent, Unanswered

API = "https://slack.com/api/"
TIMEOUT = aiohttp.ClientTimeout(total=30, sock_connect=10)
LONG = aiohttp.ClientTimeout(total=300, sock_connect=10)
# A socket that answers no ping for half of this is dead, although nobody closed it.
PING_S = 20.0
_LOOPBACK = ("://127.", "://localhost", "://[::1]")
_NOT_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL)
_IN_DOUBT = (aiohttp.ClientError, TimeoutError, OSError, ValueError, AttributeError)


class Wire:
    """One app. Its methods raise `Answer` for what the server refused, `NotSent` for what surely did not reach it, and `Unanswered` where
    nobody knows. None of them holds a token. `has_app`: it can open sockets. `scopes`: what the bot may do, as the server said last.
    """

    def __init__(self, bot_token: str, app_token: str = "", *, base_url: str = "") -> None:
        logging.getLogger("slack_sdk").setLevel(logging.WARNING)  # It writes what it sends, with everything in it.
        base = f"{(base_url or API).rstrip('/')}/"
        self._bot, self._app = (AsyncWebClient(token=token, base_url=base, retry_handlers=[]) for token in (bot_token, app_token))
        if any(place in base for place in _LOOPBACK):  # No proxy of the environment is meant for this machine.
            self._bot.proxy = self._app.proxy = None
        self._token, self.has_app = bot_token, bool(app_token)
        self._http: aiohttp.ClientSession | None = None
        self.scopes: frozenset[str] = frozenset()

    async def tell(self, method: str, **fields: Any) -> dict[str, Any]:
        """A method that changes something."""
        return await self._call(self._bot, method, json=_given(fields))

    async def ask(self, method: str, **fields: Any) -> dict[str, Any]:
        """A method that only reads: those take no JSON."""
        return await self._call(self._bot, method, http_verb="GET", params=_given(fields))

    async def socket_address(self) -> str:
        """Where a connection of Socket Mode can be opened, which proves the app token."""
        return str((await self._call(self._app, "apps.connections.open", json={}))["url"])

    async def socket(self) -> aiohttp.ClientWebSocketResponse:
        """A new connection of Socket Mode: Slack tells some of what happens over it from now on."""
        url = await self.socket_address()
        try:
            return await self._session().ws_connect(url, heartbeat=PING_S, proxy=self._app.proxy, max_msg_size=16 * 1024 * 1024)
        except _IN_DOUBT as error:
            raise NotSent(type(error).__name__) from None

    async def download(self, url: str) -> bytes:
        """A file that Slack keeps. One that is kept elsewhere is only named by Slack, and nobody there may see the token."""
        if not self._is_slacks(url):
            raise Answer(403, "file_is_elsewhere")
        headers = {"Authorization": f"Bearer {self._token}"}
        try:
            async with self._session().get(url, headers=headers, proxy=self._bot.proxy, timeout=LONG) as response:
                if response.status != 200:
                    raise Answer(response.status)
                if response.content_type == "text/html":  # What strangers are shown: a page to sign in.
                    raise Answer(403, "file_not_readable")
                return await response.read()
        except _IN_DOUBT as error:
            raise Unanswered(type(error).__name__) from None

    def _is_slacks(self, url: str) -> bool:
        found, api = urlsplit(url), urlsplit(self._bot.base_url)
        return found[:2] == api[:2] or (found.scheme == "https" and f".{found.hostname}".endswith(".slack.com"))

    async def upload(self, url: str, data: bytes) -> None:
        try:
            timeout = aiohttp.ClientTimeout(total=upload_s(len(data)), sock_connect=10)
            async with self._session().post(url, data=data, proxy=self._bot.proxy, timeout=timeout) as response:
                if response.status != 200:
                    raise Answer(response.status)
        except _IN_DOUBT as error:
            raise NotSent(type(error).__name__) from None  # Nobody sees a file that was not posted.

    async def aclose(self) -> None:
        if self._http is not None:
            await self._http.close()

    async def _call(self, client: AsyncWebClient, method: str, **named: Any) -> dict[str, Any]:
        client.session = self._session()
        try:
            response = await client.api_call(method, **named)
        except SlackApiError as error:
            raise _answer(error.response) from None
        except _NOT_SENT as error:
            raise NotSent(type(error).__name__) from None
        except _IN_DOUBT as error:
            raise Unanswered(type(error).__name__) from None
        if not isinstance(response.data, dict):
            raise Unanswered("no JSON")
        if scopes := response.headers.get("x-oauth-scopes"):
            self.scopes = frozenset(scope.strip() for scope in scopes.split(","))
        return response.data

    def _session(self) -> aiohttp.ClientSession:
        if self._http is None:
            self._http = aiohttp.ClientSession(timeout=TIMEOUT)
        return self._http


def _given(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _answer(response: Any) -> Answer:
    """What the SDK made of it: its own response, or that of the HTTP library where it could not read the body."""
    status = int(getattr(response, "status_code", 0) or getattr(response, "status", 0))
    data = getattr(response, "data", None)
    body = data if isinstance(data, dict) else {}
    try:
        wait_s = float(response.headers["Retry-After"])
    except (KeyError, TypeError, ValueError):
        wait_s = None
    return Answer(status, str(body.get("error", "")), retry_after_s=wait_s, needed=str(body.get("needed", "")))
