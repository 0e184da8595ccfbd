"""One model behind one of our wires: a request out over HTTP, the events of the response in, and every failure as a `ModelError`."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Protocol
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import msgspec

from holdfast.agents.wires import errors
from holdfast.agents.wires.reading import Reader, Refusal
from holdfast.agents.wires.sse import Events
from holdfast.ports.agents import Response
from holdfast.ports.models import Busy, Cut, ModelError, ModelRequest, NotAllowed, Piece, Rejected, Taking

CONNECT_S = 15.0
# What may come after the mark of the end (usage), and the end of the body, without which the connection cannot be used again.
AFTERWARDS_S = 2.0
END_S = 0.1
ERROR_LIMIT = 64 * 1024
ERROR_S = 10.0
LISTING_S = 20.0
# What comes of something that another program sent and that has not the shape it should have.
MISSHAPEN = (msgspec.MsgspecError, LookupError, TypeError, AttributeError)
NO_EVENT = "The stream holds something that is no event of this wire."
# Made once: to say the type with every token would cost more than the token itself.
_decoded = msgspec.json.Decoder(dict[str, Any]).decode


class _Model(msgspec.Struct):
    id: str


class _Listed(msgspec.Struct):
    data: list[_Model]


class Wire(Protocol):
    """A protocol, with one model behind it. `path` is added to the provider's address, `listing` where its models are listed."""

    name: str
    path: str
    listing: str
    takes: Taking

    def headers(self, key: str | None) -> Mapping[str, str]: ...

    async def body(self, request: ModelRequest, provider: str, model: str) -> dict[str, Any]: ...

    def objected(self, words: str) -> None:
        """The provider refused a request because of thoughts, in these words."""

    def reader(self, refused: Refusal) -> Reader: ...


class Client:
    """`timeout_s`: how long the provider may be silent between two bytes. `key` is sent in a header and shown nowhere."""

    def __init__(self, wire: Wire, *, provider: str, model: str, base_url: str, key: str | None = None, timeout_s: float = 300.0) -> None:
        self.provider, self.model, self.wire, self.takes = provider, model, wire.name, wire.takes
        self._wire = wire
        # Given with or without the version that the path begins with.
        root = base_url.rstrip("/").removesuffix("/v1" if wire.path.startswith("/v1/") else "")
        self._url, self._listing = root + wire.path, root + wire.listing
        self._key = key
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=timeout_s)
        self._open: aiohttp.ClientSession | None = None

    async def aclose(self) -> None:
        if self._open is not None:
            await self._open.close()
            self._open = None

    async def stream(self, request: ModelRequest) -> AsyncIterator[Piece | Response]:
        body = msgspec.json.encode(await self._wire.body(request, self.provider, self.model))
        reader = self._wire.reader(lambda event: self._refused(errors.fault(event)))
        response: aiohttp.ClientResponse | None = None
        broken: ModelError | None = None
        try:
            response = await self._post(body)
            await self._check(response)
            events = Events()
            while not reader.finished and (chunk := await response.content.readany()):
                for data in events.feed(chunk):
                    for piece in _fed(reader, data):
                        yield piece
            if reader.finished:
                await self._finish(response, events, reader)
        except (aiohttp.ClientError, OSError) as error:  # A TimeoutError is an OSError.
            broken = failure(self.provider, self._url, error, answered=response is not None)
        finally:
            if response is not None:
                response.release()  # Closes the connection unless the body was read to its end.
        # Raised here, so that it does not carry the library's error, which may hold the request with its headers.
        if broken is not None and not reader.finished:
            raise broken
        if not reader.finished:
            raise Cut(f"The stream of {self.provider} ended before the answer did.")
        yield msgspec.structs.replace(_whole(reader), wire=self.wire, provider=self.provider, model=self.model)

    async def offered(self) -> tuple[str, ...]:
        """The names of the provider's models, in its order; none where it has no list. Raises a `ModelError` where it cannot be asked."""
        broken: ModelError
        try:
            sent = self._sent(self._listing, {"Accept": "application/json"})
            async with asyncio.timeout(LISTING_S), self._session().get(self._listing, **sent) as response:
                if response.status != 200:
                    await self._check(response)
                listed = msgspec.json.decode(await response.read(), type=_Listed)
                return tuple(each.id.removeprefix("models/") for each in listed.data)
        except msgspec.MsgspecError:
            return ()
        except (aiohttp.ClientError, OSError) as error:
            broken = failure(self.provider, self._listing, error, answered=False)
        raise broken

    async def _post(self, body: bytes) -> aiohttp.ClientResponse:
        streams = {"Content-Type": "application/json", "Accept": "text/event-stream", "Accept-Encoding": "identity"}
        return await self._session().post(self._url, data=body, **self._sent(self._url, streams))

    def _session(self) -> aiohttp.ClientSession:
        if self._open is None:
            connector = aiohttp.TCPConnector(limit=0)
            self._open = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar(), timeout=self._timeout)
        return self._open

    def _sent(self, url: str, headers: Mapping[str, str]) -> dict[str, Any]:
        """With every request. A redirect is not followed: the key would go along."""
        return {"headers": {**headers, **self._wire.headers(self._key)}, "allow_redirects": False, "proxy": proxy(url)}

    async def _check(self, response: aiohttp.ClientResponse) -> None:
        """Raises unless the answer is a stream. Some refuse with 200 and a JSON body."""
        if response.status == 200 and response.content_type not in ("application/json", "text/html", "application/x-ndjson"):
            return
        raise self._heard(await refusal(response, self.provider, self._key))

    def _refused(self, fault: errors.Fault) -> ModelError:
        return self._heard(errors.error(self.provider, fault, key=self._key))

    def _heard(self, error: ModelError) -> ModelError:
        if isinstance(error, Rejected) and error.thoughts:
            self._wire.objected(str(error))
        return error

    async def _finish(self, response: aiohttp.ClientResponse, events: Events, reader: Reader) -> None:
        """Reads what follows the mark of the end. The response is whole already: nothing here can spoil it."""
        with suppress(TimeoutError, aiohttp.ClientError, ModelError):
            async with asyncio.timeout(END_S if reader.last else AFTERWARDS_S) as limit:
                while chunk := await response.content.readany():
                    for data in events.feed(chunk):
                        _fed(reader, data)
                    if reader.last:
                        limit.reschedule(asyncio.get_running_loop().time() + END_S)


