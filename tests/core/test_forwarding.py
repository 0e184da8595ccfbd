"""Whose word counts about who asks: only that of our own proxies."""

import pytest

from holdfast.core import forwarding
from holdfast.core.errors import BadInput

PROXIES = forwarding.networks(["127.0.0.1", "10.0.0.0/8", "::1"])


@pytest.mark.parametrize(
    ("peer", "forwarded_for", "client"),
    [
        ("127.0.0.1", "203.0.113.9", "203.0.113.9"),
        ("127.0.0.1", "", "127.0.0.1"),
        ("203.0.113.9", "198.51.100.1", "203.0.113.9"),  # No proxy of ours.
        ("127.0.0.1", "198.51.100.1, 203.0.113.9", "203.0.113.9"),  # The first one was made up by the second.
        ("127.0.0.1", "198.51.100.1, 203.0.113.9, 10.1.2.3", "203.0.113.9"),
        ("127.0.0.1", "10.1.2.3", "10.1.2.3"),
        ("127.0.0.1", "nonsense, 203.0.113.9", "203.0.113.9"),
        ("127.0.0.1", "203.0.113.9, nonsense", "127.0.0.1"),
        ("127.0.0.1", "203.0.113.9:4711", "203.0.113.9"),
        ("127.0.0.1", "[2001:db8::1]:4711", "2001:db8::1"),
        ("::1", "2001:db8::1", "2001:db8::1"),
        ("::ffff:127.0.0.1", "203.0.113.9", "203.0.113.9"),
        ("", "203.0.113.9", ""),
    ],
)
def test_the_client_is_the_nearest_address_that_is_no_proxy_of_ours(peer: str, forwarded_for: str, client: str) -> None:
    assert forwarding.client(peer, forwarded_for, PROXIES) == client


def test_without_trusted_proxies_nobody_is_believed() -> None:
    assert forwarding.client("127.0.0.1", "203.0.113.9", ()) == "127.0.0.1"


@pytest.mark.parametrize(
    ("url", "origin", "host"),
    [
        ("https://Chat.Example.org/", "https://chat.example.org", "chat.example.org"),
        ("https://chat.example.org:443", "https://chat.example.org", "chat.example.org"),
        ("https://chat.example.org:8443", "https://chat.example.org:8443", "chat.example.org:8443"),
        ("http://[::1]:80", "http://[::1]", "[::1]"),
    ],
)
def test_a_public_url_is_the_address_of_a_whole_site(url: str, origin: str, host: str) -> None:
    assert forwarding.origin(url) == origin and forwarding.host(origin) == host


@pytest.mark.parametrize(
    "url",
    [
        "chat.example.org",
        "ftp://x",
        "https://",
        "https://x/path",
        "https://x?q",
        "https://x#f",
        "https://me@x",
        "https://x:99999",
        "https://[",
    ],
)
def test_anything_else_is_refused(url: str) -> None:
    with pytest.raises(BadInput, match=r"is not the address of a whole site, such as https://chat\.example\.org\."):
        forwarding.origin(url)


@pytest.mark.parametrize("text", ["", "proxy.example", "10.0.0.0/99", "1.2.3"])
def test_a_proxy_is_named_by_its_address(text: str) -> None:
    with pytest.raises(BadInput, match="is neither an address nor a network"):
        forwarding.networks([text])
