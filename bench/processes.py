"""What the kernel knows of a process: processor time, memory, bytes written. Linux only."""

import os
import resource
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    """Processor time of all threads, in the program and in the kernel."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def memory_mb(pid: int) -> float:
    return _field(Path(f"/proc/{pid}/status"), "VmRSS") / 1024


def written_bytes(pid: int | None = None) -> int:
    """Bytes this process caused to be written to disks."""
    return _field(Path(f"/proc/{pid or os.getpid()}/io"), "write_bytes")


def _field(path: Path, name: str) -> int:
    for line in path.read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    raise ValueError(f"{path} has no {name}")


def raise_file_limit() -> None:
    """Every reader is an open file."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def own_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