def _fed(reader: Reader, data: bytes) -> Sequence[Piece]:
    """Gives an event to the reader. `[DONE]`, with which some end a stream, is the one that is not JSON."""
    try:
        return reader.feed({"type": "[DONE]"} if data == b"[DONE]" else _decoded(data))
    except MISSHAPEN:
        problem = Cut(NO_EVENT)
    raise problem


def _whole(reader: Reader) -> Response:
    try:
        return reader.read()
    except MISSHAPEN:
        problem = Cut(NO_EVENT)
    raise problem


async def refusal(response: aiohttp.ClientResponse, provider: str, key: str | None) -> ModelError:
    """What an answer means that is not what was asked for. Some refuse with 200 and a JSON body."""
    if 300 <= response.status < 400:
        return Rejected(f"{provider} redirects the request elsewhere ({response.status}). Set base_url to the right address.")
    body = await _beginning(response)
    decoded: object = body.decode(errors="replace").strip()
    with suppress(msgspec.DecodeError):
        decoded = msgspec.json.decode(body)
    if response.status == 200 and not (isinstance(decoded, dict) and decoded.get("error")):
        return Rejected(f"{provider} answered with {response.content_type} instead of a stream. Is base_url right?")
    if response.content_type == "text/html":
        decoded = response.reason or "an HTML page"
    wait_s = errors.retry_after(response.headers, datetime.now(UTC))
    status = 0 if response.status == 200 else response.status
    return errors.error(provider, errors.fault(decoded, status=status, retry_after_s=wait_s), key=key)


def failure(provider: str, url: str, error: Exception, *, answered: bool) -> ModelError:
    """Why there is no answer, or no more of it, from what the library says."""
    where = urlsplit(url).netloc.rpartition("@")[2]
    if isinstance(error, TimeoutError):
        told = f"{provider} ({where}) has been silent for too long."
        return Cut(told) if answered else Busy(told)
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return NotAllowed(f"The certificate of {where} is not valid, so nothing was sent to it.")
    if isinstance(error, aiohttp.ClientConnectorSSLError):
        return NotAllowed(f"No secure connection to {where} is possible, so nothing was sent to it. Is the address right?")
    if isinstance(error, aiohttp.InvalidURL):
        return Rejected(f"The address of {provider} is not valid. Set base_url to the right address.")
    if isinstance(error, aiohttp.ClientConnectorError):
        return Busy(f"No connection to {provider} ({where}): {_reason(error.os_error)}.", at_once=True)
    if isinstance(error, aiohttp.ClientConnectionError | OSError) and not answered:
        return Busy(f"{provider} ({where}) closed the connection before it answered.", at_once=True)
    if answered:
        return Cut(f"The stream of {provider} broke off ({type(error).__name__}).")
    return Busy(f"{provider} ({where}) gave no valid HTTP answer ({type(error).__name__}).")


async def _beginning(response: aiohttp.ClientResponse) -> bytes:
    """The body of a refusal, as far as it comes soon. The status alone says a lot."""
    body = bytearray()
    with suppress(TimeoutError, aiohttp.ClientError):
        async with asyncio.timeout(ERROR_S):
            while len(body) < ERROR_LIMIT and (chunk := await response.content.readany()):
                body += chunk
    return bytes(body)


def _reason(error: OSError) -> str:
    """In the system's words; asyncio puts its own in their place, except where a name is not known."""
    return (os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror) or type(error).__name__


def proxy(url: str) -> str | None:
    """From the environment. Not by aiohttp's `trust_env`, which would also put a password from .netrc in the place of the key."""
    parts = urlsplit(url)
    if not parts.hostname or parts.hostname in ("localhost", "127.0.0.1", "::1") or proxy_bypass(parts.hostname):
        return None
    proxy = getproxies().get(parts.scheme)
    if proxy is not None and not proxy.startswith(("http://", "https://")):
        raise NotAllowed(f"The proxy that the environment names for {parts.scheme} is no HTTP proxy, so nothing was sent.")
    return proxy
