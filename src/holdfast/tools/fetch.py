"""`fetch_url`: a page of the web as text. It connects to no private address, whatever name, redirect or second DNS answer leads there: the
address is checked where the socket is made. A redirect to another host is not followed: rules are about hosts, so the next call is judged.
"""

import asyncio
import re
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from holdfast.core.addresses import Network, may_fetch
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.ports.tools import ToolContext, ToolResult
from holdfast.tools import readable
from holdfast.tools.plain import PlainTool

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL

MOST_BYTES = 5_000_000
MOST_REDIRECTS = 5
REDIRECTS = frozenset({301, 302, 303, 307, 308})
TIMEOUT_S = 30.0
PAGE_CHARS = 40_000
_TEXT = re.compile(r"text/|application/(json|xml|javascript|.*\+(json|xml))|image/svg")
_CHARSET = re.compile(rb"""<meta[^>]{0,200}charset=["']?([\w-]{1,40})""", re.IGNORECASE)


class Blocked(OSError):
    """The socket would have gone to an address that tools may not reach."""


class Trouble(Exception):
    """Why there is no page, in words."""


class FetchUrl(PlainTool):
    """`allowed`: private networks that may be fetched from all the same. Its connections end with each call."""

    name = "fetch_url"
    description = (
        "Fetches a page of the web and gives its text (HTML as Markdown). A long page comes in parts: ask again with the offset"
        " that the last part names. A redirect to another host is not followed: the result names the address to ask for."
    )
    schema: dict[str, Any] = {  # noqa: RUF012 - nobody changes a schema.
        "type": "object",
        "properties": {
            "url": {"type": "string", "description": "An http or https address."},
            "offset": {"type": "integer", "minimum": 0, "description": "From which character on, for the next part of a long page."},
        },
        "required": ["url"],
        "additionalProperties": False,
    }

    def __init__(self, *, allowed: Sequence[Network] = (), agent: str = "Holdfast", timeout_s: float = TIMEOUT_S) -> None:
        self._allowed, self._agent, self._timeout_s = allowed, agent, timeout_s

    def effect(self, arguments: dict[str, Any]) -> Effect:
        return Effect.PURE

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        try:
            text = await self._fetch(_checked(str(arguments["url"])))
        except Trouble as trouble:
            return ToolResult(ToolOutcome.FAILED, str(trouble))
        # Half a secret would not be known any more, so they are replaced before a part is cut out.
        return ToolResult(ToolOutcome.DONE, _part(context.secrets.text(text), int(arguments.get("offset", 0))))

    async def _fetch(self, url: str) -> str:
        import aiohttp  # Here, because few conversations fetch anything.

        connector = aiohttp.TCPConnector(socket_factory=self._socket, use_dns_cache=False, force_close=True)
        try:
            async with (
                asyncio.timeout(self._timeout_s),
                aiohttp.ClientSession(
                    connector=connector, trust_env=False, cookie_jar=aiohttp.DummyCookieJar(), headers={"User-Agent": self._agent}
                ) as session,
            ):
                return await _followed(session, url)
        except readable.Unreadable as error:
            raise Trouble(f"{url} {error}.") from None
        except TimeoutError:
            raise Trouble(f"{url} did not answer within {self._timeout_s:g} s.") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise Trouble(_why(url, error)) from None

    def _socket(self, info: Any) -> socket.socket:
        """`info`: the address as the resolver gives it, and as it is connected to."""
        family, kind, protocol, _, address = info
        if not may_fetch(str(address[0]), self._allowed):
            raise Blocked(f"{address[0]} is not an address of the open internet")
        return socket.socket(family=family, type=kind, proto=protocol)


async def _followed(session: "aiohttp.ClientSession", url: str) -> str:
    """The text of a page, or where it has moved if that is another host."""
    from yarl import URL  # What is compared is read as it is connected to.

    at = URL(url)
    for _ in range(MOST_REDIRECTS + 1):
        async with session.get(at, allow_redirects=False) as response:
            location = response.headers.get("Location") if response.status in REDIRECTS else None
            if location is None:
                return await _text(response)
            target = response.url.join(URL(location))
            _checked(str(target))
            if _host(target) != _host(at):
                return f"({response.url} redirects to another host and was not followed. Ask for this address if you need it: {target})"
            at = target
    raise Trouble(f"{url} redirects more than {MOST_REDIRECTS} times.")


def _host(url: "URL") -> str:
    return (url.host or "").lower().rstrip(".")


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url.strip())
        parts.port  # noqa: B018 - it raises for a port that is none.
    except ValueError as error:
        raise Trouble(f"{url!r} is not an address: {error}.") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Trouble(f"{url!r} is not an address of a web page. It must begin with http:// or https://.")
    if parts.username is not None:
        raise Trouble("An address with a user name or password in it is not fetched.")
    return url.strip()


def _why(url: str, error: Exception) -> str:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, Blocked):
            return f"{url} was not fetched: {cause}. The operator can allow it with fetch_private in [tools]."
        cause = getattr(cause, "os_error", None) or cause.__cause__ or cause.__context__
    return f"{url} could not be fetched: {error or type(error).__name__}."


async def _text(response: "aiohttp.ClientResponse") -> str:
    kind = response.content_type
    if response.status >= 400:
        raise Trouble(f"{response.url} answered {response.status} {response.reason or ''}".rstrip() + ".")
    if not _TEXT.match(kind):
        size = f", {response.content_length} bytes" if response.content_length is not None else ""
        raise Trouble(f"{response.url} is not text but {kind}{size}.")
    body = bytearray()
    async for chunk in response.content.iter_chunked(64 * 1024):
        body += chunk
        if len(body) > MOST_BYTES:
            raise Trouble(f"{response.url} is larger than {MOST_BYTES // 1_000_000} MB.")
    text = body.decode(_charset(response.charset, body), "replace")
    return await readable.convert(text, str(response.url)) if "html" in kind else text


def _charset(said: str | None, body: bytes | bytearray) -> str:
    found = said or ((match := _CHARSET.search(body[:4096])) and match[1].decode("ascii")) or "utf-8"
    try:
        b"".decode(found)
    except LookupError:
        return "utf-8"
    return found


def _part(text: str, offset: int) -> str:
    if offset >= len(text):
        return f"(There is nothing from character {offset} on: the page has {len(text)}.)" if text else "(The page is empty.)"
    end = offset + PAGE_CHARS
    rest = f"\n\n(This is {offset} to {end} of {len(text)} characters. Continue with offset {end}.)" if end < len(text) else ""
    return text[offset:end] + rest
