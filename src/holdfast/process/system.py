"""The real clock, the real randomness, and what this process may use."""

import resource
import secrets
import time

ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"


class SystemClock:
    def now(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()

    def offset_s(self, at: int) -> int:
        return time.localtime(at / 1000).tm_gmtoff


class RandomIds:
    def new(self, prefix: str) -> str:
        number = secrets.randbits(80)
        return f"{prefix}_" + "".join(ALPHABET[(number >> shift) & 31] for shift in range(0, 80, 5))


def raise_file_limit() -> None:
    """Every reader of every stream is an open file: take as many as the system allows."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
