"""A machine with a systemd of its own: `systemd --user` and a journal in namespaces, where nothing of the real machine is touched."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import psutil

from tests.e2e.command_line import Said

SYSTEMD = next((path for path in ("/usr/lib/systemd/systemd", "/lib/systemd/systemd") if os.access(path, os.X_OK)), None)
JOURNALD = next((path for path in ("/usr/lib/systemd/systemd-journald", "/lib/systemd/systemd-journald") if os.access(path, os.X_OK)), None)
# `--kill-child`: whatever happens to the test, everything in the namespace ends with the first process.
UNSHARE = ("unshare", "--pid", "--fork", "--kill-child", "--mount", "--mount-proc", "--cgroup", "--net")
START_S = 60.0

# $1 is the folder of the machine, $2 the interpreter. The journal tells units apart by the place of their processes in the tree of
# control groups, so the manager gets the place that a login would give it.
BOOT = """
set -eu
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/system
[ ! -d /var/log/journal ] || mount -t tmpfs tmpfs /var/log/journal
mount -t cgroup2 cgroup2 /sys/fs/cgroup
group=/sys/fs/cgroup/user.slice/user-0.slice/user@0.service
mkdir -p "$group"
"$2" -c 'import fcntl, socket, struct
wire = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
fcntl.ioctl(wire, 0x8914, struct.pack("16sh", b"lo", 1))'
"$3" &
sh -c 'echo 0 > "$0/cgroup.procs"; exec "$1" --user --unit=basic.target' "$group" "$4" &
wait
"""


def missing() -> str | None:
    """Why there can be no such machine here; None where there can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "namespaces with a systemd in them need Linux and root"
    if SYSTEMD is None or JOURNALD is None or not shutil.which("systemctl"):
        return "systemd is not installed (on Debian: apt-get install systemd)"
    if not shutil.which("unshare") or not shutil.which("nsenter"):
        return "unshare and nsenter are not installed (on Debian: apt-get install util-linux)"
    tried = subprocess.run([*UNSHARE, "mount", "-t", "cgroup2", "cgroup2", "/sys/fs/cgroup"], capture_output=True, text=True, timeout=30)
    return f"this system allows no namespaces: {tried.stderr.strip()}" if tried.returncode else None


class Machine:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.units = folder / "config" / "systemd" / "user"
        self._process: subprocess.Popen[bytes] | None = None
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "USER": "root",
            "XDG_RUNTIME_DIR": str(folder / "run"),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "SYSTEMD_UNIT_PATH": f"{self.units}:/usr/lib/systemd/user:/lib/systemd/user",
            "SYSTEMD_LOG_LEVEL": "warning",
        }

    def __enter__(self) -> "Machine":
        self.units.mkdir(parents=True)
        (self.folder / "run").mkdir(mode=0o700)
        with (self.folder / "boot.txt").open("wb") as output:
            words = [*UNSHARE, "sh", "-c", BOOT, "boot", str(self.folder), sys.executable, str(JOURNALD), str(SYSTEMD)]
            self._process = subprocess.Popen(words, stdout=output, stderr=subprocess.STDOUT, env=self._environment)
        deadline = time.monotonic() + START_S
        while self.run("systemctl", "--user", "is-system-running").out.strip() not in ("running", "degraded"):
            assert time.monotonic() < deadline and self._process.poll() is None, (self.folder / "boot.txt").read_text()
            time.sleep(0.05)
        return self

    def __exit__(self, *exc: object) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def run(self, *words: str) -> Said:
        """A command inside the machine, as its only user."""
        with self.start(*words) as process:
            out, err = process.communicate(timeout=120)
        return Said(process.returncode, out, err)

    def start(self, *words: str) -> subprocess.Popen[str]:
        assert self._process is not None
        first = next((child.pid for child in psutil.Process(self._process.pid).children()), self._process.pid)
        enter = ["nsenter", f"--target={first}", "--pid", "--mount", "--net", "--cgroup", "--"]
        pipe = subprocess.PIPE
        return subprocess.Popen([*enter, *words], stdout=pipe, stderr=pipe, env=self._environment, cwd=self.folder, text=True)
