"""A platform that tells what is new over HTTP: one thing after the other, each again and again until it is taken."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import urlsplit

import aiohttp

# Platforms wait for a minute or longer.
AGAIN_S = 0.1


class Told(NamedTuple):
    """`signed` makes the headers, each time it is told. `repeats`: it is told again if nobody took it."""

    body: bytes
    signed: Callable[[], dict[str, str]]
    repeats: bool = True


class Hook:
    """`url`: the address that the platform was given. `leads_to`: what answers behind it now; nobody if None."""

    def __init__(self) -> None:
        self.url, self.waiting = "", deque[Told]()
        self._leads_to: str | None = None
        self._news = asyncio.Event()
        self._telling: asyncio.Task[None] | None = None

    def lead_to(self, origin: str | None) -> None:
        self._leads_to = origin
        self._news.set()

    def tell(self, body: bytes, signed: Callable[[], dict[str, str]], *, repeats: bool = True) -> None:
        self.waiting.append(Told(body, signed, repeats))
        if self._telling is None:
            self._telling = asyncio.ensure_future(self._tell())
        self._news.set()

    async def aclose(self) -> None:
        if self._telling is not None:
            self._telling.cancel()
            await asyncio.wait({self._telling})

    async def _tell(self) -> None:
        async with aiohttp.ClientSession() as client:
            while True:
                while self._leads_to is None or not self.waiting:
                    self._news.clear()
                    await self._news.wait()
                first = self.waiting[0]
                if await self._taken(client, self._leads_to, first) or not first.repeats:
                    self.waiting.popleft()
                else:
                    await asyncio.sleep(AGAIN_S)

    async def _taken(self, client: aiohttp.ClientSession, origin: str, told: Told) -> bool:
        url = urlsplit(self.url)
        try:
            async with client.post(f"{origin}{url.path}", data=told.body, headers={"Host": url.netloc, **told.signed()}) as answer:
                return answer.status < 300
        except aiohttp.ClientError:
            return False
