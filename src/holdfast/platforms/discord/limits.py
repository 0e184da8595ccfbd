"""Discord's rate limits, as the headers of its answers tell them. What is known to be refused is not asked for: too many refused requests
lock a whole address out.
"""

import re
from collections.abc import Mapping

from holdfast.core.chat_errors import Limited

MOST_KNOWN = 5000
# Ids that do not make a limit of their own; those directly below these three do.
_MINOR_ID = re.compile(r"(?<!/channels)(?<!/guilds)(?<!/webhooks)/\d{5,}(?=/|$)")


def route(method: str, path: str) -> str:
    """Requests of one route share a limit."""
    return f"{method} {_MINOR_ID.sub('/*', path)}"


class Limits:
    """Times are monotonic, in seconds."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}
        self._buckets: dict[str, str] = {}
        self._all_until = 0.0

    def check(self, route: str, now: float) -> None:
        """Raises `Limited` where a request would surely be refused."""
        if self._all_until > now:
            raise Limited(self._all_until - now, account=True)
        left_s = self._until.get(self._name(route), 0.0) - now
        if left_s > 0:
            raise Limited(left_s)

    def heard(self, route: str, headers: Mapping[str, str], now: float) -> None:
        """From any answer."""
        bucket = headers.get("X-RateLimit-Bucket")
        if bucket is not None:
            self._buckets[route] = f"{bucket} {_major(route)}"
        if headers.get("X-RateLimit-Remaining") == "0":
            self._until[self._name(route)] = now + _seconds(headers.get("X-RateLimit-Reset-After"))
        if len(self._until) > MOST_KNOWN:
            self._until = {name: until for name, until in self._until.items() if until > now}
        if len(self._buckets) > MOST_KNOWN:
            self._buckets.clear()

    def refused(self, route: str, wait_s: float, now: float, *, account: bool) -> None:
        if account:
            self._all_until = now + wait_s
        else:
            self._until[self._name(route)] = now + wait_s

    def _name(self, route: str) -> str:
        return self._buckets.get(route, route)


def _major(route: str) -> str:
    """The channel, server or webhook that a limit is for."""
    parts = route.split("/")
    return "/".join(parts[1:3])


def _seconds(text: str | None) -> float:
    try:
        return float(text or 0.0)
    except ValueError:
        return 0.0
