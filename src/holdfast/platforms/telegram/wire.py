"""Requests to the Bot API. The SDK's `Bot` makes them; its ready-made loops are not used, because they confirm updates before anybody could
store them, and its classes read no update, because one that they cannot read would block its batch.
"""

import logging
import warnings
from typing import Any

import httpx
from telegram import Bot, InputFile
from telegram.error import TelegramError
from telegram.request import HTTPXRequest
from telegram.warnings import PTBUserWarning

from holdfast.platforms.telegram.errors import Answer, NotSent, Unanswered

API = "https://api.telegram.org"
POLL_POOL, POOL = 1, 32
# These write addresses with the token in them.
_TALKATIVE = ("httpx", "httpcore", "telegram")
_LOOPBACK = ("://127.", "://localhost", "://[::1]")


class _Answered(Exception):
    """A response that is no success, before the SDK makes something else of it."""

    def __init__(self, code: int, payload: bytes) -> None:
        super().__init__(code)
        self.code, self.payload = code, payload


class _Request(HTTPXRequest):
    async def do_request(self, *given: Any, **named: Any) -> tuple[int, bytes]:
        code, payload = await super().do_request(*given, **named)
        if not 200 <= code <= 299:
            raise _Answered(code, payload)
        return code, payload


class Wire:
    """One bot. `call` raises `Answer` for what the server refused, `NotSent` for what surely did not reach it, and `Unanswered` where
    nobody knows. None of them holds the token.
    """

    def __init__(self, token: str, *, base_url: str = "") -> None:
        for name in _TALKATIVE:
            logging.getLogger(name).setLevel(logging.WARNING)
        warnings.filterwarnings("ignore", "Please use 'Bot", PTBUserWarning)  # Its typed methods would read what we only store.
        base = (base_url or API).rstrip("/").removesuffix("/bot")  # As libraries want it, or as people do.
        near = any(place in base for place in _LOOPBACK)  # No proxy of the environment is meant for this machine.
        self._polls, self._calls = (
            _Request(
                connection_pool_size=size,
                connect_timeout=10.0,
                read_timeout=30.0,
                write_timeout=30.0,
                media_write_timeout=120.0,
                pool_timeout=5.0,
                httpx_kwargs={"trust_env": not near},
            )
            for size in (POLL_POOL, POOL)
        )
        self._bot = Bot(
            token, base_url=f"{base}/bot", base_file_url=f"{base}/file/bot", request=self._calls, get_updates_request=self._polls
        )
        self._files = f"{base}/file/bot{token}"

    async def call(self, method: str, *, read_timeout_s: float = 30.0, **parameters: Any) -> Any:
        """The result of a method, as the server gave it."""
        given = {name: value for name, value in parameters.items() if value is not None}
        try:
            return await self._bot.do_api_request(method, api_kwargs=given, read_timeout=read_timeout_s)
        except TelegramError as error:
            raise _translated(error, method) from None

    async def download(self, path: str) -> bytes:
        try:
            return await self._calls.retrieve(f"{self._files}/{path}", read_timeout=60.0)
        except TelegramError as error:
            raise _translated(error, path) from None

    @staticmethod
    def file(name: str, data: bytes) -> InputFile:
        return InputFile(data, filename=name)

    async def aclose(self) -> None:
        await self._polls.shutdown()
        await self._calls.shutdown()


def _translated(error: TelegramError, asked: str) -> Exception:
    cause = error.__cause__
    if isinstance(cause, _Answered):
        return Answer.read(asked, cause.code, cause.payload)
    if isinstance(cause, httpx.PoolTimeout | httpx.ConnectTimeout | httpx.ConnectError | httpx.UnsupportedProtocol | httpx.ProxyError):
        return NotSent(type(cause).__name__)
    return Unanswered(type(cause).__name__ if cause is not None else type(error).__name__)
