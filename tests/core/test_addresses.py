"""Which addresses a tool may fetch from: private ones only where the operator named them, however they are spelled."""

import ipaddress

import pytest

from holdfast.core.addresses import may_fetch

PRIVATE = (
    "127.0.0.1 127.8.8.8 0.0.0.0 10.1.2.3 172.16.0.1 192.168.1.1 169.254.169.254 100.64.0.1 192.0.2.1 198.18.0.1 224.0.0.1 240.0.0.1"
    " 255.255.255.255 ::1 :: fe80::1 fe80::1%eth0 fc00::1 ff02::1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 64:ff9b::7f00:1 64:ff9b:1::a00:1"
    " 2002:7f00:1:: ::127.0.0.1 2001:0:0:0:0:0:80ff:fffe 2001:db8::1"
).split()


@pytest.mark.parametrize("address", PRIVATE)
def test_a_private_address_is_refused_in_every_spelling(address: str) -> None:
    assert not may_fetch(address)


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:2800:220:1::1", "::ffff:93.184.216.34", "64:ff9b::5db8:d822"])
def test_an_address_of_the_open_internet_is_fine(address: str) -> None:
    assert may_fetch(address)


def test_what_the_operator_named_is_fine_and_nothing_next_to_it() -> None:
    allowed = [ipaddress.ip_network("10.1.0.0/16")]

    assert may_fetch("10.1.2.3", allowed) and may_fetch("::ffff:10.1.2.3", allowed)
    assert not may_fetch("10.2.0.1", allowed)
