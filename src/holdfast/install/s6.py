"""The service of an s6-overlay container: the files of its folder, as text."""

import shlex

from holdfast.core import exits
from holdfast.install.description import SUPERVISOR, Service

# `finish` says by this code that the service must not be started again.
STAY_DOWN = 125


def files(service: Service) -> dict[str, str]:
    """By path under s6-overlay/s6-rc.d. What stays down by an operator's wish waits in `run` itself: see entry.py."""
    folder = service.name
    return {
        f"{folder}/type": "longrun\n",
        f"{folder}/dependencies.d/base": "",
        f"{folder}/run": _run(service),
        f"{folder}/finish": _finish(),
        f"{folder}/timeout-kill": f"{service.killed_after_s * 1000}\n",
        f"user/contents.d/{folder}": "",
    }


def _run(service: Service) -> str:
    variables = {"HOLDFAST_HOME": service.home, **service.variables, SUPERVISOR: "s6"}
    exports = "\n".join(f"export {name}={shlex.quote(value)}" for name, value in variables.items())
    become = f"s6-setuidgid {shlex.quote(service.user)} " if service.user else ""
    return f"""#!/command/with-contenv sh
# Started by s6-supervise, and again whenever it ended, unless `finish` says otherwise.
{exports}
exec 2>&1
cd {shlex.quote(service.folder)}
exec {become}{shlex.quote(service.command[0])} -P -m holdfast.install.entry
"""


def _finish() -> str:
    return f"""#!/bin/sh
# $1 is the exit code, 256 after a signal. A wrong configuration is not fixed by trying again; everything else comes back, and an
# operator's stop waits in `run` until it is taken back.
if [ "$1" = {exits.CONFIG} ]; then
    echo "holdfast: the configuration is wrong. Fix it, then: s6-svc -u ." >&2
    exit {STAY_DOWN}
fi
"""
