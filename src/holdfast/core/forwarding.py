"""Which client really sent a request behind a reverse proxy, and to which address. Only our own proxies are trusted."""

import ipaddress
import re
from collections.abc import Iterable

from holdfast.core.errors import BadInput

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
USUAL = {"http": "80", "https": "443"}
_SITE = re.compile(r"(https?)://(\[[0-9a-f:.]+\]|[^\s/:@?#\[\]]+)(?::([0-9]{1,5}))?/?")


def networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """`127.0.0.1`, `10.0.0.0/8`, `::1` ... Raises `BadInput`."""
    found = []
    for text in texts:
        try:
            found.append(ipaddress.ip_network(text.strip(), strict=False))
        except ValueError:
            raise BadInput(f"{text!r} is neither an address nor a network, such as 127.0.0.1 or 10.0.0.0/8.") from None
    return tuple(found)


def trusted(address: str, proxies: tuple[Network, ...]) -> bool:
    parsed = _address(address)
    return parsed is not None and any(parsed in network for network in proxies)


def client(peer: str, forwarded_for: str, proxies: tuple[Network, ...]) -> str:
    """The nearest address that is not one of our proxies. Anything to the left of it may be made up."""
    found = peer
    for hop in reversed(forwarded_for.split(",")):
        address = _address(hop)
        if address is None or not trusted(found, proxies):
            break
        found = str(address)
    return found


def _address(text: str) -> Address | None:
    """With or without a port and brackets, as proxies write it."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def origin(url: str) -> str:
    """The address of a whole site as browsers write it, with the port only if it is not the usual one. Raises `BadInput`."""
    parts = _SITE.fullmatch(url.strip().lower())
    if parts is None or not 0 < int(parts[3] or 1) <= 65535:
        raise BadInput(f"{url!r} is not the address of a whole site, such as https://chat.example.org.")
    scheme, name, port = parts.groups()
    return f"{scheme}://{name}" if port in (None, USUAL[scheme]) else f"{scheme}://{name}:{port}"


def host(origin: str) -> str:
    return origin.partition("://")[2]
