"""The real clock, the real randomness, and who this process is."""

import os
import resource
import secrets
import time
from pathlib import Path

import psutil

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


def boot_id() -> str:
    """Changes with every start of the machine, so that a process of before is never taken for one of now."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return str(int(psutil.boot_time()))


def process_start(pid: int | None = None) -> int:
    """When a process started, in milliseconds: with the pid it names one life of one process."""
    return int(psutil.Process(pid or os.getpid()).create_time() * 1000)


def lives(pid: int, started_at: int) -> bool:
    """Whether that life of that process goes on: a pid alone may be somebody else's by now."""
    try:
        return process_start(pid) == started_at
    except psutil.Error:
        return False
