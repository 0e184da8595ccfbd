"""Which addresses a tool may fetch from: those of the open internet, and those that the operator has named."""

import ipaddress
from collections.abc import Sequence

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

# IPv6 addresses that carry an IPv4 address in their last 32 bits, or behind the first 16 (6to4).
_NAT64 = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("64:ff9b:1::/48"))
_COMPATIBLE = ipaddress.IPv6Network("::/96")


def may_fetch(text: str, allowed: Sequence[Network] = ()) -> bool:
    """`text`: the address a socket is about to connect to, whatever name led to it."""
    address = ipaddress.ip_address(text.partition("%")[0])
    if any(address in network for network in allowed if network.version == address.version):
        return True
    inner = carried(address)
    if inner is not None:
        return may_fetch(str(inner), allowed)
    return address.is_global and not address.is_multicast and not address.is_reserved


def carried(address: Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that a gateway on the way would make of an IPv6 address."""
    if isinstance(address, ipaddress.IPv4Address):
        return None
    if address.ipv4_mapped or address.sixtofour:
        return address.ipv4_mapped or address.sixtofour
    if address.teredo:
        return address.teredo[1]
    if any(address in network for network in (*_NAT64, _COMPATIBLE)):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return None
