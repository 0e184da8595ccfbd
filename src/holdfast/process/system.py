"""The real clock, the real randomness, what this process may use, and what it takes."""

import resource
import secrets
import time
from pathlib import Path

MANY_FILES = 65536
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


def memory_bytes() -> int | None:
    """How much memory this process takes; None where that cannot be known."""
    try:
        return int(Path("/proc/self/statm").read_bytes().split()[1]) * resource.getpagesize()
    except OSError:
        import psutil  # Where there is no /proc.

        return int(psutil.Process().memory_info().rss)


def raise_file_limit() -> int:
    """Every reader of a stream is an open file: raises the limit as far as the system allows, and returns it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MANY_FILES if hard == resource.RLIM_INFINITY else hard
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (ValueError, OSError):  # Some systems allow fewer than they claim.
        return soft
    return wanted
