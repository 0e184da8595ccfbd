"""The seam between the command line and a chat platform: an account is tried before a gateway uses it. A trial confirms nothing, so that
what people write meanwhile is answered by the gateway.
"""

from collections.abc import Mapping
from typing import Protocol

import msgspec


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """An account that answered. `name`: as people write it. `about`: what else it is called. `first`: what to do before anybody can write
    to it; `advice`: what the operator should know; both in sentences. `hears`: somebody who writes to it is heard before a gateway runs.
    """

    name: str
    about: str = ""
    first: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    hears: bool = True


class Person(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who wrote to the account, and what."""

    id: str
    name: str
    text: str


class Trial(Protocol):
    """`account`: what it is reached with, by the names of its settings. Both raise `LoggedOut` and `Unavailable`."""

    def check(self, account: Mapping[str, str]) -> Found: ...

    def first_person(self, account: Mapping[str, str], *, within_s: float) -> Person | None:
        """Who wrote to it in a private chat; waits for somebody."""
